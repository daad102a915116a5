# SPDX-License-Identifier: Apache-2.0
"""Verdicts on known numbers."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from small_scenario import SMALL, read
from weft_scenarios.measures.metrics import Measured
from weft_scenarios.results import results
from weft_scenarios.results.claims import Verdict, judge
from weft_scenarios.runs import matrix
from weft_scenarios.stats import holm, p_value, ratio_interval, spread

Numbers = Mapping[tuple[str, int], Sequence[float]]
"""Mean FCT by scheduler and flows, for each seed; NaN where a run failed."""


def verdict(folder: Path, numbers: Numbers, claim: str = "") -> Verdict:
    scenario = read(folder, SMALL.replace("seeds = 3", "seeds = 6", 1) + claim)
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
    return judge(scenario, results.collect(scenario, done, failed, quick=False))[-1]


CLEAR = [1.0, 1.1, 1.0, 1.2, 1.1]
TWICE = [2.0, 2.1, 2.1, 2.2, 2.0]
NOISY, NOISE = [10.0, 30.0, 20.0, 25.0, 15.0], [30.0, 10.0, 21.0, 15.0, 26.0]
AT_EVERY, AT_SOME = "", 'at = "some point"\n'


def test_a_claim_holds_when_every_interval_is_on_its_side(tmp_path: Path) -> None:
    numbers = {("rb", n): CLEAR for n in (1, 16)} | {("minrtt", n): TWICE for n in (1, 16)}
    found = verdict(tmp_path, numbers)
    assert found.word == "holds"
    assert found.points[0].ratio == pytest.approx(0.52, rel=0.02)


def test_seeds_are_compared_pairwise(tmp_path: Path) -> None:
    # Seeds differ far more than schedulers, but each seed shows the same difference.
    rb = [10.0, 50.0, 90.0, 20.0, 40.0]
    minrtt = [11.0, 51.1, 91.0, 21.0, 41.1]
    numbers = {("rb", n): rb for n in (1, 16)} | {("minrtt", n): minrtt for n in (1, 16)}
    assert verdict(tmp_path, numbers).word == "holds"


def test_a_claim_whose_interval_contains_zero_is_open(tmp_path: Path) -> None:
    numbers = {("rb", n): NOISY for n in (1, 16)} | {("minrtt", n): NOISE for n in (1, 16)}
    assert verdict(tmp_path, numbers).word == "open"


@pytest.mark.parametrize("other", [(CLEAR, TWICE), (NOISY, NOISE)])
def test_a_point_where_it_fails_refutes_a_claim_about_all_points(
    tmp_path: Path, other: tuple[list[float], list[float]]
) -> None:
    numbers = {("rb", 1): other[0], ("minrtt", 1): other[1]}
    numbers |= {("rb", 16): TWICE, ("minrtt", 16): CLEAR}
    assert verdict(tmp_path, numbers, AT_EVERY).word == "does not hold"
    assert verdict(tmp_path, numbers, AT_SOME).word != "does not hold"


def test_a_claim_about_some_point_needs_one(tmp_path: Path) -> None:
    numbers = {("rb", 1): CLEAR, ("minrtt", 1): TWICE, ("rb", 16): TWICE, ("minrtt", 16): CLEAR}
    assert verdict(tmp_path, numbers, f"factor = 0.6\n{AT_SOME}").word == "holds"
    assert verdict(tmp_path, numbers, f"factor = 0.4\n{AT_SOME}").word == "does not hold"


def test_fewer_than_five_seeds_do_not_decide(tmp_path: Path) -> None:
    numbers = {("rb", n): CLEAR[:4] for n in (1, 16)}
    numbers |= {("minrtt", n): TWICE[:4] for n in (1, 16)}
    found = verdict(tmp_path, numbers)
    assert (found.word, found.count("not decided")) == ("not decided", 2)


def test_seeds_that_give_the_same_run_count_once(tmp_path: Path) -> None:
    numbers = {("rb", n): [1.0] * 6 for n in (1, 16)}
    numbers |= {("minrtt", n): [2.0] * 6 for n in (1, 16)}
    assert verdict(tmp_path, numbers).word == "not decided"


def test_zero_against_zero_is_nothing_to_compare(tmp_path: Path) -> None:
    numbers: dict[tuple[str, int], list[float]]
    numbers = {(name, n): [0.0] * 5 for name in ("rb", "minrtt") for n in (1, 16)}
    assert verdict(tmp_path, numbers).word == "nothing to compare"
    numbers |= {("rb", 1): CLEAR, ("minrtt", 1): TWICE}
    assert verdict(tmp_path, numbers).word == "holds"


def test_a_point_that_chance_explains_among_so_many_refutes_nothing(tmp_path: Path) -> None:
    # At one point p is between 0.025 and 0.05: enough alone, but not as one of two.
    slower = [1.0, 2.0, 3.0, 4.0, 5.0]
    faster = [0.9, 1.0, 2.6, 2.4, 4.3]
    numbers = {("rb", 1): CLEAR, ("minrtt", 1): TWICE, ("rb", 16): slower, ("minrtt", 16): faster}
    found = verdict(tmp_path, numbers)
    point = found.points[1]
    assert point.p is not None
    assert 0.025 < point.p < 0.05
    assert (point.outcome, found.word) == ("fails", "open")


def test_a_point_without_results_keeps_a_claim_from_holding(tmp_path: Path) -> None:
    found = verdict(tmp_path, {("rb", 1): CLEAR, ("minrtt", 1): TWICE, ("rb", 16): CLEAR})
    assert (found.word, found.missing) == ("open", 1)
    assert verdict(tmp_path, {}).word == "not measured"


def test_a_point_where_a_run_failed_is_not_judged_by_the_seeds_that_are_left(
    tmp_path: Path,
) -> None:
    numbers = {("rb", n): CLEAR for n in (1, 16)}
    numbers |= {("minrtt", 1): TWICE, ("minrtt", 16): [2.0, math.nan, 2.0, 2.1, 2.2]}
    found = verdict(tmp_path, numbers)
    assert [point.place["flows"] for point in found.points] == ["1"]
    assert (found.missing, found.word) == (1, "open")


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
    numbers = {("rb", 1): CLEAR, ("rb", 16): TWICE, ("minrtt", 1): TWICE, ("minrtt", 16): CLEAR}
    found = verdict(tmp_path, numbers, claim)
    assert [(p.place["scheduler"], p.outcome) for p in found.points] == [
        ("rb", "holds"),
        ("minrtt", "fails"),
    ]


def test_the_confidence_interval_uses_students_t() -> None:
    # 1, 2, 3: s = 1, t(2) = 4.303, half = 4.303 / sqrt(3).
    assert spread([1.0, 2.0, 3.0]).half == pytest.approx(2.484, abs=1e-3)
    assert spread([5.0]).half is None


def test_holms_correction_rejects_step_by_step() -> None:
    assert holm([0.01, 0.04, 0.03]) == [True, False, False]
    assert holm([0.01, 0.04, 0.02]) == [True, True, True]
    assert holm([]) == []


def test_the_t_test_gives_the_probability_of_the_tables() -> None:
    # Of t = 4.303 with two degrees of freedom it is 5%.
    mean, deviation = 4.303 / 3**0.5, 1.0
    assert p_value([mean - deviation, mean, mean + deviation]) == pytest.approx(0.05, abs=1e-4)


def test_the_interval_of_a_ratio_is_that_of_pairs() -> None:
    # Seeds differ a lot, ratios hardly.
    versus = [10.0, 50.0, 90.0, 20.0, 40.0]
    which = [ratio * its for ratio, its in zip([0.5, 0.51, 0.49, 0.5, 0.5], versus, strict=True)]
    low, high = ratio_interval(which, versus) or (0.0, 0.0)
    assert 0.48 < low < 0.5 < high < 0.52
    assert ratio_interval(which, versus) == (low, high)
    assert ratio_interval([1.0, 2.0], [2.0, 4.0]) == (0.5, 0.5)
    assert ratio_interval([1.0, 2.0], [0.0, 4.0]) is None


def test_ratios_have_intervals_from_five_different_runs_on(tmp_path: Path) -> None:
    numbers = {("rb", 1): CLEAR, ("minrtt", 1): TWICE, ("rb", 16): CLEAR, ("minrtt", 16): [2.0]}
    enough, few = verdict(tmp_path, numbers).points
    assert few.ratio_interval is None
    assert enough.ratio is not None
    assert enough.ratio_interval is not None
    low, high = enough.ratio_interval
    assert low < enough.ratio < high
