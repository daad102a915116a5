"""How many seeds a point gets: so many, or as many as its mean needs.

With `seeds = { until = "5%", of = "fct_mean_ms", at_least = 3, at_most = 20 }` a point gets seeds
1, 2, ... until half of the 95% confidence interval of the mean over seeds is below 5% of the mean.
What is asked for follows from the runs' results alone, seed by seed: an experiment that is
resumed, or whose store holds more seeds than it needs, ends with the same ones.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from weft_scenarios.stats import spread

if TYPE_CHECKING:
    from weft_scenarios.matrix import Run

AT_LEAST, AT_MOST = 3, 20
"""Seeds, unless a file says otherwise. Two say little of how seeds differ."""
OF = "fct_mean_ms"

Known = Mapping[int, float | None]
"""By seed, what it gave; nothing if its run failed or gave no such number."""


@dataclass(frozen=True)
class Seeds:
    """Which seeds a point gets."""

    at_least: int
    at_most: int
    percent: float = 0.0
    """Half of the confidence interval, of the mean, below which there are enough."""
    of: str = OF
    """Which number's mean."""

    @classmethod
    def fixed(cls, count: int) -> "Seeds":
        """So many, whatever they give."""
        return cls(count, count)

    def raised(self, count: int) -> "Seeds":
        """Ask for `count` at the least."""
        return replace(self, at_least=max(self.at_least, count), at_most=max(self.at_most, count))

    def is_fixed(self) -> bool:
        """Whether it is known from the start how many."""
        return self.at_least == self.at_most

    def __str__(self) -> str:
        """Say it for the table of parameters."""
        if self.is_fixed():
            return str(self.at_most)
        return (
            f"{self.at_least} to {self.at_most}, until the mean of {self.of} is known to "
            f"{self.percent:g}%"
        )

    def wanted(self, known: Known) -> int:
        """Give the last seed that is wanted, by what is known of those before."""
        for last in range(self.at_least, self.at_most):
            some = range(1, last + 1)
            if not all(seed in known for seed in some):
                return last
            values = [value for seed in some if (value := known[seed]) is not None]
            if self._are_enough(values):
                return last
        return self.at_most

    def _are_enough(self, values: Sequence[float]) -> bool:
        if len(values) < max(self.at_least, 2):
            return False
        mean = spread(values)
        return (mean.half or 0.0) <= self.percent / 100 * abs(mean.mean)


def wanted(runs: Iterable["Run"], known: Callable[["Run"], float | None]) -> list["Run"]:
    """Keep the runs that are wanted; `known` raises LookupError for one that was not done."""
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
