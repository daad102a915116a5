# SPDX-License-Identifier: Apache-2.0
"""Repeats some runs of a published page, and compares their flows with the page's, byte for byte.

A reviewer sees so whether a page can be believed, in minutes instead of hours. And when programs
have changed in a way that should not matter to a page, this shows whether it does.
"""

import random
import shutil
import sys
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from weft_scenarios.definition.scenario import Scenario
from weft_scenarios.errors import ScenarioError
from weft_scenarios.files import write_whole
from weft_scenarios.report import results_page, tables
from weft_scenarios.report.results_page import Page
from weft_scenarios.results import fingerprints
from weft_scenarios.results.fingerprints import Place
from weft_scenarios.results.revisions import programs
from weft_scenarios.runs import installation, matrix
from weft_scenarios.runs.check import check
from weft_scenarios.runs.installation import Installation
from weft_scenarios.runs.progress import Progress
from weft_scenarios.runs.run import Run
from weft_scenarios.runs.runner import Outcome, Runner
from weft_scenarios.runs.store import Store

_NOTEWORTHY = 30
"""If so many are the same, at most a tenth of all differ, with 95% confidence (0.9^30 = 0.04)."""
_SAME, _DIFFERENT, _INTERRUPTED = 0, 1, 130
"""Exit codes; the last is a shell's for Ctrl-C."""


@dataclass(frozen=True)
class Options:
    """What to repeat, and how."""

    count: int
    """Number of runs; there is at least one of every experiment."""
    jobs: int
    """Labs in parallel."""
    full: bool
    """Whether it is the page at the paper's scale."""
    note: bool
    """Whether the page is to say so if the flows are the same; it needs at least 30 runs."""
    others_may_differ: bool = False
    """Whether other flows are no failure if the page was measured with other programs."""


def reproduce(scenario: Scenario, pages: Path, working: Path, options: Options) -> int:
    """Repeat runs of a page in the folder `pages`; gives the exit code.

    The folder `working` is written, and left empty, so that the next one runs all again.
    """
    file = pages / f"{scenario.name}{results_page.FULL if options.full else ''}.md"
    page = _read(file, scenario)
    table = fingerprints.beside(file)
    known = fingerprints.read(table)
    if not known and not options.note:
        raise ScenarioError(
            f"{table.name}: none yet: `make scenario SCENARIO={scenario.name}`, then `make results`"
        )
    installed = installation.find()
    seeds = len({place.seed for place in known})
    runs = matrix.runs(scenario, quick=False, full=options.full, at_least=seeds)
    there = [run for run in runs if not known or fingerprints.place(run) in known]
    if not there:
        raise ScenarioError(
            f"{table.name}: none of its runs is one of {scenario.name} as it is now"
        )
    count = max(options.count, _NOTEWORTHY) if options.note else options.count
    chosen = draw(there, count, int(installed.digest[:8], 16))
    check([scenario], chosen, installed)
    outcome, made = _repeat(chosen, installed, working, options.jobs)
    if outcome.stopped:
        print(f"scenarios: {outcome.stopped}", file=sys.stderr)
        return _INTERRUPTED if outcome.is_interrupted else _DIFFERENT
    if not known:
        return _begin(page, table, made, outcome)
    same = {place for place, digest in made.items() if digest == known[place]}
    print(_said(chosen, same, outcome, installed))
    print(
        f"{len(same)} of {len(chosen)} runs gave the same flows as for {file.name}, byte for byte"
    )
    if len(same) < len(chosen):
        may_differ = options.others_may_differ and not _is_by_same_programs(page, outcome)
        if outcome.failed or not may_differ:
            return _DIFFERENT
        print(f"{file.name} was measured with other programs, so they may differ")
        return _SAME
    if options.note:
        kernel, revision = _by(outcome)
        written = results_page.text(page.reproduced(len(same), kernel, revision), scenario)
        write_whole(file, written)
    return _SAME


def draw(runs: Sequence[Run], count: int, seed: int) -> list[Run]:
    """Draw one run of each experiment, and others up to `count`; in the order of `runs`."""
    by_experiment: dict[str, list[int]] = {}
    for place, run in enumerate(runs):
        by_experiment.setdefault(run.experiment, []).append(place)
    generator = random.Random(seed)
    drawn = [generator.choice(places) for places in by_experiment.values()]
    left = [place for place in range(len(runs)) if place not in drawn]
    drawn += generator.sample(left, min(max(count - len(drawn), 0), len(left)))
    return [runs[place] for place in sorted(drawn)]


def _read(file: Path, scenario: Scenario) -> Page:
    page = results_page.read(file)
    if page is None:
        raise ScenarioError(
            f"{file.name}: no such page: `make scenario SCENARIO={scenario.name}`, then "
            "`make results`"
        )
    return page


def _repeat(
    runs: Sequence[Run], installed: Installation, working: Path, jobs: int
) -> tuple[Outcome, dict[Place, str]]:
    """Run, whatever other stores have; gives also the fingerprints of what was done."""
    store = Store(working)
    with store.locked():
        _empty(working)
        try:
            progress = Progress(jobs, sys.stdout.isatty())
            outcome = Runner(installed, store, jobs, progress).run(runs)
            keyed = {fingerprints.place(run): installed.key(run) for run in runs}
            done = {place: key for place, key in keyed.items() if key in outcome.done}
            made = {place: fingerprints.of_run(working / key) for place, key in done.items()}
        finally:
            _empty(working)
    return outcome, made


def _empty(working: Path) -> None:
    """Remove what is in the folder, also from a run that was killed, except the lock."""
    for there in filter(Path.is_dir, working.iterdir()):
        shutil.rmtree(there)


def _begin(page: Page, table: Path, made: Mapping[Place, str], outcome: Outcome) -> int:
    """Begin the table of an older page with runs of the same programs, so of the same bytes."""
    for failed in outcome.failed.values():
        raise ScenarioError(failed.why)
    _, revision = _by(outcome)
    if not _is_by_same_programs(page, outcome):
        raise ScenarioError(f"{page.name}: measured with other programs than those of {revision}")
    fingerprints.write(table, made)
    print(f"{table.name}: {len(made)} runs")
    return _SAME


def _is_by_same_programs(page: Page, outcome: Outcome) -> bool:
    """Whether the page was measured, or reproduced last, with what ran now."""
    then = page.last_by()
    kernels = {measured.kernel for measured in outcome.done.values()}
    now = {programs(measured.revision) for measured in outcome.done.values()}
    return (
        None not in now
        and kernels == then.kernels
        and now == {programs(revision) for revision in then.revisions}
    )


def _by(outcome: Outcome) -> tuple[str, str]:
    """Give kernel and revision that ran, which others must be able to build."""
    found = {(measured.kernel, measured.revision) for measured in outcome.done.values()}
    kernel, revision = found.pop()
    of = programs(revision)
    if found or of is None or not of.is_clean:
        raise ScenarioError(f"Weft {revision}: commit all changes and build before a page names it")
    return kernel, revision


def _said(runs: Sequence[Run], same: Set[Place], outcome: Outcome, installed: Installation) -> str:
    """Describe how each run compares."""
    rows = [["experiment", "point", "seed", "flows"]]
    for run in runs:
        place = fingerprints.place(run)
        failed = outcome.failed.get(installed.key(run))
        word = "the same" if place in same else "others"
        rows.append([run.experiment, place.point, str(run.seed), failed.why if failed else word])
    return tables.plain(rows)
