"""What is measured: one place for names, units and labels."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Quantity:
    """A number of every run, or a curve of every run."""

    label: str
    unit: str
    digits: int = 3
    """Significant digits that are shown."""

    def axis_label(self) -> str:
        """Label an axis of a plot."""
        return f"{self.label} ({self.unit})" if self.unit else self.label


METRICS: dict[str, Quantity] = {
    "fct_mean_ms": Quantity("Mean FCT", "ms"),
    "fct_median_ms": Quantity("Median FCT", "ms"),
    "fct_p99_ms": Quantity("99th percentile FCT", "ms"),
    "fct_max_ms": Quantity("Slowest flow's FCT", "ms"),
    "completion_ms": Quantity("Completion time of all flows", "ms"),
    "goodput_mbps": Quantity("Goodput", "Mbit/s"),
    "subflows_mean": Quantity("Subflows of a connection at its end", ""),
    "timeouts_per_flow": Quantity("Timeouts per flow", ""),
    "retransmitted_packets": Quantity("Retransmitted packets", ""),
    "reinjected_bytes": Quantity("Bytes sent again on another subflow", "B"),
    "loss_percent": Quantity("Packets lost in switches", "%"),
    "queue_max_packets": Quantity("Longest queue of the last hop", "packets"),
}
"""Of a whole run; `metrics.py` says how each is computed."""

CURVES: dict[str, Quantity] = {
    "fct_ms": Quantity("FCT", "ms"),
    "queue_packets": Quantity("Queue of the last hop", "packets"),
}
"""Distributions over flows or packets, and courses over time."""
