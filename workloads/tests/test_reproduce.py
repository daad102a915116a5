# SPDX-License-Identifier: Apache-2.0
"""Repeating runs of a published page."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from experiment_driver import HEALTHY, conduct, install
from weft_scenarios import reproduce
from weft_scenarios.definition import scenario_file
from weft_scenarios.errors import ScenarioError
from weft_scenarios.report import results_index
from weft_scenarios.results import fingerprints
from weft_scenarios.results.revisions import Programs
from weft_scenarios.runs import installation, matrix
from weft_scenarios.runs.installation import Installation

NEWER = HEALTHY.replace('"revision": "1"', '"revision": "2"')
ONE_FLOW_MORE_FROM_16 = f"""{NEWER}
if "16" in sys.argv:
    with open(out / "flows.csv", "a") as file:
        file.write("2,h1_1,h2_1,1000,0,2000000,2,0,0,0,\\n")
"""
FAILS = '#!/usr/bin/env python3\nimport sys\nsys.exit("weft: no kernel")\n'


def index(folder: Path, runs: str = "runs") -> str:
    """Write the table of pages; gives the last cell of the row of the scenario."""
    scenario = scenario_file.read_file(folder / "x.toml")
    results_index.write([scenario], folder / runs, folder / "RESULTS.md")
    rows = (folder / "RESULTS.md").read_text().splitlines()
    return next(line for line in rows if "](results/x.md)" in line).split(" | ")[-1]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the small scenario with revision 1; gives the folder of its results, `runs/x`."""
    folder = tmp_path_factory.mktemp("measured")
    install(folder, HEALTHY)
    assert conduct(folder, folder / "store")[0] == 0
    (folder / "runs").mkdir()
    (folder / "store" / "out").rename(folder / "runs" / "x")
    return folder


@pytest.fixture
def published(measured: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the page of the small scenario; gives the folder of all."""
    folder = tmp_path / "published"
    shutil.copytree(measured, folder)
    one, two = Programs(1, True, "1"), Programs(2, True, "2")
    known = {"1": one, "2": two, "dirty": Programs(2, False, "2")}
    monkeypatch.setattr(results_index, "programs", known.get)
    monkeypatch.setattr(reproduce, "programs", known.get)
    monkeypatch.setattr(reproduce, "check", lambda *_: None)  # The fake does not know flags.
    monkeypatch.setattr(installation, "find", lambda: Installation(folder / "weft", "a1b2c3d4"))
    index(folder)
    return folder


def repeat(
    folder: Path, weft: str, count: int = 5, note: bool = False, others_may_differ: bool = False
) -> int:
    """Repeat runs of the page with this `weft`; gives the exit code."""
    (folder / "weft").write_text(weft)
    options = reproduce.Options(count, 2, False, note, others_may_differ)
    scenario = scenario_file.read_file(folder / "x.toml")
    return reproduce.reproduce(scenario, folder / "results", folder / "again", options)


def test_runs_that_give_the_same_flows_are_counted(
    published: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (published / "results" / "x.md").read_text()
    assert repeat(published, NEWER) == 0
    assert "5 of 5 runs gave the same flows as for x.md, byte for byte" in capsys.readouterr().out
    assert (published / "results" / "x.md").read_text() == page
    assert [file.name for file in (published / "again").iterdir()] == [".lock"]


def test_a_run_with_other_flows_is_named(
    published: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert repeat(published, ONE_FLOW_MORE_FROM_16, count=12, note=True) == 1
    said = capsys.readouterr().out
    assert "6 of 12 runs gave the same" in said
    others = [line for line in said.splitlines() if line.endswith("others")]
    assert len(others) == 6
    assert all("flows=16" in line for line in others)
    assert "Reproduced" not in (published / "results" / "x.md").read_text()


def test_other_flows_of_other_programs_may_be_no_failure(
    published: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert repeat(published, ONE_FLOW_MORE_FROM_16, count=12, others_may_differ=True) == 0
    assert "x.md was measured with other programs" in capsys.readouterr().out
    same = ONE_FLOW_MORE_FROM_16.replace('"revision": "2"', '"revision": "1"')
    assert repeat(published, same, count=12, others_may_differ=True) == 1
    newer_kernel = same.replace("Linux 7", "Linux 8")
    assert repeat(published, newer_kernel, count=12, others_may_differ=True) == 0


def test_a_run_that_fails_is_no_run_with_the_same_flows(
    published: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert repeat(published, FAILS) == 1
    said = capsys.readouterr().out
    assert "weft: no kernel" in said
    assert "0 of 5 runs" in said
    assert repeat(published, FAILS, others_may_differ=True) == 1


def test_a_page_whose_runs_newer_programs_repeat_is_not_stale(published: Path) -> None:
    page = published / "results" / "x.md"
    assert index(published) == "1 |"
    assert repeat(published, NEWER, note=True) == 0
    assert "*Reproduced.* 12 of these runs gave the same flows on Linux 7, Weft 2." in (
        page.read_text()
    )
    assert index(published, "nowhere") == "1, reproduced by 2 |"
    # Written again from the same runs, the page says so too. What is measured anew has other runs.
    assert index(published) == "1, reproduced by 2 |"
    table = published / "runs" / "x" / "runs.csv"
    fingerprints.write(table, dict.fromkeys(fingerprints.read(table), "0"))
    assert index(published) == "1 |"
    assert "Reproduced" not in page.read_text()


def test_pages_name_no_build_that_others_cannot_make(published: Path) -> None:
    dirty = NEWER.replace('"revision": "2"', '"revision": "dirty"')
    with pytest.raises(ScenarioError, match="Weft dirty: commit all changes"):
        repeat(published, dirty, note=True)


def test_an_older_page_begins_its_table_with_runs_of_its_own_programs(published: Path) -> None:
    table = published / "results" / "x.runs.csv"
    whole = fingerprints.read(table)
    table.unlink()
    with pytest.raises(ScenarioError, match=r"x\.runs\.csv: none yet: `make scenario"):
        repeat(published, HEALTHY)
    with pytest.raises(ScenarioError, match="weft: no kernel"):
        repeat(published, FAILS, note=True)
    with pytest.raises(ScenarioError, match="other programs than those of 2"):
        repeat(published, NEWER, note=True)
    assert repeat(published, HEALTHY, note=True) == 0
    assert fingerprints.read(table) == whole
    # From now on, its runs are those of the table.
    first = dict(list(whole.items())[:5])
    fingerprints.write(table, first)
    assert repeat(published, NEWER, note=True) == 0
    assert "5 of these runs" in (published / "results" / "x.md").read_text()


def test_runs_are_drawn_from_every_experiment_and_others_with_other_programs(
    published: Path,
) -> None:
    scenario = scenario_file.read_file(published / "x.toml")
    runs = list(matrix.runs(scenario, quick=False, at_least=25))
    other = [replace(run, experiment="other") for run in runs[:3]]
    drawn = reproduce.draw(runs + other, 10, 1)
    assert len({fingerprints.place(run) for run in drawn}) == len(drawn) == 10
    assert any(run.experiment == "other" for run in drawn)
    assert len(reproduce.draw(runs + other, 1, 1)) == 2
    assert drawn == reproduce.draw(runs + other, 10, 1)
    assert drawn != reproduce.draw(runs + other, 10, 2)
    assert len(reproduce.draw(runs, 1000, 7)) == 100


def test_a_page_that_is_not_there_or_none_is_one_clear_line(published: Path) -> None:
    (published / "results" / "x.md").unlink()
    with pytest.raises(ScenarioError, match=r"x\.md: no such page: `make scenario SCENARIO=x`"):
        repeat(published, NEWER)
    (published / "results" / "x.md").mkdir()
    with pytest.raises(ScenarioError, match=r"x\.md: no page of results: Is a directory"):
        repeat(published, NEWER)


def test_a_table_that_is_none_is_one_clear_line(tmp_path: Path) -> None:
    table = tmp_path / "x.runs.csv"
    for text in (
        "a,b\n1,2\n",
        "experiment,point,flows\none,x=1,12\n",
        "experiment,point,flows\nx\n",
    ):
        table.write_text(text)
        with pytest.raises(ScenarioError, match="no table of fingerprints"):
            fingerprints.read(table)
