# SPDX-License-Identifier: Apache-2.0
"""Verdicts on known numbers."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from small_scenario import SMALL, read
from weft_scenarios import matrix, results
from weft_scenarios.claims import Verdict, judge
from weft_scenarios.metrics import Measured
from weft_scenarios.stats import spread

Numbers = Mapping[tuple[str, int], Sequence[float]]
"""Mean FCT by scheduler and flows, for each seed; NaN where a run failed."""


def verdict(folder: Path, numbers: Numbers, claim: str = "") -> Verdict:
    scenario = read(folder, SMALL + claim)
    done, failed = [], []
    for run in matrix.runs(scenario, quick=False):
        values = numbers.get((str(run.at["scheduler"]), int(run.at["flows"])), [])
        if run.seed > len(values):
            continue
        if math.isnan(values[run.seed - 1]):
            failed.append((run, "a flow stood still"))
        else:
            measured = Measured({"fct_mean_ms": values[run.seed - 1]}, {}, "Linux", "1")
            done.append((run, measured))
    return judge(
        scenario, scenario.claims[-1], results.collect(scenario, done, failed, quick=False)
    )


def test_a_claim_holds_when_every_interval_is_on_its_side(tmp_path: Path) -> None:
    found = verdict(
        tmp_path,
        {
            ("rb", 1): [1.0, 1.1, 1.0],
            ("minrtt", 1): [2.0, 2.1, 2.1],
            ("rb", 16): [10.0, 11.0, 12.0],
            ("minrtt", 16): [20.0, 21.0, 22.5],
        },
    )
    assert found.word() == "holds"
    assert found.points[0].ratio == pytest.approx(0.5, rel=0.05)


def test_seeds_are_compared_pairwise(tmp_path: Path) -> None:
    # Seeds differ far more than schedulers, but each seed shows the same difference.
    rb = [10.0, 50.0, 90.0]
    found = verdict(
        tmp_path,
        {("rb", n): rb for n in (1, 16)} | {("minrtt", n): [11.0, 51.1, 91.0] for n in (1, 16)},
    )
    assert found.word() == "holds"


def test_a_claim_whose_interval_contains_zero_is_open(tmp_path: Path) -> None:
    found = verdict(
        tmp_path,
        {("rb", n): [10.0, 30.0, 20.0] for n in (1, 16)}
        | {("minrtt", n): [30.0, 10.0, 21.0] for n in (1, 16)},
    )
    assert found.word() == "open"


def test_a_point_where_it_fails_refutes_a_claim_about_all_points_also_beside_open_ones(
    tmp_path: Path,
) -> None:
    numbers = {
        ("rb", 1): [10.0, 30.0, 20.0],
        ("minrtt", 1): [30.0, 10.0, 21.0],
        ("rb", 16): [30.0, 31.0, 30.0],
        ("minrtt", 16): [20.0, 20.0, 20.0],
    }
    assert verdict(tmp_path, numbers).word() == "does not hold"
    assert verdict(tmp_path, numbers, 'at = "some point"\n').word() == "open"


def test_a_claim_that_holds_at_one_point_of_two_holds_in_part(tmp_path: Path) -> None:
    numbers = {
        ("rb", 1): [1.0, 1.0, 1.1],
        ("minrtt", 1): [2.0, 2.0, 2.0],
        ("rb", 16): [30.0, 31.0, 30.0],
        ("minrtt", 16): [20.0, 20.0, 20.0],
    }
    assert verdict(tmp_path, numbers).word() == "holds in part"
    numbers[("rb", 1)] = [3.0, 3.0, 3.0]
    assert verdict(tmp_path, numbers).word() == "does not hold"


def test_an_up_to_claim_needs_one_point(tmp_path: Path) -> None:
    numbers = {
        ("rb", 1): [1.0, 1.0, 1.1],
        ("minrtt", 1): [2.0, 2.0, 2.0],
        ("rb", 16): [30.0, 31.0, 30.0],
        ("minrtt", 16): [20.0, 20.0, 20.0],
    }
    assert verdict(tmp_path, numbers, 'factor = 0.6\nat = "some point"\n').word() == "holds"
    assert verdict(tmp_path, numbers, 'factor = 0.4\nat = "some point"\n').word() != "holds"


def test_runs_without_results_are_missing_not_held(tmp_path: Path) -> None:
    found = verdict(tmp_path, {("rb", 1): [1.0], ("minrtt", 1): [2.0], ("rb", 16): [1.0]})
    assert found.word() == "holds in part"
    assert found.missing == 1
    assert verdict(tmp_path, {}).word() == "not measured"


def test_a_point_where_a_run_failed_is_not_judged_by_the_seeds_that_are_left(
    tmp_path: Path,
) -> None:
    numbers = {("rb", n): [1.0, 1.0, 1.1] for n in (1, 16)}
    numbers |= {("minrtt", 1): [2.0, 2.0, 2.0], ("minrtt", 16): [2.0, math.nan, 2.0]}
    found = verdict(tmp_path, numbers)
    assert [point.place["flows"] for point in found.points] == ["1"]
    assert (found.missing, found.word()) == (1, "holds in part")


def test_two_points_of_an_axis_are_compared_across_it(tmp_path: Path) -> None:
    claim = """
[[claim]]
text = "More flows, longer FCT."
source = "Fig. 2"
metric = "fct_mean_ms"
which = { flows = 16 }
versus = { flows = 1 }
relation = ">="
"""
    numbers = {("rb", 1): [1.0], ("rb", 16): [9.0], ("minrtt", 1): [2.0], ("minrtt", 16): [1.0]}
    found = verdict(tmp_path, numbers, claim)
    assert [(p.place["scheduler"], p.outcome) for p in found.points] == [
        ("rb", "holds"),
        ("minrtt", "fails"),
    ]


def test_the_confidence_interval_uses_students_t() -> None:
    # 1, 2, 3: s = 1, t(2) = 4.303, half = 4.303 / sqrt(3).
    assert spread([1.0, 2.0, 3.0]).half == pytest.approx(2.484, abs=1e-3)
    assert spread([5.0]).half is None
