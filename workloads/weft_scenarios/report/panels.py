# SPDX-License-Identifier: Apache-2.0
"""Panels in Weft's style, whatever they show: their size, legend, bars and names of axes."""

import io
import itertools
import math
import textwrap
from collections.abc import Sequence
from typing import Any

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from weft_scenarios.report import style
from weft_scenarios.stats import Ratio, Spread

PANEL_INCHES = (3.1, 2.4)
MARGIN_INCHES = 0.3
_LEGEND_LETTERS = 38
"""Letters that fit into one row of the legend, per panel."""
_HANDLE_LETTERS = 5
"""Letters that the line or patch beside a name takes."""
AXIS_INCHES, LETTER_INCHES = 0.55, 0.062
"""Width of an axis with its label, and of one letter of a tick label."""
_TICK_LINES = 3
_SIDE_LETTERS = 32
"""Letters that fit beside or below a panel."""
CAP_POINTS = 2.0


def make(
    count: int,
    inches: tuple[float, float],
    margin_inches: tuple[float, float] = (0.0, 0.0),
    most_across: int | None = None,
    sharex: bool = False,
    sharey: bool = False,
) -> tuple[Figure, list[Axes]]:
    """Make a figure with panels of this size, at most `most_across` in a row, in Weft's style."""
    columns = min(count, most_across or count)
    rows = math.ceil(count / columns)
    (width, height), (besides, above) = inches, margin_inches
    size = (width * columns + besides, height * rows + above)
    with matplotlib.style.context(style.SHEET):
        made = Figure(figsize=size, layout="constrained")
        grid = made.subplots(rows, columns, sharex=sharex, sharey=sharey, squeeze=False)
    for axes in grid.flat[count:]:
        axes.remove()
    return made, list(grid.flat[:count])


def across(axes: Axes) -> int:
    """Give how many panels there are in the row of one."""
    place = axes.get_subplotspec()
    return 1 if place is None else place.get_gridspec().ncols


def panel_inches(axes: Axes) -> float:
    """Give the width of a panel."""
    figure = axes.get_figure(root=True)
    if figure is None:
        return PANEL_INCHES[0]
    return (float(figure.get_figwidth()) - MARGIN_INCHES) / across(axes)


def legend(figure: Figure, grid: Sequence[Axes], title: str | None, stretch: float = 1.0) -> None:
    """Put one legend above all panels, if there are at least two series.

    Panels are `stretch` times as wide as usual.
    """
    handles: dict[str, Any] = {}
    for axes in grid:
        handles |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    if len(handles) < 2:
        return
    letters = int(across(grid[0]) * stretch * _LEGEND_LETTERS)
    figure.legend(
        handles.values(),
        [textwrap.fill(name, letters - _HANDLE_LETTERS) for name in handles],
        title=title,
        loc="outside upper center",
        ncols=_columns(list(handles), letters),
    )


def _columns(names: Sequence[str], letters: int) -> int:
    """Give how many columns of a legend fit into so many letters, at least one."""
    for count in range(len(names), 1, -1):
        # As matplotlib does: the first columns have one more.
        least, more = divmod(len(names), count)
        ends = list(itertools.accumulate(least + (number < more) for number in range(count)))
        parts = (names[start:end] for start, end in itertools.pairwise([0, *ends]))
        if sum(max(map(len, part)) + _HANDLE_LETTERS for part in parts) <= letters:
            return count
    return 1


def bars(
    axes: Axes,
    places: Sequence[float],
    spreads: Sequence[Spread | Ratio],
    width: float,
    look: style.Look,
) -> None:
    """Draw the bars of a series, with their confidence intervals."""
    axes.bar(
        places,
        [s.mean for s in spreads],
        width * 0.92,
        yerr=error_lengths(spreads),
        color=look.colour,
        error_kw={"elinewidth": 0.8, "capsize": CAP_POINTS, "ecolor": "#444444"},
        label=look.name,
        hatch="////" if look.line == "--" else None,
        edgecolor="white",
        linewidth=0,
    )


def rows(
    axes: Axes, places: Sequence[float], spreads: Sequence[Spread | Ratio], look: style.Look
) -> None:
    """Draw the points of a series at these heights, with their confidence intervals."""
    axes.errorbar(
        [s.mean for s in spreads],
        places,
        xerr=error_lengths(spreads),
        color=look.colour,
        marker=look.marker or "o",
        linestyle="none",
        elinewidth=0.8,
        capsize=CAP_POINTS,
        label=look.name or None,
    )
    axes.grid(visible=True, axis="x")


def error_lengths(spreads: Sequence[Spread | Ratio]) -> list[list[float]]:
    """Give the lengths of error bars; cut at 0, because no quantity is negative."""
    return [[s.mean - max(s.low, 0.0) for s in spreads], [s.high - s.mean for s in spreads]]


def name_ticks(axes: Axes, names: Sequence[str], inches: float) -> None:
    """Label the places 0, 1, ... of a panel of this width: wrapped if that fits, else slanted."""
    letters = max(int((inches - AXIS_INCHES) / len(names) / LETTER_INCHES), 1)
    lines = [_lines(name, letters) for name in names]
    fits = all(len(line) <= letters for wrapped in lines for line in wrapped)
    if fits and max(map(len, lines)) <= _TICK_LINES:
        axes.set_xticks(range(len(names)), ["\n".join(wrapped) for wrapped in lines])
    else:
        axes.set_xticks(range(len(names)), names, rotation=30, ha="right", rotation_mode="anchor")


def _lines(name: str, letters: int) -> list[str]:
    """Wrap a name, preferably after commas."""
    if len(name) <= letters:
        return [name]
    parts = [f"{part}," for part in name.split(", ")]
    parts[-1] = parts[-1].removesuffix(",")
    return [line for part in parts for line in textwrap.wrap(part, letters, break_long_words=False)]


def name_height(axes: Axes, name: str) -> None:
    """Label the vertical axis of a panel, wrapped."""
    axes.set_ylabel(wrapped(name))


def wrapped(name: str) -> str:
    """Wrap the name of an axis, so that it is not longer than a panel is high or wide."""
    return "\n".join(textwrap.wrap(name, _SIDE_LETTERS))


def rendered(figure: Figure, kind: str) -> bytes:
    """Give the figure as a file: svg, png or pdf."""
    buffer = io.BytesIO()
    with matplotlib.style.context(style.SHEET):
        # No dates, so that equal results give equal bytes.
        undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
        figure.savefig(buffer, format=kind, metadata=undated, dpi=130)
    return buffer.getvalue()
