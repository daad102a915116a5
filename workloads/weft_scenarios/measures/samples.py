# SPDX-License-Identifier: Apache-2.0
"""Windows, RTTs and STMS's gap of the first flow over time, from `samples.csv`.

The fast subflow is the one with the lowest mean RTT, the slow one has the highest.
"""

from pathlib import Path

import polars as pl

from weft_scenarios.measures.curves import Curve, course, number

FILE = "samples.csv"


def read(folder: Path) -> tuple[dict[str, float], dict[str, Curve]]:
    """Give the metrics and time series of a run; nothing without samples."""
    if not (folder / FILE).exists():
        return {}, {}
    table = pl.read_csv(folder / FILE)
    first = table.filter(pl.col("flow") == pl.col("flow").min())
    subflows = first.partition_by("source", "source_port")
    by_rtt = sorted(subflows, key=lambda part: number(part["srtt_ns"].mean()))
    if not by_rtt:
        return {}, {}
    fast, slow = by_rtt[0], by_rtt[-1]
    free = (fast["cwnd_packets"] - fast["in_flight_packets"]).clip(0)
    metrics = {
        "fast_free_window_mean_packets": number(free.mean()),
        "fast_free_window_max_packets": number(free.max()),
        "fast_cwnd_mean_packets": number(fast["cwnd_packets"].mean()),
    }
    curves = {"fast_cwnd_packets": course(fast["time_ns"] / 1e6, fast["cwnd_packets"])}
    if len(by_rtt) > 1:
        curves["slow_cwnd_packets"] = course(slow["time_ns"] / 1e6, slow["cwnd_packets"])
        curves["true_gap_packets"] = _true_gap(fast, slow)
    return metrics, curves


def _true_gap(fast: pl.DataFrame, slow: pl.DataFrame) -> Curve:
    """Give the gap by STMS's equation 2: B_f (OWD_s - OWD_f), with B_f = CWND_f / RTT_f."""
    both = fast.join(slow, on="time_ns", suffix="_slow")
    difference = (both["srtt_ns_slow"] - both["srtt_ns"]).clip(0)
    return course(both["time_ns"] / 1e6, both["cwnd_packets"] * difference / (2 * both["srtt_ns"]))
