# SPDX-License-Identifier: Apache-2.0
"""Differences from `default` that follow from how a scheduler works, each with its reason.

They are in differences.toml. A difference that no longer shows is an error too, so that an
improvement cannot be lost again unnoticed.
"""

import fnmatch
import tomllib
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).resolve().parent.parent / "differences.toml"


@dataclass(frozen=True)
class Difference:
    """Subtests that a scheduler does not pass although `default` does."""

    schedulers: tuple[str, ...]
    test: str
    subtests: tuple[str, ...]
    """Patterns with the shell's wildcards."""
    why: str

    def covers(self, scheduler: str, test: str, subtest: str) -> bool:
        """Whether it is about this."""
        return (
            scheduler in self.schedulers
            and test == self.test
            and any(fnmatch.fnmatchcase(subtest, pattern) for pattern in self.subtests)
        )


def read(file: Path = FILE) -> list[Difference]:
    """Read the file; an entry without a reason is refused."""
    entries = tomllib.loads(file.read_text()).get("difference", [])
    result = []
    for number, entry in enumerate(entries, 1):
        if set(entry) != {"schedulers", "test", "subtests", "why"} or not entry["why"].strip():
            raise ValueError(
                f"{file}: difference {number} needs schedulers, test, subtests and why"
            )
        result.append(
            Difference(
                tuple(entry["schedulers"]), entry["test"], tuple(entry["subtests"]), entry["why"]
            )
        )
    return result
