# SPDX-License-Identifier: Apache-2.0
"""The charts that every experiment gets in its report."""

from pathlib import Path

import polars as pl
from matplotlib.axes import Axes
from small_scenario import SMALL, read
from weft_scenarios.report import charts
from weft_scenarios.results.results import About, Results

PARTS = [f"a part that has a long name, number {number}" for number in range(12)]


def tails(tmp_path: Path) -> charts.Chart:
    """Give the chart of tails of an experiment that compares twelve parts."""
    text = SMALL.replace('scheduler = ["rb", "minrtt"]\n', "").split("[[plot]]")[0]
    axis = f'name = "part"\nlabel = "Part"\nflag = "scheduler"\nvalues = {PARTS}'
    start = text.index('name = "flows"')
    text = f"{text[:start]}{axis}\n"
    scenario = read(tmp_path, text)
    table = pl.DataFrame(
        [
            {"experiment": "one", "part": part, "seed": seed, "bytes": 1000, "fct_ns": ms * 10**6}
            for part in PARTS
            for seed in (1, 2)
            for ms in (1, 2)
        ]
    )
    nothing = pl.DataFrame(schema={"experiment": pl.String, "curve": pl.String})
    about = About(False, [], [], 0, [])
    found = charts.of(scenario, Results(nothing, nothing, about), table)
    return next(chart for chart in found if chart.name == "one-tails")


def test_no_two_series_of_a_chart_have_one_colour_and_the_caption_says_what_is_left_out(
    tmp_path: Path,
) -> None:
    chart = tails(tmp_path)
    assert "9 of 12 series are shown; the data files have all." in chart.caption
    drawn = chart.draw()
    (axes,) = drawn.axes
    colours = {bar.get_facecolor() for bar in axes.patches}
    assert len(colours) == 9
    names = legend_names(axes)
    assert names[0] == PARTS[0]
    assert names[-1] == PARTS[-1]


def legend_names(axes: Axes) -> list[str]:
    """Give the names of the series of a panel."""
    return [str(name) for name in axes.get_legend_handles_labels()[1]]


def test_a_legend_is_not_wider_than_its_picture(tmp_path: Path) -> None:
    drawn = tails(tmp_path).draw()
    drawn.canvas.draw()
    (legend,) = drawn.legends
    box = legend.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= drawn.bbox.x1
