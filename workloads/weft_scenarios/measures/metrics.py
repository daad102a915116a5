# SPDX-License-Identifier: Apache-2.0
"""Computes metrics and curves of a run from its folder.

Its input is what `weft run` and `weft evidence` wrote.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from weft_scenarios.errors import ScenarioError
from weft_scenarios.measures import (
    control_loop,
    curves,
    evidence,
    fluid,
    rb_model,
    samples,
    steady,
    theory,
    warmup,
)
from weft_scenarios.measures.curves import Curve, course, number, quantiles

SHORT_BYTES, LONG_BYTES = 100_000, 1_000_000
"""Flows below are short, flows from there on are long."""


_MODULES = (control_loop, curves, evidence, fluid, rb_model, samples, steady, theory, warmup)
"""Modules that compute metrics, besides this one."""


@dataclass(frozen=True)
class Measured:
    """The measurements of a run."""

    metrics: Mapping[str, float]
    curves: Mapping[str, Curve]
    kernel: str
    revision: str
    by: str = ""
    """Digest of the code that computed them."""
    wall_s: float | None = None
    """Real time of the run, on a machine that may have done other work too."""
    cpu_s: float | None = None
    """Processor time of the run."""
    memory_bytes: int | None = None
    """Memory of the guest."""

    def at_the_cost_of(self, other: "Measured") -> "Measured":
        """Copy the cost from another measurement of the same run."""
        cost = {key: getattr(other, key) for key in ("wall_s", "cpu_s", "memory_bytes")}
        return replace(self, **cost)

    def numbers(self) -> dict[str, float]:
        """Give all metrics, including the cost of the run."""
        found = dict(self.metrics)
        if self.cpu_s is not None:
            found["cpu_s"] = self.cpu_s
        if self.memory_bytes is not None:
            found["memory_mb"] = self.memory_bytes / 1e6
        return found

    def to_json(self) -> str:
        """Serialize."""
        return json.dumps(self.__dict__, indent=1)

    @classmethod
    def from_json(cls, text: str) -> "Measured":
        """Deserialize."""
        return cls(**json.loads(text))


def code() -> str:
    """Give a digest of the code that measures. If it changes, finished runs are measured again."""
    files = (Path(module.__file__ or "").read_bytes() for module in _MODULES)
    own = Path(__file__).read_bytes()
    return hashlib.sha256(b"".join([*files, own])).hexdigest()[:12]


def measure(folder: Path) -> Measured:
    """Measure a run from its folder."""
    try:
        return _measure(folder)
    except (OSError, ValueError, KeyError, pl.exceptions.PolarsError) as error:
        raise ScenarioError(f"{folder}: not the folder of a run: {error}") from None


def _measure(folder: Path) -> Measured:
    info = json.loads((folder / "run.json").read_text())
    flows = pl.read_csv(folder / "flows.csv", schema_overrides={"error": pl.String})
    queues = pl.read_csv(folder / "queues.csv")
    arrived = flows.filter(pl.col("fct_ns").is_not_null())
    flows, completed = warmup.measured(flows, info), warmup.measured(arrived, info)
    if completed.is_empty():
        raise ScenarioError(f"{folder}: no flow completed")
    receivers = flows["dst"].unique().sort().to_list()
    last_hop = queues.filter(pl.col("peer").is_in(receivers))
    workload = info.get("workload", {})
    metrics = _of_flows(completed) | _of_classes(completed, workload) | _of_load(flows, info)
    metrics |= _of_fairness(completed) | _of_background(folder, completed)
    metrics |= _of_queries(flows, workload) | _of_model(info, metrics["subflows_mean"])
    metrics |= fluid.metrics(info, arrived)
    # What switches and the controller did is that of the whole run.
    span_ms = _span_ns(arrived) / 1e6
    metrics |= _of_queues(queues, last_hop, span_ms)
    metrics |= steady.metrics(info, completed, last_hop)
    drawn = {
        "fct_ms": quantiles(completed["fct_ns"] / 1e6),
        "queue_packets": course(last_hop["time_ns"] / 1e6, last_hop["queue_max_packets"]),
    }
    for numbers, courses in (
        samples.read(folder),
        control_loop.read(folder, span_ms),
    ):
        metrics |= numbers
        drawn |= courses
    if (folder / evidence.FOLDER).exists():
        metrics |= evidence.metrics(folder, receivers)
        drawn |= evidence.curves(folder, receivers)
    metrics |= _of_gap(drawn)
    return Measured(metrics, drawn, info["kernel"], info.get("revision") or "unknown", code())


def _span_ns(flows: pl.DataFrame) -> float:
    """Give the time from the first start to the last end."""
    end_ns = (flows["start_ns"] + flows["fct_ns"]).max()
    return number(end_ns) - number(flows["start_ns"].min())


def _of_flows(flows: pl.DataFrame) -> dict[str, float]:
    fct_ms = flows["fct_ns"] / 1e6
    span_ns = _span_ns(flows)
    metrics = {
        "fct_mean_ms": number(fct_ms.mean()),
        "fct_median_ms": number(fct_ms.median()),
        "fct_p95_ms": number(fct_ms.quantile(0.95, "nearest")),
        "fct_p99_ms": number(fct_ms.quantile(0.99, "nearest")),
        "fct_max_ms": number(fct_ms.max()),
        "completion_ms": span_ns / 1e6,
        "goodput_mbps": number(flows["bytes"].sum()) * 8e3 / span_ns,
        "subflows_mean": number(flows["subflows"].mean()),
        "timeouts_per_flow": number(flows["timeouts"].mean()),
        "retransmitted_packets": number(flows["retransmissions"].sum()),
        "reinjected_bytes": number(flows["reinjected_bytes"].sum()),
    }
    short_ms = fct_ms.filter(flows["bytes"] < SHORT_BYTES)
    if len(short_ms):
        metrics["fct_short_mean_ms"] = number(short_ms.mean())
        metrics["fct_short_p99_ms"] = number(short_ms.quantile(0.99, "nearest"))
    long = flows.filter(pl.col("bytes") >= LONG_BYTES)
    if len(long):
        metrics["rate_long_mbps"] = number((long["bytes"] * 8e3 / long["fct_ns"]).mean())
        metrics["fct_long_p99_ms"] = number((long["fct_ns"] / 1e6).quantile(0.99, "nearest"))
    return metrics


def _of_fairness(flows: pl.DataFrame) -> dict[str, float]:
    """Give Jain's index of the rates of flows that ask for the same: 1 if all get the same.

    Jain, Chiu and Hawe, DEC-TR-301, 1984. Flows that begin together, and have one size or were
    stopped together.
    """
    begin_together = flows["start_ns"].n_unique() == 1
    are_equal = flows["bytes"].n_unique() == 1 or flows["fct_ns"].n_unique() == 1
    if len(flows) < 2 or not (begin_together and are_equal):
        return {}
    rates = flows["bytes"] / flows["fct_ns"]
    return {"jain_index": number(rates.sum()) ** 2 / (len(flows) * number((rates**2).sum()))}


def _of_background(folder: Path, flows: pl.DataFrame) -> dict[str, float]:
    """Give the goodput of plain TCP in the background that goes the same way as measured flows do.

    That is, from the racks that these come from to the racks that they go to. Where none does,
    there is nothing that measured flows could leave to others.
    """
    file = folder / "background.csv"
    if not file.exists():
        return {}
    rack = [pl.col(end).str.replace(r"_\d+$", "") for end in ("src", "dst")]
    same_way = pl.read_csv(file).with_columns(rack).join(
        flows.select(rack).unique(), on=("src", "dst"), how="semi"
    )  # fmt: skip
    if same_way.is_empty():
        return {}
    return {"background_mbps": number(same_way["bytes"].sum()) * 8e3 / _span_ns(flows)}


def _of_load(flows: pl.DataFrame, info: Mapping[str, Any]) -> dict[str, float]:
    """Give the load that Poisson arrivals really offered.

    Its expected value is the flag `load`. With heavy-tailed sizes, a run of a few hundred flows can
    be far from that.
    """
    workload, links = info.get("workload", {}), info.get("topology", {}).get("links", [])
    span_ns = number(flows["start_ns"].max()) - number(flows["start_ns"].min())
    hosts = [link for link in links if link["between"] == "host-switch"]
    if workload.get("load") is None or not hosts or span_ns <= 0:
        return {}
    count = 1 if workload.get("traffic") == "many-to-one" else sum(h["count"] for h in hosts)
    # n flows have n - 1 interarrival times.
    octets = number(flows["bytes"].sum()) * (len(flows) - 1) / len(flows)
    return {"offered_load": octets * 8e9 / span_ns / (count * hosts[0]["rate_bps"])}


def _of_classes(flows: pl.DataFrame, workload: Mapping[str, Any]) -> dict[str, float]:
    """Give metrics of small and of large flows.

    In a mix, the two sizes separate them; elsewhere 1 MB does (MPTCP-RB, section 6.3), times the
    scale.
    """
    bound = (workload.get("short_bytes") or 0) + 1
    if workload.get("short_bytes") is None:
        bound = LONG_BYTES * (workload.get("scale") or 1.0)
    is_small = flows["bytes"] < bound
    small_ms = (flows["fct_ns"] / 1e6).filter(is_small)
    large = flows.filter(~is_small)
    metrics = {}
    if len(small_ms):
        metrics["fct_small_mean_ms"] = number(small_ms.mean())
        metrics["fct_small_p95_ms"] = number(small_ms.quantile(0.95, "nearest"))
        metrics["fct_small_p99_ms"] = number(small_ms.quantile(0.99, "nearest"))
    if len(large):
        metrics["rate_large_mbps"] = number((large["bytes"] * 8e3 / large["fct_ns"]).mean())
    return metrics


_INTERLEAVES = {"rb": True, "minrtt": False, "roundrobin": False}
"""Schedulers that the model of MPTCP-RB covers, and whether they interleave packets."""


def _of_model(info: Mapping[str, Any], subflows: float) -> dict[str, float]:
    """Give the FCT that the model of MPTCP-RB predicts for an incast."""
    workload, links = info.get("workload", {}), info.get("topology", {}).get("links", [])
    interleaves = _INTERLEAVES.get(workload.get("scheduler", ""))
    if workload.get("traffic") != "incast" or interleaves is None or not links:
        return {}
    longest = {kind: max(link["delay_ns"] for link in links if link["between"] == kind)
               for kind in {link["between"] for link in links}}  # fmt: skip
    queue = next(link["queue_packets"] for link in links if link["between"] == "host-switch")
    setting = rb_model.Setting(
        flows=workload["flows"],
        subflows=max(round(subflows), 1),
        window_packets=rb_model.WINDOW_PACKETS,
        queue_packets=queue,
        rtt_ms=4 * sum(longest.values()) / 1e6,
        subflow_packets=workload["bytes"] / max(round(subflows), 1) / evidence.PACKET_BYTES,
    )
    return {"fct_model_ms": rb_model.fct_ms(setting, interleaves)}


def _of_gap(drawn: Mapping[str, Curve]) -> dict[str, float]:
    """Compare the gaps that STMS sent with equation 2, over the last quarter of the run."""
    ends = []
    for name in ("gap_packets", "true_gap_packets"):
        x, y = drawn.get(name, ((), ()))
        last = [packets for time_ms, packets in zip(x, y, strict=True) if time_ms > 0.75 * x[-1]]
        ends.append(sum(last) / max(len(last), 1))
    return {"gap_end_ratio": ends[0] / ends[1]} if all(ends) else {}


def _of_queries(flows: pl.DataFrame, workload: Mapping[str, Any]) -> dict[str, float]:
    """Give completion times of queries. A query without its last answer has missed its deadline."""
    fan_out, deadline_ns = workload.get("fan_out"), workload.get("deadline_ns")
    if not isinstance(fan_out, int):
        return {}
    number_of = (pl.col("flow") // fan_out).alias("query")
    is_whole = pl.col("fct_ns").is_not_null().all().alias("is_whole")
    queries = flows.group_by(number_of).agg(pl.col("fct_ns").max(), is_whole)
    whole = queries.filter(pl.col("is_whole"))["fct_ns"]
    metrics = {}
    if len(whole):
        metrics["query_mean_ms"] = number(whole.mean()) / 1e6
        metrics["query_p99_ms"] = number(whole.quantile(0.99, "nearest")) / 1e6
    if isinstance(deadline_ns, int):
        met = int((whole <= deadline_ns).sum())
        metrics["deadline_missed_percent"] = _percent(len(queries) - met, met)
    return metrics


def _of_queues(queues: pl.DataFrame, last_hop: pl.DataFrame, span_ms: float) -> dict[str, float]:
    # Counters are cumulative: the last row of each port has its total.
    totals = queues.group_by("switch", "port", "peer", maintain_order=True).last()
    dropped = number(totals["dropped_packets"].sum())
    receivers = last_hop["peer"].unique().to_list()
    delivered = number(totals.filter(pl.col("peer").is_in(receivers))["tx_packets"].sum())
    metrics = {
        "loss_percent": _percent(dropped, delivered),
        "queue_max_packets": number(last_hop["queue_max_packets"].max()),
    }
    # Uplinks of the first leaf, where its traffic enters a path.
    uplinks = totals.filter((pl.col("switch") == "leaf1") & pl.col("peer").str.starts_with("spine"))
    columns = ("peer", "tx_packets", "tx_bytes", "dropped_packets")
    for peer, packets, octets, lost in uplinks.select(columns).rows():
        path = peer.replace("spine", "path")
        metrics[f"{path}_loss_percent"] = _percent(lost, packets)
        metrics[f"{path}_mbps"] = octets * 8 / span_ms / 1e3
    return metrics


def _percent(lost: float, passed: float) -> float:
    return 100 * lost / max(lost + passed, 1)
