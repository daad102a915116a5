# SPDX-License-Identifier: Apache-2.0
"""All measured quantities, with their names, labels and units."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Quantity:
    """A number of every run, or a curve of every run."""

    label: str
    unit: str
    digits: int = 3
    """Significant digits that are shown."""
    holds: bool = False
    """Whether a time series keeps its value until the next one (a step function)."""
    is_exact: bool = False
    """Whether it is calculated from parameters alone, so that seeds do not matter."""

    def axis_label(self) -> str:
        """Label an axis of a plot."""
        return f"{self.label} ({self.unit})" if self.unit else self.label


METRICS: dict[str, Quantity] = {
    "fct_mean_ms": Quantity("Mean FCT", "ms"),
    "fct_median_ms": Quantity("Median FCT", "ms"),
    "fct_p95_ms": Quantity("95th percentile FCT", "ms"),
    "fct_p99_ms": Quantity("99th percentile FCT", "ms"),
    "fct_max_ms": Quantity("Slowest flow's FCT", "ms"),
    "completion_ms": Quantity("Completion time of all flows", "ms"),
    "fct_short_mean_ms": Quantity("Mean FCT of flows below 100 kB", "ms"),
    "fct_short_p99_ms": Quantity("99th percentile FCT of flows below 100 kB", "ms"),
    "fct_small_mean_ms": Quantity("Mean FCT of small flows", "ms"),
    "fct_small_p95_ms": Quantity("95th percentile FCT of small flows", "ms"),
    "fct_small_p99_ms": Quantity("99th percentile FCT of small flows", "ms"),
    "rate_large_mbps": Quantity("Mean rate of large flows", "Mbit/s"),
    "fct_model_ms": Quantity("FCT by the model of MPTCP-RB, section 5", "ms", is_exact=True),
    "fct_mean_by_even": Quantity("Mean FCT by that of links shared evenly", ""),
    "fct_p99_by_even": Quantity("99th percentile FCT by that of links shared evenly", ""),
    "fct_mean_by_shortest": Quantity("Mean FCT by that of shortest flows first", ""),
    "fct_p99_by_shortest": Quantity("99th percentile FCT by that of shortest flows first", ""),
    "fct_mean_by_class": Quantity("Mean FCT by that of eight classes", ""),
    "fct_p99_by_class": Quantity("99th percentile FCT by that of eight classes", ""),
    "fct_mean_even_ms": Quantity("Links shared evenly, fluid", "ms", is_exact=True),
    "fct_mean_shortest_ms": Quantity("Shortest flows first, fluid", "ms", is_exact=True),
    "fct_mean_class_ms": Quantity("Eight classes, fluid", "ms", is_exact=True),
    "fct_long_p99_ms": Quantity("99th percentile FCT of flows from 1 MB", "ms"),
    "rate_long_mbps": Quantity("Mean rate of flows from 1 MB", "Mbit/s"),
    "query_mean_ms": Quantity("Mean time of a query, to its last answer", "ms"),
    "query_p99_ms": Quantity("99th percentile of queries' times", "ms"),
    "deadline_missed_percent": Quantity("Queries that missed their deadline", "%"),
    "goodput_mbps": Quantity("Goodput", "Mbit/s"),
    "background_mbps": Quantity("Goodput of plain TCP that goes the same way", "Mbit/s"),
    "jain_index": Quantity("Jain's index of equal flows' rates", ""),
    "offered_load": Quantity("Payload offered, by the hosts' links", ""),
    "subflows_mean": Quantity("Subflows of a connection at its end", ""),
    "timeouts_per_flow": Quantity("Timeouts per flow", ""),
    "retransmitted_packets": Quantity("Retransmitted packets", ""),
    "reinjected_bytes": Quantity("Bytes sent again on another subflow", "B"),
    "cpu_s": Quantity("Processor time of the lab", "s"),
    "memory_mb": Quantity("Memory of the lab", "MB"),
    "patterns_per_s": Quantity("New patterns of the first pair of leaves", "1/s"),
    "sample_to_kernel_median_us": Quantity("Median time from a sample to a kernel", "µs"),
    "sample_to_kernel_max_us": Quantity("Longest time from a sample to a kernel", "µs"),
    "loss_percent": Quantity("Packets dropped by queues", "%"),
    "path1_loss_percent": Quantity("Packets dropped at the first path's entry", "%"),
    "path2_loss_percent": Quantity("Packets dropped at the second path's entry", "%"),
    "path1_mbps": Quantity("Sent over the first path", "Mbit/s"),
    "path2_mbps": Quantity("Sent over the second path", "Mbit/s"),
    "queue_max_packets": Quantity("Longest queue of the last hop", "packets"),
    # With long flows.
    "steady_use_percent": Quantity("Use of the receivers' links", "%"),
    "window_packets": Quantity("Mean window", "packets"),
    "window_model_packets": Quantity("Mean window, RFC 9438", "packets", is_exact=True),
    "window_by_model": Quantity("Mean window by that of RFC 9438", ""),
    "window_random_packets": Quantity("Mean window, losses at random", "packets", is_exact=True),
    "window_pftk_packets": Quantity("Mean window, PFTK", "packets", is_exact=True),
    "window_by_pftk": Quantity("Mean window by that of PFTK", ""),
    "queue_high_packets": Quantity("Top of the queue's sawtooth", "packets"),
    "queue_high_model_packets": Quantity("DCTCP's model: K + N", "packets", is_exact=True),
    "queue_high_by_model": Quantity("Top of the queue's sawtooth by K + N", ""),
    "queue_low_packets": Quantity("Bottom of the queue's sawtooth", "packets"),
    "queue_low_model_packets": Quantity("DCTCP's model: K + N - A", "packets", is_exact=True),
    "queue_swing_packets": Quantity("Amplitude of the queue", "packets"),
    "queue_swing_model_packets": Quantity("DCTCP's model: A", "packets", is_exact=True),
    "queue_swing_by_model": Quantity("Amplitude of the queue by that of DCTCP's model", ""),
    "use_model_percent": Quantity("Use by the model of the buffer", "%", is_exact=True),
    "use_by_model": Quantity("Use of the link by that of the model", ""),
    # With samples.
    "fast_free_window_mean_packets": Quantity("Mean free window of the fast subflow", "packets"),
    "fast_free_window_max_packets": Quantity("Largest free window of the fast subflow", "packets"),
    "fast_cwnd_mean_packets": Quantity("Mean window of the fast subflow", "packets"),
    # With evidence.
    "ooo_delay_mean_us": Quantity("Mean out-of-order delay", "µs"),
    "ooo_delay_p99_us": Quantity("99th percentile out-of-order delay", "µs"),
    "ooo_delay_max_us": Quantity("Longest out-of-order delay", "µs"),
    "ooo_queue_mean_kb": Quantity("Mean out-of-order queue", "kB"),
    "ooo_queue_max_kb": Quantity("Longest out-of-order queue", "kB"),
    "data_ack_leap_mean_packets": Quantity("Mean Data ACK leap", "packets"),
    "data_ack_leap_max_packets": Quantity("Largest Data ACK leap", "packets"),
    "queue_mean_packets": Quantity("Mean queue of the last hop", "packets"),
    "bursty_strength_mean_packets": Quantity("Mean bursty strength", "packets"),
    "bursty_strength_max_packets": Quantity("Maximum bursty strength", "packets"),
    "last_hop_loss_percent": Quantity("Packets lost at the last hop", "%"),
    "gap_end_ratio": Quantity("Gap, as it is sent, by that of equation 2, at the end", ""),
    "gap_mean_packets": Quantity("Mean gap, as it is sent", "packets"),
    "gap_max_packets": Quantity("Largest gap, as it is sent", "packets"),
    "reinjected_packets": Quantity("Packets sent again on another subflow", ""),
}
"""One number per run; `metrics.py` and `evidence.py` compute them."""

CURVES: dict[str, Quantity] = {
    "fct_ms": Quantity("FCT", "ms"),
    "queue_packets": Quantity("Queue of the last hop", "packets"),
    "ooo_delay_us": Quantity("Out-of-order delay", "µs"),
    "data_ack_leap_packets": Quantity("Data ACK leap", "packets"),
    "path2_share_percent": Quantity("Part of the second path in the pattern", "%", holds=True),
    "fast_cwnd_packets": Quantity("Window of the fast subflow", "packets"),
    "slow_cwnd_packets": Quantity("Window of the slow subflow", "packets"),
    "true_gap_packets": Quantity("Gap by equation 2", "packets"),
    "gap_packets": Quantity("Gap, as it is sent", "packets"),
    "data_ack_kb": Quantity("Data ACK of the first connection", "kB"),
}
"""Distributions over flows or packets, and time series."""

SHORTEST = "slowdown_shortest"
POOLED: dict[str, Quantity] = {
    "fct_ms": Quantity("FCT", "ms"),
    "slowdown": Quantity("FCT by that on an idle fabric", ""),
    SHORTEST: Quantity("Shortest flows first, fluid", "", is_exact=True),
}
"""Of the flows of all seeds together; `pooled.py` computes them."""
POOLED_COLUMNS = ("sizes", "from_bytes", "to_bytes", "quantity", "flow_count", "seed_count")
"""Columns of their table, besides axes and percentiles."""


def shown_by(kind: str) -> dict[str, Quantity]:
    """Give the quantities that a kind of plot can show."""
    return {"cdf": CURVES, "course": CURVES, "sizes": POOLED}.get(kind, METRICS)
