# SPDX-License-Identifier: Apache-2.0
"""Finds the line of a key in a TOML file, for error messages.

`tomllib` keeps no positions. So this parses growing prefixes of the file, line by line. The first
one that has the key ends with the statement that sets it.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Path = tuple[str | int, ...]
"""Keys and indices from the top: ("experiment", 0, "seeds")."""


@dataclass(frozen=True)
class Source:
    """A file that was read."""

    name: str
    """Its name in error messages."""
    text: str

    def at(self, path: Path) -> str:
        """Give `file:line` of the statement that sets `path`, or of the table around it."""
        while path:
            line = self._line(path)
            if line:
                return f"{self.name}:{line}"
            path = path[:-1]
        return self.name

    def _line(self, path: Path) -> int | None:
        lines = self.text.splitlines()
        before = 0
        for end in range(1, len(lines) + 1):
            try:
                content = tomllib.loads("\n".join(lines[:end]))
            except tomllib.TOMLDecodeError:
                continue  # Inside a multi-line string or array.
            if _has(content, path):
                return before + 1
            before = end
        return None


def _has(content: Any, path: Path) -> bool:
    for step in path:
        if isinstance(step, int):
            if not isinstance(content, Sequence) or step >= len(content):
                return False
        elif not isinstance(content, Mapping) or step not in content:
            return False
        content = content[step]
    return True
