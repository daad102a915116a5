# SPDX-License-Identifier: Apache-2.0
"""Judges claims by measurements.

At each point, runs with the same seed are compared in pairs, because they had the same flows.
With `d = which - factor * versus` for each seed, the claim

- *holds* where the 95% confidence interval of the mean of d lies on the claimed side of 0,
- *fails* where it lies on the other side,
- is *open* where the interval contains 0: seeds differ more than schedulers do,
- is *not decided* where there are fewer than five seeds; seeds with the same numbers on both
  sides are one run and count once,
- has *nothing to compare* where both sides are 0.

A claim about every point *holds* if it does at each of them, and *does not hold* if one of them
refutes it. For a claim about some point it is the other way round. Who tests many points or many
claims finds some by chance. So a single point counts only if it also would with the error that
is accepted divided by the number of points (Bonferroni), and the claims of a scenario are tested
together (Holm 1979).
"""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from weft_scenarios.definition.quantities import METRICS
from weft_scenarios.definition.scenario import Axis, Claim, Scenario, Where
from weft_scenarios.results.results import Results, chosen, point_text
from weft_scenarios.stats import LEVEL, SEEDS_MIN, Spread, holm, p_value, ratio_interval, spread

OUTCOMES = HOLDS, FAILS, OPEN, NOT_DECIDED, NOTHING = (
    "holds",
    "fails",
    "open",
    "not decided",
    "nothing to compare",
)
"""Of a claim at a point."""
REFUTED, NOT_MEASURED = "does not hold", "not measured"
"""Of a claim as a whole, besides."""
VERDICTS = (HOLDS, REFUTED, OPEN, NOT_DECIDED, NOTHING, NOT_MEASURED)
Place = Mapping[str, str]


@dataclass(frozen=True)
class Judged:
    """A claim at one point."""

    place: Place
    """The axes that differ between points."""
    which: Spread
    versus: Spread | None
    """None against a limit."""
    ratio: float | None
    """Ratio of the means; None where it is undefined."""
    ratio_interval: tuple[float, float] | None
    """Its 95% confidence interval; None against a limit, or with fewer than five seeds."""
    outcome: str
    agrees: bool
    """Whether the mean difference is on the claimed side."""
    p: float | None
    """Probability of such a difference by chance; None if that was not tested."""


@dataclass(frozen=True)
class Verdict:
    """A claim at all its points."""

    claim: Claim
    points: tuple[Judged, ...]
    missing: int
    """Points without results, and points where a run failed."""
    word: str
    """The sum: holds, does not hold, open, not decided, nothing to compare, or not measured."""

    def count(self, outcome: str) -> int:
        """Count points."""
        return sum(point.outcome == outcome for point in self.points)


@dataclass(frozen=True)
class _Tested:
    """A claim before it is judged together with others."""

    claim: Claim
    points: tuple[Judged, ...]
    missing: int

    def _tested(self) -> list[Judged]:
        return [point for point in self.points if point.p is not None]

    def _p_all(self, agree: bool) -> float:
        """Give the p-value of: all points are on this side."""
        tested = self._tested()
        judged = sum(point.outcome != NOTHING for point in self.points)
        if self.missing or len(tested) < judged or any(p.agrees != agree for p in tested):
            return 1.0
        return max(point.p or 0.0 for point in tested)

    def _p_some(self, agree: bool) -> float:
        """Give the p-value of: some point is on this side."""
        tested = self._tested()
        sides = [point.p or 0.0 for point in tested if point.agrees == agree]
        return min(1.0, len(tested) * min(sides)) if sides else 1.0

    def p_holds(self) -> float:
        """Give the p-value of the claim."""
        return self._p_some(True) if self.claim.somewhere else self._p_all(True)

    def p_refuted(self) -> float:
        """Give the p-value of its opposite."""
        return self._p_all(False) if self.claim.somewhere else self._p_some(False)

    def is_tested(self) -> bool:
        """Whether any point was."""
        return bool(self._tested())

    def word(self, is_significant: bool) -> str:
        """Sum it up."""
        if is_significant:
            return HOLDS if self.p_holds() <= self.p_refuted() else REFUTED
        outcomes = {point.outcome for point in self.points}
        if not outcomes:
            return NOT_MEASURED
        if outcomes == {NOTHING}:
            return NOTHING
        return NOT_DECIDED if NOT_DECIDED in outcomes else OPEN


def judge(scenario: Scenario, results: Results) -> list[Verdict]:
    """Judge the claims of a scenario, together."""
    tested = [_test(scenario, claim, results) for claim in scenario.claims]
    p_values = [min(one.p_holds(), one.p_refuted()) for one in tested if one.is_tested()]
    significant = iter(holm(p_values))
    return [
        Verdict(
            one.claim,
            one.points,
            one.missing,
            one.word(one.is_tested() and next(significant)),
        )
        for one in tested
    ]


def _test(scenario: Scenario, claim: Claim, results: Results) -> _Tested:
    runs = results.of(claim.experiment)
    axes = scenario.experiment(claim.experiment).axes
    judged, missing = [], 0
    for here, there in _pairs(claim, axes):
        lost = results.has_failed(claim.experiment, here, there or here)
        point = None if lost else _point(claim, runs, here, there)
        if point:
            judged.append(point)
        elif _was_run(runs, here, there):
            missing += 1
    return _Tested(claim, tuple(judged), missing)


def _pairs(claim: Claim, axes: tuple[Axis, ...]) -> Iterator[tuple[Place, Place | None]]:
    """Give every pair of points that the claim compares."""
    here = _places(axes, claim.which)
    if claim.versus is None:
        yield from ((place, None) for place in here)
        return
    # The comparison goes across an axis that `versus` names; other axes are equal on both sides.
    named = set(claim.versus)
    for place in here:
        rest = {axis: (point,) for axis, point in place.items() if axis not in named}
        for other in _places(axes, {**rest, **claim.versus}):
            if other != place:
                yield place, other


def _places(
    axes: tuple[Axis, ...], where: Where | Mapping[str, tuple[str, ...]]
) -> Iterator[Place]:
    points = [
        [point_text(v) for v in where[axis.name]]
        if axis.name in where
        else [point_text(v) for v in axis.values()]
        for axis in axes
    ]
    for chosen_points in itertools.product(*points):
        yield dict(zip((axis.name for axis in axes), chosen_points, strict=True))


def _was_run(runs: pl.DataFrame, here: Place, there: Place | None) -> bool:
    """Whether these points were to be run: the quick set leaves points out."""
    places = [here] if there is None else [here, there]
    return all((runs[axis] == point).any() for place in places for axis, point in place.items())


def _point(claim: Claim, runs: pl.DataFrame, here: Place, there: Place | None) -> Judged | None:
    which = _values(claim, runs, here)
    versus = _values(claim, runs, there) if there is not None else None
    seeds = [seed for seed in which if versus is None or seed in versus]
    if not seeds:
        return None
    sign = 1.0 if claim.relation == "<=" else -1.0
    target = dict.fromkeys(seeds, claim.limit or 0.0) if versus is None else versus
    pairs = [(which[seed], target[seed]) for seed in seeds]
    # Seeds that change nothing give the same run again, which is no further evidence.
    differences = [sign * (mine - claim.factor * its) for mine, its in dict.fromkeys(pairs)]
    mean = sum(differences) / len(differences)
    mine = spread([which[s] for s in seeds])
    its = None if versus is None else spread([versus[s] for s in seeds])
    base = its.mean if its else claim.limit
    p = _p(claim, differences)
    outcome = NOT_DECIDED
    if p is not None:
        outcome = OPEN if p > LEVEL else HOLDS if mean <= 0 else FAILS
    if versus is not None and not any(itertools.chain.from_iterable(pairs)):
        outcome, p = NOTHING, None
    return Judged(
        place=_label(here, there),
        which=mine,
        versus=its,
        ratio=mine.mean / base if base else None,
        ratio_interval=None if versus is None else _interval(pairs),
        outcome=outcome,
        agrees=mean <= 0,
        p=p,
    )


def _interval(pairs: list[tuple[float, float]]) -> tuple[float, float] | None:
    distinct = list(dict.fromkeys(pairs))
    if len(distinct) < SEEDS_MIN:
        return None
    return ratio_interval([mine for mine, _ in distinct], [its for _, its in distinct])


def _p(claim: Claim, differences: list[float]) -> float | None:
    """Give the p-value of differences of distinct runs; None if they are too few."""
    if METRICS[claim.metric].is_exact:
        return 0.0
    return p_value(differences) if len(differences) >= SEEDS_MIN else None


def _values(claim: Claim, runs: pl.DataFrame, place: Place) -> dict[int, float]:
    found = chosen(runs, {axis: (point,) for axis, point in place.items()})
    found = found.filter(pl.col(claim.metric).is_not_null())
    return dict(zip(found["seed"].to_list(), found[claim.metric].to_list(), strict=True))


def _label(here: Place, there: Place | None) -> Place:
    if there is None:
        return here
    return {
        axis: point if there[axis] == point else f"{point} / {there[axis]}"
        for axis, point in here.items()
    }
