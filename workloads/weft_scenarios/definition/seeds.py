# SPDX-License-Identifier: Apache-2.0
"""Which seeds a point gets: a fixed number, or as many as its mean needs.

With `seeds = { until = "5%", of = "fct_mean_ms", at_least = 3, at_most = 20 }` a point gets seeds
1, 2, ... until half of the 95% confidence interval of the mean over seeds is below 5% of the mean.
With `first = 301` they begin there: results need other seeds than what was tuned with.
The decision depends only on the results, seed by seed. So an experiment that is resumed, or whose
store has more seeds than it needs, ends with the same ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from weft_scenarios.stats import spread

AT_LEAST, AT_MOST = 3, 20
"""Defaults. Two seeds say little about the variance between seeds."""
OF = "fct_mean_ms"

Known = Mapping[int, float | None]
"""The value of each seed; None if its run failed or lacks this metric."""


@dataclass(frozen=True)
class Seeds:
    """The seeds of a point."""

    at_least: int
    at_most: int
    percent: float = 0.0
    """Seeds are enough if half of the confidence interval is below this share of the mean."""
    of: str = OF
    """The metric."""
    first: int = 1

    @classmethod
    def fixed(cls, count: int, first: int = 1) -> "Seeds":
        """Give a fixed number of seeds."""
        return cls(count, count, first=first)

    def numbers(self) -> range:
        """Give all that may be needed."""
        return range(self.first, self.first + self.at_most)

    def raised(self, count: int) -> "Seeds":
        """Raise the minimum to `count`."""
        return replace(self, at_least=max(self.at_least, count), at_most=max(self.at_most, count))

    def is_fixed(self) -> bool:
        """Whether the number does not depend on results."""
        return self.at_least == self.at_most

    def __str__(self) -> str:
        """Describe it for the table of parameters."""
        since = f", from {self.first} on" if self.first > 1 else ""
        if self.is_fixed():
            return f"{self.at_most}{since}"
        return (
            f"{self.at_least} to {self.at_most}{since}, until the mean of {self.of} is known to "
            f"{self.percent:g}%"
        )

    def wanted(self, known: Known) -> int:
        """Give the last seed that is needed, given the values of those before."""
        numbers = self.numbers()
        for count in range(self.at_least, self.at_most):
            some = numbers[:count]
            if not all(seed in known for seed in some):
                return some[-1]
            values = [value for seed in some if (value := known[seed]) is not None]
            if self._are_enough(values):
                return some[-1]
        return numbers[-1]

    def _are_enough(self, values: Sequence[float]) -> bool:
        if len(values) < max(self.at_least, 2):
            return False
        mean = spread(values)
        return (mean.half or 0.0) <= self.percent / 100 * abs(mean.mean)
