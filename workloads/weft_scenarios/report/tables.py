# SPDX-License-Identifier: Apache-2.0
"""Formats numbers and tables, for the terminal and for RESULTS.md."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from weft_scenarios import units
from weft_scenarios.definition.quantities import POOLED, Quantity, shown_by
from weft_scenarios.definition.scenario import Experiment, Plot, Scenario
from weft_scenarios.results import ratios
from weft_scenarios.results.results import Results, chosen, point_text, points_of
from weft_scenarios.stats import Ratio, Spread

Row = Sequence[str]

_PERCENTS = [50.0, 90.0, 99.0, 100.0]


@dataclass(frozen=True)
class Table:
    """The numbers of a plot."""

    label: str
    """What they are, with their unit."""
    rows: Sequence[Row]
    """The first row is the head. Empty without any number, and for a time series."""


def number(value: float, digits: int = 3) -> str:
    """Format a number with this many significant digits, never with an exponent."""
    if value == 0:
        return "0"
    text = f"{value:.{digits}g}"
    if "e" in text:
        return f"{float(text):.0f}" if abs(value) >= 1 else f"{value:.6f}".rstrip("0")
    return text


def with_spread(value: Spread | Ratio) -> str:
    """Format a mean and half of its 95% confidence interval, or a ratio and the whole of it."""
    if isinstance(value, Ratio):
        return _with_interval(value.mean, value.low, value.high)
    if value.half is None:
        return number(value.mean)
    return f"{number(value.mean)} ± {number(value.half, 2)}"


def pair(one: Spread, other: Spread | float, unit: str) -> str:
    """Format two values that are compared, long times in the next unit."""
    against = Spread(other, None, 1) if isinstance(other, float) else other
    unit, factor = units.readable(max(one.mean, against.mean), unit)
    both = [with_spread(value.times(factor)) for value in (one, against)]
    return f"{' against '.join(both)} {unit}".strip()


def _with_interval(value: float, low: float, high: float) -> str:
    return f"{number(value)} [{number(low)} to {number(high)}]"


def plain(rows: Sequence[Row]) -> str:
    """Format a table for a terminal; the first row is its head."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def markdown(rows: Sequence[Row]) -> str:
    """Format a table as Markdown; the first row is its head."""
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + " --- |" * len(rows[0]), *lines[1:]])


def of_plot(scenario: Scenario, plot: Plot, results: Results) -> Table:
    """Give the numbers of a plot: a row per point, a column per series, or per panel of rows."""
    experiment = scenario.experiment(plot.experiment)
    table = Table(axis_label(plot), [])
    if plot.kind == "course":
        return table
    if plot.kind == "sizes":
        return replace(table, rows=_of_tenths(experiment, plot, results))
    if plot.x is None:
        return _of_distribution(experiment, plot, results)
    frame = results.of(plot.experiment, plot.where)
    frame = ratios.paired(plot, experiment, frame.filter(pl.col(plot.quantity).is_not_null()))
    if plot.kind == "rows" and plot.facet and plot.x == plot.series:
        # A row of the table is one of the picture.
        return _of_points(experiment, replace(plot, series=plot.facet), frame, [plot.x])
    across = [name for name in (plot.facet, plot.x) if name]
    return _of_points(experiment, plot, frame, across)


def quantity(plot: Plot) -> Quantity:
    """Give what a plot shows."""
    return shown_by(plot.kind)[plot.quantity]


def axis_label(plot: Plot) -> str:
    """Name what a plot shows, with its unit."""
    if plot.versus is None:
        return quantity(plot).axis_label()
    return f"{quantity(plot).label}, ratio to {point_text(plot.versus)}"


def tenths(plot: Plot, results: Results) -> pl.DataFrame:
    """Give the pooled percentiles of a plot, by tenths of the flows; column `number` is which.

    Those of its models are among them.
    """
    frame = results.percentiles
    if frame.is_empty():
        return frame
    frame = frame.filter(
        (pl.col("experiment") == plot.experiment)
        & pl.col("quantity").is_in([plot.quantity, *plot.models])
        & pl.col("sizes").str.starts_with("tenth ")
    )
    number_of = pl.col("sizes").str.strip_prefix("tenth ").cast(pl.Int64).alias("number")
    return chosen(frame, plot.where).with_columns(number_of)


def _of_tenths(experiment: Experiment, plot: Plot, results: Results) -> list[Row]:
    frame = tenths(plot, results)
    if frame.is_empty():
        return []
    series = points_of(experiment, plot.series, frame)
    facet = experiment.axis(plot.facet or "")
    across = [*([facet.name] if facet else []), "number"]
    models = [POOLED[model].label for model in plot.models]
    rows: list[Row] = [[*([facet.label] if facet else []), "Flows (B)", *series, *models]]
    for point in frame.partition_by(across, maintain_order=True):
        by_quantity = {
            quantity: point.filter(pl.col("quantity") == quantity).rows(named=True)
            for quantity in (plot.quantity, *plot.models)
        }
        by_series = {row[plot.series]: row for row in by_quantity[plot.quantity]}
        ends = (min(point["from_bytes"].to_list()), max(point["to_bytes"].to_list()))
        bounds = " to ".join(map(str, ends))
        first = [point[facet.name][0]] if facet else []
        cells = [_median_and_p99(by_series[name]) if name in by_series else "" for name in series]
        # It is the same for all series, which have the same flows.
        for model in plot.models:
            cells += [_median_and_p99(row) for row in by_quantity[model][:1]] or [""]
        rows.append([*first, bounds, *cells])
    return rows


def _median_and_p99(row: Mapping[str, float | None]) -> str:
    return f"{_percentile(row, 'p50')}, {_percentile(row, 'p99')}"


def of_percentiles(experiment: Experiment, results: Results) -> list[Row]:
    """Give the pooled FCT percentiles of an experiment; none if it has none."""
    frame = results.percentiles
    if not experiment.percentiles or frame.is_empty():
        return []
    frame = frame.filter(
        (pl.col("experiment") == experiment.name)
        & (pl.col("quantity") == "fct_ms")
        & ~pl.col("sizes").str.starts_with("tenth ")
    )
    names = {"p50": "Median", "p95": "95%", "p99": "99%", "p999": "99.9%"}
    shown = [name for name in names if frame[name].is_not_null().any()]
    axes = [axis.name for axis in experiment.axes]
    head = [axis.label for axis in experiment.axes]
    rows: list[Row] = [[*head, "Flows", "Number", *(f"{names[name]} (ms)" for name in shown)]]
    order = {axis: points_of(experiment, axis, frame) for axis in axes}
    for row in sorted(
        frame.rows(named=True),
        key=lambda row: [order[axis].index(row[axis]) for axis in axes],
    ):
        cells = [_percentile(row, name) for name in shown]
        rows.append([*(row[axis] for axis in axes), row["sizes"], str(row["flow_count"]), *cells])
    return rows


def _percentile(row: Mapping[str, float | None], name: str) -> str:
    value, low, high = (row[key] for key in (name, f"{name}_low", f"{name}_high"))
    if value is None:
        return "-"
    if low is None or high is None:
        return number(value)
    return _with_interval(value, low, high)


def _of_distribution(experiment: Experiment, plot: Plot, results: Results) -> Table:
    """Give some percentiles of a distribution."""
    frame = results.curves.filter(
        (pl.col("experiment") == plot.experiment)
        & (pl.col("curve") == plot.quantity)
        & pl.col("x").is_in(_PERCENTS)
    )
    frame = chosen(frame, plot.where).with_columns(
        pl.format("{}%", pl.col("x").cast(pl.Int64)).alias("percentile"),
        pl.col("y").alias(plot.quantity),
    )
    across = [*([plot.facet] if plot.facet else []), "percentile"]
    return _of_points(experiment, plot, frame, across)


def _of_points(experiment: Experiment, plot: Plot, frame: pl.DataFrame, across: list[str]) -> Table:
    if frame.is_empty():
        return Table(axis_label(plot), [])
    series = [] if plot.series == plot.x else points_of(experiment, plot.series, frame)
    labels = [axis.label if (axis := experiment.axis(name)) else name for name in across]
    points = frame.select(across).unique(maintain_order=True).rows()
    order = {name: points_of(experiment, name, frame) for name in across}
    points.sort(key=lambda point: [order[n].index(p) for n, p in zip(across, point, strict=True)])
    found: list[list[Spread | Ratio | None]] = []
    for point in points:
        part = frame
        for name, value in zip(across, point, strict=True):
            part = part.filter(pl.col(name) == value)
        cells = [part.filter(pl.col(plot.series) == s) for s in series] or [part]
        found.append([ratios.estimate(plot, cell) if len(cell) else None for cell in cells])
    most = max(value.mean for row in found for value in row if value)
    label, factor = units.relabelled(axis_label(plot), most)
    rows: list[Row] = [[*labels, *(series or [label])]]
    for point, row in zip(points, found, strict=True):
        rows.append([*point, *(with_spread(value.times(factor)) if value else "" for value in row)])
    return Table(label, rows)
