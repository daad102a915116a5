# SPDX-License-Identifier: Apache-2.0
"""Seeds are added until a mean is known; a fake `weft` gives the numbers."""

from pathlib import Path

import pytest
from experiment_driver import HEALTHY, conduct, install, started, table
from small_scenario import SMALL
from weft_scenarios.definition import scenario_file
from weft_scenarios.definition.seeds import Seeds
from weft_scenarios.results import results
from weft_scenarios.stats import spread

UNTIL = SMALL.replace("seeds = 3", 'seeds = { until = "20%", at_most = 8 }', 1)
VARIES = (
    HEALTHY.replace("0,2000000,2,0", "0,{2000000 + noise},2,0")
    .replace(
        '(out / "flows.csv").write_text(\n    "flow',
        """\
seed = int(sys.argv[sys.argv.index("--seed") + 1])
noise = (seed * 7919 % 5 - 2) * (700000 if "16" in sys.argv else 0)
(out / "flows.csv").write_text(
    "flow""",
    )
    .replace('"0,h1_1', 'f"0,h1_1')
)
"""With 16 flows, seeds differ; with one flow, they do not."""


def known(*values: float | None, first: int = 1) -> dict[int, float | None]:
    return dict(enumerate(values, first))


def test_seeds_end_where_the_interval_is_narrow_enough() -> None:
    seeds = Seeds(3, 6, percent=5)
    assert seeds.wanted(known()) == 3
    assert seeds.wanted(known(10, 10)) == 3
    assert seeds.wanted(known(10, 10, 10)) == 3
    assert seeds.wanted(known(9, 10, 11)) == 4
    assert seeds.wanted(known(9, 20, 11, 30, 5)) == 6
    assert seeds.wanted(known(9, 20, 11, 30, 5, 1)) == 6


def test_later_seeds_change_nothing_once_there_are_enough() -> None:
    assert Seeds(3, 6, percent=5).wanted(known(10, 10, 10, 99, 1, 7)) == 3


def test_a_failed_seed_is_replaced_by_another() -> None:
    assert Seeds(3, 6, percent=5).wanted(known(10, None, 10)) == 4
    assert Seeds(3, 6, percent=5).wanted(known(10, None, 10, 10)) == 4


def test_seeds_that_begin_with_another_one_end_by_the_same_rule() -> None:
    seeds = Seeds(3, 6, percent=5, first=301)
    assert seeds.numbers() == range(301, 307)
    assert seeds.wanted(known(10, 10, first=301)) == 303
    assert seeds.wanted(known(10, 10, 10, first=301)) == 303
    assert seeds.wanted(known(9, 20, 11, 30, 5, 1, first=301)) == 306


def test_a_fixed_number_of_seeds_does_not_depend_on_results() -> None:
    assert Seeds.fixed(4).wanted(known(1, 2, 3)) == 4


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    install(tmp_path, VARIES)
    (tmp_path / "x.toml").write_text(UNTIL)
    return tmp_path


def seeds_by_flows(folder: Path, store: Path) -> dict[str, set[int]]:
    """Give the number of seeds of each scheduler, by the number of flows."""
    found = results.read(scenario_file.read_file(folder / "x.toml"), store / "out").runs
    counts = found.group_by("flows", "scheduler").len().rows()
    return {flows: {n for f, _, n in counts if f == flows} for flows, _, _ in counts}


def test_an_experiment_adds_seeds_where_runs_differ(folder: Path) -> None:
    assert conduct(folder, folder)[0] == 0
    found = seeds_by_flows(folder, folder)
    assert found["1"] == {3}
    (many,) = found["16"]
    assert 3 < many < 8
    runs = results.read(scenario_file.read_file(folder / "x.toml"), folder / "out").of("one")
    means = runs.filter((runs["flows"] == "16") & (runs["scheduler"] == "rb"))["fct_mean_ms"]
    enough, before = spread(means.to_list()), spread(means.to_list()[:-1])
    assert (enough.half or 0) <= 0.2 * enough.mean
    assert (before.half or 0) > 0.2 * before.mean
    assert table(folder, folder)[1] == "complete"


def test_a_resumed_experiment_ends_with_the_same_seeds(folder: Path) -> None:
    conduct(folder, folder)
    found, runs = seeds_by_flows(folder, folder), started(folder)
    assert conduct(folder, folder)[0] == 0
    assert (seeds_by_flows(folder, folder), started(folder)) == (found, runs)


def test_seeds_that_are_there_but_not_needed_are_left_out(folder: Path) -> None:
    (folder / "x.toml").write_text(SMALL.replace("seeds = 3", "seeds = 8", 1))
    conduct(folder, folder)
    runs = started(folder)
    (folder / "x.toml").write_text(UNTIL)
    conduct(folder, folder)
    assert started(folder) == runs
    assert seeds_by_flows(folder, folder)["1"] == {3}
