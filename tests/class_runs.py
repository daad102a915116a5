# SPDX-License-Identifier: Apache-2.0
"""Runs with classes of what is left to send, and what tests ask of them."""

import json
import re
from pathlib import Path
from statistics import mean
from typing import Any

import plain_lab
from driver import Lab, Weft, python, rows

SEEDS = (101, 102)
DCTCP = "--congestion dctcp --ecn 20 --rto-min 5ms"
WEBSEARCH = f"--workload websearch --load 0.7 --flows 60 {DCTCP}"
SHORT_BYTES = 100_000

Flow = dict[str, str]


def flows(weft: Weft, out: Path, flags: str) -> list[Flow]:
    """Give the rows of all flows of all seeds; all have arrived."""
    found: list[Flow] = []
    for seed in SEEDS:
        folder = out / str(seed)
        weft.run("run", *flags.split(), "--seed", str(seed), "--out", str(folder))
        found += rows(folder / "flows.csv")
    assert {flow["error"] for flow in found} == {""}
    return found


def mean_fct_ms(given: list[Flow], most_bytes: int = 10**12) -> float:
    """Mean FCT of the flows up to a size."""
    return mean(int(flow["fct_ns"]) / 1e6 for flow in given if int(flow["bytes"]) <= most_bytes)


def of_kernel(verb: str) -> str:
    """A command for the prompt of a host, see `kernel_tests.thresholds`."""
    tests = plain_lab.ROOT / "tests"
    return f"env PYTHONPATH={tests} python3 -m kernel_tests.thresholds {verb}"


def in_kernel(lab: Lab, host: str) -> Any:
    """The thresholds that a host's kernel holds, and whether they live."""
    said = lab.shell(f"{host} {of_kernel('show')}")
    return json.loads(said[said.index("{") : said.index("}") + 1])


def in_leaf(lab: Lab, leaf: str) -> set[tuple[int, int]]:
    """The bytes that flows which claim nothing may have sent in their two classes, by host."""
    options = ("--table", "by_sent.hosts", "--name", lab.name)
    said = python("p4runtime/read_tables.py", leaf, *options)
    found = re.findall(r"short_bytes=(\d+) .*long_bytes=(\d+)", said)
    return {(int(short), int(long)) for short, long in found}


def load(lab: Lab, out: Path, *flags: str) -> list[Flow]:
    """Flows of a workload over DCTCP with the scheduler weft."""
    lab.run("workload", *flags, *"--congestion dctcp --scheduler weft --out".split(), str(out))
    return rows(out / "flows.csv")
