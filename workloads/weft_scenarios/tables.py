"""Numbers as text: for the terminal and for RESULTS.md."""

from collections.abc import Sequence

import polars as pl

from weft_scenarios.quantities import METRICS
from weft_scenarios.results import Results, point_text
from weft_scenarios.scenario import Experiment, Plot, Scenario
from weft_scenarios.stats import Spread, spread

Row = Sequence[str]


def number(value: float, digits: int = 3) -> str:
    """Write a number with so many significant digits, never with an exponent."""
    if value == 0:
        return "0"
    text = f"{value:.{digits}g}"
    if "e" in text:
        return f"{float(text):.0f}" if abs(value) >= 1 else f"{value:.6f}".rstrip("0")
    return text


def with_spread(value: Spread) -> str:
    """Write a mean and half the width of its 95% confidence interval."""
    if value.half is None:
        return number(value.mean)
    return f"{number(value.mean)} ± {number(value.half, 2)}"


def plain(rows: Sequence[Row]) -> str:
    """Lay a table out for a terminal; the first row is its head."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def markdown(rows: Sequence[Row]) -> str:
    """Lay a table out for Markdown; the first row is its head."""
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + " --- |" * len(rows[0]), *lines[1:]])


def of_plot(scenario: Scenario, plot: Plot, results: Results) -> list[Row]:
    """Give the numbers of a plot of points: a row per point, a column per series."""
    experiment = scenario.experiment(plot.experiment)
    frame = results.of(plot.experiment, plot.where)
    frame = frame.filter(pl.col(plot.quantity).is_not_null())
    if plot.x is None or frame.is_empty():
        return []
    series = _there(experiment, plot.series, frame)
    across = [name for name in (plot.facet, plot.x) if name and name != plot.series]
    labels = [axis.label for name in across if (axis := experiment.axis(name))]
    rows: list[Row] = [[*labels, *(series or [METRICS[plot.quantity].axis_label()])]]
    points = frame.select(across).unique(maintain_order=True).rows()
    order = {name: _there(experiment, name, frame) for name in across}
    points.sort(key=lambda point: [order[n].index(p) for n, p in zip(across, point, strict=True)])
    for point in points:
        part = frame
        for name, value in zip(across, point, strict=True):
            part = part.filter(pl.col(name) == value)
        cells = [part.filter(pl.col(plot.series) == s) for s in series] or [part]
        values = [cell[plot.quantity].to_list() for cell in cells]
        rows.append([*point, *(with_spread(spread(v)) if v else "" for v in values)])
    return rows


def _there(experiment: Experiment, axis_name: str, frame: pl.DataFrame) -> list[str]:
    axis = experiment.axis(axis_name)
    if axis is None:
        return []
    there = set(frame[axis_name].to_list())
    return [text for value in axis.values() if (text := point_text(value)) in there]
