# SPDX-License-Identifier: Apache-2.0
"""Runs one lab: `weft run`, and `weft evidence` after it."""

import asyncio
import contextlib
import json
import os
import shlex
import shutil
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from weft_scenarios.measures import evidence
from weft_scenarios.errors import ScenarioError
from weft_scenarios.runs.installation import ROOT, Installation
from weft_scenarios.runs.run import Run

_PATIENCE_S = 20.0
"""How long an interrupted lab may take to stop before it is killed."""


class RunError(ScenarioError):
    """A program of a run failed; `said` is its complete output."""

    def __init__(self, why: str, said: str) -> None:
        super().__init__(why)
        self.said = said


@dataclass(frozen=True)
class Cost:
    """What a run cost its machine. Unlike results, it differs from time to time."""

    wall_s: float
    """Real time."""
    cpu_s: float | None = None
    """Processor time of all processes of the lab."""
    memory_bytes: int | None = None
    """Memory of the largest process, the guest."""


class Labs(Protocol):
    """A place that runs labs."""

    def slots(self, waiting: int) -> int:
        """Give how many of the waiting runs may start now."""
        ...

    async def do(self, run: Run, key: str, working: Path) -> Cost:
        """Run it into the folder `working`; gives its cost. Raises RunError."""
        ...

    async def close(self) -> None:
        """Leave nothing behind."""
        ...


class LocalLabs:
    """Labs on this machine, up to `jobs` in parallel."""

    def __init__(self, installed: Installation, jobs: int, inherited: Sequence[int] = ()) -> None:
        """Labs inherit the file descriptors `inherited`."""
        self._installed = installed
        self._jobs = jobs
        self._inherited = inherited
        self._children: set[asyncio.subprocess.Process] = set()

    def slots(self, waiting: int) -> int:
        """Give how many of the waiting runs may start now."""
        return min(self._jobs, waiting)

    async def do(self, run: Run, key: str, working: Path) -> Cost:
        """Run it into the folder `working`; gives its cost. Raises RunError."""
        start = time.monotonic()
        usage = working.with_name(f".{working.name}.usage")
        out = ["--out", str(working), "--usage", str(usage)]
        await self._weft([*run.arguments(), *out])
        if run.evidence:
            await self._weft(["evidence", "--packets", str(working)])
            (working / evidence.FOLDER / evidence.PACKETS).unlink(missing_ok=True)
            shutil.rmtree(working / evidence.CAPTURE, ignore_errors=True)
        return _cost(usage, time.monotonic() - start)

    async def close(self) -> None:
        """Do nothing: every run has waited for its lab to stop."""

    def interrupt(self) -> None:
        """Ask all labs to stop; may be called from another thread."""
        for child in list(self._children):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGINT)

    async def _weft(self, arguments: list[str]) -> None:
        # In its own session, so that Ctrl-C reaches only this process, which forwards it once.
        # If this process is killed, the kernel signals the lab (setpriv).
        command = [str(self._installed.weft), *arguments]
        child = await asyncio.create_subprocess_exec(
            "setpriv",
            "--pdeathsig",
            "INT",
            *command,
            cwd=ROOT,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            pass_fds=self._inherited,
            start_new_session=True,
        )
        self._children.add(child)
        try:
            printed, complained = await child.communicate()
        except asyncio.CancelledError:
            await _stop(child)
            raise
        finally:
            self._children.discard(child)
        if child.returncode != 0:
            said = [text.decode(errors="replace") for text in (complained, printed)]
            ended = _ending(child.returncode or 0)
            lines = [line.strip() for line in said[0].splitlines() if line.strip()]
            why = lines[0] if lines else f"weft {ended}"
            raise RunError(why, f"$ {shlex.join(command)}\n{''.join(said)}{ended}\n")


def _cost(usage: Path, wall_s: float) -> Cost:
    try:
        found = json.loads(usage.read_text())
        return Cost(wall_s, float(found["cpu_s"]), int(found["memory_bytes"]))
    except (OSError, ValueError, KeyError):
        return Cost(wall_s)
    finally:
        usage.unlink(missing_ok=True)


async def _stop(child: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        child.send_signal(signal.SIGINT)
    try:
        await asyncio.wait_for(child.wait(), _PATIENCE_S)
    finally:  # Also at a second request to stop.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)


def _ending(status: int) -> str:
    if status < 0:
        return f"was killed by {signal.Signals(-status).name}"
    return f"ended with status {status}"
