# SPDX-License-Identifier: Apache-2.0
"""The packages of weft_scenarios import each other in one direction."""

import ast
from collections.abc import Iterator
from pathlib import Path

import weft_scenarios

ORDER = ["definition", "measures", "runs", "results", "report"]
"""Each may import from those before it."""
FOLDER = Path(weft_scenarios.__file__).parent


def imported(file: Path) -> Iterator[str]:
    """Give the packages that a module imports from."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            package, *inner = node.module.split(".")
            if package == "weft_scenarios" and inner:
                yield inner[0]


def test_packages_import_only_from_those_before_them() -> None:
    assert {file.parent.name for file in FOLDER.glob("*/*.py")} == set(ORDER)
    for place, package in enumerate(ORDER):
        for file in (FOLDER / package).glob("*.py"):
            later = {name for name in imported(file) if name in ORDER[place + 1 :]}
            assert not later, f"{file.name} imports from {later}"


def test_what_all_packages_share_imports_from_none_of_them() -> None:
    for name in ("errors", "files", "stats", "units"):
        assert not {*imported(FOLDER / f"{name}.py")} & set(ORDER)
