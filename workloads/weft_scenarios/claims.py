# SPDX-License-Identifier: Apache-2.0
"""Judges claims by measurements.

At each point, runs with the same seed are compared in pairs, because they had the same flows.
With `d = which - factor * versus` for each seed, the claim

- *holds* where the 95% confidence interval of the mean of d lies on the claimed side of 0,
- *fails* where it lies on the other side,
- is *open* where the interval contains 0: seeds differ more than schedulers do.

With a single seed there is no interval, and the sign of d decides.
"""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from weft_scenarios.results import Results, chosen, point_text
from weft_scenarios.scenario import Axis, Claim, Scenario, Where
from weft_scenarios.stats import Spread, spread

OUTCOMES = HOLDS, FAILS, OPEN = ("holds", "fails", "open")
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
    outcome: str


@dataclass(frozen=True)
class Verdict:
    """A claim at all its points."""

    claim: Claim
    points: tuple[Judged, ...]
    missing: int
    """Points without results, and points where a run failed."""

    def count(self, outcome: str) -> int:
        """Count points."""
        return sum(point.outcome == outcome for point in self.points)

    def word(self) -> str:
        """Sum it up: holds, holds in part, open, does not hold, or not measured."""
        held, total = self.count(HOLDS), len(self.points)
        if not total:
            return "not measured"
        if self.claim.somewhere:
            held = total if held else 0
        if held == total and not (self.missing and not self.claim.somewhere):
            return "holds"
        if held:
            return "holds in part"
        failed = self.count(FAILS)
        # One counterexample refutes a claim about all points, but not one about some point.
        is_refuted = failed == total if self.claim.somewhere else failed > 0
        return "does not hold" if is_refuted else "open"


def judge(scenario: Scenario, claim: Claim, results: Results) -> Verdict:
    """Judge a claim."""
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
    return Verdict(claim, tuple(judged), missing)


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
    differences = spread([sign * (which[s] - claim.factor * target[s]) for s in seeds])
    mine = spread([which[s] for s in seeds])
    its = None if versus is None else spread([versus[s] for s in seeds])
    base = its.mean if its else claim.limit
    return Judged(
        place=_label(here, there),
        which=mine,
        versus=its,
        ratio=mine.mean / base if base else None,
        outcome=_outcome(differences),
    )


def _outcome(difference: Spread) -> str:
    if difference.high <= 0:
        return HOLDS
    return FAILS if difference.low > 0 else OPEN


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
