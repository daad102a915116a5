# SPDX-License-Identifier: Apache-2.0
"""Scenario files: invalid ones are refused, valid ones become runs."""

from pathlib import Path

import pytest
from small_scenario import SMALL, read
from weft_scenarios.definition import scenario_file
from weft_scenarios.errors import ScenarioError
from weft_scenarios.report import tables
from weft_scenarios.results import results
from weft_scenarios.runs import check, matrix
from weft_scenarios.runs.installation import Installation


def test_a_scenario_is_every_combination_of_points_and_seeds(tmp_path: Path) -> None:
    runs = list(matrix.runs(read(tmp_path, SMALL), quick=False))
    assert len(runs) == 2 * 2 * 3
    assert [run.seed for run in runs[:3]] == [1, 2, 3]
    assert runs[0].arguments() == (
        "run --traffic incast --senders 1 --scheduler rb --seed 1".split()
    )


def test_seeds_may_begin_with_another_one_than_was_tuned_with(tmp_path: Path) -> None:
    one = read(tmp_path, SMALL.replace("seeds = 3", "seeds = { first = 301, count = 3 }", 1))
    assert {run.seed for run in matrix.runs(one, quick=False)} == {301, 302, 303}
    more = {run.seed for run in matrix.runs(one, quick=False, at_least=4)}
    assert more == {301, 302, 303, 304}


def test_more_seeds_than_the_file_has_may_be_asked_for_and_not_fewer(tmp_path: Path) -> None:
    one = read(tmp_path, SMALL)
    usual = {run.seed for run in matrix.runs(one, quick=False)}
    assert {run.seed for run in matrix.runs(one, quick=False, at_least=7)} == set(range(1, 8))
    assert {run.seed for run in matrix.runs(one, quick=False, at_least=1)} == usual


def test_the_quick_set_has_fewer_points_and_seeds(tmp_path: Path) -> None:
    runs = list(matrix.runs(read(tmp_path, SMALL), quick=True))
    assert [(run.at["flows"], run.at["scheduler"]) for run in runs] == [(16, "rb"), (16, "minrtt")]


def test_plain_tcp_is_a_protocol_not_a_scheduler(tmp_path: Path) -> None:
    text = SMALL.replace('["rb", "minrtt"]', '["rb", "minrtt", "tcp"]')
    last = list(matrix.runs(read(tmp_path, text), quick=False))[-1]
    assert "--protocol tcp" in " ".join(last.arguments())
    assert "--scheduler" not in last.arguments()


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("seeds = 3", "seeds = 0", 8, "experiment one: seeds = 0: give a whole number from 1"),
        ("seeds = 3", "seeds = { first = 3 }", 8, "seeds: give count, such as count = 5, or until"),
        ("seeds = 3", 'seeds = { until = "x" }', 8, "seeds: until = 'x': give a share above 0"),
        ("seeds = 3", 'seeds = { until = "5%", at_most = 3 }', 8, "at_least must be 2 or more"),
        ("seeds = 3", 'seeds = { until = "5%", of = "fct" }', 8, "seeds: of = 'fct': give one of"),
        (
            'flag = "senders"\nvalues = [1, 16]',
            "points = [{ at = 1, full = true }]",
            12,
            "every point has full = true",
        ),
        ('name = "flows"', 'name = "seed"', 13, "name = 'seed' is a column of the result tables"),
        (
            'label = "Flows"\nflag = "senders"\nvalues = [1, 16]',
            "",
            12,
            "label is missing, and the file has no [[axis]] of this name",
        ),
        (
            "[[experiment]]",
            '[[axis]]\nname = "hops"\nlabel = "Hops"\nflag = "k"\nvalues = [4]\n[[experiment]]',
            6,
            "axis hops: no experiment names it; remove it",
        ),
        ('name = "flows"', 'name = "cpu_s"', 13, "name = 'cpu_s' is a column of the result tables"),
        ("seeds = 3", "", 6, "experiment one: seeds is missing"),
        (
            "seeds = 3",
            "seeds = { first = 0, count = 3 }",
            8,
            "first = 0: give a whole number from 1",
        ),
        ("seeds = 3", "seeds = { count = 0 }", 8, "count = 0: give a whole number from 1"),
        ("seeds = 3", 'seeds = { count = 3, until = "5%" }', 8, "until is not a key here"),
        ("seeds = 3", "seeds = 3\nsedes = 3", 9, "sedes is not a key here; did you mean seeds?"),
        (
            "flows = [16]",
            "flows = [8]",
            19,
            "flows = 8 is not a point of the axis; there are 1, 16",
        ),
        ("flows = [16]", "flow = [16]", 19, "flow is not a key here; did you mean flows?"),
        ('"fct_mean_ms"\nx', '"fct_m"\nx', 24, "plot fct: quantity = 'fct_m': give one of fct_"),
        (
            'x = "flows"',
            'models = ["fct_model_ms"]\nx = "scheduler"',
            25,
            "and an axis of numbers",
        ),
        (
            'x = "flows"',
            'models = ["fct_model_ms"]\nx = "flows"\nkind = "bars"',
            25,
            "models are lines: give kind",
        ),
        (
            'x = "flows"',
            'x = "flows"\nversus = "weft"',
            26,
            "plot fct: versus = 'weft' is no point of one's scheduler",
        ),
        (
            'x = "flows"',
            'x = "flows"\nmodels = ["fct_model_ms"]\nversus = "rb"',
            27,
            "versus: ratios are of means along x",
        ),
        (
            'x = "flows"',
            'models = ["fct_mean_ms"]',
            25,
            "plot fct: models: 'fct_mean_ms' is not one of fct_model_ms, ",
        ),
        (
            '{ scheduler = "rb" }',
            '{ sched = "rb" }',
            31,
            "claim 1: which: sched is not an axis of the",
        ),
        ('relation = "<="', 'relation = "<"', 33, "relation = '<': give one of <=, >="),
        ('versus = { scheduler = "minrtt" }', "", 27, "give either versus = {...} or limit ="),
        ("values = [1, 16]", "", 12, "give either flag and values, or points"),
        (
            "values = [1, 16]",
            'points = [{ at = 1, flags = { senders = "1" } }]',
            12,
            "give either flag and values, or points",
        ),
        ('setting = "one"', 'setting = "one"\ngrade = "D"', 5, "grade = 'D': give one of A, B, C"),
        ('setting = "one"', 'setting = "one"\ngrade = "B"', 5, "grade B: say what differs"),
        ('setting = "one"', 'setting = "one"\ndiffers = "x"', 5, "differs needs a grade: A, B, C"),
        (
            'source = "Fig. 1"',
            'source = "goal"\ngrade = "A"',
            30,
            "claim 1: a goal of one's own has no grade",
        ),
        (
            'x = "flows"',
            'x = "flows"\npaper = [{ at = 2, value = 1 }]',
            26,
            "plot fct: paper 1: at = 2 is no point of one",
        ),
        (
            'x = "flows"',
            'x = "flows"\npaper = [{ at = 1, series = 16, value = 1 }]',
            26,
            "plot fct: paper 1: series = 16 is no point of one's scheduler",
        ),
        (
            'x = "flows"',
            'x = "flows"\npaper = [{ at = 1, series = "weft", value = 1 }]',
            26,
            "plot fct: paper 1: series = 'weft' is no point of one",
        ),
        (
            'relation = "<="',
            'relation = "<="\ngrade = "A"\ndiffers = "x"',
            34,
            "claim 1: grade A: A is the paper's setting",
        ),
        ("values = [1, 16]", "values = [\n1,\n'']\nlabl = 1", 19, "labl is not a key here"),
        (
            "[[experiment]]",
            "[[experiment]",
            6,
            "not valid TOML: Expected ']]' at the end of an array",
        ),
        ('name = "one"', 'name = "two"\n[[experiment]]\nname = "two"', 6, "seeds is missing"),
    ],
)
def test_mistakes_are_named_with_their_line_and_what_is_allowed(
    tmp_path: Path, old: str, new: str, line: int, said: str
) -> None:
    assert old in SMALL
    with pytest.raises(ScenarioError) as raised:
        read(tmp_path, SMALL.replace(old, new, 1))
    assert f"x.toml:{line}: " in str(raised.value)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


FLOWS = 'label = "Flows"\nflag = "senders"\nvalues = [1, 16]\n'
SHARED = SMALL.replace(FLOWS, "").replace(
    "[[experiment]]", f'[[axis]]\nname = "flows"\n{FLOWS}[[experiment]]', 1
)
"""SMALL with its axis at the top of the file, and only named in the experiment."""


def test_an_axis_of_the_file_is_that_of_every_experiment_which_names_it(tmp_path: Path) -> None:
    again = SMALL[SMALL.index("[[experiment]]") : SMALL.index("[[plot]]")]
    again = again.replace('"one"', '"two"').replace(FLOWS, "")
    one = read(tmp_path, SHARED.replace("[[plot]]", f"{again}[[plot]]", 1))
    usual = read(tmp_path, SMALL).experiments[0].axes
    assert [experiment.axes for experiment in one.experiments] == [usual, usual]


def test_a_wrong_flag_of_an_axis_of_the_file_is_named_with_its_line_there(tmp_path: Path) -> None:
    weft = tmp_path / "weft"
    weft.write_text("#!/bin/sh\necho '--traffic --senders'\n")
    weft.chmod(0o755)
    one = read(tmp_path, SHARED.replace('"senders"', '"sender"'))
    with pytest.raises(ScenarioError) as raised:
        check.check([one], matrix.runs(one, quick=False), Installation(weft, "digest"))
    assert "x.toml:10: experiment one: `weft run` has no flag --sender;" in str(raised.value)


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("pattern", "x.toml:11: experiment one: pattern is now called traffic: traffic = ..."),
        ("trafic", "x.toml:11: experiment one: `weft run` has no flag --trafic; did you mean --tr"),
    ],
)
def test_flags_that_weft_run_lacks_are_named_with_their_line(
    tmp_path: Path, flag: str, said: str
) -> None:
    weft = tmp_path / "weft"
    weft.write_text("#!/bin/sh\necho '--traffic --senders --pattern-ttl'\n")
    weft.chmod(0o755)
    one = read(tmp_path, SMALL.replace("traffic = ", f"{flag} = "))
    with pytest.raises(ScenarioError) as raised:
        check.check([one], matrix.runs(one, quick=False), Installation(weft, "digest"))
    assert said in str(raised.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"y\.toml: no such file"):
        scenario_file.read_file(tmp_path / "y.toml")


def test_an_unknown_scenario_is_named_with_those_that_exist(tmp_path: Path) -> None:
    read(tmp_path, SMALL)
    with pytest.raises(ScenarioError, match="no scenario 'y'; there are x"):
        scenario_file.read("y", tmp_path)


@pytest.mark.parametrize("name", scenario_file.names())
def test_the_scenarios_that_are_shipped_are_sound(name: str) -> None:
    read_one = scenario_file.read(name)
    assert list(matrix.runs(read_one, quick=False))
    assert read_one.claims
    if read_one.source != "this repository":
        assert all(claim.grade or claim.source.startswith("goal") for claim in read_one.claims)
    assert read_one.plots


def test_the_whole_set_and_the_quick_set_fit_into_their_time() -> None:
    for quick, minutes in ((False, 30), (True, 5)):
        read_all = [scenario_file.read(name) for name in scenario_file.names()]
        runs = [run for one in read_all if not one.is_apart for run in matrix.runs(one, quick)]
        assert len({run.scenario for run in runs}) >= 5
        assert sum(run.seconds for run in matrix.distinct(runs)) / 2 <= 0.9 * minutes * 60


def test_the_reduced_figures_fit_into_their_time_and_the_full_ones_are_more() -> None:
    figures = [one for one in map(scenario_file.read, scenario_file.names()) if one.is_figure]
    assert any(one.is_apart for one in figures)
    runs = [run for one in figures for run in matrix.runs(one, quick=False)]
    full = [run for one in figures for run in matrix.runs(one, quick=False, full=True)]
    seconds = [sum(run.seconds for run in matrix.distinct(some)) for some in (runs, full)]
    assert seconds[0] / 2 <= 150 * 60
    assert seconds[1] > seconds[0]


def test_the_full_set_has_its_own_flags_seeds_and_time(tmp_path: Path) -> None:
    full = '[experiment.full]\nseeds = 7\nseconds = 60.0\nflags = { traffic = "mixed" }\n'
    one = read(tmp_path, SMALL.replace("[experiment.quick]", f"{full}[experiment.quick]"))
    runs = list(matrix.runs(one, quick=False, full=True))
    assert (len(runs), runs[0].seconds, runs[0].flags["traffic"]) == (2 * 2 * 7, 60.0, "mixed")
    assert len(list(matrix.runs(one, quick=False))) == 2 * 2 * 3


def test_points_that_are_only_in_the_full_set_are_left_out_of_the_others(tmp_path: Path) -> None:
    points = """points = [
        { at = 1, flags = { senders = 1 } },
        { at = 16, flags = { senders = 16 }, seconds = 3.0 },
        { at = 99, flags = { senders = 99 }, full = true },
    ]"""
    one = read(tmp_path, SMALL.replace('flag = "senders"\nvalues = [1, 16]', points))

    def seconds(quick: bool, full: bool) -> dict[object, float]:
        return {run.at["flows"]: run.seconds for run in matrix.runs(one, quick, full)}

    assert seconds(quick=False, full=False) == {1: 1.0, 16: 3.0}
    assert seconds(quick=True, full=False) == {16: 3.0}
    assert seconds(quick=False, full=True) == {1: 1.0, 16: 3.0, 99: 1.0}


def test_a_flag_that_takes_no_value_is_true(tmp_path: Path) -> None:
    one = read(tmp_path, SMALL.replace('{ traffic = "incast" }', "{ tell-sizes = true }"))
    words = next(iter(matrix.runs(one, quick=True))).arguments()
    after = words[words.index("--tell-sizes") + 1 :]
    assert not after or after[0].startswith("--")
    with pytest.raises(ScenarioError, match="flags of `weft run`"):
        read(tmp_path, SMALL.replace('{ traffic = "incast" }', "{ tell-sizes = false }"))


def test_a_scenario_of_which_every_run_has_failed_has_no_numbers_to_show(tmp_path: Path) -> None:
    its = scenario_file.read("rb-fig13")
    planned = [(run, "no lab") for run in matrix.runs(its, quick=True)]
    results.write(tmp_path, results.collect(its, [], planned, quick=True))
    measured = results.read(its, tmp_path)
    assert its.plots
    assert not any(tables.of_plot(its, plot, measured).rows for plot in its.plots)
