# SPDX-License-Identifier: GPL-2.0-only
"""Generates files from mptcp_pattern.yaml, or checks that they are up to date.

Exit codes: 0 done or up to date, 1 a file is stale or the specification is wrong.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ynl import c, python, rust
from ynl.spec import Spec, SpecError

KERNEL = Path(__file__).resolve().parent.parent
SPEC = KERNEL / "mptcp_pattern.yaml"


def generated(spec: Spec) -> dict[Path, str]:
    """The generated files and their contents."""
    top = KERNEL.parent.parent
    return {
        KERNEL / "include/uapi/weft.h": c.uapi_header(spec),
        KERNEL / "netlink_gen.h": c.kernel_header(spec),
        KERNEL / "netlink_gen.c": c.kernel_source(spec),
        top / "host/agent/src/weft/spec.rs": rust.module(spec),
        top / "tests/kernel_tests/pattern_numbers.py": python.module(spec),
    }


def stale(spec: Spec) -> list[Path]:
    """The generated files that do not match the specification."""
    return [
        path
        for path, text in generated(spec).items()
        if not path.exists() or path.read_text() != text
    ]


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="ynl", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; say what is stale")
    arguments = parser.parse_args()
    try:
        spec = Spec.read(SPEC)
        old = stale(spec)
        for path in old:
            if arguments.check:
                print(f"stale: {path}: run `make -C host/kernel netlink`", file=sys.stderr)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(generated(spec)[path])
                print(path)
    except SpecError as error:
        print(f"{SPEC}: {error}", file=sys.stderr)
        return 1
    return 1 if arguments.check and old else 0


if __name__ == "__main__":
    sys.exit(main())
