# SPDX-License-Identifier: Apache-2.0
"""Ideal flow completion times by a fluid model: no packets, queues or delays.

A flow between racks uses the link of its host, all paths between the two racks at once, and the
link of the other host. When flows arrive or complete, and when spines fail, return or change their
rates, the rates of all flows follow at once. There are three ways to share:

- **evenly**: max-min fairness, which ideal congestion control would reach (Bertsekas and Gallager,
  Data Networks, section 6.5.2);
- **shortest first**: the flow with the least data left goes first. SRPT has the lowest mean FCT on
  one link (Schrage, Operations Research 16(3), 1968), but has to know the sizes of flows;
- **by class**: flows are in one of seven classes by the data they have left, times a random factor,
  as under `--priorities 8` with the built-in thresholds. A lower class gets what a higher one can't
  use, and flows of one class share evenly.

No scheduler can exceed the capacity of links. So these are bounds on what is left to gain, the last
one for switches with eight queues.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from weft_scenarios.measures import warmup
from weft_scenarios.measures.curves import number
from weft_scenarios.measures.evidence import PACKET_BYTES

_PAYLOAD_SHARE = PACKET_BYTES / 1514
"""Payload in a full frame of an MPTCP subflow over IPv4. The links of the lab count frames with
their Ethernet header, but without preamble, checksum and gap."""

_DONE_BYTES = 1e-3
"""So much is nothing."""
_LEAST_SPEED = 1e-6
"""Bytes per second of a flow that gets nothing."""
_THRESHOLDS_KB = (130, 250, 1000, 2000, 5000, 12_000)
"""Thousands of bytes left up to which flows are in each class but the last: `weft_thresholds_kb` of
`host/kernel/priority.c`. Class 0 has no data."""
_SPREAD_DOUBLINGS = 0.85
"""Most doublings of the random factor: `weft_spread_percent` there."""

Rates = NDArray[np.float64]
Links = NDArray[np.intp]
Flows = NDArray[np.intp]


class Phase(NamedTuple):
    """The rates of all links from a point in time on, in bytes of payload per second."""

    from_s: float
    rates: Rates


class Sharing(NamedTuple):
    """How flows share links, until one comes, goes, or has little left."""

    speed: Rates
    """Bytes per second of each flow."""
    until_left: Rates
    """Bytes that a flow has left when links are shared anew."""


Share = Callable[[Links, Rates, Rates, Flows], Sharing]
"""Shares links among some flows: from the links of each, the rates of links, what each has left,
and the number of each among all flows."""


class Covered(NamedTuple):
    """The flows of a run that the models cover, in the order of their table."""

    start_s: Rates
    octets: Rates
    links: Links
    phases: Sequence[Phase]
    delay_s: Rates
    """Added to transmission times: propagation, and a last packet's way through switches."""

    def fct_s(self, share: Share) -> Rates:
        """Compute the FCT of every flow."""
        found = _fct_s(self.start_s, self.octets, self.links, self.phases, share)
        return found + self.delay_s


def metrics(info: Mapping[str, Any], flows: pl.DataFrame) -> dict[str, float]:
    """Compare FCTs with all models; gives nothing for what they do not cover, see `covered`.

    `flows` are the rows of flows.csv of completed flows; those of the warm-up are in the way of the
    others, and are not compared.
    """
    flowing = covered(info, flows)
    if flowing is None:
        return {}
    counts = warmup.is_over(flows, info)
    fct_s = flows["fct_ns"].filter(counts) / 1e9
    found = {}
    shares = {"even": _evenly, "shortest": shortest_first, "class": _by_class(len(flows))}
    for name, share in shares.items():
        least_s = pl.Series(flowing.fct_s(share)).filter(counts)
        found[f"fct_mean_by_{name}"] = number(fct_s.mean()) / number(least_s.mean())
        found[f"fct_p99_by_{name}"] = _p99(fct_s) / _p99(least_s)
        found[f"fct_mean_{name}_ms"] = number(least_s.mean()) * 1e3
    return found


def covered(info: Mapping[str, Any], flows: pl.DataFrame) -> Covered | None:
    """Take what the models need from a run; None for other fabrics than leaf-spines.

    Nor is there anything for traffic whose flows have no size of their own. Spines may change
    during the run.
    """
    lab = info.get("lab", {})
    topology = lab.get("topology", {})
    has_sizes = info.get("workload", {}).get("traffic") in ("random", "incast")
    if topology.get("kind") != "leaf-spine" or not has_sizes:
        return None
    spines = [f"spine{number}" for number in range(1, topology["spines"] + 1)]
    if any(change["target"] not in spines for change in topology.get("changes", [])):
        return None
    octets = flows["bytes"].to_numpy().astype(float)
    host_rate = topology["host_rate_bps"] / 8 * _PAYLOAD_SHARE
    return Covered(
        flows["start_ns"].to_numpy() / 1e9,
        octets,
        _links(topology, flows),
        list(_phases(topology)),
        flows["ideal_fct_ns"].to_numpy() / 1e9 - octets / host_rate,
    )


def _p99(values: pl.Series) -> float:
    return number(values.quantile(0.99, "nearest"))


def _links(topology: Mapping[str, Any], flows: pl.DataFrame) -> Links:
    """Give the four links of every flow."""
    leaves, hosts = topology["leaves"], topology["hosts"]
    ends = [
        [tuple(int(part) - 1 for part in host[1:].split("_")) for host in flows[side]]
        for side in ("src", "dst")
    ]
    count = leaves * hosts
    chosen = []
    for (leaf, host), (to_leaf, to_host) in zip(*ends, strict=True):
        up, down = leaf * hosts + host, count + to_leaf * hosts + to_host
        paths = (2 * count + leaf, 2 * count + leaves + to_leaf)
        chosen.append((up, down, *paths) if leaf != to_leaf else (up, down, up, down))
    return np.array(chosen, dtype=np.intp)


def _phases(topology: Mapping[str, Any]) -> Iterator[Phase]:
    """Give the rates of all links: from the start, and after every change."""
    leaves, hosts = topology["leaves"], topology["hosts"]
    own = topology.get("spine_rate_bps", {})
    numbers = range(1, topology["spines"] + 1)
    first = {f"spine{n}": float(own.get(str(n), topology["rate_bps"])) for n in numbers}
    bps, is_up = dict(first), dict.fromkeys(first, True)

    def phase(from_s: float) -> Phase:
        fabric = sum(bps[spine] for spine in first if is_up[spine])
        links = [topology["host_rate_bps"]] * (2 * leaves * hosts) + [fabric] * (2 * leaves)
        return Phase(from_s, np.array(links) / 8 * _PAYLOAD_SHARE)

    yield phase(0.0)
    for change in topology.get("changes", []):
        spine = change["target"]
        is_up[spine] = change.get("up", is_up[spine])
        if "rate_ppm" in change:
            bps[spine] = first[spine] * change["rate_ppm"] / 1e6
        bps[spine] = change.get("rate_bps", bps[spine])
        yield phase(change["at_ns"] / 1e9)


def _fct_s(
    start_s: Rates, octets: Rates, links: Links, phases: Sequence[Phase], share: Share
) -> Rates:
    left, fct_s = octets.copy(), np.zeros(len(octets))
    coming = list(np.argsort(start_s, kind="stable"))[::-1]
    rates, later = phases[0].rates, list(phases[1:])
    active: list[int] = []
    now_s = 0.0
    while coming or active:
        if later and now_s >= later[0].from_s:
            rates = later.pop(0).rates
            continue
        flowing = np.array(active, dtype=np.intp)
        shared, until = share(links[flowing], rates, left[flowing], flowing)
        speed = np.maximum(shared, _LEAST_SPEED)
        step_s = float(((left[flowing] - until) / speed).min()) if active else np.inf
        changes_s = later[0].from_s if later else np.inf
        arrives = bool(coming) and min(now_s + step_s, changes_s) >= start_s[coming[-1]]
        if arrives:
            step_s = start_s[coming[-1]] - now_s
        elif now_s + step_s > changes_s:
            step_s = changes_s - now_s
        left[flowing] -= speed * step_s
        now_s += step_s
        for flow in flowing[left[flowing] < _DONE_BYTES]:
            fct_s[flow] = now_s - start_s[flow]
            active.remove(int(flow))
        if arrives:
            active.append(int(coming.pop()))
    return fct_s


def _evenly(links: Links, rates: Rates, left: Rates, _: Flows) -> Sharing:
    return Sharing(_max_min(links, rates), np.zeros(len(left)))


def _max_min(links: Links, rates: Rates) -> Rates:
    """Raise the rates of all flows together; flows at a link that becomes full keep their rate."""
    speed, spare = np.zeros(len(links)), rates.copy()
    waiting = np.ones(len(links), dtype=bool)
    # A link that a flow uses twice counts once.
    uses = np.zeros((len(links), len(rates)))
    np.put_along_axis(uses, links, 1.0, axis=1)
    while waiting.any():
        users = uses[waiting].sum(axis=0)
        each = np.divide(spare, users, out=np.full(len(rates), np.inf), where=users > 0)
        fullest = int(each.argmin())
        served = waiting & (uses[:, fullest] > 0)
        speed[served] = each[fullest]
        spare = np.maximum(spare - uses[served].sum(axis=0) * each[fullest], 0)
        waiting &= ~served
    return speed


def shortest_first(links: Links, rates: Rates, left: Rates, _: Flows) -> Sharing:
    """Share links: the flow with the least data left goes first."""
    speed, spare = np.zeros(len(links)), rates.copy()
    for flow in np.argsort(left, kind="stable"):
        speed[flow] = spare[links[flow]].min()
        _take(spare, links[flow], speed[flow])
    return Sharing(speed, np.zeros(len(left)))


def _take(spare: Rates, links: Links, speed: float) -> None:
    """Take a flow's speed from its links; one that it uses twice counts once."""
    spare[np.unique(links)] -= speed


def _by_class(count: int) -> Share:
    """Share links by the classes of `count` flows."""
    doublings = np.random.default_rng(1).uniform(-_SPREAD_DOUBLINGS, _SPREAD_DOUBLINGS, count)
    # In class c from 1 on a flow has more than the bytes in its row's column c - 1 left.
    least_left = np.outer(2**-doublings, np.array([0, *_THRESHOLDS_KB]) * 1e3)

    def share(links: Links, rates: Rates, left: Rates, flows: Flows) -> Sharing:
        # What has come down to a threshold is below it, whatever floating-point numbers say.
        classes = (left[:, np.newaxis] > least_left[flows] + _DONE_BYTES).sum(axis=1)
        speed, spare = np.zeros(len(links)), rates.copy()
        for some in (np.flatnonzero(classes == each) for each in np.unique(classes)):
            speed[some] = _max_min(links[some], spare)
            for flow in some:
                _take(spare, links[flow], speed[flow])
            spare = np.maximum(spare, 0)
        until_left = least_left[flows, np.maximum(classes, 1) - 1]
        return Sharing(speed, until_left)

    return share
