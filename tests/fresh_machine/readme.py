# SPDX-License-Identifier: Apache-2.0
"""The steps that README names, in the order in which a reader takes them."""

import re
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
README = REPOSITORY / "README.md"

BUNDLE = "weft.bundle"
"""The last commit, as a file in the system's root."""

PREPARE = re.compile(r"^ {4}(sudo apt-get .*\bmake git)$", re.MULTILINE)


@dataclass(frozen=True)
class Step:
    """Something that a reader types."""

    name: str
    command: str
    in_checkout: bool = True


def prepare(text: str) -> str:
    """Return the one line of README that installs `make` and `git`.

    Raises:
        ValueError: there is no such line, or more than one.
    """
    found = PREPARE.findall(text)
    if len(found) != 1:
        raise ValueError(
            f"README.md has {len(found)} lines like `    sudo apt-get ... make git`, not one"
        )
    return str(found[0])


def steps() -> list[Step]:
    """Return what is typed, from the bare system on."""
    return [
        Step("make and git", prepare(README.read_text()), in_checkout=False),
        Step("clone", f"git clone -q /{BUNDLE} ."),
        Step("make topo", "make topo"),
        Step("make workload", "make workload FLOWS=50"),
        Step("make patterns", "make patterns"),
        Step("make down", "make down"),
        Step("make test", "make test"),
    ]
