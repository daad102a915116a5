"""Runs labs, several at a time, and keeps what they gave.

What is in the store is not run again. A run that fails is reported, leaves its log, and
leaves the others alone. After an interrupt, or when the disk is full, every lab is asked to
stop, as Ctrl-C does; what was finished is kept, and the same command goes on from there.
"""

import asyncio
import contextlib
import errno
import os
import shlex
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from weft_scenarios import evidence
from weft_scenarios.errors import ScenarioError
from weft_scenarios.files import is_disk_full
from weft_scenarios.installation import ROOT, Installation
from weft_scenarios.matrix import Run
from weft_scenarios.metrics import Measured, measure
from weft_scenarios.store import Store

_PATIENCE_S = 20.0
"""How long an interrupted lab may take to stop before it is killed."""
_LEAST_FREE_BYTES = 1 << 20
"""With less, whatever a run fails of, the disk is full."""


@dataclass(frozen=True)
class Failed:
    """A run that gave nothing."""

    why: str
    """One line."""
    log: Path | None = None
    """Everything it said."""


@dataclass
class Outcome:
    """What became of some runs, by key."""

    done: dict[str, Measured] = field(default_factory=dict)
    failed: dict[str, Failed] = field(default_factory=dict)
    stopped: str = ""
    """Why not all runs were done: one line, or nothing."""
    is_interrupted: bool = False
    """Whether somebody asked to stop."""


class DiskFullError(Exception):
    """There is no room for results."""


class RunError(ScenarioError):
    """A program of a run failed; `said` is all that it said."""

    def __init__(self, why: str, said: str) -> None:
        super().__init__(why)
        self.said = said


@dataclass
class Runner:
    """Runs what is not there yet, `jobs` at a time."""

    installation: Installation
    store: Store
    jobs: int
    progress: Callable[[int, int, float], None]
    """Told how many of how many runs ended, and how many seconds of work are left."""
    checkpoint: Callable[[Outcome], None] = lambda _: None
    """Called after every run with what is there by then."""

    def run(self, runs: Sequence[Run]) -> Outcome:
        """Do all runs, or as many as can be done."""
        with self.store.locked():
            return asyncio.run(self._run(runs))

    async def _run(self, runs: Sequence[Run]) -> Outcome:
        outcome = Outcome()
        todo: dict[str, Run] = {}
        for run in runs:
            key = self.installation.key(run)
            found = self.store.find(key)
            if found:
                outcome.done[key] = found
            else:
                todo[key] = run
        work = asyncio.ensure_future(self._all(todo, outcome))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, work.cancel)
        try:
            await work
        except asyncio.CancelledError:
            outcome.stopped = "interrupted; all labs are stopped, what is done is kept"
            outcome.is_interrupted = True
        except DiskFullError:
            outcome.stopped = (
                f"no space left on the disk of {self.store.folder}; what is done is kept: make "
                "room, and run the same command again"
            )
        return outcome

    async def _all(self, todo: dict[str, Run], outcome: Outcome) -> None:
        # The longest first, so that at the end no CPU waits for another.
        waiting = sorted(todo.items(), key=lambda item: item[1].seconds)
        left = sum(run.seconds for run in todo.values())
        self.progress(0, len(todo), left)
        ended = 0

        async def worker() -> None:
            nonlocal left, ended
            while waiting:
                key, run = waiting.pop()
                await self._settle(key, run, outcome)
                ended += 1
                left -= run.seconds
                self.progress(ended, len(todo), left)
                self.checkpoint(outcome)

        is_full = False
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self.jobs):
                    group.create_task(worker())
        except* DiskFullError:
            is_full = True
        if is_full:
            raise DiskFullError

    async def _settle(self, key: str, run: Run, outcome: Outcome) -> None:
        """Do a run, and note what became of it."""
        working = self.store.begin(key)
        try:
            outcome.done[key] = await self._one_or_log(key, run, working)
        except ScenarioError as error:
            outcome.failed[key] = Failed(str(error), self.store.log(key))
        except OSError as error:
            if is_disk_full(error):
                raise DiskFullError from None
            outcome.failed[key] = Failed(str(error))
        finally:
            self.store.abandon(working)

    async def _one_or_log(self, key: str, run: Run, working: Path) -> Measured:
        try:
            return await self._one(key, run, working)
        except ScenarioError as error:
            said = error.said if isinstance(error, RunError) else f"{error}\n"
            free_bytes = shutil.disk_usage(self.store.folder).free
            if free_bytes < _LEAST_FREE_BYTES or os.strerror(errno.ENOSPC) in said:
                raise DiskFullError from None
            self.store.keep_failed(key, working, said)
            raise

    async def _one(self, key: str, run: Run, working: Path) -> Measured:
        start = time.monotonic()
        await self._weft([*run.arguments(), "--out", str(working)])
        if run.evidence:
            await self._weft(["evidence", str(working)])
        measured = replace(measure(working), wall_s=time.monotonic() - start)
        shutil.rmtree(working / evidence.CAPTURE, ignore_errors=True)
        self.store.finish(key, working, measured)
        return measured

    async def _weft(self, arguments: list[str]) -> None:
        # A session of its own: Ctrl-C reaches only us, and we pass it on once. If we are
        # killed, the kernel passes it on.
        command = [str(self.installation.weft), *arguments]
        child = await asyncio.create_subprocess_exec(
            "setpriv",
            "--pdeathsig",
            "INT",
            *command,
            cwd=ROOT,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            pass_fds=self.store.inherited(),
            start_new_session=True,
        )
        try:
            printed, complained = await child.communicate()
        except asyncio.CancelledError:
            await _stop(child)
            raise
        if child.returncode != 0:
            said = [text.decode(errors="replace") for text in (complained, printed)]
            ended = _ending(child.returncode or 0)
            lines = [line.strip() for line in said[0].splitlines() if line.strip()]
            why = lines[0] if lines else f"weft {ended}"
            raise RunError(why, f"$ {shlex.join(command)}\n{''.join(said)}{ended}\n")


async def _stop(child: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        child.send_signal(signal.SIGINT)
    try:
        await asyncio.wait_for(child.wait(), _PATIENCE_S)
    finally:  # Also when asked to stop a second time.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)


def _ending(status: int) -> str:
    if status < 0:
        return f"was killed by {signal.Signals(-status).name}"
    return f"ended with status {status}"


class Progress:
    """One line that says how far it is: on a terminal over itself, else every 30 s."""

    def __init__(self, jobs: int, terminal: bool) -> None:
        """`terminal` says whether lines can be written over."""
        self._jobs = jobs
        self._terminal = terminal
        self._start = time.monotonic()
        self._next = self._start

    def elapsed_s(self) -> float:
        """Give the real time since the start."""
        return time.monotonic() - self._start

    def __call__(self, ended: int, total: int, left_s: float) -> None:
        """Show it."""
        now = time.monotonic()
        last = ended == total
        if not total or (now < self._next and not last):
            return
        self._next = now + (0.2 if self._terminal else 30.0)
        left = f", about {left_s / self._jobs:.0f} s left" if not last else ""
        text = f"{ended} of {total} runs, {self.elapsed_s():.0f} s{left}"
        print(
            f"\r{text:<60}" if self._terminal else text,
            end="\n" if last or not self._terminal else "",
            flush=True,
        )
