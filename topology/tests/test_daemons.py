# SPDX-License-Identifier: Apache-2.0
"""How daemons are started, watched and stopped; the daemons are small shell scripts."""

import queue
import signal
import time
from pathlib import Path

import pytest
from weft_topology.daemons import Daemon, FileDaemon
from weft_topology.errors import StepError, UsageError


def daemon(folder: Path, script: str) -> FileDaemon:
    """Give a daemon that runs `script`, which has the ready file as $2."""
    program = folder / "program"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return FileDaemon("program", [str(program)], folder)


def nobody_ends(ended: Daemon, status: int) -> None:
    raise AssertionError(f"{ended.name} ended: {status}")


def test_start_returns_as_soon_as_the_daemon_is_ready(tmp_path: Path) -> None:
    started = daemon(tmp_path, 'sleep 0.2; : >"$2"; exec sleep 60')
    before = time.monotonic()
    started.start(nobody_ends)
    assert 0.2 <= time.monotonic() - before < 2
    assert started.pid is not None
    started.stop()
    assert started.pid is None


def test_one_that_ends_before_it_is_ready_is_a_failed_step_with_its_log(tmp_path: Path) -> None:
    with pytest.raises(StepError, match="program: ended with status 3") as failure:
        daemon(tmp_path, "echo no such pipeline; exit 3").start(nobody_ends)
    assert failure.value.report().splitlines()[-1] == "no such pipeline"


def test_one_that_never_gets_ready_is_a_failed_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weft_topology.daemons.READY_TIMEOUT_S", 0.1)
    stuck = daemon(tmp_path, "exec sleep 60")
    with pytest.raises(StepError, match="not ready within"):
        stuck.start(nobody_ends)
    assert stuck.pid is None


def test_the_ready_file_stays_and_says_nothing_of_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weft_topology.daemons.READY_TIMEOUT_S", 0.5)
    once = daemon(tmp_path, '[ -e "$0.ran" ] || : >"$2"; : >"$0.ran"; exec sleep 60')
    once.start(nobody_ends)
    assert (tmp_path / "program.ready").exists()
    once.stop()
    with pytest.raises(StepError, match="not ready within"):
        once.start(nobody_ends)


def test_a_program_that_is_not_there_is_a_failed_step(tmp_path: Path) -> None:
    missing = FileDaemon("weft-switch", [str(tmp_path / "weft-switch")], tmp_path)
    with pytest.raises(StepError, match="make build"):
        missing.start(nobody_ends)


def test_an_end_that_nobody_asked_for_is_told(tmp_path: Path) -> None:
    told: queue.SimpleQueue[int] = queue.SimpleQueue()
    daemon(tmp_path, ': >"$2"; sleep 0.1; exit 7').start(lambda _, status: told.put(status))
    assert told.get(timeout=5) == 7


def test_stop_and_start_again_is_no_unexpected_end(tmp_path: Path) -> None:
    restarted = daemon(tmp_path, ': >"$2"; exec sleep 60')
    restarted.start(nobody_ends)
    first = restarted.pid
    restarted.stop(signal.SIGKILL)
    restarted.start(nobody_ends)
    assert restarted.pid not in (None, first)
    with pytest.raises(UsageError, match="running already"):
        restarted.start(nobody_ends)
    restarted.stop()
