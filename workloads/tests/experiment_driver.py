# SPDX-License-Identifier: Apache-2.0
"""Conducts an experiment like `weft experiment`, with a fake `weft`."""

import subprocess
import sys
import time
from pathlib import Path

from small_scenario import SMALL, WRITES_A_RUN
from weft_scenarios.definition import scenario_file
from weft_scenarios.results import flows, results

CONDUCT = """
import sys
from pathlib import Path
from weft_scenarios import experiment
from weft_scenarios.definition import scenario_file
from weft_scenarios.runs import installation, matrix
from weft_scenarios.experiment import Experiment, Options
from weft_scenarios.runs.installation import Installation
folder, store = map(Path, sys.argv[1:3])
experiment.check = lambda *_: None  # The fake does not know flags.
installation.find = lambda: Installation(folder / "weft", "digest")
one = scenario_file.read_file(folder / "x.toml")
plan = Experiment(one, store / "out", list(matrix.runs(one, quick=False)))
cluster = (*sys.argv[3:], None)[0]
options = Options(quick=False, plan=False, jobs=1, store=store / "runs", cluster=cluster)
sys.exit(experiment.conduct([plan], options))
"""
"""`weft experiment x.toml --out STORE/out --store STORE/runs [--cluster ADDRESS]`."""

IMPATIENT = (
    f"import weft_scenarios.runs.store\nweft_scenarios.runs.store._LOCK_PATIENCE_S = 0.0\n{CONDUCT}"
)
"""The same, without waiting for another experiment to end."""

HEALTHY = WRITES_A_RUN.replace('"minrtt" in sys.argv', "False")
WAITS_AT_THE_FIFTH = HEALTHY.replace(
    "out.mkdir()\n",
    """\
here = pathlib.Path(__file__)
if len(here.with_name("log").read_text().splitlines()) >= 5:
    import os, signal, time
    def stop(number, frame):
        # Only once, as `weft` does: Dask's threads may ask again while they end.
        signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt
    signal.signal(signal.SIGINT, stop)
    try:
        started = open(here.with_name("started"), "x")
    except FileExistsError:
        started = None
    if started:
        (out.parent / f".{out.name}.lab").mkdir()
        try:
            print(os.getpid(), file=started, flush=True)
            time.sleep(60)
        except KeyboardInterrupt:
            here.with_name("stopped").touch()
            sys.exit(130)
out.mkdir()
""",
)
RUNS = 12
"""Runs of the small scenario."""


def install(folder: Path, script: str) -> None:
    """Put the scenario and a fake `weft` into a folder."""
    (folder / "x.toml").write_text(SMALL)
    (folder / "weft").write_text(script)
    (folder / "weft").chmod(0o755)


def start(
    folder: Path, store: Path, *cluster: str, script: str = CONDUCT
) -> "subprocess.Popen[str]":
    """Start the experiment."""
    command = [sys.executable, "-c", script, str(folder), str(store), *cluster]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def conduct(folder: Path, store: Path, *cluster: str) -> tuple[int, str]:
    """Run to the end; gives the exit code and the errors."""
    child = start(folder, store, *cluster)
    _, said = child.communicate(timeout=120)
    return child.returncode, said


def wait_for(path: Path, child: "subprocess.Popen[str]") -> str:
    """Wait until a file has content."""
    while not path.exists() or not path.read_text():
        assert child.poll() is None, child.communicate()
        time.sleep(0.02)
    return path.read_text()


def table(folder: Path, store: Path) -> tuple[int, str]:
    """Read the results; gives their number of runs, and their state."""
    found = results.read(scenario_file.read_file(folder / "x.toml"), store / "out")
    rows = flows.read(store / "out")
    assert rows["run"].n_unique() == len(found.runs)
    assert len(rows) == 2 * len(found.runs)
    return len(found.runs), found.about.state


def started(folder: Path) -> int:
    """Count the runs that were started."""
    return len((folder / "log").read_text().splitlines())
