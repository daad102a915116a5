"""What an experiment leaves behind when something goes wrong in the middle.

The faults are real: signals, a file system without space, a `weft` that is killed. What runs
is a stand-in for `weft`, so that no lab is needed. After each fault the folder of results
reads, and the same command does what is missing.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from small import SMALL, WRITES_A_RUN
from weft_scenarios import flows, results, scenario

CONDUCT = """
import sys
from pathlib import Path
from weft_scenarios import experiment, installation, matrix, scenario
from weft_scenarios.experiment import Experiment, Options
from weft_scenarios.installation import Installation
folder, store = map(Path, sys.argv[1:])
experiment.check = lambda *_: None  # The stand-in knows no flags.
installation.find = lambda: Installation(folder / "weft", "digest")
one = scenario.read_file(folder / "x.toml")
plan = Experiment(one, store / "out", list(matrix.runs(one, quick=False)))
options = Options(quick=False, plan=False, jobs=1, store=store / "runs")
sys.exit(experiment.conduct([plan], options))
"""
"""`weft experiment x.toml --out STORE/out --store STORE/runs`, with the stand-in."""

WAITS_AT_THE_FIFTH = WRITES_A_RUN.replace(
    "out.mkdir()\n",
    """\
if len(pathlib.Path(__file__).with_name("log").read_text().splitlines()) == 5:
    (out.parent / f".{out.name}.lab").mkdir()
    pathlib.Path(__file__).with_name("started").write_text(str(__import__("os").getpid()))
    import time
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        pathlib.Path(__file__).with_name("stopped").touch()
        sys.exit(130)
out.mkdir()
""",
).replace('"minrtt" in sys.argv', "False")
HEALTHY = WRITES_A_RUN.replace('"minrtt" in sys.argv', "False")
RUNS = 12


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a folder with a scenario in it."""
    (tmp_path / "x.toml").write_text(SMALL)
    return tmp_path


def install(folder: Path, script: str) -> None:
    (folder / "weft").write_text(script)
    (folder / "weft").chmod(0o755)


def start(folder: Path, store: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", CONDUCT, str(folder), str(store)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def conduct(folder: Path, store: Path) -> tuple[int, str]:
    child = start(folder, store)
    _, said = child.communicate(timeout=120)
    return child.returncode, said


def wait_for(path: Path, child: "subprocess.Popen[str]") -> None:
    while not path.exists() or not path.read_text():
        assert child.poll() is None, child.communicate()
        time.sleep(0.02)


def table(folder: Path, store: Path) -> tuple[int, str]:
    """Read the results as a user does; gives the number of runs in them, and the state."""
    found = results.read(scenario.read_file(folder / "x.toml"), store / "out")
    rows = flows.read(store / "out")
    assert rows["run"].n_unique() == len(found.runs)
    assert len(rows) == 2 * len(found.runs)
    return len(found.runs), found.about.state


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_stops_the_lab_keeps_what_is_done_and_goes_on_there(
    folder: Path, number: int
) -> None:
    install(folder, WAITS_AT_THE_FIFTH)
    child = start(folder, folder)
    wait_for(folder / "started", child)
    child.send_signal(number)
    _, said = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "interrupted; all labs are stopped" in said
    assert (folder / "stopped").exists()
    assert not list((folder / "runs").glob("*.partial*"))
    assert table(folder, folder)[0] == 4
    assert table(folder, folder)[1].startswith("interrupted")
    assert conduct(folder, folder)[0] == 0
    assert table(folder, folder) == (RUNS, "complete")
    assert len((folder / "log").read_text().splitlines()) == RUNS + 1


def test_an_experiment_that_is_killed_takes_its_lab_along_and_can_be_resumed(folder: Path) -> None:
    install(folder, WAITS_AT_THE_FIFTH)
    child = start(folder, folder)
    wait_for(folder / "started", child)
    child.kill()
    child.communicate(timeout=60)
    lab = int((folder / "started").read_text())
    for _ in range(500):
        if not os.path.exists(f"/proc/{lab}"):
            break
        time.sleep(0.02)
    assert (folder / "stopped").exists()
    assert table(folder, folder)[1] == "running"
    assert conduct(folder, folder)[0] == 0
    assert table(folder, folder) == (RUNS, "complete")
    assert len((folder / "log").read_text().splitlines()) == RUNS + 1
    assert not list((folder / "runs").glob("*.partial*"))


def test_a_guest_that_is_killed_costs_its_run_alone(folder: Path) -> None:
    install(folder, WAITS_AT_THE_FIFTH)
    child = start(folder, folder)
    wait_for(folder / "started", child)
    os.kill(int((folder / "started").read_text()), signal.SIGKILL)
    _, said = child.communicate(timeout=60)
    assert child.returncode == 1
    assert "1 runs failed: weft was killed by SIGKILL" in said
    assert table(folder, folder)[0] == RUNS - 1
    assert len(list((folder / "runs" / "failed").glob("*/run.log"))) == 1
    assert conduct(folder, folder)[0] == 0
    assert table(folder, folder) == (RUNS, "complete")


ON_A_SMALL_DISK = """
mount -t tmpfs -o size=3m none "$1" || exit 77
shift
"$@"; echo "status $?"
cp -r "$STORE" "$KEPT"
mount -o remount,size=100m "$STORE"
"$@"; echo "status $?"
cp -r "$STORE" "$KEPT.resumed"
"""


def test_a_full_disk_stops_the_experiment_and_what_is_there_reads(folder: Path) -> None:
    store = folder / "disk"
    store.mkdir()
    fat = HEALTHY.replace(
        '(out / "run.json")', '(out / "fat").write_bytes(bytes(400_000))\n(out / "run.json")'
    )
    install(folder, fat)
    command = [sys.executable, "-c", CONDUCT, str(folder), str(store)]
    shell = ["unshare", "--map-root-user", "--mount", "sh", "-c", ON_A_SMALL_DISK, "sh"]
    environment = {**os.environ, "STORE": str(store), "KEPT": str(folder / "kept")}
    done = subprocess.run(
        [*shell, str(store), *command], env=environment, capture_output=True, text=True, timeout=120
    )
    if done.returncode == 77 or "unshare failed" in done.stderr:
        pytest.skip(f"no disk of its own here: {done.stderr.strip()}")
    assert [line for line in done.stdout.splitlines() if line.startswith("status")] == [
        "status 1",
        "status 0",
    ]
    assert "no space left on the disk" in done.stderr
    count, state = table(folder, folder / "kept")
    assert 0 < count < RUNS
    assert "no space left" in state
    assert table(folder, folder / "kept.resumed") == (RUNS, "complete")
    assert len((folder / "log").read_text().splitlines()) <= RUNS + 2
