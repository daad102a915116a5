# SPDX-License-Identifier: Apache-2.0
"""Fields of parsed JSON documents, checked; an error names the field and what is wrong."""

from typing import Any

from weft_topology.errors import UsageError


def value(document: Any, key: str) -> Any:
    """Give the field `key` of an object."""
    if not isinstance(document, dict):
        raise UsageError("not a JSON object")
    if key not in document:
        raise UsageError(f"{key} is missing")
    return document[key]


def mapping(document: Any, key: str) -> dict[str, Any]:
    """Give a field that is an object."""
    found = value(document, key)
    if not isinstance(found, dict):
        raise UsageError(f"{key}: not an object")
    return found


def sequence(document: Any, key: str) -> list[Any]:
    """Give a field that is a list."""
    found = value(document, key)
    if not isinstance(found, list):
        raise UsageError(f"{key}: not a list")
    return found


def string(document: Any, key: str) -> str:
    """Give a field that is a text."""
    found = value(document, key)
    if not isinstance(found, str):
        raise UsageError(f"{key}: not a string: {found!r}")
    return found


def integer(document: Any, key: str) -> int:
    """Give a field that is a whole number."""
    found = value(document, key)
    if not isinstance(found, int) or isinstance(found, bool):
        raise UsageError(f"{key}: not a whole number: {found!r}")
    return found


def flag(document: Any, key: str) -> bool:
    """Give a field that is true or false."""
    found = value(document, key)
    if not isinstance(found, bool):
        raise UsageError(f"{key}: neither true nor false: {found!r}")
    return found


def by_number(document: Any, key: str) -> dict[int, int]:
    """Give a field that maps numbers to numbers."""
    found = mapping(document, key)
    if not all(name.isdecimal() for name in found):
        raise UsageError(f'{key}: write it like {{"2": 40000}}')
    return {int(name): integer(found, name) for name in found}


def within(name: str, number: int, low: int, high: int) -> None:
    """Refuse a number out of range."""
    if not low <= number <= high:
        raise UsageError(f"{name} {number} is out of range {low}..{high}")
