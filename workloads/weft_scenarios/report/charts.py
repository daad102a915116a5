# SPDX-License-Identifier: Apache-2.0
"""The paper's figure types, drawn for any experiment from its results alone.

A chart compares series, usually schedulers. It has one panel per *cell*: a combination of the
points of all other axes. Means and quantiles are computed for each seed. The chart shows their
mean over seeds with its 95% confidence interval (Student's t). Where values span decades
(distributions, slowdown), mean and interval are those of the logarithms.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from weft_scenarios.definition.quantities import CURVES
from weft_scenarios.definition.scenario import Axis, Experiment, Scenario
from weft_scenarios.report import panels, style, tables, ticks
from weft_scenarios.results import flows
from weft_scenarios.results.results import Results, point_text
from weft_scenarios.stats import spread

_PANELS = 4
"""Maximum number of panels in a chart. With more cells, evenly spaced ones are shown."""
_SERIES = 9
"""Maximum number of series in a chart, because more have no colours of their own."""
_PANEL_INCHES = (2.7, 2.3)
_CLASSES = ((0, "below\n10 kB"), (10_000, "10-\n100 kB"), (100_000, "100 kB-\n1 MB"),
            (1_000_000, "from\n1 MB"))  # fmt: skip
"""Lower bounds in bytes, as in Table 1 of MPTCP-RB."""
_TAILS = ((50, 1), (95, 20), (99, 100), (99.9, 1000), (100, 1))
"""Percentiles, and the flows per seed from which on each of them is meaningful."""
_GAP = 20
"""A queue counts as empty after this many times the median interval between observations."""
_MARKERS: dict[str, Any] = {"markersize": 3.0, "markevery": 0.25}
"""A few markers on every line, so that lines are distinguishable in print."""
_HEAT_LETTERS = 9
"""Letters that fit below a cell of the heat map."""
_STEPS = 120
"""Points of a time series."""

Cell = Mapping[str, str]
_T = TypeVar("_T")


@dataclass(frozen=True)
class Chart:
    """A figure that can be drawn."""

    name: str
    title: str
    caption: str
    draw: Callable[[], Figure]


@dataclass(frozen=True)
class _Data:
    experiment: Experiment
    series: Axis
    shown: tuple[str, ...]
    """Points of the series that have results."""
    cells: tuple[Cell, ...]
    flows: pl.DataFrame
    curves: pl.DataFrame
    runs: pl.DataFrame

    def looks(self) -> dict[str, style.Look]:
        """Give the look of each series that is drawn."""
        return style.looks(self.series, self.drawn())

    def label(self, cell: Cell) -> str:
        """Name a cell in the title of its panel."""
        names = {axis.name: axis.label.split(" (")[0] for axis in self.experiment.axes}
        return "\n".join(f"{names[axis]}: {value}" for axis, value in cell.items())

    def panels(self) -> list[Cell]:
        """Give the cells that are shown."""
        return _spread(self.cells, _PANELS)

    def drawn(self) -> list[str]:
        """Give the points of the series that are shown."""
        most = len(self.shown) if self.series.name == "scheduler" else _SERIES
        return _spread(self.shown, most)

    def left_out(self) -> str:
        """Say so if not all cells or series are shown."""
        parts = (
            f"{len(drawn)} of {len(there)} {name}"
            for drawn, there, name in (
                (self.panels(), self.cells, "cells"),
                (self.drawn(), self.shown, "series"),
            )
            if len(drawn) < len(there)
        )
        said = " and ".join(parts)
        return f" {said} are shown; the data files have all." if said else ""


def _spread(all_of: Sequence[_T], most: int) -> list[_T]:
    """Keep so many at most, evenly spread, the first and the last among them."""
    count = min(len(all_of), most)
    places = np.linspace(0, len(all_of) - 1, count).round().astype(int)
    return [all_of[i] for i in places]


def of(scenario: Scenario, results: Results, table: pl.DataFrame) -> Iterator[Chart]:
    """Give the charts that can be drawn from an experiment's results."""
    for experiment in scenario.experiments:
        data = _data(experiment, _series(scenario, experiment), results, table)
        if data.flows.is_empty():
            continue
        name = experiment.name
        seeds = data.flows["seed"].n_unique()
        interval = (
            f"Mean over {seeds} seeds, band or bar: 95% confidence interval."
            if seeds > 1
            else "One seed: no confidence interval."
        ) + data.left_out()
        sizes = data.flows["bytes"].n_unique()
        yield _chart(data, f"{name}-cdf", "Distribution of the FCT", interval, _draw_cdf)
        yield _chart(data, f"{name}-tails", "Tails of the FCT", interval, _draw_tails)
        if sizes > 1:
            yield _chart(data, f"{name}-sizes", "FCT by size class", interval, _draw_classes)
        if sizes >= len(_CLASSES):
            caption = f"Solid: median, dashed: 95th percentile. {interval}"
            title = "Slowdown by flow size"
            yield _chart(data, f"{name}-slowdown", title, caption, _draw_slowdown)
        if len(data.shown) > 1 and len(data.cells) > 1:
            caption = (
                "Mean FCT in ms ± half of the 95% interval; colour: ratio to the best in its cell."
            )
            heat = f"{data.series.label}s and cells"
            yield Chart(f"{name}-heat", heat, caption, lambda data=data: _heat(data))  # type: ignore[misc]
        for curve in ("queue_packets", "data_ack_kb"):
            if not data.curves.filter(pl.col("curve") == curve).is_empty():
                title = f"{CURVES[curve].label} over time"
                draw = lambda *a, curve=curve: _draw_course(curve, *a)  # noqa: E731
                yield _chart(data, f"{name}-{curve}", title, interval, draw)


_Draw = Callable[[Axes, _Data, pl.DataFrame, Cell], None]


def _chart(data: _Data, name: str, title: str, caption: str, draw: _Draw) -> Chart:
    return Chart(name, title, caption, lambda: _panels(data, draw))


def _series(scenario: Scenario, experiment: Experiment) -> Axis:
    """Give the axis that is compared: schedulers, or what the file's own plots compare."""
    plotted = [p.series for p in scenario.plots if p.experiment == experiment.name]
    for name in ("scheduler", *plotted):
        axis = experiment.axis(name)
        if axis and len(axis.points) > 1:
            return axis
    return experiment.axes[-1] if experiment.axes else Axis("", "", ())


def _data(experiment: Experiment, series: Axis, results: Results, table: pl.DataFrame) -> _Data:
    axes = experiment.axes
    mine = table.filter((pl.col("experiment") == experiment.name) & pl.col("fct_ns").is_not_null())
    texts = [flows.as_text(axis, mine).alias(f"at {axis.name}") for axis in axes]
    mine = mine.with_columns(*texts, (pl.col("fct_ns") / 1e6).alias("fct_ms"))
    others = [axis.name for axis in axes if axis.name != series.name and len(axis.points) > 1]
    there = mine.select([f"at {name}" for name in others]).unique(maintain_order=True)
    cells = [dict(zip(others, row, strict=True)) for row in there.rows()] or [{}]
    order = {axis.name: [point_text(value) for value in axis.values()] for axis in axes}
    cells.sort(key=lambda cell: [order[name].index(value) for name, value in cell.items()])
    if series.name:
        found = set(mine[f"at {series.name}"].to_list())
        shown = tuple(text for v in series.values() if (text := point_text(v)) in found)
    else:
        mine, shown = mine.with_columns(pl.lit("all").alias("at ")), ("all",)
    return _Data(
        experiment,
        series,
        shown,
        tuple(cells),
        mine,
        results.curves.filter(pl.col("experiment") == experiment.name),
        results.of(experiment.name),
    )


def _panels(data: _Data, draw: _Draw) -> Figure:
    """Draw a panel per cell, with one legend."""
    cells = data.panels()
    figure, grid = panels.make(len(cells), _PANEL_INCHES, (0.4, 0.7))
    for axes, cell in zip(grid, cells, strict=True):
        rows = data.flows
        for axis, value in cell.items():
            rows = rows.filter(pl.col(f"at {axis}") == value)
        draw(axes, data, rows, cell)
        axes.set_title(data.label(cell))
    title = None if data.series.name == "scheduler" else data.series.label
    panels.legend(figure, grid, title, _PANEL_INCHES[0] / panels.PANEL_INCHES[0])
    return figure


def _each(data: _Data, rows: pl.DataFrame) -> Iterator[tuple[style.Look, list[pl.DataFrame]]]:
    """Give the look of each series, and its flows, one table per seed."""
    looks = data.looks()
    for value in data.drawn():
        mine = rows.filter(pl.col(f"at {data.series.name}") == value)
        if not mine.is_empty():
            yield looks[value], mine.partition_by("seed")


@dataclass(frozen=True)
class _Between:
    """A mean and its confidence interval."""

    low: float
    mean: float
    high: float


def _linear(values: Sequence[float]) -> _Between:
    s = spread(values)
    return _Between(max(s.low, 0.0), s.mean, s.high)


def _geometric(values: Sequence[float]) -> _Between:
    """Give the geometric mean of positive values, and its interval."""
    s = spread([float(np.log(max(value, 1e-9))) for value in values])
    return _Between(float(np.exp(s.low)), float(np.exp(s.mean)), float(np.exp(s.high)))


def _line(
    axes: Axes, x: Sequence[float], points: Sequence[_Between], look: style.Look, dashed: bool
) -> None:
    """Draw a line with a band around it."""
    axes.plot(
        x,
        [p.mean for p in points],
        color=look.colour,
        linestyle="--" if dashed else look.line,
        label=None if dashed else look.name,
        marker=look.marker,
        **_MARKERS,
    )
    low, high = [p.low for p in points], [p.high for p in points]
    axes.fill_between(x, low, high, color=look.colour, alpha=0.13, linewidth=0)


def _draw_cdf(axes: Axes, data: _Data, rows: pl.DataFrame, _cell: Cell) -> None:
    shares = np.arange(1, 101)
    for look, seeds in _each(data, rows):
        of_seeds = [np.percentile(s["fct_ms"].to_numpy(), shares, method="nearest") for s in seeds]
        points = [_geometric([float(q[i]) for q in of_seeds]) for i in range(len(shares))]
        axes.plot(
            [p.mean for p in points],
            shares,
            color=look.colour,
            linestyle=look.line,
            label=look.name,
            marker=look.marker,
            **_MARKERS,
        )
        low, high = [p.low for p in points], [p.high for p in points]
        axes.fill_betweenx(shares, low, high, color=look.colour, alpha=0.13, linewidth=0)
    low_ms, high_ms = _ends(rows["fct_ms"])
    if high_ms > 30 * low_ms:
        axes.set_xscale("log")
        axes.set_xlim(low_ms / 1.3, high_ms * 1.3)
        ticks.decades(axes.xaxis)
    else:
        axes.set_xlim(0, high_ms * 1.1)
    axes.set_ylim(0, 100)
    axes.set_xlabel("FCT (ms)")
    axes.set_ylabel("Share of flows (%)")


def _ends(values: pl.Series) -> tuple[float, float]:
    numbers = values.to_numpy()
    return float(numbers.min()), float(numbers.max())


def _draw_tails(axes: Axes, data: _Data, rows: pl.DataFrame, _cell: Cell) -> None:
    least = min(len(s) for _, seeds in _each(data, rows) for s in seeds)
    percents = [percent for percent, count in _TAILS if least >= count]
    groups = ["slowest" if percent == 100 else f"{percent:g}%" for percent in percents]

    def values(seeds: list[pl.DataFrame], group: int) -> list[float]:
        quantile = percents[group] / 100
        return [float(s["fct_ms"].quantile(quantile, "nearest") or 0) for s in seeds]

    _bars(axes, data, rows, groups, values)
    axes.set_xlabel("Percentile of the FCT")
    axes.set_ylabel("FCT (ms)")


def _draw_classes(axes: Axes, data: _Data, rows: pl.DataFrame, _cell: Cell) -> None:
    bounds = [bound for bound, _ in _CLASSES[1:]]
    classed = rows.with_columns(_bins(rows, bounds).alias("class"))
    there = sorted(set(classed["class"].to_list()))

    def values(seeds: list[pl.DataFrame], group: int) -> list[float]:
        parts = [s.filter(pl.col("class") == there[group])["fct_ms"] for s in seeds]
        return [float(part.mean() or 0) for part in parts if len(part)]  # type: ignore[arg-type]

    _bars(axes, data, classed, [_CLASSES[number][1] for number in there], values)
    axes.set_yscale("log")
    ticks.decades(axes.yaxis)
    axes.set_xlabel("Flow size")
    axes.set_ylabel("Mean FCT (ms)")


def _bins(rows: pl.DataFrame, bounds: Sequence[float]) -> pl.Series:
    """Give the size class of every flow: the number of bounds that its size reaches."""
    return pl.Series(np.digitize(rows["bytes"].to_numpy(), bounds))


def _bars(
    axes: Axes,
    data: _Data,
    rows: pl.DataFrame,
    groups: Sequence[str],
    values: Callable[[list[pl.DataFrame], int], list[float]],
) -> None:
    series = list(_each(data, rows))
    width = 0.8 / max(len(series), 1)
    for number, (look, seeds) in enumerate(series):
        found = [(group, values(seeds, group)) for group in range(len(groups))]
        spreads = [(group, spread(numbers)) for group, numbers in found if numbers]
        places = [group + (number - (len(series) - 1) / 2) * width for group, _ in spreads]
        panels.bars(axes, places, [s for _, s in spreads], width, look)
    axes.set_xticks(range(len(groups)), groups)
    axes.grid(visible=False, axis="x")


def _draw_slowdown(axes: Axes, data: _Data, rows: pl.DataFrame, _cell: Cell) -> None:
    edges = np.unique(np.quantile(rows["bytes"].to_numpy(), np.linspace(0, 1, 9)))
    # Flows of one size are one point.
    middles = [float(np.sqrt(a * b)) for a, b in itertools.pairwise(edges)] or [float(edges[0])]
    binned = rows.with_columns(_bins(rows, list(edges[1:-1])).alias("bin"))
    for look, seeds in _each(data, binned):
        for quantile, dashed in ((0.5, False), (0.95, True)):
            x, points = [], []
            for number, middle in enumerate(middles):
                parts = [s.filter(pl.col("bin") == number)["slowdown"] for s in seeds]
                numbers = [float(p.quantile(quantile, "nearest") or 0) for p in parts if len(p)]
                if numbers:
                    x.append(middle / 1e3)
                    points.append(_geometric(numbers))
            _line(axes, x, points, look, dashed)
    axes.set_xscale("log")
    axes.set_yscale("log")
    low, high = _ends(rows["slowdown"].drop_nulls())
    axes.set_ylim(low / 1.3, high * 1.3)
    ticks.decades(axes.xaxis)
    ticks.decades(axes.yaxis)
    axes.set_xlabel("Flow size (kB)")
    axes.set_ylabel("Slowdown (FCT / ideal)")


def _draw_course(curve: str, axes: Axes, data: _Data, _rows: pl.DataFrame, cell: Cell) -> None:
    rows = data.curves.filter(pl.col("curve") == curve)
    for axis, value in cell.items():
        rows = rows.filter(pl.col(axis) == value)
    end = float(rows["x"].max() or 0)  # type: ignore[arg-type]
    grid = np.linspace(0, end, _STEPS)
    looks = data.looks()
    for value in data.drawn():
        mine = rows.filter(pl.col(data.series.name) == value) if data.series.name else rows
        if mine.is_empty():
            continue
        empties = curve == "queue_packets"
        of_seeds = [_resampled(s.sort("x"), grid, empties) for s in mine.partition_by("seed")]
        points = [_linear([course[i] for course in of_seeds]) for i in range(len(grid))]
        _line(axes, list(grid), points, looks[value], dashed=False)
    axes.set_ylim(0, 1.1 * _ends(rows["y"])[1] or 1)
    axes.set_xlabel("Time (ms)")
    panels.name_height(axes, CURVES[curve].axis_label())


def _resampled(course: pl.DataFrame, grid: NDArray[np.float64], empties: bool) -> list[float]:
    """Give the latest value at each time: 0 before the first, and in gaps if it `empties`."""
    x, y = course["x"].to_numpy(), course["y"].to_numpy()
    step = float(grid[1]) if len(grid) > 1 else 0.0
    holds = max(_GAP * float(np.median(np.diff(x))) if len(x) > 1 else 0.0, step)
    places = np.searchsorted(x, grid, side="right") - 1
    return [
        float(y[place]) if place >= 0 and not (empties and time - x[place] > holds) else 0.0
        for place, time in zip(places, grid, strict=True)
    ]


def _heat(data: _Data) -> Figure:
    values = {(row, col): spread(found) for row, value in enumerate(data.shown)
              for col, cell in enumerate(data.cells)
              if (found := _means(data, value, cell))}  # fmt: skip
    best = [min((s.mean for (_, c), s in values.items() if c == col), default=1.0)
            for col in range(len(data.cells))]  # fmt: skip
    ratios = np.full((len(data.shown), len(data.cells)), np.nan)
    for (row, col), s in values.items():
        ratios[row, col] = s.mean / best[col] if best[col] else 1.0
    wide = max(0.75 * len(data.cells) + 1.8, 3.2)
    labels = [", ".join(cell.values()) for cell in data.cells]
    are_long = max(map(len, labels)) > _HEAT_LETTERS
    high = 0.32 * len(data.shown) + (2.3 if are_long else 1.5)
    figure, (axes,) = panels.make(1, (wide, high))
    top = max(float(np.nanmax(ratios)), 1.5)
    image = axes.imshow(ratios, cmap="cividis_r", vmin=1.0, vmax=top, aspect="auto")
    for (row, col), s in values.items():
        is_dark = ratios[row, col] > 1 + (top - 1) * 0.5
        text = tables.with_spread(s).replace(" ± ", "\n±")
        axes.text(col, row, text, ha="center", va="center", fontsize=6,
                  color="white" if is_dark else "black")  # fmt: skip
    looks = style.looks(data.series, list(data.shown))
    axes.set_yticks(range(len(looks)), [look.name for look in looks.values()])
    if are_long:
        aslant: dict[str, Any] = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
        axes.set_xticks(range(len(labels)), labels, **aslant)
    else:
        axes.set_xticks(range(len(labels)), labels)
    varied = {name for cell in data.cells for name in cell}
    axes.set_xlabel(", ".join(a.label for a in data.experiment.axes if a.name in varied))
    axes.grid(visible=False)
    figure.colorbar(image, ax=axes, label="Ratio to the best\nin the cell", pad=0.02)
    return figure


def _means(data: _Data, value: str, cell: Cell) -> list[float]:
    rows = data.runs.filter(pl.col("fct_mean_ms").is_not_null())
    for axis, point in {data.series.name: value, **cell}.items():
        rows = rows.filter(pl.col(axis) == point)
    return [float(mean) for mean in rows["fct_mean_ms"].to_list()]
