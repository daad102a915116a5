# SPDX-License-Identifier: Apache-2.0
"""Percentiles of the flows of all seeds together."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from small_scenario import SMALL, read
from weft_scenarios.definition.scenario import Scenario
from weft_scenarios.errors import ScenarioError
from weft_scenarios.measures import fluid
from weft_scenarios.report import plot, results_page, tables
from weft_scenarios.results import bounds, pooled
from weft_scenarios.results.results import About, Results
from weft_scenarios.runs import matrix

POOLED = SMALL.replace("seconds = 1.0", 'seconds = 1.0\npercentiles = "scheduler"')
BY_SIZE = POOLED.replace(
    "[[claim]]",
    '[[plot]]\nname = "sizes"\ntitle = "By size"\nkind = "sizes"\nquantity = "slowdown"\n'
    'models = ["slowdown_shortest"]\n\n[[claim]]',
)


def flows(fct_ms: Callable[[str, int, int], float], seeds: int, per_seed: int) -> pl.DataFrame:
    """Give flows of one point per scheduler; flow N of a seed has 1000 (N + 1) bytes."""
    return pl.DataFrame(
        [
            {
                "experiment": "one",
                "flows": 16.0,
                "scheduler": name,
                "seed": seed,
                "run": f"{name}-{seed}",
                "flow": number,
                "bytes": 1000 * (number + 1),
                "fct_ns": int(fct_ms(name, seed, number) * 1e6),
                "ideal_fct_ns": 1_000_000,
                "slowdown": fct_ms(name, seed, number),
            }
            for name in ("rb", "minrtt")
            for seed in range(1, seeds + 1)
            for number in range(per_seed)
        ],
        schema_overrides={"flows": pl.Float64},
    )


def row(table: pl.DataFrame, sizes: str, scheduler: str = "rb") -> dict[str, float | None]:
    found = table.filter(
        (pl.col("sizes") == sizes)
        & (pl.col("scheduler") == scheduler)
        & (pl.col("quantity") == "fct_ms")
    )
    assert len(found) == 1
    return found.row(0, named=True)


def made(tmp_path: Path, table: pl.DataFrame) -> tuple[Scenario, pl.DataFrame]:
    one = read(tmp_path, POOLED)
    return one, pooled.collect(one, table, bounds.collect(one, []))


def test_a_percentile_is_that_of_all_flows_and_not_a_mean_of_seeds(tmp_path: Path) -> None:
    # Nine seeds of 1 ms, one of 100 ms: a hundredth of 1000 flows is slower than 100 ms in none.
    _, table = made(tmp_path, flows(lambda _, seed, __: 100 if seed == 10 else 1, 10, 100))
    all_flows = row(table, "all")
    assert (all_flows["flow_count"], all_flows["seed_count"]) == (1000, 10)
    assert (all_flows["p50"], all_flows["p99"]) == (1, 100)
    mean_of_seeds = (9 * 1 + 100) / 10
    assert all_flows["p99"] != mean_of_seeds


def test_a_percentile_is_given_from_the_flows_that_it_needs(tmp_path: Path) -> None:
    _, few = made(tmp_path, flows(lambda *_: 1, 5, 3))
    assert [row(few, "all")[name] for name in pooled.PERCENTILES] == [1, None, None, None]
    _, many = made(tmp_path, flows(lambda *_: 1, 5, 2000))
    assert row(many, "all")["p999"] == 1
    assert row(many, "below 100 kB")["p999"] is None


def test_intervals_cover_the_true_percentile_and_need_five_seeds() -> None:
    def found(trial: int, seeds: int) -> dict[str, float | None]:
        rng = np.random.default_rng(trial)
        seed = np.repeat(np.arange(seeds), 40)
        # Seeds differ, as runs do, by more than their flows. The true median is 1.
        log = rng.normal(0, 0.3, size=seeds)[seed] + rng.normal(0, 0.5, size=40 * seeds)
        return pooled.percentiles(pl.DataFrame({"seed": seed, "fct_ms": np.exp(log)}), "fct_ms")

    covered = 0
    for trial in range(40):
        low, high = (found(trial, 20)[end] for end in ("p50_low", "p50_high"))
        covered += low is not None and high is not None and low <= 1 <= high
    # 38 on average; the bootstrap over 20 seeds is somewhat too narrow.
    assert covered >= 33
    assert found(0, 4)["p50_low"] is None


def test_tenths_are_the_same_for_all_that_are_compared(tmp_path: Path) -> None:
    one, table = made(tmp_path, flows(lambda name, _, n: n + (name == "rb"), 5, 100))
    sizes = table.filter(pl.col("sizes").str.starts_with("tenth")).group_by("sizes", "quantity")
    assert sizes.agg(pl.col("from_bytes").n_unique())["from_bytes"].to_list() == [1] * 20
    counts = [row(table, f"tenth {number}")["flow_count"] for number in range(1, 11)]
    assert counts == [50] * 10
    assert one.experiments[0].percentiles == "scheduler"


def test_a_size_that_many_flows_have_is_in_one_class(tmp_path: Path) -> None:
    half = pl.when(pl.col("bytes") <= 50_000).then(6_000).otherwise(pl.col("bytes"))
    _, table = made(tmp_path, flows(lambda *_: 1, 5, 100).with_columns(half.alias("bytes")))
    tenths = table.filter(pl.col("sizes").str.starts_with("tenth")).filter(
        (pl.col("scheduler") == "rb") & (pl.col("quantity") == "fct_ms")
    )
    assert tenths["flow_count"].sum() == 500
    assert tenths.filter(pl.col("to_bytes") == 6_000)["flow_count"].to_list() in ([250], [])
    assert len(tenths) < 10


def test_flows_of_one_size_have_no_tenths(tmp_path: Path) -> None:
    equal = flows(lambda *_: 1, 5, 100).with_columns(pl.lit(225_000).alias("bytes"))
    _, table = made(tmp_path, equal)
    assert table["sizes"].unique().to_list() == ["all"]


def test_flows_by_size_are_drawn_and_tabulated_beside_what_none_can_beat(tmp_path: Path) -> None:
    one = read(tmp_path, BY_SIZE)
    by_size = flows(lambda name, _, n: n + 1 + (name == "rb"), 5, 200)
    least = by_size.select("run", "flow", pl.lit(500_000.0).alias(bounds.COLUMN))
    table = pooled.collect(one, by_size, least)
    about = About(quick=False, kernels=["Linux 7"], revisions=["abc"], runs=10, failed=[])
    runs = pl.DataFrame(
        {"experiment": ["one"], "flows": ["16"], "scheduler": ["rb"], "seed": [1]}
    ).with_columns(pl.lit(1.0).alias("fct_mean_ms"))
    curves = pl.DataFrame(schema={"experiment": pl.String, "curve": pl.String})
    found = Results(runs, curves, about, table)
    drawn = plot.figure(one, one.plots[1], found)
    assert drawn
    drawn.draw_without_rendering()
    (panel,) = drawn.axes
    labels = [label.get_text() for label in panel.get_xticklabels()]
    assert labels[:2] == ["20 kB", "40 kB"]
    lines = {
        line.get_label(): np.asarray(line.get_ydata())
        for line in panel.lines
        if line.get_linestyle() == "-"
    }
    assert list(lines) == ["MPTCP-RB", "MinRTT", "Shortest flows first, fluid"]
    assert {len(values) for values in lines.values()} == {10}
    assert set(lines["Shortest flows first, fluid"]) == {0.5}
    rows = tables.of_plot(one, one.plots[1], found).rows
    assert rows[0] == ["Flows (B)", "rb", "minrtt", "Shortest flows first, fluid"]
    assert rows[1][0] == "1000 to 20000"
    assert rows[1][3] == "0.5 [0.5 to 0.5], 0.5 [0.5 to 0.5]"
    assert len(rows) == 11
    page = results_page.of("x", one, found, tmp_path)
    assert "percentiles of the flows of all seeds together" in page.body
    assert "| 16 | rb | all | 1000 | " in page.body


def test_bounds_are_computed_once_for_runs_with_the_same_flows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = read(tmp_path, BY_SIZE)
    calls = []
    real = fluid.Covered.fct_s

    def counted(flowing: fluid.Covered, share: fluid.Share) -> fluid.Rates:
        calls.append((len(flowing.phases[0].rates), flowing.octets.tolist()))
        return real(flowing, share)

    monkeypatch.setattr(fluid.Covered, "fct_s", counted)
    done = []
    for run in matrix.runs(one, quick=False):
        folder = tmp_path / f"{run.at['scheduler']}-{run.at['flows']}-{run.seed}"
        folder.mkdir()
        # Larger racks with 16 flows; and minrtt loses the second flow with seed 3.
        hosts = 4 if run.at["flows"] == 1 else 8
        topology = {"kind": "leaf-spine", "leaves": 2, "hosts": hosts, "spines": 2}
        topology |= {"rate_bps": 8_000_000, "host_rate_bps": 8_000_000}
        lab = {"topology": topology, "scheduler": run.at["scheduler"]}
        info = {"lab": lab, "workload": {"traffic": "random"}}
        (folder / "run.json").write_text(json.dumps(info))
        is_lost = (run.at["scheduler"], run.seed) == ("minrtt", 3)
        (folder / "flows.csv").write_text(
            "flow,src,dst,bytes,start_ns,fct_ns,ideal_fct_ns,error\n"
            f"0,h1_1,h2_1,{1000 * run.seed},0,9000000,5000000,\n"
            f"1,h1_1,h2_1,9000,0,{'' if is_lost else 20000000},15000000,\n"
        )
        done.append((run, folder))
    found = bounds.collect(one, done)
    seeds = [[1000, 9000], [2000, 9000], [3000], [3000, 9000]]
    assert sorted(calls) == [(links, octets) for links in (20, 36) for octets in seeds]
    assert len(found) == 2 * len(done) - 2
    # The shorter one goes first, and takes as long as alone.
    times = dict(found.filter(pl.col("run") == "rb-16-3").select("flow", bounds.COLUMN).rows())
    assert times[0] == pytest.approx(5_000_000)
    assert times[1] == pytest.approx(15_000_000 + 3000 / 1e6 * 1514 / 1424 * 1e9)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            SMALL.replace(
                'quantity = "fct_mean_ms"\nx = "flows"', 'kind="sizes"\nquantity="fct_ms"'
            ),
            "give percentiles = 'scheduler' in the experiment",
        ),
        (
            POOLED.replace('percentiles = "scheduler"', 'percentiles = "flow"'),
            "percentiles = 'flow': give one of flows, scheduler",
        ),
    ],
)
def test_what_cannot_be_pooled_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ScenarioError) as raised:
        read(tmp_path, text)
    assert said in str(raised.value)
