# SPDX-License-Identifier: Apache-2.0
"""The command line: `python -m weft_scenarios`, and `weft experiment`."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from weft_scenarios import experiment, reproduce
from weft_scenarios.definition import scenario_file
from weft_scenarios.definition.scenario import Scenario
from weft_scenarios.errors import ScenarioError
from weft_scenarios.experiment import Experiment, Options
from weft_scenarios.report import html_report, results_index, tables
from weft_scenarios.runs import matrix
from weft_scenarios.runs.installation import ROOT

RUNS = ROOT / "runs" / "scenarios"
RESULTS = ROOT / "workloads" / "RESULTS.md"
_USAGE, _READER_LEFT = 2, 141
"""Exit codes; the last is a shell's for SIGPIPE."""
_DEFAULTS = {"jobs": os.cpu_count() or 1, "seeds": 0, "store": RUNS / "runs"}
"""Of options that are not given."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Execute the command line; gives the exit code."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.command(options))
    except ScenarioError as error:
        print(f"scenarios: {error}", file=sys.stderr)
        return _USAGE
    except BrokenPipeError:
        # The reader has what it wanted, as `head` has. Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _READER_LEFT


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scenarios", description=__doc__)
    commands = parser.add_subparsers(required=True)
    how = argparse.ArgumentParser(add_help=False)
    extent = how.add_mutually_exclusive_group()
    extent.add_argument("--quick", action="store_true", help="the small subset that CI runs")
    extent.add_argument("--full", action="store_true", help="at the scale of the papers")
    how.add_argument("--plan", action="store_true", help="show what would run, boot nothing")
    how.add_argument(
        "--jobs", type=_count, default=_DEFAULTS["jobs"], help="labs to run in parallel [CPUs]"
    )
    how.add_argument(
        "--seeds",
        type=_count,
        default=_DEFAULTS["seeds"],
        help="minimum number at every point [as in the file]",
    )
    how.add_argument(
        "--store",
        type=Path,
        default=_DEFAULTS["store"],
        help="folder that keeps finished runs",
        metavar="DIR",
    )
    run = commands.add_parser(
        "run", parents=[how], help="run scenarios, show tables, plots and verdicts"
    )
    run.add_argument("names", nargs="*", metavar="SCENARIO", help="[default: all without `apart`]")
    run.set_defaults(command=_run)
    figures = commands.add_parser(
        "figures", parents=[how], help="run the scenarios and write a report of each"
    )
    figures.set_defaults(command=_figures)
    one = commands.add_parser("experiment", help="run a scenario file, for `weft experiment`")
    one.add_argument(
        "asked",
        type=json.loads,
        metavar="JSON",
        help="its options by name, where null stands for the default",
    )
    one.set_defaults(command=_experiment)
    again = commands.add_parser(
        "reproduce", help="repeat some runs of a page, and compare their flows byte for byte"
    )
    again.add_argument("name", metavar="SCENARIO")
    again.add_argument("--runs", type=_count, default=10, help="how many [10]")
    again.add_argument("--full", action="store_true", help="of the page at the paper's scale")
    again.add_argument("--jobs", type=_count, default=_DEFAULTS["jobs"], help="labs in parallel")
    again.add_argument(
        "--note",
        action="store_true",
        help="repeat at least 30, and if they are the same, write that into the page",
    )
    again.add_argument(
        "--others-may-differ",
        action="store_true",
        help="do not fail if the page was measured with other programs",
    )
    again.set_defaults(command=_reproduce)
    listing = commands.add_parser("list", help="list all scenarios")
    listing.set_defaults(command=_list)
    of_one = commands.add_parser("report", help="write report.html of an experiment's results")
    of_one.add_argument("folder", type=Path, metavar="DIR")
    of_one.set_defaults(command=_report)
    results = commands.add_parser(
        "results", help="write workloads/RESULTS.md and its pages from the last runs"
    )
    results.set_defaults(command=_results)
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: give a whole number from 1")
    return int(text)


def _list(_options: argparse.Namespace) -> int:
    rows = [["name", "what", "source"]]
    for name in scenario_file.names():
        read = scenario_file.read(name)
        rows.append([name, read.title, read.source])
    print(tables.plain(rows))
    return 0


def _run(options: argparse.Namespace) -> int:
    read = [scenario_file.read(name) for name in options.names or scenario_file.names()]
    if not options.names:
        read = [one for one in read if not one.is_apart]
    planned = [_planned(one, options, _folder(one.name, options)) for one in read]
    return experiment.conduct(planned, _how(options))


def _figures(options: argparse.Namespace) -> int:
    read = [scenario_file.read(name) for name in scenario_file.names()]
    some = [one for one in read if one.is_figure or options.full]
    planned = [_planned(one, options, _folder(one.name, options)) for one in some]
    status = experiment.conduct(planned, _how(options))
    if not options.plan and status != experiment.INTERRUPTED:
        for one in planned:
            if one.runs:
                print(f"report: {html_report.write(one.folder)}")
    return status


def _experiment(options: argparse.Namespace) -> int:
    given = {name: value for name, value in options.asked.items() if value is not None}
    asked = argparse.Namespace(**(_DEFAULTS | {"out": None, "cluster": None} | given))
    one = scenario_file.read_file(Path(asked.file))
    folder = Path(asked.out) if asked.out else _folder(one.name, asked)
    return experiment.conduct([_planned(one, asked, folder)], _how(asked))


def _how(options: argparse.Namespace) -> Options:
    store = Path(options.store).absolute()
    return Options(
        quick=options.quick,
        plan=options.plan,
        jobs=options.jobs,
        store=store,
        full=options.full,
        cluster=getattr(options, "cluster", None),
    )


def _planned(one: Scenario, options: argparse.Namespace, folder: Path) -> Experiment:
    runs = matrix.runs(one, options.quick, options.full, options.seeds)
    return Experiment(one, folder.absolute(), list(runs))


def _folder(name: str, options: argparse.Namespace) -> Path:
    if options.full:
        return RUNS / "full" / name
    return RUNS / "quick" / name if options.quick else RUNS / name


def _reproduce(options: argparse.Namespace) -> int:
    how = reproduce.Options(
        options.runs, options.jobs, options.full, options.note, options.others_may_differ
    )
    pages = RESULTS.parent / "results"
    working = RUNS / "reproduced"
    status = reproduce.reproduce(scenario_file.read(options.name), pages, working, how)
    if options.note and not status:
        # No results are there any more: the table is made of the pages.
        read = [scenario_file.read(name) for name in scenario_file.names()]
        results_index.write(read, working, RESULTS)
    return status


def _report(options: argparse.Namespace) -> int:
    print(f"report: {html_report.write(options.folder)}")
    return 0


def _results(_options: argparse.Namespace) -> int:
    read = [scenario_file.read(name) for name in scenario_file.names()]
    written = results_index.write(read, RUNS, RESULTS)
    print(f"{RESULTS.relative_to(ROOT)} written")
    if written.kept:
        print(f"unchanged, because it was not run here: {', '.join(written.kept)}")
    for name in written.missing:
        print(
            f"scenarios: no results of {name} yet: make scenario SCENARIO={name}", file=sys.stderr
        )
    return 1 if any(one.name in written.missing and not one.is_apart for one in read) else 0
