# SPDX-License-Identifier: Apache-2.0
"""Mean and spread over seeds, and tests of hypotheses."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import mean, stdev

import numpy as np
from scipy.stats import bootstrap
from scipy.stats import t as students_t

LEVEL = 0.05
"""Probability of an error that is accepted: 95% confidence."""
SEEDS_MIN = 5
"""With fewer different seeds nothing is decided."""


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

    def times(self, factor: float) -> "Spread":
        """Give the same in another unit."""
        half = None if self.half is None else self.half * factor
        return Spread(self.mean * factor, half, self.count)


@dataclass(frozen=True)
class Ratio:
    """Ratio of two means over the same seeds, and its 95% confidence interval by the bootstrap."""

    mean: float
    low: float
    high: float
    """Both ends are the ratio itself where nothing can be said of them."""
    count: int

    def times(self, factor: float) -> "Ratio":
        """Give a multiple of it."""
        return Ratio(self.mean * factor, self.low * factor, self.high * factor, self.count)


def spread(values: Sequence[float]) -> Spread:
    """Compute mean and confidence interval of at least one value."""
    count = len(values)
    if count == 1:
        return Spread(values[0], None, 1)
    quantile = float(students_t.ppf(1 - LEVEL / 2, count - 1))
    return Spread(mean(values), quantile * stdev(values) / sqrt(count), count)


def ratio_interval(which: Sequence[float], versus: Sequence[float]) -> tuple[float, float] | None:
    """Compute the 95% confidence interval of the ratio of the means of pairs.

    By the bootstrap over pairs, bias-corrected and accelerated (Efron 1987); the same for the same
    pairs. None for fewer than two pairs, and where resampled means may be 0.
    """
    if len(which) < 2 or min(versus) <= 0:
        return None
    ratios = {mine / its for mine, its in zip(which, versus, strict=True)}
    if len(ratios) == 1:
        return (min(ratios), max(ratios))
    found = bootstrap(
        (which, versus),
        lambda mine, its, axis: np.mean(mine, axis=axis) / np.mean(its, axis=axis),
        paired=True,
        confidence_level=1 - LEVEL,
        rng=np.random.default_rng(0),
    ).confidence_interval
    return (float(found.low), float(found.high))


def ratio(which: Sequence[float], versus: Sequence[float]) -> Ratio:
    """Compute the ratio of the means of at least one pair, and its confidence interval."""
    value = mean(which) / mean(versus)
    low, high = ratio_interval(which, versus) or (value, value)
    return Ratio(value, low, high, len(which))


def p_value(values: Sequence[float]) -> float:
    """Give the probability of a mean as far from 0, if it were 0 (two-sided t-test).

    At least two values.
    """
    deviation = stdev(values)
    if not deviation:
        return float(mean(values) == 0)
    statistic = abs(mean(values)) / deviation * sqrt(len(values))
    return float(2 * students_t.sf(statistic, len(values) - 1))


def holm(p_values: Sequence[float]) -> list[bool]:
    """Say which hypotheses are rejected if all are tested together (Holm 1979)."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    rejected = [False] * len(p_values)
    for done, index in enumerate(order):
        if p_values[index] > LEVEL / (len(p_values) - done):
            break
        rejected[index] = True
    return rejected
