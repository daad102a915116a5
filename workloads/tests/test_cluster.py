# SPDX-License-Identifier: Apache-2.0
"""An experiment on a Dask cluster of two workers, each with its own folder."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import distributed
import pytest
from experiment_driver import (
    HEALTHY,
    RUNS,
    WAITS_AT_THE_FIFTH,
    conduct,
    install,
    start,
    started,
    table,
    wait_for,
)

WORKER = """
import sys
from pathlib import Path
from weft_scenarios.runs import installation
from weft_scenarios.runs.installation import Installation
weft, digest = sys.argv.pop(1), sys.argv.pop(1)
installation.find = lambda: Installation(Path(weft), digest)
from distributed.cli.dask_worker import main
main()
"""
"""`dask worker ...` on a machine with the fake `weft`."""


class Cluster:
    """Dask's own scheduler, and its workers."""

    def __init__(self, folder: Path) -> None:
        """Start the scheduler."""
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        file = folder / "scheduler.json"
        self._start(
            ["-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"],
            ["--no-dashboard", "--scheduler-file", str(file)],
        )
        while not file.exists():
            assert self._processes[0].poll() is None
            time.sleep(0.05)
        self.address = json.loads(file.read_text())["address"]

    def worker(self, name: str, digest: str = "digest") -> "subprocess.Popen[bytes]":
        """Start a worker with its own folder."""
        return self._start(
            ["-c", WORKER, str(self._folder / "weft"), digest, self.address, "--no-nanny"],
            ["--no-dashboard", "--nthreads", "1", "--name", name],
            ["--local-directory", str(self._folder / name)],
        )

    def _start(self, *arguments: list[str]) -> "subprocess.Popen[bytes]":
        command = [sys.executable, *(word for some in arguments for word in some)]
        log = (self._folder / "dask.log").open("ab")
        process = subprocess.Popen(command, cwd=self._folder, stdout=log, stderr=log)
        self._processes.append(process)
        return process

    def stop(self) -> None:
        """Stop all processes."""
        for process in reversed(self._processes):
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Give a cluster without workers."""
    cluster = Cluster(tmp_path)
    yield cluster
    cluster.stop()


def wait_for_workers(cluster: Cluster, count: int) -> None:
    with distributed.Client(cluster.address) as client:
        client.wait_for_workers(count, timeout=120)


def test_runs_are_done_by_both_workers_and_their_results_come_back(
    tmp_path: Path, cluster: Cluster
) -> None:
    install(tmp_path, HEALTHY)
    for name in ("one", "two"):
        cluster.worker(name)
    wait_for_workers(cluster, 2)
    status, said = conduct(tmp_path, tmp_path / "mine", cluster.address)
    assert status == 0, said
    assert table(tmp_path, tmp_path / "mine") == (RUNS, "complete")
    outs = (tmp_path / "log").read_text()
    for name in ("one", "two"):
        assert f"--out {tmp_path / name}/" in outs
        assert not list((tmp_path / name).glob("*/worker-*/weft/*"))


def test_a_killed_worker_fails_only_its_run(tmp_path: Path, cluster: Cluster) -> None:
    install(tmp_path, WAITS_AT_THE_FIFTH)
    workers = {name: cluster.worker(name) for name in ("one", "two")}
    wait_for_workers(cluster, 2)
    child = start(tmp_path, tmp_path / "mine", cluster.address)
    lab = int(wait_for(tmp_path / "started", child))
    command = Path(f"/proc/{lab}/cmdline").read_text()
    (holder,) = [name for name in workers if f"{tmp_path / name}/" in command]
    workers[holder].kill()
    _, said = child.communicate(timeout=120)
    assert child.returncode == 0, said
    assert table(tmp_path, tmp_path / "mine") == (RUNS, "complete")
    assert started(tmp_path) == RUNS + 1
    assert (tmp_path / "stopped").exists(), "its lab went with it"


def test_an_interrupt_stops_the_labs_of_the_workers(tmp_path: Path, cluster: Cluster) -> None:
    install(tmp_path, WAITS_AT_THE_FIFTH)
    cluster.worker("one")
    wait_for_workers(cluster, 1)
    child = start(tmp_path, tmp_path / "mine", cluster.address)
    lab = int(wait_for(tmp_path / "started", child))
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=60)
    assert child.returncode == 130, said
    while os.path.exists(f"/proc/{lab}"):
        time.sleep(0.05)
    assert (tmp_path / "stopped").exists()
    assert started(tmp_path) == 5
    assert conduct(tmp_path, tmp_path / "mine", cluster.address)[0] == 0
    assert table(tmp_path, tmp_path / "mine") == (RUNS, "complete")
    assert started(tmp_path) == RUNS + 1


def test_a_worker_with_another_build_is_refused(tmp_path: Path, cluster: Cluster) -> None:
    install(tmp_path, HEALTHY)
    status, said = conduct(tmp_path, tmp_path / "mine", cluster.address)
    assert status != 0
    assert "it has no workers; start some with" in said
    cluster.worker("one", digest="another")
    wait_for_workers(cluster, 1)
    status, said = conduct(tmp_path, tmp_path / "mine", cluster.address)
    assert status != 0
    assert "what is built there differs from what is built here" in said
    assert not (tmp_path / "log").exists()
