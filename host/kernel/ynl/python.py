# SPDX-License-Identifier: GPL-2.0-only
"""Generates the numbers for the kernel's tests, which also send broken messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ynl.spec import Attribute, Entry, Spec


def module(spec: Spec) -> str:
    """Gives pattern_numbers.py."""
    lines = [
        # REUSE-IgnoreStart
        "# SPDX-License-Identifier: Apache-2.0",
        # REUSE-IgnoreEnd
        f'"""Numbers of the generic netlink family `{spec.name}`.',
        "",
        "Generated from host/kernel/mptcp_pattern.yaml by `make -C host/kernel netlink`;",
        "do not edit.",
        '"""',
        "",
        "from enum import IntEnum",
        "",
        f'NAME = "{spec.name}"',
        *(f"{upper(one.name)} = {one.value}" for one in spec.constants),
        *members("Command", "What a message is about", spec.operations),
    ]
    for enum in spec.enums:
        lines += members(camel(enum.name), sentence(enum.doc), enum.entries)
    for one in spec.numbered_sets():
        lines += members(camel(one.name), f"Attributes: {one.doc}", one.attributes)
    return "\n".join([*lines, ""])


def members(name: str, doc: str, entries: Iterable[Entry | Attribute]) -> Iterator[str]:
    """An enumeration."""
    yield from ("", "", f"class {name}(IntEnum):", f'    """{doc}."""', "")
    for entry in entries:
        yield f"    {upper(entry.name)} = {entry.value}"


def sentence(text: str) -> str:
    """The text with a capital letter."""
    return text[0].upper() + text[1:]


def camel(name: str) -> str:
    """The name of a class."""
    return "".join(part.capitalize() for part in name.split("-"))


def upper(name: str) -> str:
    """The name of a number."""
    return name.upper().replace("-", "_")
