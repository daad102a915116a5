# SPDX-License-Identifier: Apache-2.0
"""Tools that some tests need and that not every machine has: such tests are skipped there.

The variable WEFT_REQUIRE lists the tools that a machine is supposed to have: `p4c,bmv2`. If one of
them is missing, tests that need it fail instead, so that nothing is green without being checked.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import NoReturn

import pytest

VARIABLE = "WEFT_REQUIRE"
COMPILED = Path(__file__).resolve().parent.parent / "p4" / "compiled"


def require(tool: str) -> None:
    """Skip the test if the machine lacks a tool, or fail it if the tool is required."""
    why = _why_not(tool)
    if why is not None:
        skip(tool, why)


def skip(tool: str, why: str) -> NoReturn:
    """Skip the test for this reason, or fail it if the tool is required."""
    if tool in required():
        pytest.fail(f"{VARIABLE} names {tool}, but {why}", pytrace=False)
    pytest.skip(why)


def required(environment: Mapping[str, str] = os.environ) -> set[str]:
    """Give the tools that this run claims to have."""
    named = {name.strip() for name in environment.get(VARIABLE, "").split(",")} - {""}
    known = [*_TOOLS, *sorted(_OF_RUST)]
    unknown = sorted(named.difference(known))
    if unknown:
        pytest.fail(f"{VARIABLE}: no tool {unknown[0]}; there are {', '.join(known)}", False)
    return named


@cache
def _why_not(tool: str) -> str | None:
    return _TOOLS[tool]()


def _p4c() -> str | None:
    """The compiler has to be of the version that made `p4/compiled`."""
    program = shutil.which(os.environ.get("P4C", "p4c-bm2-ss"))
    if program is None:
        return "there is no p4c-bm2-ss on PATH, and P4C names none; the package p4lang-p4c has it"
    # p4c writes its version to the standard error.
    command = [program, "--version"]
    said = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    found = re.search(r"Version (\S+)", said.stdout)
    wanted = p4c_version()
    if found is None or found[1] != wanted:
        return f"{program} is not of version {wanted}, which compiled the committed programs"
    return None


def p4c_version() -> str:
    """Give the version of p4c that compiled the committed programs."""
    return (COMPILED / "SOURCES.sha256").read_text().splitlines()[0].split()[-1]


def _bmv2() -> str | None:
    if shutil.which("simple_switch_grpc") is None:
        return "there is no simple_switch_grpc on PATH; the package p4lang-bmv2 has it"
    return None


def _chromium() -> str | None:
    if chromium() is None:
        return "there is no chromium on PATH"
    return None


def chromium() -> str | None:
    """Find the browser, under either of its names."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


def _namespaces() -> str | None:
    command = ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc"]
    command += [] if os.geteuid() == 0 else ["--map-root-user"]
    if subprocess.run([*command, "true"], capture_output=True).returncode:
        return "this user may not have network, mount and process namespaces"
    return None


_TOOLS: dict[str, Callable[[], str | None]] = {
    "p4c": _p4c,
    "bmv2": _bmv2,
    "chromium": _chromium,
    "namespaces": _namespaces,
}
"""The tools of tests in Python, each with a function that says why it is missing, or gives None."""

_OF_RUST = {"tshark", "root", "mptcp"}
"""Tools of tests in Rust alone (tests/support/src/tools.rs), which check them there."""
