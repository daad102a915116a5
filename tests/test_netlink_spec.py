# SPDX-License-Identifier: Apache-2.0
"""Everything generated from the specification of the family `mptcp_pattern` agrees with it."""

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from kernel_tests import pattern_numbers
from ynl import c, rust
from ynl.__main__ import SPEC, generated, stale
from ynl.spec import Entry, Spec, SpecError

TEXT = SPEC.read_text()


@pytest.fixture(name="spec")
def spec_of_the_repository() -> Spec:
    return Spec.read(SPEC)


def changed(folder: Path, old: str, new: str) -> Spec:
    """Read the specification with one change."""
    assert TEXT.count(old) == 1, old
    path = folder / "mptcp_pattern.yaml"
    path.write_text(TEXT.replace(old, new))
    return Spec.read(path)


def numbers(spec: Spec) -> dict[str, int]:
    """Give all numbers of the protocol, by their names in C."""
    members = [
        (c.macro(one.prefix, attribute.name), attribute.value)
        for one in spec.numbered_sets()
        for attribute in one.attributes
    ]
    members += [(c.macro(spec.operation_prefix, one.name), one.value) for one in spec.operations]
    members += [
        (c.macro(spec.c_prefix, enum.name, entry.name), entry.value)
        for enum in spec.enums
        for entry in enum.entries
    ]
    members += [(c.macro(spec.c_prefix, one.name), one.value) for one in spec.constants]
    return dict(members)


def test_no_generated_file_is_stale(spec: Spec) -> None:
    assert stale(spec) == []


def test_a_new_attribute_makes_every_generated_file_but_the_headers_of_the_module_stale(
    tmp_path: Path,
) -> None:
    last = "        doc: bytes scheduled\n"
    more = f"{last}      -\n        name: lost\n        type: u64\n        doc: bytes lost\n"
    old = {path.name for path in stale(changed(tmp_path, last, more))}
    assert old == {"weft.h", "spec.rs", "pattern_numbers.py"}


def test_a_limit_that_changes_makes_the_policies_stale(tmp_path: Path) -> None:
    old = stale(changed(tmp_path, "          max: 32\n", "          max: 24\n"))
    assert {path.name for path in old} == {"netlink_gen.c"}


def test_a_compiler_counts_all_numbers_of_the_header_as_they_are_specified(
    spec: Spec, tmp_path: Path
) -> None:
    expected = numbers(spec)
    assert len(expected) > 30
    program = tmp_path / "numbers.c"
    lines = [f'\tprintf("{name} %lld\\n", (long long){name});' for name in expected]
    program.write_text(
        '#include <stdio.h>\n#include "weft.h"\nint main(void)\n{\n' + "\n".join(lines) + "\n}\n"
    )
    include = SPEC.parent / "include/uapi"
    subprocess.run(["cc", "-I", include, "-o", tmp_path / "numbers", program], check=True)
    told = subprocess.run([tmp_path / "numbers"], check=True, capture_output=True, text=True)
    counted = {name: int(value) for name, value in map(str.split, told.stdout.splitlines())}
    assert counted == expected


def test_all_numbers_of_the_agent_are_those_of_the_specification(spec: Spec) -> None:
    text = generated(spec)[SPEC.parent.parent / "agent/src/weft/spec.rs"]
    assert len(spec.numbered_sets()) >= 3
    for one in spec.numbered_sets():
        body = text.split(f"\npub mod {one.name} {{")[1].split("\n}")[0]
        found = re.findall(r"const (\w+): Attribute<.*?>\s*=\s*Attribute::new\((\d+)\)", body)
        assert dict(found) == {
            rust.upper(attribute.name): str(attribute.value)
            for attribute in one.attributes
            if not attribute.is_pad
        }
    enums: list[tuple[str, Sequence[Entry]]] = [("Command", spec.operations)]
    enums += [(rust.camel(enum.name), enum.entries) for enum in spec.enums]
    assert len(enums) >= 2
    for name, entries in enums:
        assert entries
        body = text.split(f"\npub enum {name} {{")[1].split("\n}")[0]
        found = re.findall(r"^    (\w+) = (\d+),$", body, re.MULTILINE)
        assert dict(found) == {rust.camel(entry.name): str(entry.value) for entry in entries}


def test_all_numbers_of_the_kernel_tests_are_those_of_the_specification(spec: Spec) -> None:
    prefixes = {
        spec.operation_prefix: pattern_numbers.Command,
        "weft-source-": pattern_numbers.Source,
        "weft-a-": pattern_numbers.Message,
        "weft-path-a-": pattern_numbers.Path,
        "weft-subflow-a-": pattern_numbers.Subflow,
    }
    found = {
        c.macro(prefix, member.name): member.value
        for prefix, enum in prefixes.items()
        for member in enum
    }
    found |= {
        c.macro(spec.c_prefix, one.name): getattr(pattern_numbers, c.macro(one.name))
        for one in spec.constants
    }
    assert found == numbers(spec)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("        name: token\n", "        name: token\n        sub-type: u8\n", "sub-type"),
        ("          max: 32\n", "          exact-len: 1\n", "no policy"),
        ("        nested-attributes: subflow\n", "        nested-attributes: flow\n", "no flow"),
        (
            "            - ttl-ns\n            - wait",
            "            - ttl\n            - wait",
            "no ttl",
        ),
        ("          max: wait-unit-ns-max\n", "          max: unit-max\n", "no unit-max"),
        ("kernel-policy: per-op", "kernel-policy: global", "per-op"),
    ],
)
def test_an_unsupported_specification_is_an_error(
    tmp_path: Path, old: str, new: str, complaint: str
) -> None:
    with pytest.raises(SpecError, match=complaint):
        generated(changed(tmp_path, old, new))
