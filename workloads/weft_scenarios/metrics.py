"""From the folder of a run to its numbers and curves.

Reads what `weft run` and `weft evidence` wrote; the columns' meaning is theirs.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from weft_scenarios.errors import ScenarioError

Curve = tuple[Sequence[float], Sequence[float]]
"""x and y: percent and value of a distribution, or ms and value of a course over time."""

_PERCENTS = [*range(100), 99.5, 99.9, 100]
_COURSE_POINTS = 400


@dataclass(frozen=True)
class Measured:
    """What a run gave."""

    metrics: Mapping[str, float]
    curves: Mapping[str, Curve]
    kernel: str
    revision: str

    def to_json(self) -> str:
        """Write it down."""
        return json.dumps(self.__dict__, indent=1)

    @classmethod
    def from_json(cls, text: str) -> "Measured":
        """Read what `to_json` wrote."""
        return cls(**json.loads(text))


def measure(folder: Path) -> Measured:
    """Read the folder of a run."""
    try:
        info = json.loads((folder / "run.json").read_text())
        flows = pl.read_csv(folder / "flows.csv", schema_overrides={"error": pl.String})
        queues = pl.read_csv(folder / "queues.csv")
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        raise ScenarioError(f"{folder}: not the folder of a run: {error}") from None
    completed = flows.filter(pl.col("fct_ns").is_not_null())
    if completed.is_empty():
        raise ScenarioError(f"{folder}: no flow completed")
    last_hop = queues.filter(pl.col("peer").is_in(flows["dst"].unique().to_list()))
    metrics = _of_flows(completed) | _of_queues(queues, last_hop)
    curves = {
        "fct_ms": quantiles(completed["fct_ns"] / 1e6),
        "queue_packets": _course(last_hop["time_ns"] / 1e6, last_hop["queue_max_packets"]),
    }
    return Measured(metrics, curves, info["kernel"], info.get("revision") or "unknown")


def _of_flows(flows: pl.DataFrame) -> dict[str, float]:
    fct_ms = flows["fct_ns"] / 1e6
    end_ns = (flows["start_ns"] + flows["fct_ns"]).max()
    span_ns = _number(end_ns) - _number(flows["start_ns"].min())
    return {
        "fct_mean_ms": _number(fct_ms.mean()),
        "fct_median_ms": _number(fct_ms.median()),
        "fct_p99_ms": _number(fct_ms.quantile(0.99, "nearest")),
        "fct_max_ms": _number(fct_ms.max()),
        "completion_ms": span_ns / 1e6,
        "goodput_mbps": _number(flows["bytes"].sum()) * 8e3 / span_ns,
        "subflows_mean": _number(flows["subflows"].mean()),
        "timeouts_per_flow": _number(flows["timeouts"].mean()),
        "retransmitted_packets": _number(flows["retransmissions"].sum()),
        "reinjected_bytes": _number(flows["reinjected_bytes"].sum()),
    }


def _of_queues(queues: pl.DataFrame, last_hop: pl.DataFrame) -> dict[str, float]:
    # Counters are cumulative: the last row of each port has its total.
    dropped = _number(_totals(queues)["dropped_packets"].sum())
    delivered = _number(_totals(last_hop)["tx_packets"].sum())
    return {
        "loss_percent": 100 * dropped / max(dropped + delivered, 1),
        "queue_max_packets": _number(last_hop["queue_max_packets"].max()),
    }


def _totals(queues: pl.DataFrame) -> pl.DataFrame:
    return queues.group_by("switch", "port", maintain_order=True).last()


def quantiles(values: pl.Series) -> Curve:
    """Give the distribution of values, by percent."""
    return _PERCENTS, [_number(values.quantile(p / 100, "nearest")) for p in _PERCENTS]


def _course(time_ms: pl.Series, values: pl.Series) -> Curve:
    """Give a course over time, thinned out to the highest value of each interval."""
    frame = pl.DataFrame({"time": time_ms, "value": values})
    if len(frame) > _COURSE_POINTS:
        end = max(_number(time_ms.max()), 1e-9)
        slot = (pl.col("time") * _COURSE_POINTS / end).floor()
        frame = frame.group_by(slot, maintain_order=True).agg(pl.all().max())
    return frame["time"].to_list(), frame["value"].to_list()


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
