# SPDX-License-Identifier: Apache-2.0
"""Mean and spread over seeds."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import mean, stdev

# 0.975 quantiles of Student's t distribution with 1, 2, ... degrees of freedom.
_T_975 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
_T_975_NORMAL = 1.960


@dataclass(frozen=True)
class Spread:
    """Mean over seeds, and its 95% confidence interval by Student's t."""

    mean: float
    half: float | None
    """Half the width of the interval; none with a single seed."""
    count: int

    @property
    def low(self) -> float:
        """Lower end of the interval; the mean itself with a single seed."""
        return self.mean - (self.half or 0.0)

    @property
    def high(self) -> float:
        """Upper end of the interval; the mean itself with a single seed."""
        return self.mean + (self.half or 0.0)


def spread(values: Sequence[float]) -> Spread:
    """Compute mean and confidence interval of at least one value."""
    count = len(values)
    if count == 1:
        return Spread(values[0], None, 1)
    t = _T_975[count - 2] if count - 2 < len(_T_975) else _T_975_NORMAL
    return Spread(mean(values), t * stdev(values) / sqrt(count), count)
