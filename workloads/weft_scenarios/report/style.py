# SPDX-License-Identifier: Apache-2.0
"""Colours, markers and names: a scheduler looks the same in every plot.

The colours are Okabe and Ito's, which colour-blind readers can distinguish. Related schedulers
share a colour, and differ by line and marker.
"""

from dataclasses import dataclass
from pathlib import Path

from matplotlib import colormaps
from matplotlib.colors import to_hex

from weft_scenarios.definition.scenario import Axis
from weft_scenarios.results.results import point_text


@dataclass(frozen=True)
class Look:
    """Name, colour, marker and line of a series."""

    name: str
    colour: str
    marker: str
    line: str = "-"


_BLACK, _GREY, _BLUE, _SKY = "#000000", "#8c8c8c", "#0072B2", "#56B4E9"
_RED, _ORANGE, _GREEN, _PINK, _BROWN = "#D55E00", "#E69F00", "#009E73", "#CC79A7", "#7A4A1E"

SCHEDULERS: dict[str, Look] = {
    "rb": Look("MPTCP-RB", _BLUE, "o"),
    "minrtt": Look("MinRTT", _RED, "s"),
    "minrtt_pr": Look("MinRTT with PR", _RED, "D", "--"),
    "roundrobin": Look("RoundRobin", _ORANGE, "^"),
    "rr_packet": Look("per-packet round robin", _ORANGE, "v", "--"),
    "default": Look("upstream's default", _GREY, "x"),
    "blest": Look("BLEST", _PINK, "P"),
    "stms_a": Look("STMS-A", _GREEN, "d"),
    "stms_c": Look("STMS-C", _GREEN, "h", "--"),
    "ecf": Look("ECF", _SKY, "<"),
    "daps": Look("DAPS", _BROWN, ">"),
    "otias": Look("OTIAS", _BROWN, "p", "--"),
    "redundant": Look("redundant", _GREY, "*", "--"),
    "weft": Look("Weft", _BLACK, "X"),
    "tcp": Look("TCP, one path", _GREY, "+", ":"),
}

_SHADES = ("#C6DBEF", "#6BAED6", "#2171B5", "#08306B", "#000000")
"""For an axis of numbers: darker is more."""
_NAMED = (_BLUE, _ORANGE, _GREEN, _RED, _SKY, _PINK, _BLACK, _BROWN, _GREY)
"""For an axis of names."""
_MARKERS = "osD^vP"

SHEET = Path(__file__).with_name("weft.mplstyle")
"""The style sheet for everything else."""


def looks(axis: Axis, values: list[str]) -> dict[str, Look]:
    """Give the look of each point of an axis."""
    if axis.name == "scheduler":
        return {v: SCHEDULERS.get(v, Look(v, _GREY, "o")) for v in values}
    order = [point_text(value) for value in axis.values()]
    is_scale = all(isinstance(value, int | float) for value in axis.values())
    colours = _shades(len(order)) if is_scale else _NAMED
    # A point looks the same in all plots of a file, while there are colours enough for all.
    if not is_scale and len(order) > len(colours):
        order = values
    return {
        value: Look(
            value,
            colours[order.index(value) % len(colours)],
            _MARKERS[order.index(value) % len(_MARKERS)],
        )
        for value in values
    }


def _shades(count: int) -> tuple[str, ...]:
    """Give `count` different shades, from light to dark."""
    if count <= len(_SHADES):
        step = (len(_SHADES) - 1) / max(count - 1, 1)
        return tuple(_SHADES[round(i * step)] for i in range(count)) if count > 1 else _SHADES[-1:]
    scale = colormaps["Blues"]
    return tuple(to_hex(scale(0.25 + 0.75 * i / (count - 1))) for i in range(count))
