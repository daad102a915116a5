# SPDX-License-Identifier: Apache-2.0
"""From `lab.json` to a network that is ready, and back to nothing.

In the folder of `lab.json` it writes `topology.json`, the daemons' logs in `log/`, a line
to `steps` for each finished step, and `ready` (JSON: virtual time of each step) when
everything is; or `failed`: in the first line which step failed and why, then the end of
its log.
"""

import json
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from weft_topology import document, netlink, priorities, processes, spec, topos, wires
from weft_topology.daemons import Daemon
from weft_topology.emulation import WeftNet
from weft_topology.errors import StepError, UsageError
from weft_topology.shell import Daemons, Server

_SETTLED_NS = 100_000_000
"""Daemons start at a whole multiple of this. What the network has left to the kernel, grace
periods of RCU above all, has ended by then. How long that takes depends on how many files Python
looked for, so without the wait a run would differ by a tick between installations."""

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class _Terminated(BaseException):
    """A signal asked the network to stop."""


def run(lab: Path) -> int:
    """Build and run the network until SIGTERM or SIGINT; the exit status."""
    rundir = lab.resolve().parent
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _terminate)
    os.environ["PATH"] = _PATH
    # Only who leads a session can have a terminal, as the Mininet prompt will.
    with suppress(PermissionError):
        os.setsid()
    try:
        _run(spec.read_lab(lab), rundir)
    except _Terminated:
        return 0
    except UsageError as error:
        return _failed(rundir, str(error), 2)
    except StepError as error:
        return _failed(rundir, error.report())
    except OSError as error:
        return _failed(rundir, f"network: {error}")
    return 0


def _run(lab: spec.LabSpec, rundir: Path) -> None:
    steps = Steps(rundir)
    topo = topos.of(lab.topology)
    fabric = document.of_topo(topo)
    net = WeftNet(topo, wired=lab.bmv2 is not None, timer_slack_ns=lab.timer_slack_ns)
    daemons = Daemons(
        processes.of_lab(lab, rundir, fabric),
        lambda daemon, status: _lost(rundir, daemon, status),
    )
    try:
        net.build()
        document.write(fabric, rundir / "topology.json")
        net.start()
        if topo.priorities:
            priorities.begin(topo.priorities)
        _delay_control(lab.control_delay_ns)
        _settle()
        steps.done("network")
        for name in daemons.names():
            daemons.act("start", name)
            steps.done(name)
        server = Server(net, daemons)
        document.write_whole(rundir / "ready", json.dumps({"steps_ns": steps.times_ns}) + "\n")
        server.serve_forever()
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        daemons.stop()
        net.stop()


def _delay_control(delay_ns: int) -> None:
    """Delay the root namespace's loopback, which carries the control network and nothing else."""
    with netlink.Netlink() as socket:
        wires.impair(socket, "lo", delay_ns)


def _settle() -> None:
    """Sleep until everything has come to rest, to the nanosecond in virtual time."""
    slack_ns = Path("/proc/self/timerslack_ns")
    slack_ns.write_text("1")  # The default, 50 us, depends on what else wakes up then.
    time.sleep((_SETTLED_NS - time.monotonic_ns() % _SETTLED_NS) / 1e9)
    slack_ns.write_text("0")  # The default, which the daemons inherit.


class Steps:
    """What is done, told to the launcher as it happens."""

    def __init__(self, rundir: Path) -> None:
        """Writes to `steps` in that folder."""
        self._path = rundir / "steps"
        self.times_ns: dict[str, int] = {}

    def done(self, name: str) -> None:
        """Note that a step is done."""
        self.times_ns[name] = time.monotonic_ns()
        with self._path.open("a") as steps:
            steps.write(f"{name}\n")


def _lost(rundir: Path, daemon: Daemon, status: int) -> None:
    """Report a daemon that ended without being asked to."""
    _failed(rundir, daemon.explain(status).report())


def _failed(rundir: Path, report: str, status: int = 1) -> int:
    """Write a failure to the file that the launcher reads, and to standard error."""
    print(report, file=sys.stderr)
    document.write_whole(rundir / "failed", report + "\n")
    return status


def _terminate(*_: object) -> None:
    raise _Terminated
