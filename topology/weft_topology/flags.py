"""Flags that describe a fabric: those of `weft topo`, for who has only Python.

What they mean stands in `weft topo up --help`. `document` makes of them what `lab.json` has as
`topology`, which `fabrics` checks.
"""

import argparse
from collections.abc import Callable, Mapping
from typing import Any

from weft_topology import changes, fabrics, units
from weft_topology.errors import UsageError

OF_SPINES: Mapping[str, tuple[str, str, Callable[[str], int]]] = {
    "delay": ("spine_delay_ns", "2=40us", units.time_ns),
    "rate": ("spine_rate_bps", "2=5mbit", units.rate_bps),
    "queue": ("spine_queue_packets", "2=3750", units.packets),
    "loss": ("spine_loss_ppm", "2=1%", units.share_ppm),
}
"""What single spines may have of their own: field, example, and what reads it."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add them all."""
    flag = parser.add_argument
    flag("--topology", default="leaf-spine", metavar="KIND",
         help=", ".join(fabrics.KINDS))  # fmt: skip
    flag("--leaves", type=_count, help="racks of a leaf-spine")
    flag("--spines", type=_count, help="of a leaf-spine: paths between racks")
    flag("--hosts", type=_counts, help="per leaf, or of each leaf: 4,8; of a testbed")
    flag("--oversubscription", type=_ratio, metavar="RATIO",
         help="what the hosts of the fullest leaf send, as a multiple of its links up")  # fmt: skip
    flag("--k", type=_count, help="ports of a switch of a fat-tree")
    flag("--links", type=_count, help="of each host of a many-to-one")
    flag("--profile", action="append", default=[], metavar="PATH,PATH",
         help="of two-path and dumbbell: wlan, 3g, wifi, lte, 20mbit/50ms/100/1%%")  # fmt: skip
    flag("--rate", metavar="RATE", help="of links between switches [1gbit]")
    flag("--host-rate", default="1gbit", metavar="RATE", help="of links to hosts")
    flag("--sender-rate", metavar="RATE", help="from hosts to leaves [host rate]")
    flag("--delay", default="10us", metavar="TIME", help="one way, of every link")
    flag("--queue", default="100", metavar="PACKETS|BYTES", help="of every port: 100, 150KB")
    flag("--ecn", metavar="PACKETS|BYTES", help="mark in queues that are longer: 20, 30KB")
    for what, (_, example, _) in OF_SPINES.items():
        flag(f"--spine-{what}", action="append", default=[], metavar="SPINE=VALUE",
             help=f"of all links of a spine, like {example.replace('%', '%%')}")  # fmt: skip
    flag("--change", action="append", default=[], metavar="CHANGE",
         help="'at 20ms link leaf1-spine2 down', '2s:spine1:rate=0.5'")  # fmt: skip
    flag("--host-jitter", default="0ns", metavar="TIME", help="mean stall of hosts' packets")
    flag("--nic", default="plain", metavar="KIND", help="network cards of hosts: plain, p4")
    flag("--int", default="off", metavar="KIND", help="in-band telemetry: off, md")
    flag("--ip", type=int, default=4, metavar="VERSION",
         help="version of IP that connections run over: 4, 6")  # fmt: skip
    flag("--subflows", type=_count, metavar="COUNT",
         help="of a connection: at most so many of the paths [8]")  # fmt: skip
    flag("--initial-window", type=_count, metavar="PACKETS", help="of every subflow [10]")
    flag("--routing", default="weft", metavar="HOW", help="how leaves choose paths: weft, ecmp")


def document(options: argparse.Namespace) -> dict[str, Any]:
    """Give the fabric that the flags say, as `fabrics.of_document` takes it."""
    host_bps = units.rate_bps(options.host_rate)
    sender_bps = units.rate_bps(options.sender_rate) if options.sender_rate else host_bps
    given = {
        "leaves": _leaves(options),
        "spines": options.spines,
        "hosts": options.hosts,
        "k": options.k,
        "links": options.links,
        "profiles": [path for paths in options.profile for path in paths.split(",")],
        "rate_bps": _rate_bps(options, sender_bps),
        "host_rate_bps": host_bps,
        "sender_rate_bps": None if sender_bps == host_bps else sender_bps,
        "delay_ns": units.time_ns(options.delay),
        **_limit("queue", options.queue),
        "changes": changes.of(options.change) if options.change else None,
        "host_jitter_ns": units.time_ns(options.host_jitter),
        "nic": options.nic,
        "in_band": options.int,
        "subflows": options.subflows,
        "initial_window": options.initial_window,
        "routing": options.routing,
        "ip": options.ip,
    }
    if options.ecn:
        ecn = _limit("ecn", options.ecn)
        given |= {"ecn_bytes": ecn["ecn_bytes"]} if "ecn_bytes" in ecn else ecn
    for what, (name, example, parse) in OF_SPINES.items():
        of_spines = units.by_spine(getattr(options, f"spine_{what}"), example, parse)
        given[name] = {str(spine): value for spine, value in of_spines.items()}
    chosen = {name: value for name, value in given.items() if value not in (None, {}, [])}
    return {"kind": options.topology} | chosen


def _leaves(options: argparse.Namespace) -> int | None:
    """Give as many leaves as there are numbers of hosts, where nothing else is said."""
    if options.leaves is None and isinstance(options.hosts, list):
        return len(options.hosts)
    leaves: int | None = options.leaves
    return leaves


def _rate_bps(options: argparse.Namespace, sender_bps: int) -> int:
    ratio: float | None = options.oversubscription
    if ratio is None:
        return units.rate_bps(options.rate or "1gbit")
    if options.rate:
        raise UsageError("--oversubscription says the rate; leave --rate out")
    if options.topology not in ("leaf-spine", "fat-tree"):
        raise UsageError(
            f"--oversubscription is of leaf-spine and fat-tree, not {options.topology}"
        )
    if options.topology == "fat-tree":
        return round(sender_bps / ratio)
    hosts: int | list[int] = options.hosts or 4
    most = max(hosts) if isinstance(hosts, list) else hosts
    spines: int = options.spines or 2
    return round(sender_bps * most / (spines * ratio))


def _limit(name: str, text: str) -> dict[str, int]:
    """Read a number of packets, or of bytes; then packets are full-size ones."""
    if not text.lower().endswith("b"):
        return {f"{name}_packets": units.packets(text)}
    octets = units.size_bytes(text)
    return {f"{name}_packets": -(-octets // fabrics.FRAME_BYTES), f"{name}_bytes": octets}


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number")
    return int(text)


def _counts(text: str) -> int | list[int]:
    counts = [_count(part) for part in text.split(",")]
    return counts if len(counts) > 1 else counts[0]


def _ratio(text: str) -> float:
    try:
        ratio = float(text)
    except ValueError:
        ratio = 0.0
    if not 0.01 <= ratio <= 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is no ratio from 0.01 to 1000, such as 2")
    return ratio
