"""How runs are done, kept, failed and interrupted, with a stand-in for `weft`.

The stand-in is a script that writes the folder of a run, so that these tests boot no lab.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from small import SMALL, read
from weft_scenarios import matrix
from weft_scenarios.installation import Installation
from weft_scenarios.matrix import Run
from weft_scenarios.runner import Outcome, Runner, Store

WRITES_A_RUN = """\
#!/usr/bin/env python3
import pathlib, sys
out = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])
with open(pathlib.Path(__file__).with_name("log"), "a") as log:
    log.write(" ".join(sys.argv[1:]) + "\\n")
if "16" in sys.argv and "minrtt" in sys.argv:
    sys.exit("weft: the kernel has no scheduler minrtt")
out.mkdir()
(out / "run.json").write_text('{"kernel": "Linux 7", "revision": "1"}')
(out / "flows.csv").write_text(
    "flow,src,dst,bytes,start_ns,fct_ns,subflows,timeouts,retransmissions,reinjected_bytes,error\\n"
    "0,h1_1,h2_1,1000,0,2000000,2,0,0,0,\\n"
    "1,h1_2,h2_1,1000,1000000,4000000,2,1,3,0,\\n")
(out / "queues.csv").write_text(
    "time_ns,switch,port,peer,queue_packets,queue_max_packets,tx_packets,tx_bytes,dropped_packets\\n"
    "1000000,leaf2,1,h2_1,5,9,90,90000,10\\n"
    "2000000,leaf2,1,h2_1,0,7,190,190000,10\\n")
"""

WAITS = """\
#!/usr/bin/env python3
import pathlib, sys, time
out = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])
(out.parent / f".{out.name}.lab").mkdir()
pathlib.Path(__file__).with_name("started").touch()
try:
    time.sleep(60)
except KeyboardInterrupt:
    pathlib.Path(__file__).with_name("stopped").touch()
    sys.exit(130)
"""


@pytest.fixture
def installed(tmp_path: Path) -> Callable[[str], Installation]:
    """Give an installation whose `weft` is a script."""

    def install(script: str) -> Installation:
        weft = tmp_path / "weft"
        weft.write_text(script)
        weft.chmod(0o755)
        return Installation(weft, "digest")

    return install


def runs_of(folder: Path) -> list[Run]:
    return list(matrix.runs(read(folder, SMALL), quick=False))


def run(installation: Installation, folder: Path, runs: list[Run]) -> Outcome:
    return Runner(installation, Store(folder / "store"), 2, lambda *_: None).run(runs)


def test_what_was_done_is_not_done_again(
    tmp_path: Path, installed: Callable[[str], Installation]
) -> None:
    installation = installed(WRITES_A_RUN)
    runs = [r for r in runs_of(tmp_path) if r.at["flows"] == 1]
    first = run(installation, tmp_path, runs[:4])
    second = run(installation, tmp_path, runs)
    assert len(first.done) == 4
    assert len(second.done) == 6
    assert len((tmp_path / "log").read_text().splitlines()) == 6


def test_a_run_is_known_by_its_flags_and_its_programs(tmp_path: Path) -> None:
    one, other = runs_of(tmp_path)[:2]
    before, after = Installation(tmp_path, "before"), Installation(tmp_path, "after")
    assert before.key(one) == before.key(one)
    assert len({before.key(one), before.key(other), after.key(one)}) == 3


def test_a_run_that_fails_is_told_and_the_others_are_done(
    tmp_path: Path, installed: Callable[[str], Installation]
) -> None:
    outcome = run(installed(WRITES_A_RUN), tmp_path, runs_of(tmp_path))
    assert len(outcome.done) == 9
    assert set(outcome.failed.values()) == {"weft: the kernel has no scheduler minrtt"}
    assert not list((tmp_path / "store").glob("*.partial*"))


def test_metrics_are_what_the_files_say(
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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_stops_the_labs_and_leaves_nothing(
    tmp_path: Path, installed: Callable[[str], Installation], number: int
) -> None:
    installed(WAITS)
    read(tmp_path, SMALL)
    program = f"""
import sys
from pathlib import Path
from weft_scenarios import matrix, scenario
from weft_scenarios.installation import Installation
from weft_scenarios.runner import InterruptedRunsError, Runner, Store
folder = Path({str(tmp_path)!r})
runs = list(matrix.runs(scenario.read("x", folder), False))
try:
    store = Store(folder / "store")
    Runner(Installation(folder / "weft", "d"), store, 1, lambda *_: None).run(runs)
except InterruptedRunsError:
    sys.exit(130)
"""
    child = subprocess.Popen([sys.executable, "-c", program], env={**os.environ})
    while not (tmp_path / "started").exists():
        assert child.poll() is None
        time.sleep(0.02)
    child.send_signal(number)
    assert child.wait(timeout=30) == 130
    assert (tmp_path / "stopped").exists()
    assert list((tmp_path / "store").iterdir()) == []
