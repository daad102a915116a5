# SPDX-License-Identifier: Apache-2.0
"""Conducts experiments: plan, check, run what is missing, write results, judge claims.

All commands that run labs for scenarios come through here: `weft experiment`, `make
scenario` and `make scenarios`.
"""

import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from weft_scenarios import units
from weft_scenarios.definition.scenario import Scenario
from weft_scenarios.errors import ScenarioError
from weft_scenarios.files import write_whole
from weft_scenarios.report import plot, results_page, tables
from weft_scenarios.results import bounds, fingerprints, flows, pooled, results
from weft_scenarios.results.claims import judge
from weft_scenarios.runs import installation, machine, matrix
from weft_scenarios.runs.check import check
from weft_scenarios.runs.installation import ROOT, Installation
from weft_scenarios.runs.progress import Progress
from weft_scenarios.runs.run import Run
from weft_scenarios.runs.runner import Failed, Outcome, Runner
from weft_scenarios.runs.store import Store

_RUNNING = "running"
"""State of results while runs are missing; see `results.About`."""
_CHECKPOINT_S = 60.0
"""Real time between two writes of intermediate results."""
_OK, _FAILED, INTERRUPTED = 0, 1, 130
"""Exit codes; the last is a shell's for Ctrl-C."""


@dataclass(frozen=True)
class Options:
    """How to conduct an experiment."""

    quick: bool
    plan: bool
    jobs: int
    store: Path
    """Folder of finished runs."""
    cluster: str | None = None
    """Address of a Dask scheduler."""
    full: bool = False
    """At the paper's scale."""

    def labs(self) -> int | None:
        """Give how many labs run in parallel; on a cluster, only Dask knows."""
        return None if self.cluster else self.jobs


@dataclass
class Experiment:
    """A scenario, its runs, and the folder for its results."""

    scenario: Scenario
    folder: Path
    runs: list[Run]


def conduct(planned: Sequence[Experiment], options: Options) -> int:
    """Plan, run and judge; gives the exit code."""
    runs = [run for one in planned for run in one.runs]
    installed = installation.find()
    check([one.scenario for one in planned], runs, installed)
    store = Store(options.store)
    keys = [installed.key(run) for run in runs]
    done = {key: found for key in keys if (found := store.find(key))}
    wanted = Outcome(done).wanted(runs, installed.key)
    print(_cost(planned, [run for run in wanted if installed.key(run) not in done], options.labs()))
    has = sum(key in done for key in {installed.key(run) for run in wanted})
    print(f"{has} more are finished already" if has else "")
    print(_more_seeds(runs, wanted), flush=True)
    if options.plan:
        return _OK
    # Lock before anything is written: another experiment may use these folders.
    with store.locked():
        return _carry_out(planned, options, installed, Outcome(done), store)


def _carry_out(
    planned: Sequence[Experiment],
    options: Options,
    installed: Installation,
    there: Outcome,
    store: Store,
) -> int:
    """Run what is missing, write tables, judge; gives the exit code."""
    runs = [run for one in planned for run in one.runs]
    keeper = _Keeper(planned, options.quick, options.full, installed, store)
    progress = Progress(options.labs(), sys.stdout.isatty())
    keeper.write(replace(there, stopped="running"))
    runner = Runner(installed, store, options.jobs, progress, keeper.checkpoint, options.cluster)
    outcome = runner.run(runs)
    keeper.write(outcome)
    if not outcome.stopped:
        for one in planned:
            _show(one.scenario, one.folder)
    wanted = outcome.wanted(runs, installed.key)
    ended = sum(key in outcome.done or key in outcome.failed for key in map(installed.key, wanted))
    count = f"{ended} of {len(wanted)}" if outcome.stopped else f"{len(wanted)}"
    print(f"\n{count} runs in {units.spent(progress.elapsed_s())}")
    return _ending(runs, installed, outcome)


def _cost(planned: Sequence[Experiment], runs: Sequence[Run], jobs: int | None) -> str:
    """Describe which runs are missing, and what they cost."""
    rows = [["scenario", "experiment", "runs", "s each", "CPU s"]]
    for one in planned:
        for experiment in one.scenario.experiments:
            place = (one.scenario.name, experiment.name)
            mine = [run for run in runs if (run.scenario, run.experiment) == place]
            if mine:
                seconds = sum(run.seconds for run in mine)
                each = f"{seconds / len(mine):.1f}"
                rows.append([*place, str(len(mine)), each, f"{seconds:.0f}"])
    distinct = matrix.distinct(runs)
    total = sum(run.seconds for run in distinct)
    time = units.spent(total / (jobs or 1))
    how = f"with {jobs} in parallel" if jobs else "of CPU time in total"
    return f"{tables.plain(rows)}\n{len(distinct)} runs, about {time} {how}"


def _more_seeds(runs: Sequence[Run], wanted: Sequence[Run]) -> str:
    """Describe the runs that may be added until means are known well enough."""
    kept = {id(run) for run in wanted}
    more = matrix.distinct(run for run in runs if id(run) not in kept)
    if not more:
        return ""
    goals = sorted({f"{run.seeds.of} to {run.seeds.percent:g}%" for run in more})
    seconds = sum(run.seconds for run in more)
    return (
        f"up to {len(more)} more seeds, {units.spent(seconds)} of CPU time, until means are "
        f"known: {', '.join(goals)}\n"
    )


@dataclass
class _Keeper:
    """Writes the results of finished runs, also while others still run."""

    planned: Sequence[Experiment]
    quick: bool
    full: bool
    installed: Installation
    store: Store
    written: float = 0.0

    def checkpoint(self, outcome: Outcome) -> None:
        """Write intermediate results, unless the last ones are recent."""
        if time.monotonic() - self.written > _CHECKPOINT_S:
            self.write(replace(outcome, stopped=_RUNNING))

    def write(self, outcome: Outcome) -> None:
        """Write the results of every scenario that has runs."""
        for one in self.planned:
            if one.runs:
                self._write(one, outcome)
        self.written = time.monotonic()

    def _write(self, one: Experiment, outcome: Outcome) -> None:
        wanted = outcome.wanted(one.runs, self.installed.key)
        keyed = [(run, self.installed.key(run)) for run in wanted]
        done = [(run, outcome.done[key]) for run, key in keyed if key in outcome.done]
        failed = [(run, outcome.failed[key]) for run, key in keyed if key in outcome.failed]
        found = results.collect(
            one.scenario, done, [(run, f.why) for run, f in failed], self.quick, self.full
        )
        about = replace(
            found.about,
            logs={str(run): _shown(fail.log) for run, fail in failed if fail.log},
            state=outcome.stopped or "complete",
            planned=len(wanted),
            machine=machine.machine(),
            versions=machine.versions(self.installed),
        )
        folders = [(r, self.store.folder / key) for r, key in keyed if key in outcome.done]
        try:
            table = flows.collect(one.scenario, folders)
            if about.state != _RUNNING:
                # This takes seconds, which a look at what there is so far need not.
                least = bounds.collect(one.scenario, folders)
                found = replace(found, percentiles=pooled.collect(one.scenario, table, least))
            results.write(one.folder, replace(found, about=about))
            flows.write(one.folder, table)
            made = {fingerprints.place(r): fingerprints.of_run(folder) for r, folder in folders}
            fingerprints.write(one.folder / fingerprints.FILE, made)
            write_whole(one.folder / "scenario.toml", one.scenario.source_file.text)
        except OSError as error:
            why = error.strerror or error  # Polars gives no strerror.
            said = f"{_shown(one.folder)}: not written: {why}; the previous files are unchanged"
            outcome.stopped = outcome.stopped or said
            print(f"scenarios: {said}", file=sys.stderr)


def _shown(path: Path) -> str:
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


def _show(one: Scenario, folder: Path) -> None:
    """Draw the plots, and print their numbers and the verdicts."""
    try:
        measured = results.read(one, folder)
    except ScenarioError:
        return  # None of its experiments is in the quick set.
    print(f"\n==== {one.name}: {one.title} ({one.source})")
    for picture in one.plots:
        for ending in ("svg", "png"):
            plot.draw(one, picture, measured, folder / f"{picture.name}.{ending}")
        table = tables.of_plot(one, picture, measured)
        if table.rows:
            print(f"\n{picture.title}: {table.label}\n\n{tables.plain(table.rows)}")
    print()
    for verdict in judge(one, measured):
        claim = verdict.claim
        if not verdict.points and not verdict.missing:
            continue  # Its points are left out of the quick set.
        print(f"{verdict.word.upper()}: {claim.text} ({claim.source})")
        print(f"    {results_page.summary(verdict)}")
    print(f"results and plots: {_shown(folder)}")


def _ending(runs: Sequence[Run], installed: Installation, outcome: Outcome) -> int:
    """Report failures; gives the exit code."""
    by_message: dict[str, list[tuple[Run, Failed]]] = {}
    for run in runs:
        failed = outcome.failed.get(installed.key(run))
        if failed is not None:
            by_message.setdefault(failed.why, []).append((run, failed))
    for message, some in by_message.items():
        run, failed = some[0]
        example = shlex.join(["target/release/weft", *run.arguments()])
        log = f"\n  log: {_shown(failed.log)}" if failed.log else ""
        print(f"scenarios: {len(some)} runs failed: {message}\n  {example}{log}", file=sys.stderr)
    if outcome.stopped:
        print(f"scenarios: {outcome.stopped}", file=sys.stderr)
    if outcome.is_interrupted:
        return INTERRUPTED
    return _FAILED if outcome.failed or outcome.stopped else _OK
