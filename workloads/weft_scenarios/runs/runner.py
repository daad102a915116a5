# SPDX-License-Identifier: Apache-2.0
"""Runs labs, several in parallel, and stores their results.

A run that is in the store is not repeated. A failed run is reported and leaves its log; it does not
stop the others. After an interrupt, or when the disk is full, all labs are stopped as by Ctrl-C.
Finished runs are kept, and the same command continues from there.
"""

import asyncio
import errno
import os
import shutil
import signal
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from weft_scenarios.errors import ScenarioError
from weft_scenarios.files import is_disk_full
from weft_scenarios.runs.installation import Installation
from weft_scenarios.runs.labs import Labs, LocalLabs, RunError
from weft_scenarios.measures.metrics import Measured, measure
from weft_scenarios.runs.run import Run, wanted
from weft_scenarios.runs.store import Store

_LEAST_FREE_BYTES = 1 << 20
"""If a run fails with less than this, the cause is the full disk."""


@dataclass(frozen=True)
class Failed:
    """A failed run."""

    why: str
    """One line."""
    log: Path | None = None
    """The file with its complete output."""


@dataclass
class Outcome:
    """The outcome of runs, by key."""

    done: dict[str, Measured] = field(default_factory=dict)
    failed: dict[str, Failed] = field(default_factory=dict)
    stopped: str = ""
    """The reason why not all runs were done: one line, or empty."""
    is_interrupted: bool = False
    """Whether the user interrupted it."""

    def wanted(self, runs: Sequence[Run], key: Callable[[Run], str]) -> list[Run]:
        """Keep the runs that are needed, given the results of seeds so far."""

        def known(run: Run) -> float | None:
            name = key(run)
            if name in self.failed:
                return None
            return self.done[name].numbers().get(run.seeds.of)

        return wanted(runs, known)


class DiskFullError(Exception):
    """The disk has no space for results."""


class _Todo:
    """The runs that are left; grows when results show that a point needs more seeds."""

    def __init__(self, keyed: Sequence[tuple[str, Run]], outcome: Outcome) -> None:
        self._runs = [run for _, run in keyed]
        self._keys = {id(run): key for key, run in keyed}
        self._outcome = outcome
        self._begun: set[str] = set(outcome.done)
        self.waiting: list[tuple[str, Run]] = []
        self.total = 0
        self._planned_s = 0.0
        self._ended_planned_s = 0.0
        self._ended_took_s = 0.0
        self._add()

    def left_s(self) -> float:
        """Estimate the real time of the remaining runs, one after the other.

        What the files plan is for another machine: those that have ended say how much longer runs
        take on this one.
        """
        is_known = self._ended_planned_s and self._ended_took_s
        pace = self._ended_took_s / self._ended_planned_s if is_known else 1.0
        return self._planned_s * pace

    def next(self) -> tuple[str, Run]:
        """Take a waiting run."""
        return self.waiting.pop()

    def ended(self, run: Run, took_s: float | None) -> None:
        """Note that a run has ended, and its real time if it was done."""
        self._planned_s -= run.seconds
        if took_s is not None:
            self._ended_planned_s += run.seconds
            self._ended_took_s += took_s
        self._add()

    def _add(self) -> None:
        for run in self._outcome.wanted(self._runs, lambda run: self._keys[id(run)]):
            key = self._keys[id(run)]
            if key not in self._begun:
                self._begun.add(key)
                self.waiting.append((key, run))
                self.total += 1
                self._planned_s += run.seconds
        # The first seed of all points comes first, so that an interrupted experiment can compare
        # all of them. For each seed the longest run comes first, so that CPUs finish together.
        self.waiting.sort(key=lambda item: (-item[1].seed, item[1].seconds))


@dataclass
class Runner:
    """Runs what is missing, `jobs` labs in parallel."""

    installation: Installation
    store: Store
    jobs: int
    progress: Callable[[int, int, float], None]
    """Called with the runs that ended, all runs, and the seconds of work that are left."""
    checkpoint: Callable[[Outcome], None] = lambda _: None
    """Called after every run with the outcome so far."""
    cluster: str | None = None
    """Address of the Dask scheduler whose workers run the labs; None for this machine."""

    def run(self, runs: Sequence[Run]) -> Outcome:
        """Do all runs, or as many as possible; the caller has locked the store."""
        return asyncio.run(self._run(runs))

    async def _run(self, runs: Sequence[Run]) -> Outcome:
        outcome = Outcome()
        keyed = [(self.installation.key(run), run) for run in runs]
        for key, _ in keyed:
            found = self.store.find(key)
            if found:
                outcome.done[key] = found
        todo = _Todo(keyed, outcome)
        labs = await self._labs() if todo.waiting else LocalLabs(self.installation, self.jobs)
        work = asyncio.ensure_future(self._all(todo, outcome, labs))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, work.cancel)
        try:
            await work
        except asyncio.CancelledError:
            outcome.stopped = "interrupted; all labs are stopped, finished runs are kept"
            outcome.is_interrupted = True
        except DiskFullError:
            outcome.stopped = (
                f"no space left on the disk of {self.store.folder}; finished runs are kept: free "
                "some space, and run the same command again"
            )
        finally:
            await labs.close()
        return outcome

    async def _labs(self) -> Labs:
        if self.cluster is None:
            return LocalLabs(self.installation, self.jobs, self.store.inherited())
        # Dask takes long to load.
        from weft_scenarios.runs.cluster import Cluster

        return await Cluster.connect(self.cluster, self.installation)

    async def _all(self, todo: "_Todo", outcome: Outcome, labs: Labs) -> None:
        self.progress(0, todo.total, todo.left_s())
        ended = 0

        async def worker() -> None:
            nonlocal ended
            while todo.waiting:
                key, run = todo.next()
                await self._settle(key, run, outcome, labs)
                ended += 1
                done = outcome.done.get(key)
                todo.ended(run, done.wall_s if done else None)
                self.progress(ended, todo.total, todo.left_s())
                self.checkpoint(outcome)

        is_full = False
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(labs.slots(len(todo.waiting))):
                    group.create_task(worker())
        except* DiskFullError:
            is_full = True
        if is_full:
            raise DiskFullError

    async def _settle(self, key: str, run: Run, outcome: Outcome, labs: Labs) -> None:
        """Do a run, and record its outcome."""
        working = self.store.begin(key)
        try:
            outcome.done[key] = await self._one_or_log(key, run, working, labs)
        except ScenarioError as error:
            outcome.failed[key] = Failed(str(error), self.store.log(key))
        except OSError as error:
            if is_disk_full(error):
                raise DiskFullError from None
            outcome.failed[key] = Failed(str(error))
        finally:
            self.store.abandon(working)

    async def _one_or_log(self, key: str, run: Run, working: Path, labs: Labs) -> Measured:
        try:
            return await self._one(key, run, working, labs)
        except ScenarioError as error:
            said = error.said if isinstance(error, RunError) else f"{error}\n"
            free_bytes = shutil.disk_usage(self.store.folder).free
            if free_bytes < _LEAST_FREE_BYTES or os.strerror(errno.ENOSPC) in said:
                raise DiskFullError from None
            self.store.keep_failed(key, working, said)
            raise

    async def _one(self, key: str, run: Run, working: Path, labs: Labs) -> Measured:
        cost = await labs.do(run, key, working)
        measured = replace(measure(working), **asdict(cost))
        self.store.finish(key, working, measured)
        return measured
