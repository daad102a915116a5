# SPDX-License-Identifier: Apache-2.0
"""Leaves the flows of a run's warm-up out of what is measured."""

from collections.abc import Mapping
from typing import Any

import polars as pl


def is_over(flows: pl.DataFrame, info: Mapping[str, Any]) -> pl.Series:
    """Say of rows of flows.csv whether they arrived after the warm-up of run.json."""
    return flows["start_ns"] >= (info.get("workload", {}).get("warmup_ns") or 0)


def measured(flows: pl.DataFrame, info: Mapping[str, Any]) -> pl.DataFrame:
    """Keep the rows of flows.csv that count."""
    return flows.filter(is_over(flows, info))
