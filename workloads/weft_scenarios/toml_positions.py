"""Where in a TOML file a key stands, for messages that name the line.

`tomllib` keeps no positions. But the statement that makes a key is the last of the shortest
run of whole lines, from the top of the file, that parses and has the key.
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
    """How messages name it."""
    text: str

    def at(self, path: Path) -> str:
        """Give `file:line` of the statement that makes `path`, or of the innermost table there."""
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
                continue  # In the middle of a text or an array.
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
