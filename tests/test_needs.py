# SPDX-License-Identifier: Apache-2.0
"""Tests that need a missing tool are skipped, or fail if WEFT_REQUIRE names it."""

import subprocess
import sys

import needs
import pytest
from driver import ROOT


def test_a_tool_that_is_missing_skips_the_test_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(needs.VARIABLE, "chromium")
    with pytest.raises(pytest.skip.Exception, match="no p4c here"):
        needs.skip("p4c", "no p4c here")


def test_a_tool_that_is_missing_fails_the_test_where_it_is_required(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(needs.VARIABLE, "bmv2, p4c")
    with pytest.raises(pytest.fail.Exception, match="WEFT_REQUIRE names p4c, but no p4c here"):
        needs.skip("p4c", "no p4c here")


def test_a_tool_that_no_test_knows_cannot_be_required() -> None:
    with pytest.raises(pytest.fail.Exception, match="no tool p4; there are p4c, bmv2, "):
        needs.required({needs.VARIABLE: "p4"})


@pytest.mark.parametrize("tool", ["p4c", "bmv2", "chromium"])
def test_a_tool_is_looked_for_on_the_path(monkeypatch: pytest.MonkeyPatch, tool: str) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("P4C", "/nowhere/p4c")
    assert needs._TOOLS[tool]() is not None


def test_the_committed_programs_are_what_p4c_makes_of_their_sources() -> None:
    needs.require("p4c")
    check = [sys.executable, str(ROOT / "p4" / "compile"), "--check"]
    done = subprocess.run(check, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "compiled programs are what p4c-bm2-ss" in done.stdout
