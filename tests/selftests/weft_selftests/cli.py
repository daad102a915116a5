# SPDX-License-Identifier: Apache-2.0
"""The command line of `tests/selftests/run`."""

import argparse
import os
import re
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import plain_lab
from weft_kernel.errors import BuildError

from weft_selftests import differences, ktap, sources, verdict
from weft_selftests.ktap import Result
from weft_selftests.verdict import BASELINE, Run, Verdict

INSIDE = Path(__file__).resolve().parent.parent / "inside"

QUICK = ("diag", "mptcp_sockopt", "simult_flows", "mptcp_connect -4 -f 300000", "mptcp_join -f")
"""Tests whose outcome depends on the scheduler, and that are short enough for every change."""


@dataclass(frozen=True)
class Plan:
    """What to run."""

    kernel: plain_lab.Kernel
    folder: Path
    """The selftests."""
    tests: Sequence[str]
    """A script's name without its suffix, then arguments."""
    schedulers: Sequence[str]
    seeds: Sequence[int]
    out: Path
    """Gets the output of the tests and their kernel logs."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    options = parser().parse_args(arguments)
    try:
        plan = planned(options)
    except (BuildError, plain_lab.LabError, OSError, ValueError) as error:
        print(f"selftests: {error}", file=sys.stderr)
        return 2 if isinstance(error, ValueError) else 1
    if options.list:
        print("\n".join(plan.tests))
        return 0
    try:
        runs = execute(plan, options.jobs)
    except KeyboardInterrupt:
        return 130
    return report(runs, differences.read())


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    result = argparse.ArgumentParser(
        description="Run the kernel's own MPTCP selftests, each in a lab of its own on virtual "
        "time, with a scheduler as the default of every new network namespace; compare each "
        "subtest with `default`. Exit status 1 on a regression, a complaint of the kernel, or a "
        "test of which nothing passes under `default`.",
    )
    result.add_argument(
        "--schedulers", default="", metavar="A,B", help="which (default: all of the module's)"
    )
    result.add_argument(
        "--tests",
        default="quick",
        metavar="A,B",
        help="scripts without .sh, optionally with arguments; `quick` (default) or `all`",
    )
    result.add_argument("--seed", type=int, default=1, help="first seed (default: 1)")
    result.add_argument(
        "--repeats", type=int, default=1, help="number of seeds from --seed on (default: 1)"
    )
    result.add_argument(
        "--jobs",
        type=int,
        default=len(os.sched_getaffinity(0)),
        help="labs at a time (default: CPUs)",
    )
    result.add_argument(
        "--out", type=Path, default=Path("runs/selftests"), help="logs (default: runs/selftests)"
    )
    result.add_argument("--list", action="store_true", help="only name the tests")
    return result


def planned(options: argparse.Namespace) -> Plan:
    """Turn the command line into a plan; raise ValueError if it is wrong."""
    if options.repeats < 1 or options.jobs < 1:
        raise ValueError("--repeats and --jobs start at 1")
    kernel = plain_lab.kernel()
    folder = sources.prepare(kernel.version)
    there = sources.scripts(folder)
    if options.tests == "quick":
        tests = list(QUICK)
    elif options.tests == "all":
        tests = there
    else:
        tests = [test.strip() for test in options.tests.split(",") if test.strip()]
    for test in tests:
        if shlex.split(test)[0] not in there:
            raise ValueError(f"no test {test!r}; there are {', '.join(there)}")
    offered = available_schedulers(kernel)
    schedulers = options.schedulers.split(",") if options.schedulers else offered
    for scheduler in schedulers:
        if scheduler not in offered:
            raise ValueError(f"no scheduler {scheduler!r}; there are {', '.join(offered)}")
    seeds = range(options.seed, options.seed + options.repeats)
    ordered = [BASELINE, *(name for name in schedulers if name != BASELINE)]
    return Plan(kernel, folder, tests, ordered, seeds, options.out)


def available_schedulers(kernel: plain_lab.Kernel) -> list[str]:
    """Ask the kernel which schedulers there are."""
    outcome = plain_lab.run(kernel, ["/bin/cat", "/proc/sys/net/mptcp/available_schedulers"])
    return outcome.output.split()


def execute(plan: Plan, jobs: int) -> list[Run]:
    """Run everything, several labs at a time; print a line for each that is done."""
    work = [(t, s, seed) for t in plan.tests for seed in plan.seeds for s in plan.schedulers]
    plan.out.mkdir(parents=True, exist_ok=True)
    with plain_lab.pool(jobs) as pool:
        futures = [pool.submit(one, plan, *item) for item in work]
        runs = []
        for future in futures:
            run = future.result()
            runs.append(run)
            print(
                f"{run.test}: {run.scheduler}, seed {run.seed}: {run.count(Result.PASSED)} passed, "
                f"{run.count(Result.FAILED)} failed, {run.wall_s:.1f} s",
                file=sys.stderr,
                flush=True,
            )
    return runs


def one(plan: Plan, test: str, scheduler: str, seed: int) -> Run:
    """Run one selftest in a lab."""
    begin = time.monotonic()
    log = plan.out / f"{re.sub(r'[^A-Za-z0-9]+', '_', test)}-{scheduler}-{seed}.log"
    argv: list[str | Path] = [INSIDE, plan.folder, scheduler, str(seed), *shlex.split(test)]
    try:
        outcome = plain_lab.run(plan.kernel, argv, needs=[plan.folder.parents[1]], seed=seed)
    except plain_lab.LabError as error:
        log.write_text(f"{error}\n")
        results = {"the lab": Result.FAILED}
        return Run(test, scheduler, seed, results, [], time.monotonic() - begin, str(log))
    log.write_text(f"{outcome.output}\n--- kernel log\n{outcome.console}")
    return Run(
        test,
        scheduler,
        seed,
        ktap.parse(outcome.output, outcome.exit_code),
        outcome.complaints(),
        time.monotonic() - begin,
        str(log),
    )


def report(runs: Sequence[Run], known: Sequence[differences.Difference]) -> int:
    """Print the table and the regressions; return the exit status."""
    baselines = {(run.test, run.seed): run for run in runs if run.scheduler == BASELINE}
    verdicts: dict[int, Verdict] = {
        index: verdict.judge(run, baselines[run.test, run.seed], known)
        for index, run in enumerate(runs)
        if run.scheduler != BASELINE
    }
    print(verdict.table(runs, verdicts))
    bad = False
    for index, run in enumerate(runs):
        where = f"{run.test}, {run.scheduler}, seed {run.seed}"
        worse = verdicts[index].regressions if index in verdicts else []
        for what in [f"worse than default: {name}" for name in worse] + list(run.complaints):
            print(f"{where}: {what} ({run.log})")
            bad = True
        if run.scheduler == BASELINE:
            for name, result in run.results.items():
                if result is Result.FAILED:
                    print(f"{where}: fails with default too: {name} ({run.log})")
            if not run.count(Result.PASSED):
                print(f"{where}: nothing passed, so there is nothing to compare ({run.log})")
                bad = True
    for one in verdict.stale(runs, verdicts, known):
        print(f"differences.toml: {one.test} of {one.schedulers} no longer differs")
        bad = True
    return 1 if bad else 0
