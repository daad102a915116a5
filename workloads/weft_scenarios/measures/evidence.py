# SPDX-License-Identifier: Apache-2.0
"""Numbers and curves of a run with captured packets.

workloads/evidence/README.md explains the files and their columns.
"""

from pathlib import Path

import polars as pl

from weft_scenarios.measures.curves import Curve, course, number, quantiles

PACKET_BYTES = 1424
"""Payload of a full MPTCP packet: 1500 bytes less the headers of IPv4 and TCP with a DSS option."""

FOLDER = "evidence"
CAPTURE = "capture"
"""The captures of `weft run`, which are not needed once there is evidence."""
PACKETS = "packets.csv"
"""The largest file of the evidence, which nothing reads again."""


def metrics(run: Path, receivers: list[str]) -> dict[str, float]:
    """Give the metrics of all connections, and of the last hop to `receivers`."""
    sent_to = pl.col("destination").is_in(receivers)
    connections = _read(run, "connections").filter(sent_to & (pl.col("data_packets") > 0))
    ports = _read(run, "ports").filter(pl.col("peer").is_in(receivers))
    if connections.is_empty() or ports.is_empty():
        return {}
    weight = connections["data_packets"]

    def mean(column: str) -> float:
        return number((connections[column] * weight).sum()) / number(weight.sum())

    delays = _delays(run)
    gap = gap_packets(run)["packets"]
    return {
        "ooo_delay_mean_us": mean("out_of_order_delay_mean_ns") / 1e3,
        "ooo_delay_p99_us": delays.at(99) / 1e3,
        "ooo_delay_max_us": number(connections["out_of_order_delay_max_ns"].max()) / 1e3,
        "ooo_queue_mean_kb": mean("out_of_order_queue_mean_bytes") / 1e3,
        "ooo_queue_max_kb": number(connections["out_of_order_queue_max_bytes"].max()) / 1e3,
        "data_ack_leap_mean_packets": mean("data_ack_leap_mean_packets"),
        "data_ack_leap_max_packets": number(connections["data_ack_leap_max_packets"].max()),
        "queue_mean_packets": number(ports["queue_mean_packets"].max()),
        "bursty_strength_mean_packets": number(ports["bursty_strength_mean_packets"].max()),
        "bursty_strength_max_packets": number(ports["bursty_strength_max_packets"].max()),
        "last_hop_loss_percent": 100 * number(ports["loss_rate"].max()),
        "gap_mean_packets": number(gap.mean()),
        "gap_max_packets": number(gap.max()),
        "reinjected_packets": number(connections["reinjected_packets"].sum()),
    }


def curves(run: Path, receivers: list[str]) -> dict[str, Curve]:
    """Give the distribution of delays and leaps, and the queue over time."""
    delays = _delays(run)
    queue = _read(run, "queue").filter(pl.col("peer").is_in(receivers))
    drawn = {
        "ooo_delay_us": (delays.percents, [delay / 1e3 for delay in delays.values]),
        "data_ack_leap_packets": _leaps(run),
        "queue_packets": course(queue["time_ns"] / 1e6, queue["queue_max_packets"]),
    }
    if (run / FOLDER / "data_acks.csv").exists():
        acks = _read(run, "data_acks")
        first = acks.filter(pl.col("connection") == pl.col("connection").min())
        drawn["data_ack_kb"] = course(first["time_ns"] / 1e6, first["data_ack"] / 1e3)
    gaps = gap_packets(run)
    drawn["gap_packets"] = course(gaps["time_ms"], gaps["packets"])
    return drawn


def gap_packets(run: Path) -> pl.DataFrame:
    """Give the gaps of the first connection: packets left for other subflows, and when."""
    if not (run / FOLDER / "gaps.csv").exists():  # An older run.
        return pl.DataFrame(schema={"time_ms": pl.Float64, "packets": pl.Float64})
    table = _read(run, "gaps")
    first = table.filter(pl.col("connection") == pl.col("connection").min())
    # Polars cannot infer the types of an empty table.
    time_ms = pl.col("time_ns").cast(pl.Float64) / 1e6
    packets = pl.col("unsent_bytes").cast(pl.Float64) / PACKET_BYTES
    return first.select(time_ms.alias("time_ms"), packets.alias("packets"))


class _Distribution:
    def __init__(self, table: pl.DataFrame, column: str) -> None:
        self.percents: list[float] = table["percentile"].cast(pl.Float64).to_list()
        self.values: list[float] = table[column].cast(pl.Float64).to_list()

    def at(self, percent: float) -> float:
        """Give the value of the first listed percentile from `percent` on."""
        pairs = zip(self.percents, self.values, strict=True)
        return next((value for at, value in pairs if at >= percent), 0.0)


def _delays(run: Path) -> _Distribution:
    return _Distribution(_read(run, "out_of_order_delay"), "out_of_order_delay_ns")


def _leaps(run: Path) -> Curve:
    """Give the distribution of the leaps of all Data ACKs."""
    table = _read(run, "data_ack_leaps").sort("leap_packets")
    each = table.select(pl.col("leap_packets").repeat_by("data_acks").explode())
    return quantiles(each["leap_packets"])


def _read(run: Path, name: str) -> pl.DataFrame:
    return pl.read_csv(run / FOLDER / f"{name}.csv", infer_schema_length=None)
