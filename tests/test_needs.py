# SPDX-License-Identifier: Apache-2.0
"""Tests that need a missing tool are skipped, or fail if WEFT_REQUIRE names it."""

import subprocess
import sys
from pathlib import Path

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


@pytest.mark.parametrize("stream", [1, 2])
def test_a_p4c_of_the_wanted_version_is_taken_wherever_it_writes_its_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stream: int
) -> None:
    assert _why_not_p4c(monkeypatch, tmp_path, needs.p4c_version(), stream) is None


def test_a_p4c_of_another_version_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    why = _why_not_p4c(monkeypatch, tmp_path, "1.2.5.0", 2)
    assert why is not None
    assert "is not of version" in why


def _why_not_p4c(
    monkeypatch: pytest.MonkeyPatch, folder: Path, version: str, stream: int
) -> str | None:
    program = folder / "p4c-bm2-ss"
    program.write_text(f"#!/bin/sh\necho 'Version {version} (SHA: 0 BUILD: Release)' >&{stream}\n")
    program.chmod(0o755)
    monkeypatch.setenv("P4C", str(program))
    return needs._TOOLS["p4c"]()


def test_the_committed_programs_are_what_p4c_makes_of_their_sources() -> None:
    needs.require("p4c")
    check = [sys.executable, str(ROOT / "p4" / "compile"), "--check"]
    done = subprocess.run(check, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "compiled programs are what p4c-bm2-ss" in done.stdout
