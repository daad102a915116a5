# SPDX-License-Identifier: Apache-2.0
"""RESULTS.md and the page of each scenario."""

from pathlib import Path

import pytest
from small_scenario import SMALL, read
from weft_scenarios.definition.scenario import Scenario
from weft_scenarios.measures.metrics import Measured
from weft_scenarios.report import results_index
from weft_scenarios.results import results
from weft_scenarios.results.revisions import Programs
from weft_scenarios.runs import matrix


def measured(
    folder: Path, scenario: Scenario, fct_ms: float, full: bool = False, revision: str = "abc123"
) -> None:
    """Write results in which every run has this FCT."""
    done = [
        (run, Measured({"fct_mean_ms": fct_ms}, {}, "Linux 7", revision))
        for run in matrix.runs(scenario, quick=False)
    ]
    folder.mkdir(parents=True, exist_ok=True)
    results.write(folder, results.collect(scenario, done, [], quick=False, full=full))


def pages(folder: Path) -> dict[str, str]:
    """Every page by its name."""
    return {file.stem: file.read_text() for file in (folder / "results").glob("*.md")}


def test_a_picture_of_a_plot_that_is_gone_is_removed(tmp_path: Path) -> None:
    one, two = (read(tmp_path, SMALL, name) for name in ("one", "two"))
    runs, target = tmp_path / "runs", tmp_path / "RESULTS.md"
    for scenario in (one, two):
        measured(runs / scenario.name, scenario, 1.5)
    results_index.write([one, two], runs, target)
    pictures = {file.name for file in (tmp_path / "results").glob("*.svg")}
    assert pictures
    (tmp_path / "results" / "one-gone.svg").write_text("")
    (tmp_path / "results" / "kept.txt").write_text("")
    # Of a scenario that was not run here pictures stay, as its page does.
    results_index.write([one, two], tmp_path / "none", target)
    assert {file.name for file in (tmp_path / "results").glob("*.svg")} == pictures
    assert (tmp_path / "results" / "kept.txt").exists()


def test_scenarios_that_were_not_run_here_stay_as_they_were(tmp_path: Path) -> None:
    scenarios = [read(tmp_path, SMALL, name) for name in ("one", "two", "three")]
    elsewhere, here, target = tmp_path / "a", tmp_path / "b", tmp_path / "RESULTS.md"
    for name, fct_ms in (("one", 1.5), ("two", 2.5)):
        measured(elsewhere / name, scenarios[("one", "two").index(name)], fct_ms)
    written = results_index.write(scenarios, elsewhere, target)
    assert (written.kept, written.missing) == ([], ["three"])
    before = pages(tmp_path)
    assert set(before) == {"one", "two"}
    assert "Not run yet: three." in target.read_text()
    assert "on Linux 7, Weft abc123" in before["two"]

    measured(here / "two", scenarios[1], 7.5)
    measured(here / "three", scenarios[2], 8.5)
    written = results_index.write(scenarios, here, target)
    assert (written.kept, written.missing) == (["one"], [])
    after = pages(tmp_path)
    assert after["one"] == before["one"]
    assert "7.5" in after["two"]
    assert "2.5" not in after["two"]
    for name in ("one", "two", "three"):
        assert f"| [nowhere](results/{name}.md) | It is faster. |" in target.read_text()

    index = target.read_text()
    results_index.write(scenarios, here, target)
    assert pages(tmp_path) == after
    assert target.read_text() == index


def test_the_full_set_stands_beside_the_reduced_one(tmp_path: Path) -> None:
    scenario = read(tmp_path, SMALL, "one")
    measured(tmp_path / "one", scenario, 1.5)
    measured(tmp_path / "full" / "one", scenario, 9.5, full=True)
    results_index.write([scenario], tmp_path, tmp_path / "RESULTS.md")
    said = pages(tmp_path)
    assert set(said) == {"one", "one-full"}
    assert "9.5" in said["one-full"]
    assert "9.5" not in said["one"]
    index = (tmp_path / "RESULTS.md").read_text()
    assert "| [nowhere, at the paper's scale](results/one-full.md) |" in index
    assert (tmp_path / "results" / "one-full-fct.svg").exists()


def ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **revisions: Programs | None
) -> list[str]:
    """Give the ends of the rows of scenarios whose runs have these revisions and programs."""
    monkeypatch.setattr(results_index, "programs", revisions.get)
    scenarios = [read(tmp_path, SMALL, f"of-{revision}") for revision in revisions]
    for scenario, revision in zip(scenarios, revisions, strict=True):
        measured(tmp_path / scenario.name, scenario, 1.5, revision=revision)
    results_index.write(scenarios, tmp_path, tmp_path / "RESULTS.md")
    lines = (tmp_path / "RESULTS.md").read_text().splitlines()
    return [line.split(" | ")[-1] for line in lines if "](results/" in line]


def test_results_of_older_programs_are_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = Programs(1, True, "abc123"), Programs(2, True, "def456")
    found = ends(tmp_path, monkeypatch, abc123=one, def456=two, docs=two, gone=None)
    assert found == ["abc123 *stale* |", "def456 |", "docs |", "gone *stale* |"]


def test_of_two_builds_of_a_commit_the_one_with_changes_is_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clean, dirty = Programs(1, True, "abc"), Programs(1, False, "abc")
    assert ends(tmp_path, monkeypatch, abc=clean, dirty=dirty) == ["abc |", "dirty *stale* |"]


def test_nothing_is_stale_where_git_knows_no_revision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ends(tmp_path, monkeypatch, abc=None, other=None) == ["abc |", "other |"]


def test_what_is_no_papers_stands_apart(tmp_path: Path) -> None:
    own = SMALL.replace('source = "nowhere"', 'source = "this repository"')
    scenarios = [read(tmp_path, own, "mine"), read(tmp_path, SMALL, "theirs")]
    for scenario in scenarios:
        measured(tmp_path / scenario.name, scenario, 1.5)
    results_index.write(scenarios, tmp_path, tmp_path / "RESULTS.md")
    papers, _, own_part = (tmp_path / "RESULTS.md").read_text().partition("## Weft's own")
    assert "[nowhere](results/theirs.md)" in papers
    assert "[Small](results/mine.md)" in own_part
    assert "mine" not in papers


def test_the_grades_of_a_scenario_are_those_of_its_file_also_if_it_was_not_run_again(
    tmp_path: Path,
) -> None:
    target = tmp_path / "RESULTS.md"
    scenario = read(tmp_path, SMALL, "one")
    measured(tmp_path / "one", scenario, 1.5)
    results_index.write([scenario], tmp_path, target)
    assert "*Grade.*" not in pages(tmp_path)["one"]

    fidelity = 'setting = "one"\ngrade = "B"\ndiffers = "Two hosts instead of three."'
    graded = read(tmp_path, SMALL.replace('setting = "one"', fidelity), "one")
    for _ in range(2):
        results_index.write([graded], tmp_path / "nowhere", target)
        page = pages(tmp_path)["one"]
        assert page.count(" | B | **") == target.read_text().count(" | B | **") == 1
        assert page.count("*Grade.* B: Two hosts instead of three.") == 1


def test_a_goal_has_no_grade_and_a_claim_may_have_another_than_its_file(tmp_path: Path) -> None:
    fidelity = 'setting = "one"\ngrade = "B"\ndiffers = "Two hosts."'
    file = SMALL.replace('setting = "one"', fidelity)
    assert read(tmp_path, file, "one").claims[0].grade == "B"
    goal = file.replace('source = "Fig. 1"', 'source = "goal"')
    assert read(tmp_path, goal, "two").claims[0].grade == ""
    own = file.replace('source = "Fig. 1"', 'source = "Fig. 1"\ngrade = "A"')
    claim = read(tmp_path, own, "three").claims[0]
    assert (claim.grade, claim.differs) == ("A", "")


def test_results_of_claims_that_are_read_in_another_way_are_stale_and_stay(tmp_path: Path) -> None:
    target = tmp_path / "RESULTS.md"
    read_so = SMALL.replace('metric = "fct', 'reading = "at most as long."\nmetric = "fct')
    measured(tmp_path / "one", read(tmp_path, read_so, "one"), 1.5)
    results_index.write([read(tmp_path, read_so, "one")], tmp_path, target)
    assert "*stale*" not in target.read_text()
    for other in (
        read_so.replace("at most as long", "at most half as long"),
        read_so + SMALL[SMALL.index("[[claim]]") :].replace("faster", "slower"),
        read_so.replace("faster", "slower"),
    ):
        before = pages(tmp_path)
        results_index.write([read(tmp_path, other, "one")], tmp_path / "nowhere", target)
        assert "*stale*" in target.read_text()
        assert "It is faster. |" in target.read_text()
        assert pages(tmp_path) == before


def test_a_page_gives_the_papers_number_and_the_command_with_its_seeds(tmp_path: Path) -> None:
    numbered = SMALL.replace('source = "Fig. 1"', 'source = "Fig. 1"\npaper = "0.7 times"')
    scenario = read(tmp_path, numbered, "one")
    measured(tmp_path / "one", scenario, 1.5)
    fewer = read(tmp_path, numbered.replace("seeds = 3", "seeds = 2"), "one")
    results_index.write([scenario], tmp_path, tmp_path / "RESULTS.md")
    assert "| Fig. 1 | 0.7 times | 1 times |" in pages(tmp_path)["one"]
    assert "`make scenario SCENARIO=one` measures it" in pages(tmp_path)["one"]
    results_index.write([fewer], tmp_path, tmp_path / "RESULTS.md")
    assert "`make scenario SCENARIO=one SEEDS=3` measures it" in pages(tmp_path)["one"]
