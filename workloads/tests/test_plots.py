# SPDX-License-Identifier: Apache-2.0
"""Labels of plots fit and do not overlap."""

import itertools
import re
from pathlib import Path

import matplotlib.style
import numpy as np
import polars as pl
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from small_scenario import SMALL, read
from weft_scenarios.definition.scenario import Axis, Point
from weft_scenarios.report import panels, plot, style, tables
from weft_scenarios.results.results import About, Results
from weft_scenarios.stats import Spread

INCHES = 3.1


def measured(runs: pl.DataFrame) -> Results:
    """Give the results of these runs, all of which ended well."""
    about = About(quick=False, kernels=[], revisions=[], runs=len(runs), failed=[])
    return Results(runs, pl.DataFrame(), about)


def of_both(**quantities: list[float] | list[float | None]) -> pl.DataFrame:
    """Give runs of rb and minrtt, each with 1 and 16 flows; longer lists are of more seeds."""
    seeds = len(next(iter(quantities.values()))) // 4
    return pl.DataFrame(
        {
            "experiment": "one",
            "flows": ["1", "16"] * 2 * seeds,
            "scheduler": ["rb", "rb", "minrtt", "minrtt"] * seeds,
            "seed": [1 + index // 4 for index in range(4 * seeds)],
            **quantities,
        }
    )


def drawn(names: list[str]) -> Figure:
    figure, (axes,) = panels.make(1, (INCHES, 2.4))
    axes.set_xlim(-0.5, len(names) - 0.5)
    with matplotlib.style.context(style.SHEET):
        panels.name_ticks(axes, names, INCHES)
    figure.draw_without_rendering()
    return figure


@pytest.mark.parametrize(
    ("names", "lines"),
    [
        (["MinRTT", "MPTCP-RB"], 1),
        (["Wikipedia, 72 KiB", "Amazon, 1 MiB", "Huffington Post, 4 MiB"], 3),
        (["same", "5x slower", "20% of the rate", "tenth of the rate"], 2),
        (["incast 16 x 2", "path 5x slower", "path of 20%", "Web Search 0.4", "path fails"], 3),
        (["MinRTT with PR", "BLEST", "DAPS", "OTIAS", "MPTCP-RB", "TCP, one path"], 3),
    ],
)
def test_tick_labels_are_wrapped_and_do_not_touch(names: list[str], lines: int) -> None:
    labels = drawn(names).axes[0].get_xticklabels()
    assert max(label.get_text().count("\n") + 1 for label in labels) == lines
    boxes = [label.get_window_extent() for label in labels]
    assert len(boxes) == len(names)
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))


@pytest.mark.parametrize("count", [4, 9])
def test_labels_that_cannot_be_wrapped_are_slanted(count: int) -> None:
    labels = drawn(["a-distribution-of-sizes"] * count).axes[0].get_xticklabels()
    assert {label.get_rotation() for label in labels} == {30}


def test_panels_that_are_too_many_for_one_row_go_into_more() -> None:
    figure, grid = panels.make(5, (6.0, 4.0), most_across=4)
    assert figure.axes == grid
    places = [axes.get_subplotspec() for axes in grid]
    assert [(p.rowspan.start, p.colspan.start) for p in places if p] == [
        (0, 0),
        (0, 1),
        (0, 2),
        (0, 3),
        (1, 0),
    ]


def test_a_panel_is_as_wide_as_its_bars_need(tmp_path: Path) -> None:
    text = SMALL.replace('x = "flows"', 'kind = "bars"\nx = "flows"')
    many = read(tmp_path, text.replace("[1, 16]", str(list(range(1, 40)))))
    runs = pl.DataFrame(
        [
            {"experiment": "one", "flows": flows, "scheduler": name, "seed": 1, "fct_mean_ms": 1.0}
            for flows, name in itertools.product(map(str, range(1, 40)), ("rb", "minrtt"))
        ]
    )
    wide = plot.figure(many, many.plots[0], measured(runs))
    usual = plot.figure(many, many.plots[0], measured(runs.head(12)))
    assert wide
    assert usual
    # 78 bars, and 12.
    assert wide.get_figwidth() > 1.5 * usual.get_figwidth()
    assert usual.get_figwidth() == pytest.approx(INCHES + 0.3)


def test_models_are_dashed_lines_where_they_apply(tmp_path: Path) -> None:
    text = SMALL.replace('x = "flows"', 'models = ["fct_model_ms"]\nx = "flows"')
    small = read(tmp_path, text)
    runs = of_both(
        fct_mean_ms=[3.0, 4.0, 5.0, 6.0],
        fct_model_ms=[2.0, 7.0, None, None],
    )
    figure = plot.figure(small, small.plots[0], measured(runs))
    assert figure
    models = [line for line in figure.axes[0].lines if line.get_linestyle() == "--"]
    assert len(models) == 1
    assert models[0].get_xydata() == pytest.approx(np.array([[1, 2], [16, 7]]))
    assert models[0].get_label() == "MPTCP-RB: FCT by the model of MPTCP-RB, section 5"


def test_a_model_that_is_the_same_for_all_series_is_one_line_at_its_mean(tmp_path: Path) -> None:
    text = SMALL.replace('x = "flows"', 'models = ["fct_mean_shortest_ms"]\nx = "flows"')
    small = read(tmp_path, text)
    runs = of_both(
        fct_mean_ms=[3.0, 4.0, 5.0, 6.0] * 2,
        fct_mean_shortest_ms=[1.0, 2.0, 1.0, 2.0, 3.0, 4.0, 3.0, 4.0],
    )
    figure = plot.figure(small, small.plots[0], measured(runs))
    assert figure
    models = [line for line in figure.axes[0].lines if line.get_linestyle() == "--"]
    assert len(models) == 1
    assert models[0].get_xydata() == pytest.approx(np.array([[1, 2], [16, 3]]))
    assert models[0].get_label() == "Shortest flows first, fluid"


def test_a_model_has_its_own_style_whichever_others_are_the_same_for_all_series(
    tmp_path: Path,
) -> None:
    models = 'models = ["fct_mean_shortest_ms", "fct_model_ms"]'
    small = read(tmp_path, SMALL.replace('x = "flows"', f'{models}\nx = "flows"'))
    runs = of_both(
        fct_mean_ms=[3.0, 4.0, 5.0, 6.0],
        fct_mean_shortest_ms=[1.0, 2.0, 1.0, 2.0],
        fct_model_ms=[2.0, 3.0, 4.0, 5.0],
    )
    figure = plot.figure(small, small.plots[0], measured(runs))
    assert figure
    styles = {str(line.get_label()): line.get_linestyle() for line in figure.axes[0].lines}
    assert styles["Shortest flows first, fluid"] == "--"
    assert styles["MPTCP-RB: FCT by the model of MPTCP-RB, section 5"] == ":"


@pytest.mark.parametrize(
    ("fct_mean_ms", "labels"),
    [
        ([3.0, 7.0, 12.0, 25.0], [5, 10, 20]),
        ([3.0, 70.0, 120.0, 25_000.0], [10, 100, 1000, 10_000]),
        ([1.4, 1.6, 5.8, 6.2], [1.5, 2, 3, 5]),
        ([85.0, 95.0, 120.0, 125.0], [90, 100, 110, 120]),
    ],
)
def test_a_logarithmic_axis_has_several_labels_a_decade_only_where_decades_are_few(
    tmp_path: Path, fct_mean_ms: list[float], labels: list[float]
) -> None:
    small = read(tmp_path, SMALL.replace('x = "flows"', 'x = "flows"\nlog = "y"'))
    figure = plot.figure(small, small.plots[0], measured(of_both(fct_mean_ms=fct_mean_ms)))
    assert figure
    figure.draw_without_rendering()
    low, high = figure.axes[0].get_ylim()
    assert [tick for tick in figure.axes[0].get_yticks() if low <= tick <= high] == labels


def test_labels_break_between_number_and_unit_last() -> None:
    labels = drawn(["Amazon, 1 MiB", "Wikipedia, 72 KiB", "all"]).axes[0].get_xticklabels()
    assert [label.get_text() for label in labels] == ["Amazon, 1 MiB", "Wikipedia,\n72 KiB", "all"]


def test_long_labels_of_the_vertical_axis_take_two_lines() -> None:
    _, (axes,) = panels.make(1, (INCHES, 2.4))
    panels.name_height(axes, "99th percentile FCT of flows below 100 kB (ms)")
    assert axes.get_ylabel() == "99th percentile FCT of flows\nbelow 100 kB (ms)"


@pytest.mark.parametrize("values", [tuple("abcdefgh"), tuple(range(8)), (0.1, 1, 10)])
def test_every_point_of_an_axis_has_a_colour_of_its_own(values: tuple[str | float, ...]) -> None:
    axis = Axis("x", "X", tuple(Point(value, {}) for value in values))
    names = [f"{value:g}" if isinstance(value, float) else str(value) for value in values]
    looks = style.looks(axis, names)
    assert len({look.colour for look in looks.values()}) == len(values)


def test_of_more_points_than_colours_those_that_are_drawn_differ() -> None:
    axis = Axis("transport", "Transport", tuple(Point(f"t{n}", {}) for n in range(28)))
    chosen = [f"t{n}" for n in range(0, 28, 4)]
    colours = [look.colour for look in style.looks(axis, chosen).values()]
    assert len(set(colours)) == len(chosen)


def test_a_picture_says_its_title_its_seeds_and_what_its_whiskers_are(tmp_path: Path) -> None:
    one = read(tmp_path, SMALL)
    runs = pl.DataFrame(
        [
            {"experiment": "one", "scheduler": "rb", "flows": "1", "seed": seed, "fct_mean_ms": 1.0}
            for seed in (1, 2, 3)
        ]
        + [{"experiment": "one", "scheduler": "rb", "flows": "16", "seed": 1, "fct_mean_ms": 2.0}]
    )
    assert plot.draw(one, one.plots[0], measured(runs), tmp_path / "x.svg")
    written = re.findall(r"<text[^>]*>([^<]*)", (tmp_path / "x.svg").read_text())
    said = "FCT: MPTCP-RB, n = 1 to 3 seeds; whiskers are 95% confidence intervals of the mean."
    assert said in " ".join(written).replace("\N{NO-BREAK SPACE}", " ")
    assert any("n\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}1 to" in line for line in written)


@pytest.mark.parametrize("kind", ["line", "bars"])
def test_numbers_of_the_paper_are_drawn_where_they_belong(tmp_path: Path, kind: str) -> None:
    paper = '{ at = 16, series = "rb", value = 7.5 }, { at = 1, value = 2.5 }'
    text = SMALL.replace('x = "flows"', f'kind = "{kind}"\npaper = [{paper}]\nx = "flows"')
    small = read(tmp_path, text)
    rows = [
        {"experiment": "one", "flows": flows, "scheduler": name, "seed": 1, "fct_mean_ms": 1.0}
        for flows, name in itertools.product(("1", "16"), ("rb", "minrtt"))
    ]
    results = measured(pl.DataFrame(rows))
    made = plot.figure(small, small.plots[0], results)
    assert made
    lines = made.axes[0].lines
    diamonds = [line for line in lines if line.get_marker() == "D" and np.size(line.get_xdata())]
    places = [tuple(np.ravel(line.get_xydata())) for line in diamonds]
    # Of two bars around 1, that of rb is the left one; 0.4 wide each.
    assert places == ([(16, 7.5), (1, 2.5)] if kind == "line" else [(0.8, 7.5), (0, 2.5)])
    assert plot.caption(small, small.plots[0], results).endswith(
        "Diamonds are the paper's numbers."
    )
    # The legend's diamond takes no place in the panel.
    made.draw_without_rendering()
    panel = made.axes[0]
    box = panel.get_tightbbox()
    assert box
    assert box.y0 == pytest.approx(panel.xaxis.label.get_window_extent().y0)


@pytest.mark.parametrize("kind", ["line", "bars"])
def test_ratios_to_a_series_and_their_intervals_are_of_pairs(tmp_path: Path, kind: str) -> None:
    text = SMALL.replace('x = "flows"', f'kind = "{kind}"\nversus = "rb"\nx = "flows"')
    small = read(tmp_path, text)
    # Seeds differ much, and minrtt is 1.2 times rb with 16 flows, give or take a tenth.
    rb = {1: 1.0, 2: 10.0, 3: 100.0}
    rows = [
        {"experiment": "one", "flows": "16", "scheduler": name, "seed": seed, "fct_mean_ms": value}
        for seed, own in rb.items()
        for name, value in (("rb", own), ("minrtt", own * (1.2 + 0.1 * (seed - 2))))
    ]
    # Without its pair, a value is no ratio.
    rows.append(rows[1] | {"flows": "1", "fct_mean_ms": 5.0})
    results = measured(pl.DataFrame(rows))
    head, *found = tables.of_plot(small, small.plots[0], results).rows
    assert head == ["Flows", "minrtt"]
    ((flows, shown),) = found
    assert flows == "16"
    value, low, high = map(float, re.findall(r"[\d.]+", shown))
    # Without pairs, it would be from less than 0.1 to more than 10 times.
    assert value == pytest.approx(1.29, abs=0.005)
    assert 1.1 <= low < value < high <= 1.3
    made = plot.figure(small, small.plots[0], results)
    assert made
    assert made.axes[0].get_ylabel() == "Mean FCT, ratio to rb"
    assert "of the ratio of the means, paired by seed" in plot.caption(
        small, small.plots[0], results
    )


def test_rows_name_each_point_and_compare_all_with_one(tmp_path: Path) -> None:
    keys = 'kind = "rows"\nx = "scheduler"\nfacet = "flows"\nversus = "rb"'
    text = SMALL.replace('x = "flows"', keys).replace('"minrtt"]', '"minrtt", "blest"]')
    small = read(tmp_path, text)
    rows = [
        {"experiment": "one", "flows": flows, "scheduler": name, "seed": seed, "fct_mean_ms": ms}
        for seed in (1, 2)
        for flows, name, ms in (
            *(("1", "rb", 2.0), ("1", "minrtt", 3.0), ("1", "blest", 5.0)),
            *(("16", "rb", 4.0), ("16", "minrtt", 2.0)),
        )
    ]
    results = measured(pl.DataFrame(rows))
    table = tables.of_plot(small, small.plots[0], results).rows
    assert [row[:1] for row in table] == [["Scheduler"], ["minrtt"], ["blest"]]
    assert table[0][1:] == ["1", "16"]
    assert [cell.split()[0] if cell else "" for cell in table[1][1:]] == ["1.5", "0.5"]
    assert [cell.split()[0] if cell else "" for cell in table[2][1:]] == ["2.5", ""]
    made = plot.figure(small, small.plots[0], results)
    assert made
    first, second = made.axes
    assert [text.get_text() for text in first.get_yticklabels()] == ["MinRTT", "BLEST"]
    assert first.get_ylim() == (1.5, -0.5)  # The first is at the top.
    assert first.get_xlabel() == second.get_xlabel() == "Mean FCT, ratio to rb"
    assert dots(first) == [(1.5, 0), (2.5, 1)]
    assert dots(second) == [(0.5, 0)]


def dots(axes: Axes) -> list[tuple[float, float]]:
    """Give where the means of a panel of rows are drawn."""
    drawn = [line for line in axes.lines if line.get_marker() not in ("None", "|")]
    both = [(line.get_xdata(), line.get_ydata()) for line in drawn]
    return [pair for x, y in both for pair in zip(np.asarray(x), np.asarray(y), strict=True)]


def test_the_series_of_a_row_are_beside_each_other_and_in_the_legend(tmp_path: Path) -> None:
    keys = 'kind = "rows"\nx = "flows"\nseries = "scheduler"'
    small = read(tmp_path, SMALL.replace('x = "flows"', keys))
    rows = [
        {"experiment": "one", "flows": "16", "scheduler": name, "seed": 1, "fct_mean_ms": value}
        for name, value in (("rb", 2.0), ("minrtt", 3.0))
    ]
    results = measured(pl.DataFrame(rows))
    made = plot.figure(small, small.plots[0], results)
    assert made
    (axes,) = made.axes
    assert dots(axes) == [(2.0, -0.2), (3.0, 0.2)]
    (legend,) = made.legends
    assert [text.get_text() for text in legend.get_texts()] == ["MPTCP-RB", "MinRTT"]
    assert tables.of_plot(small, small.plots[0], results).rows == [
        ["Flows", "rb", "minrtt"],
        ["16", "2", "3"],
    ]


@pytest.mark.parametrize(
    ("fct_ms", "label", "half", "shown"), [(4000, "ms", "2000", "4000"), (40_000, "s", "20", "40")]
)
def test_times_of_many_seconds_are_not_in_milliseconds(
    tmp_path: Path, fct_ms: int, label: str, half: str, shown: str
) -> None:
    small = read(tmp_path, SMALL.replace('x = "flows"', 'kind = "bars"\nx = "flows"'))
    rows = [
        {"experiment": "one", "flows": flows, "scheduler": "rb", "seed": 1, "fct_mean_ms": value}
        for flows, value in (("1", fct_ms / 2), ("16", fct_ms))
    ]
    results = measured(pl.DataFrame(rows, schema_overrides={"fct_mean_ms": pl.Float64}))
    made = plot.figure(small, small.plots[0], results)
    assert made
    (axes,) = made.axes
    assert axes.get_ylabel() == f"Mean FCT ({label})"
    made.canvas.draw()
    assert shown in [text.get_text() for text in axes.get_yticklabels()]
    table = tables.of_plot(small, small.plots[0], results)
    assert table.label == f"Mean FCT ({label})"
    assert [row[-1] for row in table.rows] == ["rb", half, shown]


@pytest.mark.parametrize("log", ["", 'log = "x"\n'])
def test_delays_of_many_milliseconds_are_not_in_microseconds(tmp_path: Path, log: str) -> None:
    text = f'kind = "cdf"\n{log}quantity = "ooo_delay_us"'
    small = read(tmp_path, SMALL.replace('quantity = "fct_mean_ms"\nx = "flows"', text))
    row = {"experiment": "one", "flows": "16", "scheduler": "rb", "seed": 1}
    curve = [
        row | {"curve": "ooo_delay_us", "x": float(percent), "y": 800.0 * percent}
        for percent in range(1, 101)
    ]
    about = About(quick=False, kernels=[], revisions=[], runs=1, failed=[])
    results = Results(pl.DataFrame([row]), pl.DataFrame(curve), about)
    made = plot.figure(small, small.plots[0], results)
    assert made
    (axes,) = made.axes
    assert axes.get_xlabel() == "Out-of-order delay (ms)"
    made.canvas.draw()
    assert ("10" if log else "60") in [text.get_text() for text in axes.get_xticklabels()]
    table = tables.of_plot(small, small.plots[0], results)
    assert table.label == "Out-of-order delay (ms)"
    assert table.rows[1:] == [["50%", "40"], ["90%", "72"], ["99%", "79.2"], ["100%", "80"]]


def test_a_plot_of_one_series_names_it(tmp_path: Path) -> None:
    small = read(tmp_path, SMALL)
    row = {"experiment": "one", "flows": "1", "seed": 1, "fct_mean_ms": 1.0}
    one = measured(pl.DataFrame([row | {"scheduler": "rb"}]))
    assert ": MPTCP-RB, n = 1 seed;" in plot.caption(small, small.plots[0], one)
    two = measured(pl.DataFrame([row | {"scheduler": name} for name in ("rb", "minrtt")]))
    assert ": n = 1 seed;" in plot.caption(small, small.plots[0], two)
    ratio = read(tmp_path, SMALL.replace('x = "flows"', 'versus = "minrtt"\nx = "flows"'))
    assert ": MPTCP-RB, n = 1 seed;" in plot.caption(ratio, ratio.plots[0], two)


def test_two_long_times_are_compared_in_the_next_unit() -> None:
    pair = tables.pair(Spread(27_700.0, 2800.0, 5), Spread(26_500.0, 720.0, 5), "ms")
    assert pair == "27.7 ± 2.8 against 26.5 ± 0.72 s"
    assert tables.pair(Spread(9490.0, 3300.0, 5), 45_000.0, "µs") == "9.49 ± 3.3 against 45 ms"
    assert tables.pair(Spread(4.5, None, 1), 4.0, "ms") == "4.5 against 4 ms"
    assert tables.pair(Spread(0.98, 0.01, 5), 0.95, "") == "0.98 ± 0.01 against 0.95"
