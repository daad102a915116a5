# SPDX-License-Identifier: Apache-2.0
"""Draws the plots of a scenario file from its results."""

import math
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import matplotlib.style
import polars as pl
from matplotlib.axes import Axes
from matplotlib.axis import XAxis, YAxis
from matplotlib.figure import Figure

from weft_scenarios import units
from weft_scenarios.definition.scenario import Axis, Experiment, Plot, Scenario
from weft_scenarios.report import marks, panels, style, tables, ticks
from weft_scenarios.results import ratios
from weft_scenarios.results.results import Results, chosen, point_text, points_of

_BAR_INCHES, _ROW_INCHES = 0.085, 0.19
"""Minimum width of a bar, including the space between groups, and height of a row."""
_CAPTION_INCHES, _CAPTION_LETTERS = 0.14, 17
"""Height of a line of the caption, and letters in an inch of it."""
_FACETS_ACROSS = 4
"""More panels go into the next row: the page of a scenario is not wider."""
_LINEAR = 10
"""A logarithmic axis is linear below, so that it can show 0."""


def draw(scenario: Scenario, plot: Plot, results: Results, path: Path) -> bool:
    """Draw a plot into the file `path`; false if there are no results for it."""
    drawn = figure(scenario, plot, results)
    if drawn is None:
        return False
    letters = int(drawn.get_figwidth() * _CAPTION_LETTERS)
    said = caption(scenario, plot, results).replace(
        "n = ", "n\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}"
    )
    lines = textwrap.wrap(said, letters)
    drawn.set_figheight(drawn.get_figheight() + len(lines) * _CAPTION_INCHES)
    drawn.supxlabel("\n".join(lines), fontsize=7, color="#555555")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(panels.rendered(drawn, path.suffix[1:]))
    return True


def caption(scenario: Scenario, plot: Plot, results: Results) -> str:
    """Say what a picture shows, of how many seeds, and what its whiskers are."""
    experiment = scenario.experiment(plot.experiment)
    axes = [axis.name for axis in experiment.axes]
    runs = chosen(results.of(plot.experiment), plot.where)
    counts = runs.group_by(axes).agg(pl.col("seed").n_unique())["seed"]
    ends = dict.fromkeys(str(count) for count in (counts.min(), counts.max()))
    seeds = f"n = {' to '.join(ends)} seed{'' if list(ends) == ['1'] else 's'}"
    shown = {
        "cdf": f"{seeds} together",
        "course": f"the first of {seeds}",
        "sizes": f"99th percentile, dotted the median, of the flows of {seeds} together; bands are "
        "95% confidence intervals over seeds",
    }.get(plot.kind, f"{seeds}; whiskers are 95% confidence intervals of {_of_what(plot)}")
    paper = " Diamonds are the paper's numbers." if plot.paper else ""
    return f"{plot.title}: {_only_series(plot, experiment, runs)}{shown}.{paper}"


def _only_series(plot: Plot, experiment: Experiment, runs: pl.DataFrame) -> str:
    """Name the series of a plot that has just one, and so no legend."""
    series = points_of(experiment, plot.series, runs)
    if plot.versus is not None:
        series = [name for name in series if name != point_text(plot.versus)]
    if len(series) != 1:
        return ""
    return f"{style.looks(marks.axis_of(experiment, plot.series), series)[series[0]].name}, "


def _of_what(plot: Plot) -> str:
    return "the mean" if plot.versus is None else "the ratio of the means, paired by seed"


def figure(scenario: Scenario, plot: Plot, results: Results) -> Figure | None:
    """Draw a plot; None if there are no results for it."""
    experiment = scenario.experiment(plot.experiment)
    frame = ratios.paired(plot, experiment, _shown(plot, results))
    if frame.is_empty():
        return None
    experiment = _of_measured(experiment, plot.x, frame)
    facets = points_of(experiment, plot.facet, frame) if plot.facet else [None]
    width, height = panels.PANEL_INCHES
    stretch = _stretch(plot, experiment, frame)
    if plot.kind == "rows":
        rows = points_of(experiment, plot.x or "", frame)
        beside = 1 if plot.x == plot.series else len(points_of(experiment, plot.series, frame))
        height = len(rows) * _ROW_INCHES * max(1, beside / 2) + panels.AXIS_INCHES
        width += max(map(len, rows)) * panels.LETTER_INCHES / min(len(facets), _FACETS_ACROSS)
    drawn, grid = panels.make(
        len(facets),
        (width * stretch, height),
        (panels.MARGIN_INCHES, 0.5),
        _FACETS_ACROSS,
        sharex=plot.kind == "cdf",
        sharey=True,
    )
    with matplotlib.style.context(style.SHEET):
        for axes, facet in zip(grid, facets, strict=True):
            part = frame if facet is None else frame.filter(pl.col(plot.facet or "") == facet)
            marks.draw_panel(axes, plot, experiment, part)
            if facet is not None:
                axes.set_title(_facet_title(marks.axis_of(experiment, plot.facet), facet))
        _label(grid, plot, experiment)
        if plot.x != plot.series:
            series = marks.axis_of(experiment, plot.series)
            title = None if series.name == "scheduler" else series.label
            panels.legend(drawn, grid, title, stretch * width / panels.PANEL_INCHES[0])
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


def _facet_title(axis: Axis, value: str) -> str:
    if axis.name == "scheduler":
        return style.looks(axis, [value])[value].name
    return f"{axis.label}: {value}"


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
    axes = {marks.axis_of(experiment, name).name for name in (plot.x, plot.series) if name}
    bars = math.prod(len(points_of(experiment, axis, frame)) for axis in axes if axis)
    return max(1.0, (bars * _BAR_INCHES + panels.AXIS_INCHES) / panels.PANEL_INCHES[0])


def _label(grid: Sequence[Axes], plot: Plot, experiment: Experiment) -> None:
    """Scale and name the axes of all panels."""
    x_label, y_label = marks.axis_of(experiment, plot.x).label, tables.axis_label(plot)
    if plot.kind == "cdf":
        x_label, y_label = y_label, "Share at most (%)"
    elif plot.kind == "course":
        x_label = "Time (ms)"
    elif plot.kind == "sizes":
        x_label = "Largest flow of each tenth"
    elif plot.kind == "rows":
        x_label, y_label = y_label, x_label
    for axes in grid:
        if plot.versus is not None:
            at_1 = axes.axvline if plot.kind == "rows" else axes.axhline
            at_1(1.0, color=marks.SHARED_COLOUR, linewidth=0.8, zorder=0)
        _scale(axes, plot, experiment)
    x_label = _times([axes.xaxis for axes in grid], x_label)
    y_label = _times([axes.yaxis for axes in grid], y_label)
    for axes in grid:
        axes.set_xlabel(panels.wrapped(x_label) if plot.kind == "rows" else x_label)
    for axes in grid[:: panels.across(grid[0])]:
        panels.name_height(axes, y_label)


def _scale(axes: Axes, plot: Plot, experiment: Experiment) -> None:
    """Set the scales, limits and ticks of a panel."""
    if plot.kind == "rows":
        _scale_rows(axes, plot)
        return
    ticks.plain(axes.yaxis)
    if "x" in plot.log:
        axes.set_xscale("symlog", linthresh=_LINEAR)
    if plot.kind in ("cdf", "course"):
        ticks.plain(axes.xaxis)
    if "y" in plot.log:
        axes.set_yscale("log")
        ticks.decades(axes.yaxis)
    # Lines of ratios lie around 1.
    is_around_1 = plot.versus is not None and plot.kind == "line"
    if plot.kind == "cdf":
        axes.set_ylim(0, 100)
        axes.set_xlim(left=0)
    elif "y" not in plot.log and not is_around_1:
        axes.set_ylim(bottom=0)
    x_axis = marks.axis_of(experiment, plot.x)
    if plot.kind == "line" and marks.is_scale(x_axis):
        values = [float(value) for value in x_axis.values()]
        axes.set_xticks(values, [f"{value:g}" for value in values])
        axes.minorticks_off()


def _scale_rows(axes: Axes, plot: Plot) -> None:
    """Set scale, limits and ticks of the horizontal axis of a panel of rows, which has values."""
    if "x" in plot.log:
        axes.set_xscale("log")
        ticks.decades(axes.xaxis)
    else:
        ticks.plain(axes.xaxis)
        if plot.versus is None:
            axes.set_xlim(left=0)


def _times(axes: Sequence[XAxis | YAxis], label: str) -> str:
    """Let axes of long times show the next unit; give their label."""
    label, factor = units.relabelled(label, max(axis.get_view_interval()[1] for axis in axes))
    if factor != 1:
        for axis in axes:
            ticks.plain(axis, factor)
    return label
