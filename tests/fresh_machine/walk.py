# SPDX-License-Identifier: Apache-2.0
"""The steps in a bare system, with a line of output for each."""

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from fresh_machine import readme, root
from fresh_machine.plan import Machine
from fresh_machine.reasons import INSIDE

LAST_LINES = 60
"""Of a failed step's output."""

PR_SET_PDEATHSIG = 1


def in_namespaces(words: list[str]) -> int:
    """Run a program in mount and process namespaces of its own; return its exit status.

    They end with this process, and all mounts and processes in them, however it ends.
    """
    libc = ctypes.CDLL(None)

    def die_with_parent() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

    unshare = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    # Of a session of its own: Ctrl-C is for this process, which ends it in order.
    with subprocess.Popen(
        [*unshare, "--", *words], preexec_fn=die_with_parent, start_new_session=True
    ) as process:
        try:
            return process.wait()
        finally:
            end(process)


def end(unshare: subprocess.Popen[bytes]) -> None:
    """End all processes of the namespaces; when it returns, none of them writes any more.

    Killing `unshare` would not do: nobody would wait for the others. When process 1 of
    the namespace has ended, the kernel has ended and reaped all others (pid_namespaces(7)),
    and only then does `unshare`, which waits for it.
    """
    children = Path(f"/proc/{unshare.pid}/task/{unshare.pid}/children")
    while unshare.poll() is None:
        first = children.read_text().split()
        for process in first:
            os.kill(int(process), signal.SIGKILL)
        if not first:
            # It has made no process yet: it may be killed itself.
            unshare.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            unshare.wait(1)


def inside(folder: Path, machine: Machine, until: str | None, cache: Path | None) -> int:
    """Make the system in `folder` and take the steps; return the exit status."""
    log = root.log(folder)
    begin = time.monotonic()
    try:
        log.write_text(root.make(folder, machine))
        root.set_up(folder, machine, cache)
        root.mount(folder)
    except subprocess.CalledProcessError as error:
        log.write_text(error.stdout or "")
        return say_failed(machine, "a bare system", begin, log)
    say(machine, "a bare system", "made", begin)
    for step in readme.steps():
        begin = time.monotonic()
        if take(step, folder, machine, log):
            return say_failed(machine, step.name, begin, log)
        say(machine, step.name, "ok", begin)
        if step.name == until:
            break
    return 0


def take(step: readme.Step, folder: Path, machine: Machine, log: Path) -> int:
    """Type one command in the system; return its exit status."""
    command = step.command
    if machine.user == "root":
        # A minimal system has no sudo, and root needs none.
        command = command.replace("sudo ", "")
    place = machine.checkout if step.in_checkout else machine.home
    with log.open("w") as stream:
        return subprocess.run(
            ["/bin/bash", "-c", command],
            preexec_fn=root.entrance(folder, machine, place),
            env=root.environment(machine) | {INSIDE: machine.title},
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
        ).returncode


def say(machine: Machine, step: str, outcome: str, begin: float) -> None:
    """Print the line of a step."""
    where = f"{machine.title}, {machine.user}, {machine.checkout}"
    print(f"{where:48} {step:16} {outcome:8} {time.monotonic() - begin:5.0f} s", flush=True)


def say_failed(machine: Machine, step: str, begin: float, log: Path) -> int:
    """Print the line of a step that failed, and the end of its output; return 1.

    All of it is kept in `target/`, because the system goes.
    """
    say(machine, step, "FAILED", begin)
    kept = readme.REPOSITORY / "target" / f"fresh-debian-{machine.release}.log"
    kept.parent.mkdir(exist_ok=True)
    shutil.copyfile(log, kept)
    lines = log.read_text(errors="replace").splitlines()
    for line in lines[-LAST_LINES:]:
        print(f"    {line}")
    print(f"all of it: {kept}", flush=True)
    return 1
