# SPDX-License-Identifier: Apache-2.0
"""A fabric as an SVG picture: every node and every link, however many."""

from collections import defaultdict
from typing import Any
from xml.sax.saxutils import escape

from weft_topology import units
from weft_topology.drawing import Document

_TIERS = {"core": 0, "spine": 1, "aggregation": 1, "leaf": 2, "host": 3}
_HEIGHT = 150
"""Between two tiers, in pixels."""
_SLOT = 58
"""Least width of a host's place."""
_STYLE = """
    text { font: 11px system-ui, sans-serif; text-anchor: middle; fill: #1a1a1a }
    .note { font-size: 13px; text-anchor: start }
    line { stroke: #5b6770; stroke-width: 1.2 }
    line:hover { stroke: #d55e00; stroke-width: 3 }
    .slow { stroke: #0072b2 } .lossy { stroke: #d55e00; stroke-dasharray: 5 3 }
    rect { fill: #eef3f7; stroke: #5b6770 } .host rect { fill: #fff; stroke: #a8b0b6 }
"""
"""Colours that the colour-blind tell apart; losses are dashed, too."""


def picture(document: Document) -> str:
    """Give the SVG document."""
    roles = {switch["name"]: switch["role"] for switch in document["switches"]}
    tiers: dict[int, list[str]] = defaultdict(list)
    for name, role in roles.items():
        tiers[_TIERS[role]].append(name)
    # Hosts come by leaf, as their leaves do.
    tiers[_TIERS["host"]] = [host["name"] for host in document["hosts"]]
    width = max(_SLOT * max(map(len, tiers.values())), 600)
    top = min(tiers)
    places: dict[str, tuple[float, float]] = {}
    for tier, names in tiers.items():
        step = width / len(names)
        for place, name in enumerate(names):
            places[name] = (20 + step * (place + 0.5), 70 + _HEIGHT * (tier - top))
    # Leaves stand above their hosts, which may be unequally many.
    for leaf in tiers[_TIERS["leaf"]]:
        above = [
            places[link["a"]["node"]][0]
            for link in document["links"]
            if link["b"]["node"] == leaf and link["a"]["node"] not in roles
        ]
        places[leaf] = (sum(above) / len(above), places[leaf][1])
    height = 70 + _HEIGHT * (max(tiers) - top) + 50
    losses = {switch["name"]: switch.get("loss_ppm", 0) for switch in document["switches"]}
    usual = _usual_rates(document, roles)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width + 40:.0f} {height}" '
            f'width="{width + 40:.0f}" height="{height}">',
            f"<style>{_STYLE}</style>",
            f'<text class="note" x="20" y="24">{escape(_title(document))}</text>',
            *(_line(link, places, losses, usual) for link in document["links"]),
            *(_box(name, *place, name not in roles) for name, place in places.items()),
            "</svg>\n",
        ]
    )


def _title(document: Document) -> str:
    return (
        f"{document['name']}: {len(document['hosts'])} hosts, "
        f"{len(document['switches'])} switches, {len(document['links'])} links "
        f"(blue: slower than others; dashed: loses packets)"
    )


def _usual_rates(document: Document, roles: dict[str, str]) -> dict[bool, int]:
    """Give the highest rate of links between switches (True) and of those to hosts."""
    rates: dict[bool, int] = defaultdict(int)
    for link in document["links"]:
        inside = link["a"]["node"] in roles
        rates[inside] = max(rates[inside], link["rate_bps"])
    return rates


def _line(
    link: dict[str, Any],
    places: dict[str, tuple[float, float]],
    losses: dict[str, int],
    usual: dict[bool, int],
) -> str:
    ends = [link[end]["node"] for end in ("a", "b")]
    loss = sum(losses.get(end, 0) for end in ends)
    slow = link["rate_bps"] < usual[ends[0] in losses]
    kind = "lossy" if loss else "slow" if slow else "link"
    queue = f"{link['queue_bytes']} bytes" if "queue_bytes" in link else f"{link['queue_packets']}"
    about = (
        f"{'-'.join(ends)}: {units.rate(link['rate_bps'])}, "
        f"{units.duration(link['delay_ns'])}, queue {queue}"
    )
    (x1, y1), (x2, y2) = (places[end] for end in ends)
    return (
        f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}">'
        f"<title>{escape(about)}</title></line>"
    )


def _box(name: str, x: float, y: float, is_host: bool) -> str:
    width = 7 * len(name) + 10
    kind = "host" if is_host else "switch"
    return (
        f'<g class="{kind}"><rect x="{x - width / 2:.1f}" y="{y - 10:.1f}" width="{width}" '
        f'height="20" rx="4"/><text x="{x:.1f}" y="{y + 4:.1f}">{escape(name)}</text></g>'
    )
