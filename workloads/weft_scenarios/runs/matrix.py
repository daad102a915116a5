# SPDX-License-Identifier: Apache-2.0
"""Expands experiments into runs: every combination of points, with every seed."""

import itertools
from collections.abc import Iterable, Iterator

from weft_scenarios.runs import inputs
from weft_scenarios.runs.run import Run
from weft_scenarios.definition.scenario import Axis, Experiment, Full, Point, Quick, Scenario


def runs(scenario: Scenario, quick: bool, full: bool = False, at_least: int = 0) -> Iterator[Run]:
    """Expand all experiments, in the order of the file; `full`: at the paper's scale.

    Every point gets the seeds of the file, and at least `at_least`. Where seeds are added until a
    mean is known, this gives the maximum.
    """
    for experiment in scenario.experiments:
        if not quick or experiment.quick:
            yield from _expand(scenario, experiment, quick, full, at_least)


def distinct(runs: Iterable[Run]) -> list[Run]:
    """Keep one of all runs with the same flags; figures share points."""
    found = {tuple(sorted(run.all_flags().items())): run for run in runs}
    return list(found.values())


def axes(experiment: Experiment, quick: bool, full: bool) -> list[Axis]:
    """Give the axes, each with the points that are run."""
    kept = experiment.quick.points if quick and experiment.quick else None

    def is_run(axis: Axis, point: Point) -> bool:
        return point.at in kept[axis.name] if kept else full or not point.is_full

    return [
        Axis(a.name, a.label, tuple(p for p in a.points if is_run(a, p))) for a in experiment.axes
    ]


def subset(experiment: Experiment, quick: bool, full: bool) -> Quick | Full | None:
    """Give what the quick set or the paper's scale changes, if anything."""
    return (experiment.quick if quick else None) or (experiment.full if full else None)


def _expand(
    scenario: Scenario, experiment: Experiment, quick: bool, full: bool, at_least: int
) -> Iterator[Run]:
    whole = experiment.full if full else None
    extent = subset(experiment, quick, full)
    seeds = (extent.seeds if extent else experiment.seeds).raised(at_least)
    varied = axes(experiment, quick, full)
    for points in itertools.product(*(axis.points for axis in varied)):
        flags = dict(experiment.flags)
        for point in points:
            flags.update(point.flags)
        flags.update(extent.flags if extent else {})
        flags = inputs.absolute(flags, scenario.folder)
        read = inputs.digests(flags)
        at = {axis.name: point.at for axis, point in zip(varied, points, strict=True)}
        known_s = [point.seconds for point in points if point.seconds is not None]
        for seed in seeds.numbers():
            yield Run(
                scenario=scenario.name,
                experiment=experiment.name,
                at=at,
                seed=seed,
                flags=flags,
                inputs=read,
                evidence=experiment.evidence,
                seconds=whole.seconds if whole else max(known_s, default=experiment.seconds),
                seeds=seeds,
            )
