# SPDX-License-Identifier: GPL-2.0-only
"""Generates the UAPI header, and the module's policies and operations."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from ynl.spec import Attribute, AttributeSet, Operation, Spec, SpecError

WIDTH = 80
VALUE_COLUMN = 32
"""Column at which the values of macros begin."""
S16_MAX = 0x7FFF
"""Limits of policies are 16 bits wide; larger ones need a struct netlink_range_validation."""
INT_MAX = 0x7FFFFFFF
ORIGIN = "Generated from mptcp_pattern.yaml by `make netlink`; do not edit."


def uapi_header(spec: Spec) -> str:
    """Gives include/uapi/weft.h."""
    about = f'Generic netlink family "{spec.name}". {spec.doc}'
    return "\n".join(
        [
            # REUSE-IgnoreStart
            "/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */",
            # REUSE-IgnoreEnd
            *comment([about, "", ORIGIN]),
            "#ifndef _UAPI_WEFT_H",
            "#define _UAPI_WEFT_H",
            "",
            define(macro(spec.c_name), f'"{spec.name}"'),
            define(macro(spec.c_version), str(spec.version)),
            "",
            *(
                define(macro(spec.c_prefix, one.name), f"{number(one.value)}\t/* {one.doc} */")
                for one in spec.constants
            ),
            "",
            *operation_enum(spec),
            *(line for one in spec.numbered_sets() for line in set_enum(spec, one)),
            *(line for one in spec.enums for line in value_enum(spec, one.name)),
            "#endif /* _UAPI_WEFT_H */",
            "",
        ]
    )


def define(name: str, value: str) -> str:
    """A macro; the values of all macros begin in the same column."""
    text = f"#define {name}"
    return text + "\t" * max(1, -(-(VALUE_COLUMN - len(text)) // 8)) + value


def number(value: int) -> str:
    """A number with the suffix that it needs."""
    return f"{value}ULL" if value > INT_MAX else str(value)


def operation_enum(spec: Spec) -> Iterator[str]:
    """The commands."""
    members = [
        (macro(spec.operation_prefix, one.name), one.value, one.doc) for one in spec.operations
    ]
    last = macro(spec.operation_prefix, "max")
    yield from enum(word(spec.operation_enum), "commands", members, last)


def set_enum(spec: Spec, one: AttributeSet) -> Iterator[str]:
    """The attributes of a set."""
    members = [
        (
            macro(one.prefix, attribute.name),
            attribute.value,
            "unused" if attribute.is_pad else f"{attribute.doc} ({type_name(spec, attribute)})",
        )
        for attribute in one.attributes
    ]
    yield from enum(word(one.enum), one.doc, members, macro(one.prefix, "max"))


def value_enum(spec: Spec, name: str) -> Iterator[str]:
    """The values of an attribute."""
    one = next(one for one in spec.enums if one.name == name)
    members = [
        (macro(spec.c_prefix, one.name, entry.name), entry.value, entry.doc)
        for entry in one.entries
    ]
    yield from enum(word(spec.c_prefix, one.name), one.doc, members)


def enum(
    name: str, doc: str, members: list[tuple[str, int, str]], last: str | None = None
) -> Iterator[str]:
    """An enum with its kernel-doc; `last` is the macro for the highest value."""
    yield "/**"
    yield f" * enum {name} - {doc}"
    for member, _, text in members:
        wrapped = textwrap.wrap(f"@{member}: {text}", WIDTH - 11)
        yield from (f" * {line}" if line is wrapped[0] else f" *\t{line}" for line in wrapped)
    yield " */"
    yield f"enum {name} {{"
    expected = 0
    for member, value, _ in members:
        yield f"\t{member}," if value == expected else f"\t{member} = {value},"
        expected = value + 1
    if last is not None:
        yield "\t/* private: */"
        yield f"\t__{last},"
    yield "};"
    yield ""
    if last is not None:
        yield f"#define {last} (__{last} - 1)"
        yield ""


def type_name(spec: Spec, attribute: Attribute) -> str:
    """The type of an attribute."""
    if attribute.nested is not None:
        part = spec.sets[attribute.nested]
        if part.subset_of is None:
            return f"nest of enum {word(part.enum)}"
        whole = spec.sets[part.subset_of]
        return "nest of " + ", ".join(macro(whole.prefix, one.name) for one in part.attributes)
    if attribute.enum is not None:
        return f"{attribute.type}, enum {word(spec.c_prefix, attribute.enum)}"
    return {"ipv4": "be32"}.get(attribute.type, attribute.type)


def kernel_header(spec: Spec) -> str:
    """Gives netlink_gen.h."""
    return "\n".join(
        [
            # REUSE-IgnoreStart
            "/* SPDX-License-Identifier: GPL-2.0-only */",
            # REUSE-IgnoreEnd
            *comment([f'Policies and operations of the family "{spec.name}".', "", ORIGIN]),
            "#ifndef _WEFT_NETLINK_GEN_H",
            "#define _WEFT_NETLINK_GEN_H",
            "",
            "#include <net/genetlink.h>",
            "#include <net/netlink.h>",
            "",
            '#include "include/uapi/weft.h"',
            "",
            *(f"extern {policy_of_set(spec, one)};" for one in nested_sets(spec)),
            "",
            *(f"{handler};" for one in spec.operations for handler in handlers(spec, one)),
            "",
            f"extern struct genl_family {spec.c_prefix}_nl_family;",
            "",
            "#endif /* _WEFT_NETLINK_GEN_H */",
            "",
        ]
    )


def kernel_source(spec: Spec) -> str:
    """Gives netlink_gen.c."""
    return "\n".join(
        [
            # REUSE-IgnoreStart
            "// SPDX-License-Identifier: GPL-2.0-only",
            # REUSE-IgnoreEnd
            *comment([f'Policies and operations of the family "{spec.name}".', "", ORIGIN]),
            "#include <linux/module.h>",
            "",
            '#include "netlink_gen.h"',
            "",
            *(line for one in with_range(spec) for line in value_range(spec, one)),
            *(
                line
                for one in nested_sets(spec)
                for line in policy(spec, policy_of_set(spec, one), one, spec.members(one))
            ),
            *(
                line
                for one in spec.operations
                if one.request
                for line in policy(
                    spec,
                    policy_of_operation(spec, one),
                    spec.messages,
                    [part for part in spec.messages.attributes if part.name in one.request],
                )
            ),
            f"static const struct genl_split_ops {spec.c_prefix}_nl_ops[] = {{",
            *(line for one in spec.operations for line in operation(spec, one)),
            "};",
            "",
            f"struct genl_family {spec.c_prefix}_nl_family __ro_after_init = {{",
            f"\t.name\t\t= {macro(spec.c_name)},",
            f"\t.version\t= {macro(spec.c_version)},",
            "\t.module\t\t= THIS_MODULE,",
            "\t.netnsok\t= true,",
            "\t.parallel_ops\t= true,",
            f"\t.split_ops\t= {spec.c_prefix}_nl_ops,",
            f"\t.n_split_ops\t= ARRAY_SIZE({spec.c_prefix}_nl_ops),",
            "};",
            "",
        ]
    )


def nested_sets(spec: Spec) -> list[AttributeSet]:
    """The sets that requests nest, each after the sets that it nests itself."""
    found: list[AttributeSet] = []

    def visit(attributes: Iterable[Attribute]) -> None:
        for attribute in attributes:
            if attribute.nested is not None:
                nested = spec.sets[attribute.nested]
                visit(spec.members(nested))
                if nested not in found:
                    found.append(nested)

    asked = {name for one in spec.operations for name in one.request or ()}
    visit(attribute for attribute in spec.messages.attributes if attribute.name in asked)
    return found


def policy_of_set(spec: Spec, one: AttributeSet) -> str:
    """The declaration of a nest's policy."""
    return policy_declaration(spec.c_prefix, one.name, spec.whole(one))


def policy_of_operation(spec: Spec, one: Operation) -> str:
    """The declaration of a request's policy."""
    return "static " + policy_declaration(spec.c_prefix, one.name, spec.messages)


def policy_declaration(prefix: str, name: str, numbers: AttributeSet) -> str:
    """The declaration of a policy: an array indexed by the numbers of a set."""
    size = f"{macro(numbers.prefix, 'max')} + 1"
    return f"const struct nla_policy {word(prefix, name)}_nl_policy[{size}]"


def policy(
    spec: Spec, declaration: str, one: AttributeSet, members: list[Attribute]
) -> Iterator[str]:
    """A policy, with an entry for each attribute that it allows."""
    yield f"{declaration} = {{"
    for attribute in members:
        if not attribute.is_pad:
            name = macro(spec.whole(one).prefix, attribute.name)
            yield f"\t[{name}] = {check(spec, attribute)},"
    yield "};"
    yield ""


def limit(spec: Spec, attribute: Attribute, name: str) -> str:
    """A limit of an attribute, in C."""
    value = attribute.checks[name]
    return macro(spec.c_prefix, value) if isinstance(value, str) else number(value)


def has_range(spec: Spec, attribute: Attribute) -> bool:
    """Whether a limit of an integer does not fit into the policy itself."""
    constants = {one.name: one.value for one in spec.constants}
    limits = (attribute.checks.get(name, 0) for name in ("min", "max"))
    return any((constants[one] if isinstance(one, str) else one) > S16_MAX for one in limits)


def with_range(spec: Spec) -> list[Attribute]:
    """The attributes of requests that need a range of their own."""
    asked = {name for one in spec.operations for name in one.request or ()}
    nested = {part.name for one in nested_sets(spec) for part in spec.members(one)}
    members = [part for one in spec.numbered_sets() for part in spec.members(one)]
    return [one for one in members if has_range(spec, one) and one.name in asked | nested]


def value_range(spec: Spec, attribute: Attribute) -> Iterator[str]:
    """The range of an attribute."""
    yield f"static const struct netlink_range_validation {range_name(spec, attribute)} = {{"
    for name in ("min", "max"):
        if name in attribute.checks:
            yield f"\t.{name}\t= {limit(spec, attribute, name)},"
    yield "};"
    yield ""


def range_name(spec: Spec, attribute: Attribute) -> str:
    """The name of an attribute's range."""
    return word(spec.messages.prefix, attribute.name, "range")


def check(spec: Spec, attribute: Attribute) -> str:
    """The kernel's check of an attribute."""
    kinds = {"ipv4": "NLA_BE32", "string": "NLA_NUL_STRING"}
    kind = kinds.get(attribute.type, f"NLA_{macro(attribute.type)}")
    if attribute.nested is not None:
        return f"NLA_POLICY_NESTED({word(spec.c_prefix, attribute.nested)}_nl_policy)"
    if has_range(spec, attribute):
        return f"NLA_POLICY_FULL_RANGE({kind}, &{range_name(spec, attribute)})"

    match sorted(attribute.checks):
        case []:
            return f"{{ .type = {kind} }}"
        case ["max"]:
            return f"NLA_POLICY_MAX({kind}, {limit(spec, attribute, 'max')})"
        case ["min"]:
            return f"NLA_POLICY_MIN({kind}, {limit(spec, attribute, 'min')})"
        case ["max-len", "min-len"] if attribute.type == "binary":
            least, most = (limit(spec, attribute, name) for name in ("min-len", "max-len"))
            return f"NLA_POLICY_RANGE({kind}, {least}, {most})"
    raise SpecError(f"{attribute.name}: no policy is known for these checks")


def handlers(spec: Spec, one: Operation) -> Iterator[str]:
    """The functions that implement an operation in the module."""
    name = word(spec.c_prefix, "nl", one.name)
    if one.request is not None:
        yield f"int {name}_doit(struct sk_buff *skb, struct genl_info *info)"
    if one.dump:
        yield f"int {name}_dumpit(struct sk_buff *skb, struct netlink_callback *cb)"


def operation(spec: Spec, one: Operation) -> Iterator[str]:
    """The entries of an operation."""
    for kind, there in (("do", one.request is not None), ("dump", one.dump)):
        if not there:
            continue
        flags = [f"GENL_{macro(flag)}" for flag in one.flags] + [f"GENL_CMD_CAP_{kind.upper()}"]
        yield "\t{"
        yield f"\t\t.cmd\t\t= {macro(spec.operation_prefix, one.name)},"
        yield f"\t\t.{kind}it\t\t= {word(spec.c_prefix, 'nl', one.name)}_{kind}it,"
        if kind == "do" and one.request:
            yield f"\t\t.policy\t\t= {word(spec.c_prefix, one.name)}_nl_policy,"
            yield f"\t\t.maxattr\t= {macro(spec.messages.prefix, 'max')},"
        yield f"\t\t.flags\t\t= {' | '.join(flags)},"
        yield "\t},"


def comment(paragraphs: Iterable[str]) -> Iterator[str]:
    """A comment of several lines."""
    yield "/*"
    for paragraph in paragraphs:
        for line in textwrap.wrap(paragraph, WIDTH - 3) or [""]:
            yield f" * {line}".rstrip()
    yield " */"


def word(*parts: str) -> str:
    """A name in lower case."""
    return "_".join(part.strip("-") for part in parts).replace("-", "_")


def macro(*parts: str) -> str:
    """A name in upper case."""
    return word(*parts).upper()
