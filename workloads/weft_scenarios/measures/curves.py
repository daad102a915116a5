# SPDX-License-Identifier: Apache-2.0
"""Curves of a run: distributions and time series."""

from collections.abc import Sequence

import polars as pl

Curve = tuple[Sequence[float], Sequence[float]]
"""x and y: percent and value of a distribution, or ms and value of a time series."""

_PERCENTS = (*range(100), 99.5, 99.9, 100)
_COURSE_POINTS = 400


def number(value: object) -> float:
    """Give a cell of a table as a number; 0 for an empty one."""
    return float(value) if isinstance(value, int | float) else 0.0


def quantiles(values: pl.Series) -> Curve:
    """Give the percentiles of values."""
    return _PERCENTS, [number(values.quantile(p / 100, "nearest")) for p in _PERCENTS]


def course(time_ms: pl.Series, values: pl.Series) -> Curve:
    """Give a time series, downsampled to the maximum of each interval."""
    frame = pl.DataFrame({"time": time_ms, "value": values}).sort("time")
    if len(frame) > _COURSE_POINTS:
        end = max(number(time_ms.max()), 1e-9)
        slot = (pl.col("time") * _COURSE_POINTS / end).floor().alias("slot")
        frame = frame.group_by(slot, maintain_order=True).agg(pl.all().max())
    return frame["time"].to_list(), frame["value"].cast(pl.Float64).to_list()
