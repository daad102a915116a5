# SPDX-License-Identifier: Apache-2.0
"""The results of a selftest's subtests: KTAP on its standard output."""

import enum
import re

LINE = re.compile(r"^(?P<not>not )?ok \d+ - (?P<name>.*?)(?: # (?P<directive>.*))?$")
TIME = re.compile(r" ?time=\d+ms$")


class Result(enum.Enum):
    """How a subtest ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


def parse(output: str, exit_code: int) -> dict[str, Result]:
    """Return the result of every subtest, and of the script itself as `exit status`.

    A script that ends early names no subtests; its status shows that.
    """
    results: dict[str, Result] = {}
    for line in output.splitlines():
        match = LINE.match(line)
        if not match:
            continue
        directive = match["directive"] or ""
        # "mptcp_join: one subflow": the script's name is known
        name = TIME.sub("", match["name"].partition(": ")[2] or match["name"])
        if match["not"]:
            results[name] = Result.FAILED
        elif directive.startswith("SKIP"):
            results[name] = Result.SKIPPED
        else:
            results[name] = Result.PASSED
    if not results or (exit_code and Result.FAILED not in results.values()):
        results["exit status"] = of_status(exit_code)
    return results


def of_status(exit_code: int) -> Result:
    """Return what an exit status of kselftest means."""
    return {0: Result.PASSED, 4: Result.SKIPPED}.get(exit_code, Result.FAILED)
