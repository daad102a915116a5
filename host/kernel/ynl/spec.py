# SPDX-License-Identifier: GPL-2.0-only
"""Reads a specification in the format of the kernel's YNL.

Only the keys that `mptcp_pattern.yaml` uses are supported. Any other key is an error, so that
nothing in the specification is ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml


class SpecError(Exception):
    """The specification is wrong; the message tells its author how."""


@dataclass(frozen=True)
class Constant:
    """A named number that kernel and user space share."""

    name: str
    value: int
    doc: str


@dataclass(frozen=True)
class Entry:
    """A member of an enumeration: an operation, a source, ..."""

    name: str
    value: int
    doc: str


@dataclass(frozen=True)
class Enum:
    """The values that an attribute may have."""

    name: str
    doc: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Attribute:
    """An attribute of a set."""

    name: str
    value: int
    type: str
    """The type in the specification; `ipv4` for an IPv4 address."""
    doc: str
    nested: str | None = None
    """For a nest, the set of its members."""
    enum: str | None = None
    """The enumeration of its values."""
    checks: Mapping[str, int | str] = field(default_factory=dict)
    """The kernel's limits; a limit is a number or the name of a constant."""

    @property
    def is_pad(self) -> bool:
        """Whether it is padding, and carries nothing."""
        return self.type == "pad"


@dataclass(frozen=True)
class AttributeSet:
    """Attributes that are numbered together, or a subset of them in a nest."""

    name: str
    doc: str
    prefix: str
    enum: str
    attributes: tuple[Attribute, ...]
    subset_of: str | None = None


@dataclass(frozen=True)
class Operation(Entry):
    """A command, with the attributes that it takes."""

    flags: tuple[str, ...] = ()
    request: tuple[str, ...] | None = None
    """Attributes of a `do`; None where there is only a dump."""
    dump: bool = False


@dataclass(frozen=True)
class Spec:
    """A generic netlink family."""

    name: str
    """On the wire."""
    c_name: str
    """The macro that names it."""
    version: int
    c_version: str
    doc: str
    constants: tuple[Constant, ...]
    enums: tuple[Enum, ...]
    sets: Mapping[str, AttributeSet]
    operations: tuple[Operation, ...]
    operation_prefix: str
    operation_enum: str

    @classmethod
    def read(cls, path: Path) -> Spec:
        """Reads a specification."""
        document = Node(path.name, yaml.safe_load(path.read_text()))
        for fixed, expected in (
            ("protocol", "genetlink-legacy"),
            ("max-by-define", True),
            ("kernel-policy", "per-op"),
        ):
            if document.take(fixed) != expected:
                raise SpecError(f"{path.name}: {fixed} has to be {expected}")
        document.take("uapi-header")
        definitions = [Node("definition", item) for item in document.take("definitions", [])]
        kinds = [(item.take("type"), item) for item in definitions]
        for kind, item in kinds:
            if kind not in ("const", "enum"):
                raise SpecError(f"{item.take('name')}: a definition is a const or an enum")
        sets = [read_set(Node("set", item)) for item in document.take("attribute-sets")]
        operations = Node("operations", document.take("operations"))
        result = cls(
            name=document.take("name"),
            c_name=document.take("c-family-name"),
            version=document.take("version", 1),
            c_version=document.take("c-version-name"),
            doc=document.take("doc"),
            constants=tuple(read_constant(item) for kind, item in kinds if kind == "const"),
            enums=tuple(read_enum(item) for kind, item in kinds if kind == "enum"),
            sets={one.name: one for one in sets},
            operations=read_operations(operations.take("list")),
            operation_prefix=operations.take("name-prefix"),
            operation_enum=operations.take("enum-name"),
        )
        operations.done()
        document.done()
        result.check()
        return result

    def check(self) -> None:
        """Raises SpecError for a reference to a name that does not exist."""
        enums = {enum.name for enum in self.enums}
        constants = {constant.name for constant in self.constants}
        for one in self.numbered_sets():
            for attribute in one.attributes:
                if attribute.nested is not None:
                    need(attribute.nested, self.sets, f"nested-attributes of {attribute.name}")
                if attribute.enum is not None:
                    need(attribute.enum, enums, f"enum of {attribute.name}")
                for check, limit in attribute.checks.items():
                    if isinstance(limit, str):
                        need(limit, constants, f"{check} of {attribute.name}")
        for one in self.sets.values():
            if one.subset_of is not None:
                need(one.subset_of, self.sets, f"subset-of of {one.name}")
                names = {attribute.name for attribute in self.sets[one.subset_of].attributes}
                for attribute in one.attributes:
                    need(attribute.name, names, f"attribute of {one.name}")
        messages = {attribute.name for attribute in self.messages.attributes}
        for operation in self.operations:
            for name in operation.request or ():
                need(name, messages, f"attribute of {operation.name}")

    @property
    def c_prefix(self) -> str:
        """Prefix of the names in C for which the specification has no prefix."""
        return self.c_name.removesuffix("-genl-name")

    @property
    def messages(self) -> AttributeSet:
        """The set of a message's own attributes."""
        return self.sets["message"]

    def numbered_sets(self) -> list[AttributeSet]:
        """The sets that are no subset of another."""
        return [one for one in self.sets.values() if one.subset_of is None]

    def whole(self, one: AttributeSet) -> AttributeSet:
        """The set in which the attributes of this one are numbered."""
        return one if one.subset_of is None else self.sets[one.subset_of]

    def members(self, one: AttributeSet) -> list[Attribute]:
        """The attributes of a set, as the set in which they are numbered defines them."""
        names = {attribute.name for attribute in one.attributes}
        return [attribute for attribute in self.whole(one).attributes if attribute.name in names]


class Node:
    """A mapping of the document; a key that is never taken is an error."""

    def __init__(self, what: str, content: Mapping[str, Any]) -> None:
        """`what` it is, for errors."""
        self.content = dict(content)
        self.what = f"{what} {content.get('name', '')}".rstrip()

    def take(self, key: str, default: Any = ...) -> Any:
        """The value of a key; without a default, the key has to exist."""
        if key not in self.content and default is ...:
            raise SpecError(f"{self.what}: {key} is missing")
        return self.content.pop(key, default)

    def done(self) -> None:
        """Raises SpecError when a key was not taken."""
        if self.content:
            raise SpecError(f"{self.what}: not known here: {', '.join(self.content)}")


def need(name: str, known: Iterable[str], what: str) -> None:
    """Raises SpecError for a name that is not known."""
    if name not in known:
        raise SpecError(f"{what}: there is no {name}")


def numbered(items: Iterable[Mapping[str, Any]], what: str, first: int) -> list[tuple[int, Node]]:
    """Each item with its value, which is by default one more than the item before."""
    result = []
    value = first
    for item in items:
        node = Node(what, item)
        value = node.take("value", value)
        result.append((value, node))
        value += 1
    return result


def read_constant(node: Node) -> Constant:
    """A definition of type `const`."""
    constant = Constant(node.take("name"), node.take("value"), node.take("doc"))
    node.done()
    return constant


def read_enum(node: Node) -> Enum:
    """A definition of type `enum`."""
    entries = []
    for value, entry in numbered(node.take("entries"), "entry", 0):
        entries.append(Entry(entry.take("name"), value, entry.take("doc")))
        entry.done()
    enum = Enum(node.take("name"), node.take("doc"), tuple(entries))
    node.done()
    return enum


def read_set(node: Node) -> AttributeSet:
    """A set of attributes."""
    name = node.take("name")
    whole = node.take("subset-of", None)
    attributes = node.take("attributes")
    if whole is not None:
        node.done()
        parts = tuple(Attribute(item["name"], 0, "", "") for item in attributes)
        return AttributeSet(name, "", "", "", parts, whole)
    one = AttributeSet(
        name,
        node.take("doc"),
        node.take("name-prefix"),
        node.take("enum-name"),
        tuple(read_attribute(value, item) for value, item in numbered(attributes, name, 1)),
    )
    node.done()
    return one


def read_attribute(value: int, node: Node) -> Attribute:
    """An attribute of a numbered set."""
    name, kind = node.take("name"), node.take("type")
    if node.take("byte-order", None) is not None:
        if (kind, node.take("display-hint", None)) != ("u32", "ipv4"):
            raise SpecError(f"{node.what}: only IPv4 addresses have a byte order")
        kind = "ipv4"
    node.take("multi-attr", None)  # both ends read as many as there are
    attribute = Attribute(
        name,
        value,
        kind,
        doc="" if kind == "pad" else node.take("doc"),
        nested=node.take("nested-attributes", None),
        enum=node.take("enum", None),
        checks=node.take("checks", {}),
    )
    node.done()
    return attribute


def read_operations(items: Iterable[Mapping[str, Any]]) -> tuple[Operation, ...]:
    """The commands."""
    operations = []
    for value, node in numbered(items, "operation", 1):
        if node.take("attribute-set") != "message":
            raise SpecError(f"{node.what}: messages have the attributes of the set message")
        do, dump = node.take("do", None), node.take("dump", None)
        operations.append(
            Operation(
                node.take("name"),
                value,
                node.take("doc"),
                flags=tuple(node.take("flags", ())),
                request=None if do is None else tuple(do["request"]["attributes"]),
                dump=dump is not None,
            )
        )
        node.done()
    return tuple(operations)
