# SPDX-License-Identifier: Apache-2.0
"""The last hop while long flows run, beside the formulas of `theory.py` about it.

The first quarter of the time until the first flow ends is left out: slow start, and what follows
from it. "The last hop" are all ports to hosts that receive.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import polars as pl

from weft_scenarios.measures import theory
from weft_scenarios.measures.curves import number

_FRAME_BYTES = 1514
"""A full frame, as the links of the lab count it."""
_LEFT_OUT = 0.25
_END = 0.1
"""Share of the time that stands for each end of a sawtooth; its extremes are single bursts. Of a
queue that moves evenly between its ends, the mean of that share is its 5th or 95th percentile."""
_RTO_MIN_MS = 200
"""Linux's; a timeout is one RTT longer, while the RTT is constant."""


class _Setting(NamedTuple):
    """What formulas need to know about a run: long flows over one last hop."""

    congestion: str
    flows: int
    rate_bps: float
    rtt_s: float
    """Without queues, and with the time that a packet takes to the slowest link."""
    buffer: float
    marks_above: float | None
    loss: float
    timeout_s: float

    def bdp(self) -> float:
        """Give the packets that the path holds without a queue."""
        return self.rate_bps * self.rtt_s / 8 / _FRAME_BYTES


def metrics(
    info: Mapping[str, Any], flows: pl.DataFrame, last_hop: pl.DataFrame
) -> dict[str, float]:
    """Give what was measured, and the same by the formula that applies; `flows` are completed."""
    start_ns = number(flows["start_ns"].max())
    end_ns = number((flows["start_ns"] + flows["fct_ns"]).min())
    from_ns = start_ns + _LEFT_OUT * (end_ns - start_ns)
    links = info.get("topology", {}).get("links", [])
    to_hosts = [link["rate_bps"] for link in links if link["between"] == "host-switch"]
    ports = last_hop.partition_by("switch", "port", maintain_order=True)
    if not to_hosts or not ports or end_ns <= from_ns:
        return {}
    sent_bps = sum(_sent_bytes(port, from_ns, end_ns) for port in ports) * 8e9 / (end_ns - from_ns)
    found = {"steady_use_percent": 100 * sent_bps / to_hosts[0] / len(ports)}
    setting = _setting(info, len(flows))
    if setting is not None and len(ports) == 1:
        queue = _queue(ports[0], from_ns, end_ns)
        found |= _of_window(setting, sent_bps)
        found |= _of_queue(setting, queue) | _of_use(setting, found["steady_use_percent"])
    return found


def _sent_bytes(port: pl.DataFrame, from_ns: float, until_ns: float) -> float:
    """Give what a port sent in that time; rows are left out while its counter stands still."""
    first, last = (
        number(port.filter(pl.col("time_ns") <= at)["tx_bytes"].max()) for at in (from_ns, until_ns)
    )
    return last - first


def _queue(port: pl.DataFrame, from_ns: float, until_ns: float) -> pl.Series:
    """Give the queue at the end of each millisecond in that time in which a packet was sent."""
    return port.filter(pl.col("time_ns").is_between(from_ns, until_ns))["queue_packets"]


def _setting(info: Mapping[str, Any], flows: int) -> _Setting | None:
    """Give the setting of long TCP flows in a leaf-spine; None for everything else."""
    workload, topology = info.get("workload", {}), info["topology"]
    is_covered = workload.get("traffic") == "bulk" and workload.get("protocol") == "tcp"
    if not is_covered or topology.get("name") != "leaf-spine":
        return None
    host, fabric = (
        [link for link in topology["links"] if link["between"] == kind]
        for kind in ("host-switch", "switch-switch")
    )
    # Spines may have different delays; flows are spread over all of them.
    fabric_ns = sum(link["count"] * link["delay_ns"] for link in fabric)
    delay_ns = 2 * host[0]["delay_ns"] + 2 * fabric_ns / sum(link["count"] for link in fabric)
    rate_bps = float(host[0]["rate_bps"])
    rtt_s = 2 * delay_ns / 1e9 + _FRAME_BYTES * 8 / rate_bps
    lab = info.get("lab", {}).get("topology", {})
    return _Setting(
        congestion=workload.get("congestion", ""),
        flows=flows,
        rate_bps=rate_bps,
        rtt_s=rtt_s,
        buffer=float(host[0]["queue_packets"]),
        marks_above=lab.get("ecn_packets"),
        loss=max(topology.get("loss_ppm", {}).values(), default=0) / 1e6,
        timeout_s=rtt_s + lab.get("rto_min_ms", _RTO_MIN_MS) / 1e3,
    )


def _of_window(setting: _Setting, sent_bps: float) -> dict[str, float]:
    """Give the mean window by Little's law: rate times RTT. Random losses keep queues empty."""
    if not setting.loss or setting.congestion not in ("reno", "cubic"):
        return {}
    loss, rtt_s = setting.loss, setting.rtt_s
    delivered = sent_bps * rtt_s / 8 / _FRAME_BYTES / setting.flows
    # What was lost before the last hop was in flight, too.
    found = {"window_packets": delivered / (1 - loss)}
    if setting.congestion == "cubic":
        found["window_model_packets"] = theory.cubic_window(loss, rtt_s)
    else:
        found["window_model_packets"] = theory.reno_window(loss)
        found["window_pftk_packets"] = theory.pftk_window(loss, rtt_s, setting.timeout_s)
        found["window_by_pftk"] = found["window_packets"] / found["window_pftk_packets"]
    found["window_random_packets"] = theory.window_by_rounds(
        setting.congestion, loss, rtt_s, is_random=True
    )
    found["window_by_model"] = found["window_packets"] / found["window_model_packets"]
    return found


def _of_queue(setting: _Setting, queue: pl.Series) -> dict[str, float]:
    """Give the sawtooth of DCTCP's queue."""
    marks_above = setting.marks_above
    if marks_above is None or setting.congestion != "dctcp" or not len(queue):
        return {}
    ordered = queue.sort()
    count = max(round(_END * len(queue)), 1)
    low, high = number(ordered.head(count).mean()), number(ordered.tail(count).mean())
    model_high = theory.dctcp_highest_queue(marks_above, setting.flows)
    amplitude = theory.dctcp_amplitude(marks_above, setting.flows, setting.bdp())
    return {
        "queue_high_packets": high,
        "queue_low_packets": low,
        "queue_swing_packets": high - low,
        "queue_high_model_packets": model_high,
        "queue_low_model_packets": max(model_high - amplitude, 0.0),
        "queue_swing_model_packets": amplitude,
        "queue_high_by_model": high / model_high,
        "queue_swing_by_model": (high - low) / amplitude,
    }


def _of_use(setting: _Setting, use_percent: float) -> dict[str, float]:
    """Give the use that Reno makes of a link with a buffer of this size."""
    if setting.congestion != "reno" or setting.loss:
        return {}
    model = 100 * theory.link_use(setting.buffer, setting.bdp(), setting.flows)
    return {"use_model_percent": model, "use_by_model": use_percent / model}
