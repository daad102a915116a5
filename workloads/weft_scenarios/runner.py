"""Runs labs, several at a time, and keeps what they gave.

A finished run is a folder named by its key, with `measured.json` in it, written last; what
is there is not run again. A run that fails is reported and leaves the others alone. After
an interrupt every lab is asked to stop, as Ctrl-C does, and nothing half-done is left.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from weft_scenarios import evidence
from weft_scenarios.errors import ScenarioError
from weft_scenarios.installation import ROOT, Installation
from weft_scenarios.matrix import Run
from weft_scenarios.metrics import Measured, code, measure

_MEASURED = "measured.json"
_PATIENCE_S = 20.0
"""How long an interrupted lab may take to stop before it is killed."""


@dataclass
class Outcome:
    """What became of some runs."""

    done: dict[str, Measured] = field(default_factory=dict)
    """By key."""
    failed: dict[str, str] = field(default_factory=dict)
    """One line each, by key."""


class InterruptedRunsError(Exception):
    """The user, or the system, asked to stop."""


class Store:
    """The folders of finished runs."""

    def __init__(self, folder: Path) -> None:
        """Create `folder` if it is not there."""
        self.folder = folder
        self._code = code()
        folder.mkdir(parents=True, exist_ok=True)

    def find(self, key: str) -> Measured | None:
        """Give what a finished run gave; measured again if what measures has changed."""
        folder = self.folder / key
        try:
            measured = Measured.from_json((folder / _MEASURED).read_text())
            if measured.by != self._code:
                measured = measure(folder)
                (folder / _MEASURED).write_text(measured.to_json())
        except (FileNotFoundError, ValueError, TypeError, ScenarioError):
            return None
        return measured

    def begin(self, key: str) -> Path:
        """Give the folder that the run `key` may write; it does not exist."""
        shutil.rmtree(self.folder / key, ignore_errors=True)
        working = self.folder / f"{key}.partial"
        shutil.rmtree(working, ignore_errors=True)
        return working

    def finish(self, key: str, working: Path, measured: Measured) -> None:
        """Keep the folder of the run `key`, whole."""
        (working / _MEASURED).write_text(measured.to_json())
        working.rename(self.folder / key)

    def abandon(self, working: Path) -> None:
        """Remove what an unfinished run wrote."""
        for path in self.folder.glob(f"*{working.name}*"):
            shutil.rmtree(path, ignore_errors=True)


@dataclass
class Runner:
    """Runs what is not there yet, `jobs` at a time."""

    installation: Installation
    store: Store
    jobs: int
    progress: Callable[[int, int, float], None]
    """Told how many of how many runs ended, and how many seconds of work are left."""

    def run(self, runs: Sequence[Run]) -> Outcome:
        """Do all runs; raises InterruptedRunsError when asked to stop."""
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
            raise InterruptedRunsError from None
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
                try:
                    outcome.done[key] = await self._one(key, run)
                except ScenarioError as error:
                    outcome.failed[key] = str(error)
                ended += 1
                left -= run.seconds
                self.progress(ended, len(todo), left)

        async with asyncio.TaskGroup() as group:
            for _ in range(self.jobs):
                group.create_task(worker())

    async def _one(self, key: str, run: Run) -> Measured:
        working = self.store.begin(key)
        try:
            await self._weft([*run.arguments(), "--out", str(working)])
            if run.evidence:
                await self._weft(["evidence", str(working)])
            measured = measure(working)
            shutil.rmtree(working / evidence.CAPTURE, ignore_errors=True)
            self.store.finish(key, working, measured)
        finally:
            self.store.abandon(working)
        return measured

    async def _weft(self, arguments: list[str]) -> None:
        # A session of its own: Ctrl-C reaches only us, and we pass it on once.
        child = await asyncio.create_subprocess_exec(
            self.installation.weft,
            *arguments,
            cwd=ROOT,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            _, said = await child.communicate()
        except asyncio.CancelledError:
            await _stop(child)
            raise
        if child.returncode != 0:
            raise ScenarioError(_first_line(said.decode(errors="replace"), child.returncode))


async def _stop(child: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        child.send_signal(signal.SIGINT)
    try:
        await asyncio.wait_for(child.wait(), _PATIENCE_S)
    finally:  # Also when asked to stop a second time.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)


def _first_line(said: str, status: int | None) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return lines[0] if lines else f"weft ended with status {status}"


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
