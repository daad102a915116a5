#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What a scheduling decision costs, in nanoseconds, for every scheduler.

Boots a lab, loads weft_cost.ko (cost.c beside this file), runs the same flows under each
scheduler, and prints median and 99th percentile of the callback that decides. The cycles
are of the machine's time stamp counter, whose rate is measured here: the lab's own clock
does not move while its kernel computes.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
WEFT = ROOT / "target" / "release" / "weft"
COUNTER = r"""
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>
static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}
int main(void)
{
	double begin = now();
	unsigned long long cycles = __rdtsc();
	while (now() - begin < 2e8)
		;
	printf("%.6f\n", (__rdtsc() - cycles) / (now() - begin));
}
"""
"""Prints the time stamp counter's cycles per nanosecond."""


@dataclass(frozen=True)
class Cost:
    """A line of /proc/weft_cost."""

    scheduler: str
    decisions: int
    median_cycles: int
    p99_cycles: int


def main() -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--flows", type=int, default=100, help="per scheduler [100]")
    parser.add_argument("--schedulers", help="comma-separated [all]")
    options = parser.parse_args()
    try:
        costs = measure(options.flows, options.schedulers)
        rate = cycles_per_ns()
    except (RuntimeError, subprocess.CalledProcessError) as error:
        print(f"cost: {error}", file=sys.stderr)
        return 1
    print(table(costs, rate))
    return 0


def measure(flows: int, chosen: str | None) -> list[Cost]:
    """Run flows under each scheduler; return what its decisions cost."""
    module = weft_cost()
    with lab() as name:
        shell(name, f"insmod {module}")
        names = shell(name, "cat /proc/sys/net/mptcp/available_schedulers").split()
        timed = [known[2:] for known in names if known.startswith("t_")]
        if not timed:
            raise RuntimeError("weft_cost.ko was not loaded; see `weft shell`, then `sh dmesg`")
        for scheduler in chosen.split(",") if chosen else timed:
            if scheduler not in timed:
                raise RuntimeError(f"no scheduler {scheduler}; there are {', '.join(timed)}")
            workload(name, scheduler, flows)
        lines = shell(name, "cat /proc/weft_cost").splitlines()
    return [Cost(n, int(d), int(m), int(p)) for n, d, m, p in map(str.split, lines)]


def weft_cost() -> Path:
    """Build the modules; return where the one of this benchmark is."""
    build = ROOT / "topology" / "lab" / "kernel" / "build.py"
    done = subprocess.run(
        [sys.executable, build, "--json"], check=True, stdout=subprocess.PIPE, text=True
    )
    modules: list[str] = json.loads(done.stdout)["modules"]
    return Path(modules[0]).with_name("weft_cost.ko")


@contextlib.contextmanager
def lab() -> Iterator[str]:
    """Keep a lab up; gives its name."""
    name = f"cost{os.getpid()}"
    weft("topo", "up", "--name", name, "--clock", "free")
    try:
        yield name
    finally:
        weft("topo", "down", "--name", name)


def workload(name: str, scheduler: str, flows: int) -> None:
    """Run flows in the lab under the timed twin of a scheduler."""
    with tempfile.TemporaryDirectory() as folder:
        traffic = ("--workload", "websearch", "--flows", str(flows))
        out = ("--out", f"{folder}/run")
        weft("workload", "--name", name, *traffic, "--scheduler", f"t_{scheduler}", *out)


def shell(name: str, line: str) -> str:
    """Run a command inside the lab; give its output."""
    text = weft("shell", "--name", name, stdin=f"sh {line}\nexit\n")
    prompt = "mininet> "
    return "\n".join(row for row in text.splitlines() if row and not row.startswith(prompt))


def weft(*arguments: str, stdin: str = "") -> str:
    """Run `weft`; give its output."""
    done = subprocess.run([WEFT, *arguments], input=stdin, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip() or f"weft {arguments[0]}: {done.returncode}")
    return done.stdout


def cycles_per_ns() -> float:
    """Measure the rate of the time stamp counter."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "tsc.c"), Path(folder, "tsc")
        source.write_text(COUNTER)
        subprocess.run(["gcc", "-O1", "-o", program, source], check=True)
        done = subprocess.run([program], check=True, capture_output=True, text=True)
    return float(done.stdout)


def table(costs: list[Cost], rate: float) -> str:
    """Lay out the costs, less that of measuring, beside upstream's default."""
    nothing = next(cost for cost in costs if cost.scheduler == "none")
    rest = [cost for cost in costs if cost.scheduler != "none"]
    median = {c.scheduler: (c.median_cycles - nothing.median_cycles) / rate for c in rest}
    rows = [f"{'scheduler':12} {'decisions':>9} {'median':>8} {'p99':>9} {'over default':>13}"]
    for cost in rest:
        p99 = (cost.p99_cycles - nothing.median_cycles) / rate
        over = median[cost.scheduler] - median["default"] if "default" in median else float("nan")
        rows.append(
            f"{cost.scheduler:12} {cost.decisions:9} {median[cost.scheduler]:5.0f} ns"
            f" {p99:6.0f} ns {over:+10.0f} ns"
        )
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(main())
