# SPDX-License-Identifier: Apache-2.0
"""Tests of how selftests are read and compared; no lab is booted."""

from pathlib import Path

import pytest
from weft_selftests import cli, differences, ktap, verdict
from weft_selftests.differences import Difference
from weft_selftests.ktap import Result
from weft_selftests.verdict import Run, Verdict

OUTPUT = """
01 balanced bwidth                  7425 max 7906       [ OK ]
TAP version 13
1..4
ok 1 - simult_flows: balanced bwidth # time=7633ms
not ok 2 - simult_flows: unbalanced bwidth - reverse direction # time=12000ms
ok 3 - diag: ....chk last_data_sent # SKIP time=500ms
not ok 4 - diag: many msk socket present # timeout time=20010ms
"""


def run_of(results: dict[str, Result], scheduler: str = "rb", seed: int = 1) -> Run:
    """Return a run with these results."""
    return Run("simult_flows", scheduler, seed, results, [], 1.0, "log")


def test_every_subtest_is_read_without_its_time() -> None:
    assert ktap.parse(OUTPUT, 1) == {
        "balanced bwidth": Result.PASSED,
        "unbalanced bwidth - reverse direction": Result.FAILED,
        "....chk last_data_sent": Result.SKIPPED,
        "many msk socket present": Result.FAILED,
    }


@pytest.mark.parametrize(
    ("exit_code", "result"), [(0, Result.PASSED), (4, Result.SKIPPED), (1, Result.FAILED)]
)
def test_a_script_without_subtests_is_its_exit_status(exit_code: int, result: Result) -> None:
    assert ktap.parse("no such thing\n", exit_code) == {"exit status": result}


def test_a_script_that_breaks_off_after_good_subtests_has_failed() -> None:
    results = ktap.parse("ok 1 - diag: one # time=1ms\n", 137)
    assert results["exit status"] is Result.FAILED


def test_what_default_passes_and_a_scheduler_does_not_is_a_regression() -> None:
    baseline = run_of({"a": Result.PASSED, "b": Result.FAILED, "c": Result.PASSED}, "default")
    run = run_of({"a": Result.FAILED, "b": Result.FAILED})
    assert verdict.judge(run, baseline, []).regressions == ["a", "c"]


def test_an_explained_difference_is_no_regression() -> None:
    known = Difference(("rb",), "simult_flows", ("a*",), "because")
    baseline = run_of({"a1": Result.PASSED, "b": Result.PASSED}, "default")
    run = run_of({"a1": Result.FAILED, "b": Result.FAILED})
    assert verdict.judge(run, baseline, [known]) == Verdict(["b"], ["a1"])


def test_an_explained_difference_that_was_run_and_no_longer_shows_is_stale() -> None:
    known = Difference(("rb",), "simult_flows", ("a*",), "because")
    baseline = run_of({"a1": Result.PASSED}, "default")
    good = run_of({"a1": Result.PASSED})
    judged = {0: verdict.judge(good, baseline, [known])}
    assert verdict.stale([good], judged, [known]) == [known]
    other = run_of({"b": Result.PASSED})
    unseen = {0: verdict.judge(other, run_of({"b": Result.PASSED}, "default"), [known])}
    assert verdict.stale([other], unseen, [known]) == []
    bad = run_of({"a1": Result.FAILED}, seed=2)
    judged[1] = verdict.judge(bad, baseline, [known])
    assert verdict.stale([good, bad], judged, [known]) == []


@pytest.mark.parametrize(
    ("result", "status"), [(Result.PASSED, 0), (Result.FAILED, 1), (Result.SKIPPED, 1)]
)
def test_a_test_that_does_not_run_is_no_success(
    result: Result, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    results = {"exit status": result}
    assert cli.report([run_of(results, "default"), run_of(results)], []) == status
    assert ("nothing passed" in capsys.readouterr().out) == bool(status)


def test_differences_have_their_reasons(tmp_path: Path) -> None:
    known = differences.read()
    assert known
    assert [one for one in known if not one.why] == []
    file = tmp_path / "differences.toml"
    file.write_text('[[difference]]\nschedulers = ["rb"]\ntest = "diag"\nsubtests = ["*"]\n')
    with pytest.raises(ValueError, match="difference 1 needs"):
        differences.read(file)
