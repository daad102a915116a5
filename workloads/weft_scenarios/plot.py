# SPDX-License-Identifier: Apache-2.0
"""Draws the plots of a scenario file from its results."""

import io
import itertools
import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib.style
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from weft_scenarios import curves, ratios, style, tables
from weft_scenarios.quantities import CURVES, METRICS
from weft_scenarios.results import Results, chosen, point_text
from weft_scenarios.scenario import Axis, Experiment, Plot, Scenario
from weft_scenarios.stats import Ratio, Spread

_FACET_INCHES = (3.1, 2.4)
_MARGIN_INCHES = 0.3
_BAR_INCHES = 0.085
"""Minimum width of a bar, including the space between groups."""
_BARS_WIDTH = 0.8
"""Share of the bars of a group of the space between two groups."""
_LEGEND_LETTERS = 38
"""Letters that fit into one row of the legend, per panel."""
_LEGEND_SLACK = 1.8
"""Two columns may be so much longer than a row: most labels are shorter than the longest."""
_AXIS_INCHES, _LETTER_INCHES = 0.55, 0.062
"""Width of an axis with its label, and of one letter of a tick label."""
_TICK_LINES = 3
_HEIGHT_LETTERS = 32
"""Letters that fit beside a panel."""
_CAP_POINTS = 2.0
_CAPTION_INCHES, _CAPTION_LETTERS = 0.14, 17
"""Height of a line of the caption, and letters in an inch of it."""
_FACETS_ACROSS = 4
"""More panels go into the next row: the page of a scenario is not wider."""
_GAP = 20
"""A time series has a gap where points are this many times the median interval apart."""
_GROUPED_FROM = 10_000
_MODEL_LINES = ("--", ":")
_SHARED_COLOUR = "#444444"
_SAME = 1.02
"""Predictions that differ by less are drawn as one."""
_LINEAR = 10
"""A logarithmic axis is linear below, so that it can show 0."""


def draw(scenario: Scenario, plot: Plot, results: Results, path: Path) -> bool:
    """Draw a plot into the file `path`; false if there are no results for it."""
    drawn = figure(scenario, plot, results)
    if drawn is None:
        return False
    letters = int(drawn.get_figwidth() * _CAPTION_LETTERS)
    lines = textwrap.wrap(caption(scenario, plot, results), letters)
    drawn.set_figheight(drawn.get_figheight() + len(lines) * _CAPTION_INCHES)
    drawn.supxlabel("\n".join(lines), fontsize=7, color="#555555")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(rendered(drawn, path.suffix[1:]))
    return True


def caption(scenario: Scenario, plot: Plot, results: Results) -> str:
    """Say what a picture shows, of how many seeds, and what its whiskers are."""
    axes = [axis.name for axis in scenario.experiment(plot.experiment).axes]
    runs = chosen(results.of(plot.experiment), plot.where)
    counts = runs.group_by(axes).agg(pl.col("seed").n_unique())["seed"]
    ends = dict.fromkeys(str(count) for count in (counts.min(), counts.max()))
    seeds = f"n = {' to '.join(ends)} seeds"
    shown = {
        "cdf": f"{seeds} together",
        "course": f"the first of {seeds}",
        "sizes": f"99th percentile, dotted the median, of the flows of {seeds} together; bands are "
        "95% confidence intervals over seeds",
    }.get(plot.kind, f"{seeds}; whiskers are 95% confidence intervals of {_of_what(plot)}")
    paper = " Diamonds are the paper's numbers." if plot.paper else ""
    return f"{plot.title}: {shown}.{paper}"


def _of_what(plot: Plot) -> str:
    return "the mean" if plot.versus is None else "the ratio of the means, paired by seed"


def figure(scenario: Scenario, plot: Plot, results: Results) -> Figure | None:
    """Draw a plot; None if there are no results for it."""
    experiment = scenario.experiment(plot.experiment)
    frame = ratios.paired(plot, experiment, _shown(plot, results))
    if frame.is_empty():
        return None
    experiment = _of_measured(experiment, plot.x, frame)
    facets = _points(experiment, plot.facet, frame) if plot.facet else [None]
    width, height = _FACET_INCHES
    stretch = _stretch(plot, experiment, frame)
    drawn, grid = panels(
        len(facets),
        (width * stretch, height),
        (_MARGIN_INCHES, 0.5),
        _FACETS_ACROSS,
        sharex=plot.kind == "cdf",
        sharey=True,
    )
    with matplotlib.style.context(style.SHEET):
        for axes, facet in zip(grid, facets, strict=True):
            part = frame if facet is None else frame.filter(pl.col(plot.facet or "") == facet)
            _draw_facet(axes, plot, experiment, part)
            if facet is not None:
                axes.set_title(_facet_title(_axis(experiment, plot.facet), facet))
        _label(grid, plot, experiment)
        if plot.x != plot.series:
            series = _axis(experiment, plot.series)
            title = None if series.name == "scheduler" else series.label
            legend(drawn, grid, title, stretch)
    return drawn


def _shown(plot: Plot, results: Results) -> pl.DataFrame:
    """Give the rows of results that a plot shows."""
    if plot.kind == "sizes":
        return tables.tenths(plot, results)
    frame = results.curves if plot.x is None else results.runs
    frame = chosen(frame.filter(pl.col("experiment") == plot.experiment), plot.where)
    if plot.x is None:
        return frame.filter(pl.col("curve") == plot.quantity)
    return frame.filter(pl.col(plot.quantity).is_not_null())


def panels(
    count: int,
    inches: tuple[float, float],
    margin_inches: tuple[float, float] = (0.0, 0.0),
    across: int | None = None,
    sharex: bool = False,
    sharey: bool = False,
) -> tuple[Figure, list[Axes]]:
    """Make a figure with panels of this size, at most `across` in a row, in Weft's style."""
    columns = min(count, across or count)
    rows = math.ceil(count / columns)
    (width, height), (besides, above) = inches, margin_inches
    size = (width * columns + besides, height * rows + above)
    with matplotlib.style.context(style.SHEET):
        made = Figure(figsize=size, layout="constrained")
        grid = made.subplots(rows, columns, sharex=sharex, sharey=sharey, squeeze=False)
    for axes in grid.flat[count:]:
        axes.remove()
    return made, list(grid.flat[:count])


def _columns(axes: Axes) -> int:
    """Give how many panels there are in the row of one."""
    place = axes.get_subplotspec()
    return 1 if place is None else place.get_gridspec().ncols


def legend(figure: Figure, grid: Sequence[Axes], title: str | None, stretch: float = 1.0) -> None:
    """Put one legend above all panels, if there are at least two series.

    Panels are `stretch` times as wide as usual.
    """
    handles: dict[str, Any] = {}
    for axes in grid:
        handles |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    if len(handles) < 2:
        return
    longest = max(map(len, handles)) + 5
    row = int(_columns(grid[0]) * stretch * _LEGEND_LETTERS)
    columns = max(row // longest, 2 if 2 * longest <= row * _LEGEND_SLACK else 1)
    figure.legend(
        handles.values(),
        handles.keys(),
        title=title,
        loc="outside upper center",
        ncols=min(len(handles), columns),
    )


def rendered(figure: Figure, kind: str) -> bytes:
    """Give the figure as a file: svg, png or pdf."""
    buffer = io.BytesIO()
    with matplotlib.style.context(style.SHEET):
        # No dates, so that equal results give equal bytes.
        undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
        figure.savefig(buffer, format=kind, metadata=undated, dpi=130)
    return buffer.getvalue()


def _facet_title(axis: Axis, value: str) -> str:
    if axis.name == "scheduler":
        return style.looks(axis, [value])[value].name
    return f"{axis.label}: {value}"


def _axis(experiment: Experiment, name: str | None) -> Axis:
    axis = experiment.axis(name or "")
    return axis if axis else Axis("", "", ())


def _of_measured(experiment: Experiment, name: str | None, frame: pl.DataFrame) -> Experiment:
    """Remove the points of an axis that are not in the frame, so that no place stays empty."""
    axis = experiment.axis(name or "")
    if axis is None:
        return experiment
    there = set(frame[axis.name].to_list())
    kept = replace(axis, points=tuple(p for p in axis.points if point_text(p.at) in there))
    return replace(experiment, axes=tuple(kept if a is axis else a for a in experiment.axes))


def _stretch(plot: Plot, experiment: Experiment, frame: pl.DataFrame) -> float:
    """Give the factor by which a panel has to be wider than usual for its bars."""
    if plot.kind != "bars":
        return 1.0
    axes = {_axis(experiment, name).name for name in (plot.x, plot.series) if name}
    bars = math.prod(len(_points(experiment, axis, frame)) for axis in axes if axis)
    return max(1.0, (bars * _BAR_INCHES + _AXIS_INCHES) / _FACET_INCHES[0])


def _panel_inches(axes: Axes) -> float:
    """Give the width of a panel."""
    figure = axes.get_figure(root=True)
    if figure is None:
        return _FACET_INCHES[0]
    return (float(figure.get_figwidth()) - _MARGIN_INCHES) / _columns(axes)


def _points(experiment: Experiment, axis: str, frame: pl.DataFrame) -> list[str]:
    """Give the points of an axis that are in the frame, in the file's order."""
    there = set(frame[axis].to_list())
    values = [point_text(value) for value in _axis(experiment, axis).values()]
    return [value for value in values if value in there]


def _draw_facet(axes: Axes, plot: Plot, experiment: Experiment, frame: pl.DataFrame) -> None:
    series_axis = _axis(experiment, plot.series)
    if not series_axis.name:
        look = style.Look("measured" if plot.models else "", "#0072B2", "o")
        _draw_series(axes, plot, experiment, look, frame, 0, 1)
        return
    series = _points(experiment, plot.series, frame)
    looks = style.looks(series_axis, series)
    shared = [model for model in plot.models if _is_shared(plot, frame, model)]
    own = replace(plot, models=tuple(model for model in plot.models if model not in shared))
    for number, value in enumerate(series):
        part = frame.filter(pl.col(plot.series) == value)
        _draw_series(axes, own, experiment, looks[value], part, number, len(series))
    for model, line in zip(shared, itertools.cycle(_MODEL_LINES)):
        look = style.Look(METRICS[model].label, _SHARED_COLOUR, "", line)
        _draw_model(axes, _axis(experiment, plot.x), model, look, frame)
    _draw_paper(axes, plot, experiment, series, looks)


def _is_shared(plot: Plot, frame: pl.DataFrame, model: str) -> bool:
    """Whether a formula predicts the same for all series, of which there are several."""
    known = frame.filter(pl.col(model).is_not_null())
    count = known[plot.series].n_unique()
    if count < 2 or count < frame[plot.series].n_unique() or plot.x is None:
        return False
    means = known.group_by(plot.x, plot.series).agg(pl.col(model).mean())
    least, most = pl.col(model).min(), pl.col(model).max()
    spans = means.group_by(plot.x).agg((most / least).alias("span"))
    return bool((spans["span"] < _SAME).all())


def _draw_paper(
    axes: Axes,
    plot: Plot,
    experiment: Experiment,
    series: Sequence[str],
    looks: Mapping[str, style.Look],
) -> None:
    """Draw the numbers that the paper gives, in the colours of whose they are."""
    order = [point_text(value) for value in _axis(experiment, plot.x).values()]
    how: dict[str, Any] = {"marker": "D", "markersize": 6, "markeredgecolor": "black"}
    how |= {"linestyle": "none", "zorder": 4, "clip_on": False}
    for given in plot.paper:
        name = None if given.series is None else point_text(given.series)
        if name is not None and name not in series:
            continue
        x, y = float(given.at) if isinstance(given.at, int | float) else 0.0, given.value
        if plot.kind == "cdf":
            x, y = y, x
        elif plot.kind == "bars" or not _numeric(_axis(experiment, plot.x)):
            own = plot.x == plot.series or name is None
            index, count = (0, 1) if own else (series.index(name or ""), len(series))
            x = _bar_place(order.index(point_text(given.at)), index, count)
        colour = "white" if name is None else looks[name].colour
        axes.plot(x, y, markerfacecolor=colour, **how)
    if plot.paper:
        axes.plot([], [], markerfacecolor="white", label="the paper's", **how)


def _draw_series(
    axes: Axes,
    plot: Plot,
    experiment: Experiment,
    look: style.Look,
    frame: pl.DataFrame,
    number: int,
    count: int,
) -> None:
    if plot.kind == "sizes":
        _draw_sizes(axes, look, frame)
    elif plot.kind == "cdf":
        _draw_cdf(axes, look, frame)
    elif plot.kind == "course":
        _draw_course(axes, look, frame, CURVES[plot.quantity].holds)
    else:
        _draw_points(axes, plot, experiment, look, frame, number, count)


def _draw_sizes(axes: Axes, look: style.Look, frame: pl.DataFrame) -> None:
    """Draw the 99th percentile and the median of ten classes of size."""
    how: dict[str, Any] = {"color": look.colour, "marker": look.marker, "markersize": 3.0}
    places = frame["number"].to_list()
    axes.plot(places, frame["p99"], linestyle="-", label=look.name, **how)
    axes.plot(places, frame["p50"], linestyle=":", **how)
    known = frame.filter(pl.col("p99_low").is_not_null())
    ends = (known["p99_low"].to_list(), known["p99_high"].to_list())
    axes.fill_between(known["number"].to_list(), *ends, color=look.colour, alpha=0.15, linewidth=0)
    largest = [_size(octets) for octets in frame["to_bytes"].to_list()]
    axes.set_xticks(places, largest, rotation=45, ha="right", rotation_mode="anchor")


def _size(octets: float) -> str:
    """Format a size with two digits."""
    for unit, factor in (("MB", 1e6), ("kB", 1e3)):
        if octets >= factor:
            return f"{tables.number(octets / factor, 2)} {unit}"
    return f"{octets:.0f} B"


def _draw_cdf(axes: Axes, look: style.Look, frame: pl.DataFrame) -> None:
    """Draw the distribution over all seeds, each with the same weight."""
    values = frame.filter(pl.col("x") == pl.col("x").floor())["y"].sort().to_list()
    shares = [100 * rank / len(values) for rank in range(1, len(values) + 1)]
    axes.step(values, shares, where="post", color=look.colour, linestyle=look.line, label=look.name)


def _draw_course(axes: Axes, look: style.Look, frame: pl.DataFrame, holds: bool) -> None:
    """Draw the first seed; leave gaps without observations empty, unless values `hold`."""
    first = frame.filter(pl.col("seed") == frame["seed"].min()).sort("x")
    if holds:
        axes.step(
            first["x"],
            first["y"],
            where="post",
            color=look.colour,
            linestyle=look.line,
            label=look.name,
        )
        return
    gap = pl.col("x").diff()
    idle = (gap > _GAP * gap.median()).fill_null(value=False)
    runs = first.with_columns(idle.cum_sum().alias("run")).partition_by("run")
    for number, part in enumerate(runs):
        label = look.name if number == 0 else None
        how: dict[str, Any] = {"color": look.colour, "linestyle": look.line, "linewidth": 0.8}
        axes.plot(part["x"], part["y"], label=label, **how)


def _draw_points(
    axes: Axes,
    plot: Plot,
    experiment: Experiment,
    look: style.Look,
    frame: pl.DataFrame,
    number: int,
    count: int,
) -> None:
    """Draw the mean over seeds at every point, with its 95% confidence interval."""
    x_axis = _axis(experiment, plot.x)
    shown = _points(experiment, x_axis.name, frame)
    spreads = [ratios.estimate(plot, frame.filter(pl.col(x_axis.name) == value)) for value in shown]
    if plot.kind == "bars" or not _numeric(x_axis):
        order = [point_text(value) for value in x_axis.values()]
        if plot.x == plot.series:
            number, count = 0, 1
        width = _BARS_WIDTH / count
        places = [_bar_place(order.index(v), number, count) for v in shown]
        bars(axes, places, spreads, width, look)
        names = {v: look.name for v, look in style.looks(x_axis, order).items()}
        name_ticks(axes, [names[v] for v in order], _panel_inches(axes))
        axes.grid(visible=False, axis="x")
        return
    # Shifted a little, so that no interval hides another.
    places = [float(value) for value in x_axis.values()]
    aside = 0.006 * (max(places) - min(places)) * (number - (count - 1) / 2)
    axes.errorbar(
        [float(value) + (0.0 if "x" in plot.log else aside) for value in shown],
        [s.mean for s in spreads],
        _errors(spreads),
        color=look.colour,
        marker=look.marker,
        linestyle=look.line,
        elinewidth=0.8,
        capsize=_CAP_POINTS,
        label=look.name,
    )
    whose = f"{look.name}: " if experiment.axis(plot.series) else ""
    for model, line in zip(plot.models, itertools.cycle(_MODEL_LINES)):
        label = f"{whose}{METRICS[model].label}"
        _draw_model(axes, x_axis, model, replace(look, name=label, line=line), frame)


def _bar_place(group: int, number: int, count: int) -> float:
    """Give the middle of a bar among `count` of its group."""
    return group + (number - (count - 1) / 2) * _BARS_WIDTH / count


def _draw_model(
    axes: Axes, x_axis: Axis, model: str, look: style.Look, frame: pl.DataFrame
) -> None:
    """Draw what a formula predicts: for several seeds with flows of their own, the mean."""
    known = frame.filter(pl.col(model).is_not_null())
    by_point = {v: known.filter(pl.col(x_axis.name) == point_text(v)) for v in x_axis.values()}
    drawn = {
        float(v): curves.number(part[model].mean()) for v, part in by_point.items() if len(part)
    }
    if drawn:
        how: dict[str, Any] = {"color": look.colour, "linestyle": look.line, "label": look.name}
        axes.plot(list(drawn), list(drawn.values()), **how)


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
        yerr=_errors(spreads),
        color=look.colour,
        error_kw={"elinewidth": 0.8, "capsize": _CAP_POINTS, "ecolor": "#444444"},
        label=look.name,
        hatch="////" if look.line == "--" else None,
        edgecolor="white",
        linewidth=0,
    )


def _errors(spreads: Sequence[Spread | Ratio]) -> list[list[float]]:
    """Give the lengths of error bars; cut at 0, because no quantity is negative."""
    return [[s.mean - max(s.low, 0.0) for s in spreads], [s.high - s.mean for s in spreads]]


def name_ticks(axes: Axes, names: Sequence[str], inches: float) -> None:
    """Label the places 0, 1, ... of a panel of this width: wrapped if that fits, else slanted."""
    letters = max(int((inches - _AXIS_INCHES) / len(names) / _LETTER_INCHES), 1)
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
    axes.set_ylabel("\n".join(textwrap.wrap(name, _HEIGHT_LETTERS)))


def _numeric(axis: Axis) -> bool:
    return all(isinstance(value, int | float) for value in axis.values())


def _grouped(value: float, _place: int) -> str:
    """Format a number of an axis; large ones in groups of three digits."""
    text = f"{value:,.0f}" if abs(value) >= _GROUPED_FROM else f"{value:g}"
    return text.replace(",", "\u2009")


def _label(grid: Sequence[Axes], plot: Plot, experiment: Experiment) -> None:
    for axes in grid:
        if plot.versus is not None:
            axes.axhline(1.0, color=_SHARED_COLOUR, linewidth=0.8, zorder=0)
        axes.yaxis.set_major_formatter(FuncFormatter(_grouped))
        if plot.kind in ("cdf", "course"):
            axes.xaxis.set_major_formatter(FuncFormatter(_grouped))
        if "x" in plot.log:
            axes.set_xscale("symlog", linthresh=_LINEAR)
        if "y" in plot.log:
            axes.set_yscale("log")
            # Often all values lie within one decade, which would have one tick.
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_major_formatter(FuncFormatter(_grouped))
            axes.yaxis.set_minor_formatter(NullFormatter())
        if plot.kind == "cdf":
            axes.set_xlabel(CURVES[plot.quantity].axis_label())
            axes.set_ylim(0, 100)
            axes.set_xlim(left=0)
        elif plot.kind == "course":
            axes.set_xlabel("Time (ms)")
        elif plot.kind == "sizes":
            axes.set_xlabel("Largest flow of each tenth")
        else:
            axes.set_xlabel(_axis(experiment, plot.x).label)
        # Lines of ratios lie around 1.
        is_around_1 = plot.versus is not None and plot.kind == "line"
        if plot.kind != "cdf" and "y" not in plot.log and not is_around_1:
            axes.set_ylim(bottom=0)
        if plot.kind == "line" and _numeric(_axis(experiment, plot.x)):
            values = [float(v) for v in _axis(experiment, plot.x).values()]
            axes.set_xticks(values, [f"{value:g}" for value in values])
            axes.minorticks_off()
    for axes in grid[:: _columns(grid[0])]:
        name_height(axes, "Share at most (%)" if plot.kind == "cdf" else tables.axis_label(plot))
