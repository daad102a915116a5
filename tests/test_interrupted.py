# SPDX-License-Identifier: Apache-2.0
"""A lab whose start is interrupted leaves nothing, and the next one starts."""

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from driver import Weft, processes_of

pytestmark = pytest.mark.lab

MOMENTS = 20
LEFT_S = 20


def start(weft: Weft, name: str) -> subprocess.Popen[bytes]:
    """Start a lab in a process group of its own, as a shell does."""
    return subprocess.Popen(
        weft.command("topo", "up", "--name", name),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        process_group=0,
    )


def left_of(name: str) -> list[str]:
    """Give the processes of a lab that are left after it had time to end."""
    end = time.monotonic() + LEFT_S
    while (left := processes_of(name)) and time.monotonic() < end:
        time.sleep(0.05)
    return left


def test_a_start_interrupted_at_any_moment_leaves_nothing_and_the_next_works(weft: Weft) -> None:
    name = f"interrupted{os.getpid()}"
    begin = time.monotonic()
    assert start(weft, name).wait() == 0
    whole_s = time.monotonic() - begin
    weft.run("topo", "down", "--name", name)

    moments = random.Random(1)
    for number in range(MOMENTS):
        after_s = moments.uniform(0, whole_s)
        how = (signal.SIGINT, signal.SIGKILL, signal.SIGTERM, signal.SIGHUP)[number % 4]
        starting = start(weft, name)
        time.sleep(after_s)
        if starting.poll() is None:
            os.killpg(starting.pid, how)
        what = f"{how.name} after {after_s:.2f} of {whole_s:.2f} s"
        if starting.wait() == 0:
            weft.run("topo", "down", "--name", name)
        mounts = Path("/proc/self/mountinfo").read_text()
        assert name not in mounts, what
        assert left_of(name) == [], what
        weft.run("topo", "up", "--name", name)
        weft.run("topo", "down", "--name", name)
        assert left_of(name) == [], what
