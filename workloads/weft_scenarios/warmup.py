# SPDX-License-Identifier: Apache-2.0
"""Leaves the flows of a run's warm-up out of what is measured."""

from collections.abc import Mapping
from typing import Any

import polars as pl


def measured(flows: pl.DataFrame, info: Mapping[str, Any]) -> pl.DataFrame:
    """Keep the rows of flows.csv that count: those that arrived after the warm-up of run.json."""
    end_ns = info.get("workload", {}).get("warmup_ns") or 0
    return flows.filter(pl.col("start_ns") >= end_ns)
