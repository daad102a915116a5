# SPDX-License-Identifier: Apache-2.0
"""Two revisions run the same programs unless their sources were changed in between."""

import subprocess
from pathlib import Path

import pytest
from weft_scenarios.results.revisions import programs, told_apart


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    return tmp_path


def commit(checkout: Path, file: str, at_s: int) -> str:
    """Commit a change of `file` at a time, and give the revision."""
    path = checkout / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(str(at_s))
    git = ["git", "-C", str(checkout), "-c", "user.name=t", "-c", "user.email=t@localhost"]
    environment = {"GIT_COMMITTER_DATE": f"@{at_s} +0000", "PATH": "/usr/bin:/bin"}
    for done in ["add", "."], ["commit", "--quiet", "-m", file]:
        subprocess.run([*git, *done], check=True, env=environment)
    shown = subprocess.run(
        [*git, "rev-parse", "--short", "HEAD"], stdout=subprocess.PIPE, text=True
    )
    return shown.stdout.strip()


def test_a_change_of_what_no_run_uses_leaves_the_programs_as_they_are(
    checkout: Path,
) -> None:
    first = commit(checkout, "host/kernel/weft.c", 1_000_000_000)
    found = programs(first, checkout)
    assert found is not None
    assert found.committed_s == 1_000_000_000
    for file in (
        "README.md",
        "host/README.md",
        "docs/src/results.md",
        "tests/test_run.py",
        "p4/switch/tests/meter.rs",
        "host/kernel/kunit/main.c",
        "host/kernel/Makefile",
        "controller/cli/src/args/tests.rs",
        "controller/cli/src/telemetry.rs",
        "workloads/scenarios/weft-goals.toml",
        "workloads/weft_scenarios/report/plot.py",
    ):
        assert programs(commit(checkout, file, 1_000_000_001), checkout) == found


@pytest.mark.parametrize(
    "file",
    [
        "host/kernel/weft.c",
        "host/kernel/Kbuild",
        "controller/cli/src/batch.rs",
        "Cargo.lock",
        "p4/compiled/leaf.json",
        "workloads/load/src/main.rs",
    ],
)
def test_a_change_of_sources_makes_newer_programs(checkout: Path, file: str) -> None:
    older = programs(commit(checkout, "topology/lab/src/main.rs", 1_000_000_000), checkout)
    newer = programs(commit(checkout, file, 1_000_000_001), checkout)
    assert older is not None
    assert newer is not None
    assert newer > older


def test_of_one_commit_the_build_without_other_changes_is_newer(checkout: Path) -> None:
    revision = commit(checkout, "host/kernel/weft.c", 1_000_000_000)
    clean, dirty = programs(revision, checkout), programs(f"{revision}-dirty", checkout)
    assert clean is not None
    assert dirty is not None
    assert clean > dirty


def test_a_revision_that_git_does_not_know_has_no_programs(checkout: Path) -> None:
    commit(checkout, "host/kernel/weft.c", 1_000_000_000)
    assert programs("0123456", checkout) is None
    assert programs("unknown", checkout) is None
    assert programs("--output=/dev/null", checkout) is None


def test_of_revisions_with_the_same_programs_the_newest_is_named(checkout: Path) -> None:
    first = commit(checkout, "host/kernel/weft.c", 1_000_000_000)
    second = commit(checkout, "workloads/scenarios/loop.toml", 1_000_000_001)
    third = commit(checkout, "README.md", 1_000_000_002)
    other = commit(checkout, "Cargo.lock", 1_000_000_003)
    dirty = f"{second}-dirty"
    assert told_apart([third, first, second], checkout) == [third]
    assert told_apart([other, second, dirty, first, "unknown"], checkout) == [
        "unknown",
        second,
        dirty,
        other,
    ]
