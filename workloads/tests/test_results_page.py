# SPDX-License-Identifier: Apache-2.0
"""RESULTS.md keeps sections of scenarios that were not run again."""

from pathlib import Path

from small_scenario import SMALL, read
from weft_scenarios import matrix, results, results_page
from weft_scenarios.metrics import Measured
from weft_scenarios.scenario import Scenario


def measured(folder: Path, scenario: Scenario, fct_ms: float, full: bool = False) -> None:
    """Write results in which every run has this FCT."""
    done = [
        (run, Measured({"fct_mean_ms": fct_ms}, {}, "Linux 7", "abc123"))
        for run in matrix.runs(scenario, quick=False)
    ]
    folder.mkdir(parents=True, exist_ok=True)
    results.write(folder, results.collect(scenario, done, [], quick=False, full=full))


def test_scenarios_that_were_not_run_here_stay_as_they_were(tmp_path: Path) -> None:
    scenarios = [read(tmp_path, SMALL, name) for name in ("one", "two", "three")]
    elsewhere, here, target = tmp_path / "a", tmp_path / "b", tmp_path / "RESULTS.md"
    for name, fct_ms in (("one", 1.5), ("two", 2.5)):
        measured(elsewhere / name, scenarios[("one", "two").index(name)], fct_ms)
    written = results_page.write(scenarios, elsewhere, target)
    assert (written.kept, written.missing) == ([], ["three"])
    before = results_page.entries(target.read_text())
    assert list(before) == ["one", "two"]
    assert "Not run yet: three." in target.read_text()
    assert "on Linux 7, Weft abc123" in before["two"].section

    measured(here / "two", scenarios[1], 7.5)
    measured(here / "three", scenarios[2], 8.5)
    written = results_page.write(scenarios, here, target)
    assert (written.kept, written.missing) == (["one"], [])
    after = results_page.entries(target.read_text())
    assert after["one"] == before["one"]
    assert "7.5" in after["two"].section
    assert "2.5" not in after["two"].section
    assert [len(entry.claims) for entry in after.values()] == [1, 1, 1]

    results_page.write(scenarios, here, target)
    assert results_page.entries(target.read_text()) == after


def test_the_full_set_stands_beside_the_reduced_one(tmp_path: Path) -> None:
    scenario = read(tmp_path, SMALL, "one")
    measured(tmp_path / "one", scenario, 1.5)
    measured(tmp_path / "full" / "one", scenario, 9.5, full=True)
    results_page.write([scenario], tmp_path, tmp_path / "RESULTS.md")
    said = results_page.entries((tmp_path / "RESULTS.md").read_text())
    assert list(said) == ["one", "one-full"]
    assert "9.5" in said["one-full"].section
    assert "9.5" not in said["one"].section
    assert said["one-full"].claims[0].startswith("| [one-full](#one-full) |")
    assert (tmp_path / "results" / "one-full-fct.svg").exists()


def test_the_grades_of_a_scenario_are_those_of_its_file_also_if_it_was_not_run_again(
    tmp_path: Path,
) -> None:
    target = tmp_path / "RESULTS.md"
    scenario = read(tmp_path, SMALL, "one")
    measured(tmp_path / "one", scenario, 1.5)
    results_page.write([scenario], tmp_path, target)
    assert "*Grade.*" not in target.read_text()

    fidelity = 'setting = "one"\ngrade = "B"\ndiffers = "Two hosts instead of three."'
    graded = read(tmp_path, SMALL.replace('setting = "one"', fidelity), "one")
    for _ in range(2):
        results_page.write([graded], tmp_path / "nowhere", target)
        (entry,) = results_page.entries(target.read_text()).values()
        assert " | B | **" in entry.claims[0]
        assert entry.section.count("*Grade.* B: Two hosts instead of three.") == 1


def test_a_goal_has_no_grade_and_a_claim_may_have_another_than_its_file(tmp_path: Path) -> None:
    fidelity = 'setting = "one"\ngrade = "B"\ndiffers = "Two hosts."'
    file = SMALL.replace('setting = "one"', fidelity)
    assert read(tmp_path, file, "one").claims[0].grade == "B"
    goal = file.replace('source = "Fig. 1"', 'source = "goal"')
    assert read(tmp_path, goal, "two").claims[0].grade == ""
    own = file.replace('source = "Fig. 1"', 'source = "Fig. 1"\ngrade = "A"')
    claim = read(tmp_path, own, "three").claims[0]
    assert (claim.grade, claim.differs) == ("A", "")
