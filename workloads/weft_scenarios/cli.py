"""The command line: `python -m weft_scenarios`."""

import argparse
import difflib
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from weft_scenarios import installation, matrix, plot, report, results, scenario, tables
from weft_scenarios.claims import judge
from weft_scenarios.errors import ScenarioError
from weft_scenarios.installation import ROOT, Installation
from weft_scenarios.matrix import Run
from weft_scenarios.runner import InterruptedRunsError, Outcome, Progress, Runner, Store
from weft_scenarios.scenario import Scenario

RUNS = ROOT / "runs" / "scenarios"
RESULTS = ROOT / "workloads" / "RESULTS.md"
_INTERRUPTED, _USAGE = 130, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; gives the exit code."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.command(options))
    except ScenarioError as error:
        print(f"scenarios: {error}", file=sys.stderr)
        return _USAGE
    except InterruptedRunsError:
        print(
            "\nscenarios: interrupted; all labs are stopped, what is done is kept", file=sys.stderr
        )
        return _INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scenarios", description=__doc__)
    commands = parser.add_subparsers(required=True)
    run = commands.add_parser("run", help="run scenarios, show tables, plots and verdicts")
    run.add_argument("names", nargs="*", metavar="SCENARIO", help="[default: all but those apart]")
    run.add_argument("--quick", action="store_true", help="the small subset that CI runs")
    run.add_argument("--plan", action="store_true", help="only say what would be run")
    run.add_argument(
        "--jobs", type=_jobs, default=os.cpu_count() or 1, help="labs at the same time [CPUs]"
    )
    run.set_defaults(command=_run)
    listing = commands.add_parser("list", help="list the scenarios there are")
    listing.set_defaults(command=_list)
    results = commands.add_parser("results", help="write workloads/RESULTS.md from the last runs")
    results.set_defaults(command=_results)
    return parser


def _jobs(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: give a whole number from 1")
    return int(text)


def _list(_options: argparse.Namespace) -> int:
    rows = [["name", "what", "source"]]
    for name in scenario.names():
        read = scenario.read(name)
        rows.append([name, read.title, read.source])
    print(tables.plain(rows))
    return 0


def _run(options: argparse.Namespace) -> int:
    read = [scenario.read(name) for name in options.names or scenario.names()]
    if not options.names:
        read = [one for one in read if not one.is_apart]
    runs = [run for one in read for run in matrix.runs(one, options.quick)]
    print(_budget(read, runs, options.jobs))
    if options.plan:
        return 0
    installed = installation.find()
    _check_flags(runs, installed)
    progress = Progress(options.jobs, sys.stdout.isatty())
    store = Store(RUNS / "runs")
    outcome = Runner(installed, store, options.jobs, progress).run(runs)
    for one in read:
        _show(one, installed, outcome, options.quick)
    print(f"\n{len(runs)} runs in {progress.elapsed_s():.0f} s")
    return _failures(runs, installed, outcome)


def _budget(scenarios: Sequence[Scenario], runs: Sequence[Run], jobs: int) -> str:
    rows = [["scenario", "experiment", "runs", "s each", "CPU s"]]
    for one in scenarios:
        for experiment in one.experiments:
            mine = [r for r in runs if (r.scenario, r.experiment) == (one.name, experiment.name)]
            if mine:
                seconds = sum(run.seconds for run in mine)
                each = f"{seconds / len(mine):.1f}"
                rows.append([one.name, experiment.name, str(len(mine)), each, f"{seconds:.0f}"])
    distinct = matrix.distinct(runs)
    total = sum(run.seconds for run in distinct)
    return (
        f"{tables.plain(rows)}\n{len(distinct)} different runs, about {total / jobs / 60:.1f} min "
        f"with {jobs} at a time; less what is done already\n"
    )


def _check_flags(runs: Sequence[Run], installed: Installation) -> None:
    known = installed.flags()
    for run in runs:
        for flag in run.flags:
            if flag not in known:
                near = difflib.get_close_matches(flag, known, 1)
                hint = f"; did you mean --{near[0]}?" if near else ""
                raise ScenarioError(
                    f"{run.scenario}.toml: experiment {run.experiment}: `weft run` has no flag "
                    f"--{flag}{hint}"
                )


def _folder(name: str, quick: bool) -> Path:
    return RUNS / "quick" / name if quick else RUNS / name


def _show(one: Scenario, installed: Installation, outcome: Outcome, quick: bool) -> None:
    keyed = [(run, installed.key(run)) for run in matrix.runs(one, quick)]
    if not keyed:
        return
    done = [(run, outcome.done[key]) for run, key in keyed if key in outcome.done]
    failed = {str(run): outcome.failed[key] for run, key in keyed if key in outcome.failed}
    measured = results.collect(one, done, failed, quick)
    folder = _folder(one.name, quick)
    results.write(folder, measured)
    print(f"\n==== {one.name}: {one.title} ({one.source})")
    for picture in one.plots:
        for ending in ("svg", "png"):
            plot.draw(one, picture, measured, folder / f"{picture.name}.{ending}")
        rows = tables.of_plot(one, picture, measured)
        if rows:
            print(f"\n{picture.title}\n\n{tables.plain(rows)}")
    print()
    for claim in one.claims:
        verdict = judge(one, claim, measured)
        if not verdict.points and not verdict.missing:
            continue  # Its points are left out of the quick set.
        print(f"{verdict.word().upper()}: {claim.text} ({claim.source})")
        print(f"    {report.summary(verdict)}")
    print(f"results and plots: {folder.relative_to(ROOT)}")


def _failures(runs: Sequence[Run], installed: Installation, outcome: Outcome) -> int:
    if not outcome.failed:
        return 0
    by_message: dict[str, list[Run]] = {}
    for run in runs:
        message = outcome.failed.get(installed.key(run))
        if message is not None:
            by_message.setdefault(message, []).append(run)
    for message, failed in by_message.items():
        example = shlex.join(["target/release/weft", *failed[0].arguments()])
        print(f"scenarios: {len(failed)} runs failed: {message}\n  {example}", file=sys.stderr)
    return 1


def _results(_options: argparse.Namespace) -> int:
    read = [scenario.read(name) for name in scenario.names()]
    missing = report.write(read, RUNS, RESULTS)
    print(f"{RESULTS.relative_to(ROOT)} written")
    for name in missing:
        print(
            f"scenarios: no results of {name} yet: make scenario SCENARIO={name}", file=sys.stderr
        )
    return 1 if missing else 0
