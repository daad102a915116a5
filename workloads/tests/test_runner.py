# SPDX-License-Identifier: Apache-2.0
"""Runs are done, kept, retried and interrupted, with a fake `weft`.

The fake is a script that writes the folder of a run, so that these tests boot no lab.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from small_scenario import SMALL, WRITES_A_RUN, read
from weft_scenarios.errors import ScenarioError
from weft_scenarios.runs import matrix, store
from weft_scenarios.runs.installation import Installation
from weft_scenarios.runs.run import Run
from weft_scenarios.runs.runner import Outcome, Runner
from weft_scenarios.runs.store import Store


@pytest.fixture
def installed(tmp_path: Path) -> Callable[[str], Installation]:
    """Give an installation whose `weft` is a script."""

    def install(script: str) -> Installation:
        weft = tmp_path / "weft"
        weft.write_text(script)
        weft.chmod(0o755)
        return Installation(weft, "digest")

    return install


def runs_of(folder: Path, text: str = SMALL) -> list[Run]:
    return list(matrix.runs(read(folder, text), quick=False))


def run(installation: Installation, folder: Path, runs: list[Run]) -> Outcome:
    return Runner(installation, Store(folder / "store"), 2, lambda *_: None).run(runs)


def test_finished_runs_are_not_repeated(
    tmp_path: Path, installed: Callable[[str], Installation]
) -> None:
    installation = installed(WRITES_A_RUN)
    runs = [r for r in runs_of(tmp_path) if r.at["flows"] == 1]
    first = run(installation, tmp_path, runs[:4])
    second = run(installation, tmp_path, runs)
    assert len(first.done) == 4
    assert len(second.done) == 6
    assert len((tmp_path / "log").read_text().splitlines()) == 6


def test_all_points_get_a_seed_before_any_gets_another(
    tmp_path: Path, installed: Callable[[str], Installation]
) -> None:
    runs = runs_of(tmp_path)
    Runner(installed(WRITES_A_RUN), Store(tmp_path / "store"), 1, lambda *_: None).run(runs)
    begun = (tmp_path / "log").read_text().splitlines()
    seeds = [line.split()[line.split().index("--seed") + 1] for line in begun]
    assert seeds == ["1"] * 4 + ["2"] * 4 + ["3"] * 4


def test_flags_and_programs_identify_a_run(tmp_path: Path) -> None:
    one, other = runs_of(tmp_path)[:2]
    before, after = Installation(tmp_path, "before"), Installation(tmp_path, "after")
    assert before.key(one) == before.key(one)
    assert len({before.key(one), before.key(other), after.key(one)}) == 3


def test_the_content_of_input_files_identifies_a_run(tmp_path: Path) -> None:
    def key(folder: str, sizes: str) -> str:
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "mine.csv").write_text(sizes)
        text = SMALL.replace('traffic = "incast"', 'workload = "mine.csv"')
        run = runs_of(tmp_path / folder, text)[0]
        assert run.flags["workload"] == str(tmp_path / folder / "mine.csv")
        return Installation(tmp_path, "digest").key(run)

    assert key("here", "100,1.0\n") == key("there", "100,1.0\n")
    assert key("here", "100,1.0\n") != key("here", "200,1.0\n")


def test_a_run_that_fails_leaves_its_log_and_the_others_are_done(
    tmp_path: Path, installed: Callable[[str], Installation]
) -> None:
    outcome = run(installed(WRITES_A_RUN), tmp_path, runs_of(tmp_path))
    assert len(outcome.done) == 9
    assert {f.why for f in outcome.failed.values()} == {"weft: the kernel has no scheduler minrtt"}
    assert len(outcome.failed) == 3
    for failed in outcome.failed.values():
        assert failed.log
        said = failed.log.read_text()
        assert said.startswith("$ ")
        assert "--scheduler minrtt" in said
        assert "ended with status 1" in said
    assert not list((tmp_path / "store").glob("*.partial*"))


def test_a_run_that_failed_is_tried_again_and_then_has_no_log(
    tmp_path: Path, installed: Callable[[str], Installation]
) -> None:
    run(installed(WRITES_A_RUN), tmp_path, runs_of(tmp_path))
    healed = WRITES_A_RUN.replace('"minrtt" in sys.argv', "False")
    outcome = run(installed(healed), tmp_path, runs_of(tmp_path))
    assert (len(outcome.done), outcome.failed) == (12, {})
    assert list((tmp_path / "store" / "failed").iterdir()) == []


def test_two_experiments_do_not_write_the_same_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "_LOCK_PATIENCE_S", 0.0)
    with (
        Store(tmp_path).locked(),
        pytest.raises(ScenarioError, match="another experiment is running"),
        Store(tmp_path).locked(),
    ):
        pass


def test_metrics_are_computed_from_the_files_of_a_run(
    tmp_path: Path, installed: Callable[[str], Installation]
) -> None:
    outcome = run(installed(WRITES_A_RUN), tmp_path, runs_of(tmp_path)[:1])
    (measured,) = outcome.done.values()
    assert measured.metrics["fct_mean_ms"] == 3
    assert measured.metrics["completion_ms"] == 5
    assert measured.metrics["goodput_mbps"] == pytest.approx(2000 * 8 / 5e-3 / 1e6)
    assert measured.metrics["timeouts_per_flow"] == 0.5
    # Counters are cumulative: 10 of 200.
    assert measured.metrics["loss_percent"] == pytest.approx(5)
    assert measured.metrics["queue_max_packets"] == 9


def test_the_cost_of_a_run_is_kept_with_its_metrics(
    tmp_path: Path, installed: Callable[[str], Installation], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = runs_of(tmp_path)[:1]
    outcome = run(installed(WRITES_A_RUN), tmp_path, runs)
    monkeypatch.setattr(store, "code", lambda: "other code, so that it is measured again")
    again = run(installed(WRITES_A_RUN), tmp_path, runs)
    for (measured,) in (outcome.done.values(), again.done.values()):
        assert measured.numbers()["cpu_s"] == 1.5
        assert measured.numbers()["memory_mb"] == 3
        assert measured.wall_s
        assert "cpu_s" not in measured.metrics
    assert not list((tmp_path / "store").glob(".*usage*"))
    assert len((tmp_path / "log").read_text().splitlines()) == 1


def test_what_is_left_is_estimated_from_what_runs_took_here(
    tmp_path: Path, installed: Callable[[str], Installation]
) -> None:
    script = WRITES_A_RUN.replace('"minrtt" in sys.argv', "False")
    said: list[tuple[int, int, float]] = []
    runner = Runner(installed(script), Store(tmp_path / "store"), 1, lambda *now: said.append(now))
    runs = [run for run in runs_of(tmp_path) if run.at["flows"] == 1]
    took_s = [done.wall_s or 0.0 for done in runner.run(runs).done.values()]
    planned_s = sum(run.seconds for run in runs)
    assert said[0] == (0, 6, planned_s)
    assert said[5][:2] == (5, 6)
    assert said[5][2] == pytest.approx(sum(took_s[:5]) / 5)
    assert said[6] == (6, 6, 0)


def test_a_run_that_failed_does_not_count_as_a_fast_one(
    tmp_path: Path, installed: Callable[[str], Installation]
) -> None:
    said: list[float] = []
    store = Store(tmp_path / "store")
    runs = [run for run in runs_of(tmp_path) if run.at["flows"] == 16]
    failing = [run for run in runs if run.at["scheduler"] == "minrtt"]
    Runner(installed(WRITES_A_RUN), store, 1, lambda *now: said.append(now[2])).run(failing)
    assert said == [3.0, 2.0, 1.0, 0.0]
