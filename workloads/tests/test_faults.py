# SPDX-License-Identifier: Apache-2.0
"""Experiments survive faults: results stay readable, and the same command continues.

The faults are real: signals, a full file system, a `weft` that is killed. Only `weft` is a fake, so
that the tests need no lab.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import needs
import pytest
from experiment_driver import (
    CONDUCT,
    HEALTHY,
    IMPATIENT,
    RUNS,
    WAITS_AT_THE_FIFTH,
    conduct,
    install,
    start,
    started,
    table,
    wait_for,
)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_stops_the_lab_keeps_what_is_done_and_goes_on_there(
    tmp_path: Path, number: int
) -> None:
    install(tmp_path, WAITS_AT_THE_FIFTH)
    child = start(tmp_path, tmp_path)
    wait_for(tmp_path / "started", child)
    child.send_signal(number)
    shown, said = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "interrupted; all labs are stopped" in said
    assert f"4 of {RUNS} runs in" in shown
    assert (tmp_path / "stopped").exists()
    assert not list((tmp_path / "runs").glob("*.partial*"))
    assert table(tmp_path, tmp_path)[0] == 4
    assert table(tmp_path, tmp_path)[1].startswith("interrupted")
    assert conduct(tmp_path, tmp_path)[0] == 0
    assert table(tmp_path, tmp_path) == (RUNS, "complete")
    assert started(tmp_path) == RUNS + 1


def test_an_experiment_that_is_killed_takes_its_lab_along_and_can_be_resumed(
    tmp_path: Path,
) -> None:
    install(tmp_path, WAITS_AT_THE_FIFTH)
    child = start(tmp_path, tmp_path)
    lab = int(wait_for(tmp_path / "started", child))
    child.kill()
    child.communicate(timeout=60)
    for _ in range(500):
        if not os.path.exists(f"/proc/{lab}"):
            break
        time.sleep(0.02)
    assert (tmp_path / "stopped").exists()
    assert table(tmp_path, tmp_path)[1] == "running"
    assert conduct(tmp_path, tmp_path)[0] == 0
    assert table(tmp_path, tmp_path) == (RUNS, "complete")
    assert started(tmp_path) == RUNS + 1
    assert not list((tmp_path / "runs").glob("*.partial*"))


def test_an_experiment_that_is_resumed_does_not_empty_its_results(tmp_path: Path) -> None:
    install(tmp_path, WAITS_AT_THE_FIFTH)
    for _ in range(2):
        child = start(tmp_path, tmp_path)
        wait_for(tmp_path / "started", child)
        (tmp_path / "started").unlink()
        resumed = table(tmp_path, tmp_path)
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=60)
    assert resumed == (4, "running")


def test_the_same_experiment_twice_at_once_leaves_the_first_alone(tmp_path: Path) -> None:
    install(tmp_path, WAITS_AT_THE_FIFTH)
    first = start(tmp_path, tmp_path)
    wait_for(tmp_path / "started", first)
    written_ns = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()}
    second = start(tmp_path, tmp_path, script=IMPATIENT)
    _, said = second.communicate(timeout=60)
    assert second.returncode != 0
    assert "another experiment is running" in said
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()} == written_ns
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=60)
    assert conduct(tmp_path, tmp_path)[0] == 0


def test_a_guest_that_is_killed_costs_its_run_alone(tmp_path: Path) -> None:
    install(tmp_path, WAITS_AT_THE_FIFTH)
    child = start(tmp_path, tmp_path)
    os.kill(int(wait_for(tmp_path / "started", child)), signal.SIGKILL)
    _, said = child.communicate(timeout=60)
    assert child.returncode == 1
    assert "1 runs failed: weft was killed by SIGKILL" in said
    assert table(tmp_path, tmp_path)[0] == RUNS - 1
    assert len(list((tmp_path / "runs" / "failed").glob("*/run.log"))) == 1
    assert conduct(tmp_path, tmp_path)[0] == 0
    assert table(tmp_path, tmp_path) == (RUNS, "complete")


def test_a_run_removed_meanwhile_is_reported_with_the_missing_file(tmp_path: Path) -> None:
    removes_one = HEALTHY.replace(
        "out.mkdir()\n",
        """\
if len(pathlib.Path(__file__).with_name("log").read_text().splitlines()) == 4:
    import shutil
    shutil.rmtree(next(out.parent.glob("*/flows.csv")).parent)
out.mkdir()
""",
    )
    install(tmp_path, removes_one)
    status, said = conduct(tmp_path, tmp_path)
    assert status == 1
    assert "not written: No such file" in said
    assert "flows.csv" in said
    assert conduct(tmp_path, tmp_path)[0] == 0
    assert table(tmp_path, tmp_path) == (RUNS, "complete")


ON_A_SMALL_DISK = """
mount -t tmpfs -o size=64m none "$1" || exit 77
shift
head -c 61m /dev/zero >"$STORE/.others" || exit 77
"$@"; echo "status $?"
rm "$STORE/.others"
cp -r "$STORE" "$KEPT"
"$@"; echo "status $?"
cp -r "$STORE" "$KEPT.resumed"
"""


def test_a_full_disk_stops_the_experiment_and_its_results_stay_readable(tmp_path: Path) -> None:
    store = tmp_path / "disk"
    store.mkdir()
    fat = HEALTHY.replace(
        '(out / "run.json")', '(out / "fat").write_bytes(bytes(400_000))\n(out / "run.json")'
    )
    install(tmp_path, fat)
    command = [sys.executable, "-c", CONDUCT, str(tmp_path), str(store)]
    shell = ["unshare", "--map-root-user", "--mount", "sh", "-c", ON_A_SMALL_DISK, "sh"]
    environment = {**os.environ, "STORE": str(store), "KEPT": str(tmp_path / "kept")}
    done = subprocess.run(
        [*shell, str(store), *command], env=environment, capture_output=True, text=True, timeout=120
    )
    if done.returncode == 77 or "unshare failed" in done.stderr:
        needs.skip("namespaces", f"a test cannot mount here: {done.stderr.strip()}")
    assert [line for line in done.stdout.splitlines() if line.startswith("status")] == [
        "status 1",
        "status 0",
    ]
    assert "no space left on the disk" in done.stderr
    count, state = table(tmp_path, tmp_path / "kept")
    assert 0 < count < RUNS
    assert "no space left" in state
    assert table(tmp_path, tmp_path / "kept.resumed") == (RUNS, "complete")
    assert started(tmp_path) <= RUNS + 2
