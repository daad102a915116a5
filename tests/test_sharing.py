# SPDX-License-Identifier: Apache-2.0
"""Beside plain TCP, weft gets what the default scheduler gets there, and takes no more.

Goodputs are means over seeds: of the TCP flows in one run, one may have much more than another.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import pytest
from driver import Weft, rows

pytestmark = pytest.mark.lab

SEEDS = (101, 102, 103)
SEEDS_ONE_HOST_SHARED = (3, 4, 5, 207, 208)
"""With most of these, TCP sends from the host of one of the two measured flows."""
PLACES = {
    "host": "--hosts 1 --flows 1 --background-tcp 2",
    "leaf": "--hosts 4 --rate 500mbit --flows 2 --background-tcp 2",
    "receiver": "--hosts 4,1 --flows 2 --background-tcp 3",
    "short buffer": "--hosts 4 --rate 500mbit --flows 2 --background-tcp 2 --queue 25",
}
"""Where the queue is that they share."""
CONGESTION = {
    "cubic": "",
    "reno": "--congestion reno",
    "bbr": "--congestion bbr",
    "dctcp": "--congestion dctcp --ecn 20",
}


@dataclass
class Share:
    """Goodputs in one run, in bits per second."""

    flows: list[float]
    """Of each measured flow."""
    others: float
    """Of all TCP flows in the background that go the same way."""


def share(weft: Weft, out: Path, scheduler: str, seed: int, arguments: str) -> Share:
    """Run long flows for a second, beside others."""
    fixed = f"--traffic bulk --duration 1s --scheduler {scheduler} --seed {seed}"
    weft.run("run", *fixed.split(), *arguments.split(), "--out", str(out))
    duration_ns = json.loads((out / "run.json").read_text())["outcome"]["duration_ns"]
    same_way = [row for row in rows(out / "background.csv") if row["src"].startswith("h1_")]
    return Share(
        [8e9 * int(row["bytes"]) / int(row["fct_ns"]) for row in rows(out / "flows.csv")],
        sum(8e9 * int(row["bytes"]) / duration_ns for row in same_way),
    )


def jain(values: list[float]) -> float:
    """Jain's index: 1 if all are equal, 1/n if one has everything."""
    return sum(values) ** 2 / (len(values) * sum(value**2 for value in values))


@pytest.mark.parametrize(
    ("place", "congestion"),
    [
        ("host", "cubic"),
        ("leaf", "cubic"),
        ("leaf", "bbr"),
        ("leaf", "dctcp"),
        ("receiver", "dctcp"),
        ("short buffer", "reno"),
        ("short buffer", "dctcp"),
    ],
)
def test_weft_gets_its_share_and_leaves_the_others_theirs(
    weft: Weft, tmp_path: Path, place: str, congestion: str
) -> None:
    arguments = f"{PLACES[place]} {CONGESTION[congestion]}"
    runs = {
        scheduler: [
            share(weft, tmp_path / f"{scheduler}-{seed}", scheduler, seed, arguments)
            for seed in SEEDS
        ]
        for scheduler in ("weft", "default")
    }
    flows = {name: mean(sum(one.flows) for one in of) for name, of in runs.items()}
    others = {name: mean(one.others for one in of) for name, of in runs.items()}
    assert flows["weft"] >= 0.9 * flows["default"], (flows, others)
    assert others["weft"] >= 0.9 * others["default"], (flows, others)
    assert mean(jain(one.flows) for one in runs["weft"]) >= 0.95, runs["weft"]


@pytest.mark.parametrize("place", ["leaf", "short buffer"])
def test_flows_of_weft_share_evenly_when_only_one_has_tcp_in_its_own_host(
    weft: Weft, tmp_path: Path, place: str
) -> None:
    arguments = f"{PLACES[place]} {CONGESTION['dctcp']}"
    runs = [
        share(weft, tmp_path / str(seed), "weft", seed, arguments) for seed in SEEDS_ONE_HOST_SHARED
    ]
    assert mean(jain(one.flows) for one in runs) >= 0.95, runs


def test_long_flows_of_weft_do_not_take_each_other_for_other_traffic(
    weft: Weft, tmp_path: Path
) -> None:
    """Else they compete, and the queue is as long as DCTCP keeps it, 20 packets."""
    fixed = "--traffic bulk --duration 1s --flows 4 --hosts 4,1 --scheduler weft --seed 101"
    weft.run(
        "run", *fixed.split(), *CONGESTION["dctcp"].split(), "--out", str(tmp_path / "results")
    )
    queue_packets = [
        int(row["queue_packets"])
        for row in rows(tmp_path / "results" / "queues.csv")
        if row["peer"] == "h2_1"
    ]
    assert mean(queue_packets) < 15
