# SPDX-License-Identifier: Apache-2.0
"""How patterns followed the network: metrics of the first pair of leaves.

From `patterns.csv` and `loop.csv`, whose columns controller/src/record.rs explains.
"""

from pathlib import Path

import polars as pl

from weft_scenarios.measures.curves import Curve, number

_PATTERNS, _LOOP = "patterns.csv", "loop.csv"


def read(folder: Path, end_ms: float) -> tuple[dict[str, float], dict[str, Curve]]:
    """Give metrics and time series of a run that lasted so long; nothing without patterns."""
    if not (folder / _PATTERNS).exists():
        return {}, {}
    table = pl.read_csv(folder / _PATTERNS)
    leaves = ("source_leaf", "destination_leaf")
    first = table.filter(*(pl.col(leaf) == pl.col(leaf).first() for leaf in leaves))
    # There is a row for each path, all with the same sequence.
    patterns = first.unique("version", keep="first", maintain_order=True)
    if patterns.is_empty():
        return {}, {}
    metrics = {"patterns_per_s": 1e3 * (len(patterns) - 1) / end_ms} | _delays(folder)
    sequence = pl.col("sequence")
    share = 100 * sequence.str.count_matches("B") / sequence.str.len_chars()
    course = patterns.select(pl.col("time_ns") / 1e6, share.alias("share"))
    x, y = course["time_ns"].to_list(), course["share"].to_list()
    return metrics, {"path2_share_percent": ([*x, max(end_ms, x[-1])], [*y, y[-1]])}


def _delays(folder: Path) -> dict[str, float]:
    """Give the delays from sample to kernel, of patterns that did not have to wait."""
    table = pl.read_csv(folder / _LOOP, schema_overrides={"rested": pl.String})
    at_once = table.filter((pl.col("rested") == "false") & pl.col("sampled_ns").is_not_null())
    if at_once.is_empty():
        return {}
    delays = at_once["applied_ns"].cast(pl.Int64) - at_once["sampled_ns"].cast(pl.Int64)
    return {
        "sample_to_kernel_median_us": number(delays.median()) / 1e3,
        "sample_to_kernel_max_us": number(delays.max()) / 1e3,
    }
