# SPDX-License-Identifier: Apache-2.0
"""Settings of TCP on all hosts: metrics of their routes, over IPv4 and IPv6.

`lab.json` has them as `topology.route_metrics`, by name. `METRICS` declares each: a new one
needs its line here and its flag in `controller/cli/src/fabric_args/route_metrics.rs`, and
nothing between the two.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weft_topology import json_fields
from weft_topology.errors import UsageError
from weft_topology.json_fields import within


@dataclass(frozen=True)
class Metric:
    """A metric that a route may have."""

    number: int
    """`RTAX_*` in the kernel's ABI, include/uapi/linux/rtnetlink.h."""
    low: int
    high: int
    locked: bool = False
    """Whether TCP takes it only from a route that locks it."""


_LOCK = 1
"""`RTAX_LOCK`: a bit for each metric."""

METRICS: Mapping[str, Metric] = {
    # Packets that a subflow begins with (RFC 6928): RTAX_INITCWND.
    "initial_window": Metric(11, 1, 1000),
    # Smallest retransmission timeout: RTAX_RTO_MIN, up to TCP_RTO_MAX.
    "rto_min_ms": Metric(13, 1, 120_000, locked=True),
}
"""By name; what is not given stays the kernel's own."""


def of_document(document: Any, key: str) -> dict[str, int]:
    """Read the field `key` of a document, and check every metric."""
    given = json_fields.mapping(document, key)
    for name in given:
        if name not in METRICS:
            raise UsageError(f"{key}: {name!r} is unknown; there are {', '.join(METRICS)}")
        metric = METRICS[name]
        within(f"{key}: {name}", json_fields.integer(given, name), metric.low, metric.high)
    return dict(given)


def by_number(metrics: Mapping[str, int]) -> dict[int, int]:
    """Give the same by the kernel's numbers, as `netlink.default_route` takes them."""
    values = {METRICS[name].number: value for name, value in metrics.items()}
    locked = [METRICS[name].number for name in metrics if METRICS[name].locked]
    return ({_LOCK: sum(1 << number for number in locked)} if locked else {}) | values
