# SPDX-License-Identifier: GPL-2.0-only
"""Generates the agent's numbers, and its attributes with their types."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from ynl.spec import Attribute, AttributeSet, Constant, Entry, Enum, Spec

WIDTH = 100
U32_MAX = 0xFFFF_FFFF
TYPES = {"ipv4": "Ipv4Addr", "binary": "[u8]", "string": "str"}


def module(spec: Spec) -> str:
    """Gives spec.rs."""
    return "\n".join(
        [
            # REUSE-IgnoreStart
            "// SPDX-License-Identifier: Apache-2.0",
            # REUSE-IgnoreEnd
            f"//! Numbers and attributes of the generic netlink family `{spec.name}`.",
            "//!",
            "//! Generated from host/kernel/mptcp_pattern.yaml by `make -C host/kernel netlink`;",
            "//! do not edit.",
            "",
            "use netlink_bindings::utils::parse_u8;",
            "use serde::Serialize;",
            "",
            "use crate::netlink::Type;",
            "",
            "/// Name of the family.",
            f'pub const NAME: &str = "{spec.name}";',
            "/// Version of its messages.",
            f"pub const VERSION: u8 = {spec.version};",
            *(line for one in spec.constants for line in constant(one)),
            "",
            *commands(spec),
            *(line for one in spec.enums for line in values(one)),
            *(line for one in spec.numbered_sets() for line in attributes(spec, one)),
        ]
    )


def constant(one: Constant) -> Iterator[str]:
    """A number."""
    yield from doc(one.doc)
    if one.value > U32_MAX:
        yield f"pub const {upper(one.name)}: u64 = {one.value:_};"
    else:
        yield f"pub const {upper(one.name)}: usize = {one.value};"


def commands(spec: Spec) -> Iterator[str]:
    """The operations."""
    yield from doc("what a message is about")
    yield "#[derive(Debug, Clone, Copy, PartialEq, Eq)]"
    yield "#[repr(u8)]"
    yield from members("Command", spec.operations)


def values(one: Enum) -> Iterator[str]:
    """The values of an attribute."""
    name = camel(one.name)
    yield from doc(one.doc)
    yield "#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]"
    yield '#[serde(rename_all = "kebab-case")]'
    yield "#[repr(u8)]"
    yield from members(name, one.entries)
    yield f"impl Type for {name} {{"
    yield "    type Value<'a> = Self;"
    yield ""
    yield "    fn read(bytes: &[u8]) -> Option<Self> {"
    yield "        match parse_u8(bytes)? {"
    for entry in one.entries:
        yield f"            {entry.value} => Some(Self::{camel(entry.name)}),"
    yield "            _ => None,"
    yield "        }"
    yield "    }"
    yield "}"
    yield ""


def members(name: str, entries: tuple[Entry, ...]) -> Iterator[str]:
    """An enum with explicit numbers."""
    yield f"pub enum {name} {{"
    for entry in entries:
        yield from doc(entry.doc, "    ")
        yield f"    {camel(entry.name)} = {entry.value},"
    yield "}"
    yield ""


def attributes(spec: Spec, one: AttributeSet) -> Iterator[str]:
    """A module for a set."""
    used = [attribute for attribute in one.attributes if not attribute.is_pad]
    types = {attribute.name: type_of(spec, one, attribute) for attribute in used}
    imports = ["Attribute"] + (["Nest"] if any("Nest" in kind for kind in types.values()) else [])
    yield from doc(one.doc)
    yield f"pub mod {one.name} {{"
    if "Ipv4Addr" in types.values():
        yield "    use std::net::Ipv4Addr;"
        yield ""
    listed = ", ".join(imports)
    yield f"    use crate::netlink::{listed if len(imports) == 1 else '{' + listed + '}'};"
    yield ""
    yield "    /// The set that these attributes belong to."
    yield "    #[derive(Debug)]"
    yield "    pub enum Set {}"
    yield ""
    for attribute in used:
        yield from doc(attribute.doc, "    ")
        name, kind = upper(attribute.name), types[attribute.name]
        line = f"    pub const {name}: Attribute<Set, {kind}> = Attribute::new({attribute.value});"
        if len(line) > WIDTH:
            yield f"    pub const {name}: Attribute<Set, {kind}> ="
            yield f"        Attribute::new({attribute.value});"
        else:
            yield line
    yield "}"
    yield ""


def type_of(spec: Spec, one: AttributeSet, attribute: Attribute) -> str:
    """The Rust type of an attribute's value."""
    if attribute.nested is not None:
        inner = spec.whole(spec.sets[attribute.nested])
        return "Nest<Set>" if inner is one else f"Nest<super::{inner.name}::Set>"
    if attribute.enum is not None:
        return f"super::{camel(attribute.enum)}"
    return TYPES.get(attribute.type, attribute.type)


def doc(text: str, indent: str = "") -> list[str]:
    """A comment for rustdoc."""
    sentence = text[0].upper() + text[1:] + "."
    return [f"{indent}/// {line}" for line in textwrap.wrap(sentence, WIDTH - len(indent) - 4)]


def camel(name: str) -> str:
    """The name of a type."""
    return "".join(part.capitalize() for part in name.split("-"))


def upper(name: str) -> str:
    """The name of a constant."""
    return name.upper().replace("-", "_")
