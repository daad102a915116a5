# SPDX-License-Identifier: Apache-2.0
"""What a panel of a plot shows: points, bars, distributions, courses, and what was predicted."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl
from matplotlib.axes import Axes

from weft_scenarios.definition.quantities import CURVES, METRICS, POOLED
from weft_scenarios.definition.scenario import Axis, Experiment, Plot
from weft_scenarios.measures import curves
from weft_scenarios.report import panels, style, tables
from weft_scenarios.results import ratios
from weft_scenarios.results.results import point_text, points_of

_BARS_WIDTH = 0.8
"""Share of the bars of a group of the space between two groups."""
_GAP = 20
"""A time series has a gap where points are this many times the median interval apart."""
_MODEL_LINES = ("--", ":")
SHARED_COLOUR = "#444444"
_ROWS_LOOK = style.Look("", "#0072B2", "o")
"""Of rows that have one series: their names tell them apart."""
_SAME = 1.02
"""Predictions that differ by less are drawn as one."""


@dataclass(frozen=True)
class _Place:
    """Which of `count` series of a panel it is."""

    number: int = 0
    count: int = 1

    def from_middle(self) -> float:
        """Give how many series it is right of the middle of all."""
        return self.number - (self.count - 1) / 2


_ALONE = _Place()


@dataclass(frozen=True)
class _Series:
    """A series of a panel."""

    look: style.Look
    frame: pl.DataFrame
    models: Mapping[str, str]
    """The formulas beside it, and the style of their lines."""
    place: _Place = _ALONE


def draw_panel(axes: Axes, plot: Plot, experiment: Experiment, frame: pl.DataFrame) -> None:
    """Draw all series of a panel, the formulas beside them, and the paper's numbers."""
    series_axis = axis_of(experiment, plot.series)
    if plot.kind == "sizes":
        _draw_sizes_of_all(axes, plot, experiment, frame)
        return
    # A formula has the same line in all panels, also where another one is drawn for all series.
    lines = dict(zip(plot.models, itertools.cycle(_MODEL_LINES)))
    if not series_axis.name:
        look = style.Look("measured" if plot.models else "", "#0072B2", "o")
        _draw_series(axes, plot, experiment, _Series(look, frame, lines))
        return
    series = points_of(experiment, plot.series, frame)
    looks = style.looks(series_axis, series)
    shared = [model for model in lines if _is_shared(plot, frame, model)]
    own = {model: line for model, line in lines.items() if model not in shared}
    for number, value in enumerate(series):
        part = frame.filter(pl.col(plot.series) == value)
        place = _Place(number, len(series))
        _draw_series(axes, plot, experiment, _Series(looks[value], part, own, place))
    for model in shared:
        look = style.Look(METRICS[model].label, SHARED_COLOUR, "", lines[model])
        _draw_model(axes, axis_of(experiment, plot.x), model, look, frame)
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
    order = [point_text(value) for value in axis_of(experiment, plot.x).values()]
    how: dict[str, Any] = {"marker": "D", "markersize": 6, "markeredgecolor": "black"}
    how |= {"linestyle": "none", "zorder": 4, "clip_on": False}
    for given in plot.paper:
        name = None if given.series is None else point_text(given.series)
        if name is not None and name not in series:
            continue
        x, y = float(given.at) if isinstance(given.at, int | float) else 0.0, given.value
        if plot.kind == "cdf":
            x, y = y, x
        elif plot.kind == "bars" or not is_scale(axis_of(experiment, plot.x)):
            own = plot.x == plot.series or name is None
            place = _ALONE if own else _Place(series.index(name or ""), len(series))
            x = _bar_middle(order.index(point_text(given.at)), place)
        colour = "white" if name is None else looks[name].colour
        axes.plot(x, y, markerfacecolor=colour, **how)
    if plot.paper:
        # Clipped: otherwise the layout keeps space for a marker at the picture's lower left corner.
        in_legend = how | {"clip_on": True, "markerfacecolor": "white", "label": "the paper's"}
        axes.plot([], [], **in_legend)


def _draw_series(axes: Axes, plot: Plot, experiment: Experiment, series: _Series) -> None:
    look, frame = series.look, series.frame
    if plot.kind == "cdf":
        _draw_cdf(axes, look, frame)
    elif plot.kind == "course":
        _draw_course(axes, look, frame, CURVES[plot.quantity].holds)
    else:
        _draw_points(axes, plot, experiment, series)


def _draw_sizes_of_all(axes: Axes, plot: Plot, experiment: Experiment, frame: pl.DataFrame) -> None:
    """Draw the flows of all series by size, and the models beside them."""
    measured = frame.filter(pl.col("quantity") == plot.quantity)
    series = points_of(experiment, plot.series, measured)
    looks = style.looks(axis_of(experiment, plot.series), series)
    for name in series:
        _draw_sizes(axes, looks[name], measured.filter(pl.col(plot.series) == name))
    for model in plot.models:
        # It is the same for all series, which have the same flows.
        first = frame.filter((pl.col("quantity") == model) & (pl.col(plot.series) == series[0]))
        if len(first):
            _draw_sizes(axes, style.Look(POOLED[model].label, SHARED_COLOUR, ""), first)


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


def _draw_points(axes: Axes, plot: Plot, experiment: Experiment, series: _Series) -> None:
    """Draw the mean over seeds at every point, with its 95% confidence interval."""
    look, frame = series.look, series.frame
    x_axis = axis_of(experiment, plot.x)
    shown = points_of(experiment, x_axis.name, frame)
    spreads = [ratios.estimate(plot, frame.filter(pl.col(x_axis.name) == value)) for value in shown]
    if plot.kind in ("bars", "rows") or not is_scale(x_axis):
        order = [point_text(value) for value in x_axis.values()]
        names = [look.name for look in style.looks(x_axis, order).values()]
        place = _ALONE if plot.x == plot.series else series.place
        middles = [_bar_middle(order.index(v), place) for v in shown]
        if plot.kind == "rows":
            panels.rows(axes, middles, spreads, look if place.count > 1 else _ROWS_LOOK)
            axes.set_yticks(range(len(names)), names)
            axes.set_ylim(len(names) - 0.5, -0.5)
            return
        panels.bars(axes, middles, spreads, _BARS_WIDTH / place.count, look)
        panels.name_ticks(axes, names, panels.panel_inches(axes))
        axes.grid(visible=False, axis="x")
        return
    # Shifted a little, so that no interval hides another.
    places = [float(value) for value in x_axis.values()]
    aside = 0.006 * (max(places) - min(places)) * series.place.from_middle()
    axes.errorbar(
        [float(value) + (0.0 if "x" in plot.log else aside) for value in shown],
        [s.mean for s in spreads],
        panels.error_lengths(spreads),
        color=look.colour,
        marker=look.marker,
        linestyle=look.line,
        elinewidth=0.8,
        capsize=panels.CAP_POINTS,
        label=look.name,
    )
    whose = f"{look.name}: " if experiment.axis(plot.series) else ""
    for model, line in series.models.items():
        label = f"{whose}{METRICS[model].label}"
        _draw_model(axes, x_axis, model, replace(look, name=label, line=line), frame)


def _bar_middle(group: int, place: _Place) -> float:
    """Give the middle of a bar among those of its group."""
    return group + place.from_middle() * _BARS_WIDTH / place.count


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


def axis_of(experiment: Experiment, name: str | None) -> Axis:
    """Find an axis; if there is none with this name, one without name and points."""
    axis = experiment.axis(name or "")
    return axis if axis else Axis("", "", ())


def is_scale(axis: Axis) -> bool:
    """Whether all points of an axis are numbers."""
    return all(isinstance(value, int | float) for value in axis.values())
