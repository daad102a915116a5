# SPDX-License-Identifier: Apache-2.0
"""A run of one lab, and which runs of an experiment are needed."""

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from weft_scenarios.definition.seeds import Seeds
from weft_scenarios.definition.toml_reader import Value


@dataclass(frozen=True)
class Run:
    """A run of one lab: its flags, seed and point."""

    scenario: str
    experiment: str
    at: Mapping[str, Value]
    seed: int
    flags: Mapping[str, str]
    inputs: Mapping[str, str]
    """Digests of the files that flags name."""
    evidence: bool
    seconds: float
    """Approximate real time on a CPU of its own."""
    seeds: Seeds
    """The seeds of its point."""

    def all_flags(self) -> dict[str, str]:
        """Give the flags of `weft run`, without dashes, except --out."""
        capture = {"capture": "all"} if self.evidence else {}
        return {**self.flags, "seed": str(self.seed), **capture}

    def arguments(self) -> list[str]:
        """Give the arguments of `weft`, except --out."""
        flags = self.all_flags().items()
        words = ((f"--{name}", value) if value else (f"--{name}",) for name, value in flags)
        return ["run", *itertools.chain.from_iterable(words)]

    def __str__(self) -> str:
        """Give a short name for messages."""
        at = " ".join(f"{name}={value}" for name, value in self.at.items())
        return f"{self.scenario} {self.experiment}: {at} seed={self.seed}"


def wanted(runs: Iterable[Run], known: Callable[[Run], float | None]) -> list[Run]:
    """Keep the runs that are needed; `known` raises LookupError for a run that was not done."""
    points: dict[tuple[object, ...], list[Run]] = defaultdict(list)
    for run in runs:
        points[run.scenario, run.experiment, *run.at.items()].append(run)
    kept = []
    for some in points.values():
        if some[0].seeds.is_fixed():
            kept += some
            continue
        values: dict[int, float | None] = {}
        for run in some:
            try:
                values[run.seed] = known(run)
            except LookupError:
                continue
        last = some[0].seeds.wanted(values)
        kept += [run for run in some if run.seed <= last]
    return kept
