# SPDX-License-Identifier: Apache-2.0
"""Gray failures: the controller notices links that lose packets from the counters of switches."""

from pathlib import Path
from statistics import fmean

import pytest
from driver import Labs, Weft, rows
from telemetry import digests

pytestmark = pytest.mark.lab

MS_NS = 1_000_000


def decided_ns(out: Path, rule: str, leaf: str = "1") -> list[int]:
    """Give the times of patterns from a leaf that a rule decided."""
    return [
        int(row["decided_ns"])
        for row in rows(out / "loop.csv")
        if (row["rule"], row["source_leaf"]) == (rule, leaf)
    ]


def test_a_path_that_loses_a_hundredth_leaves_the_patterns_and_returns(
    labs: Labs, tmp_path: Path
) -> None:
    change = "at 20ms link leaf1-spine2 loss 1%; at 300ms link leaf1-spine2 loss 0%"
    lab = labs.up("--hosts", "2", "--spines", "4", "--change", change)
    traffic = "workload --traffic incast --senders 2 --bytes 80000000 --scheduler rb"
    lab.run(*traffic.split(), "--out", str(tmp_path / "x"))
    (history,) = [
        pair["history"] for pair in lab.json("patterns", "--history") if pair["source_leaf"] == 1
    ]
    gray = next(decision for decision in history if decision["rule"] == "gray")
    assert [gap > 0 for gap in gray["gaps"]] == [True, False, True, True]
    # The switch at the end of the link has counted the loss.
    assert gray["trigger"]["switch"] == "spine2"
    loss = gray["trigger"]["loss"]
    assert 0.005 < loss["lost_packets"] / loss["packets"] < 0.02
    returned = next(decision for decision in history if decision["rule"] == "returned")
    assert [gap > 0 for gap in returned["gaps"]] == [True] * 4
    print("gray for", (returned["decided_ns"] - gray["decided_ns"]) / MS_NS, "ms")
    assert [path["loss_ppm"] for path in lab.patterns()[1, 2]["paths"]] == [None] * 4


def test_a_gray_path_is_explained(labs: Labs, tmp_path: Path) -> None:
    change = "at 5ms link leaf1-spine2 loss 2%"
    lab = labs.up("--hosts", "2", "--spines", "4", "--change", change)
    traffic = "workload --traffic incast --senders 2 --bytes 20000000 --scheduler rb"
    lab.run(*traffic.split(), "--out", str(tmp_path / "x"))
    well, gray, *others = lab.json("explain", "h1_1", "h2_1")["paths"]
    assert [path["loss_ppm"] for path in (well, *others)] == [None] * 3
    assert 10_000 < gray["loss_ppm"] < 40_000
    text = lab.run("explain", "h1_1", "h2_1")
    assert "spine2 (loses " in text
    assert " gray " in text
    assert "a path drops packets" in lab.run("patterns", "--history")


def test_flows_end_sooner_when_a_gray_path_is_avoided(weft: Weft, tmp_path: Path) -> None:
    # One of four paths; with two, the other one could not carry all the traffic.
    traffic = "--spines 4 --workload websearch --scale 0.05 --load 0.3 --flows 600 --scheduler rb"
    change = ["--change", "at 1ms link leaf1-spine2 loss 1%"]

    def mean_ms(limit: str, seed: int) -> float:
        out = tmp_path / f"{limit}-{seed}"
        own = ["--gray-loss", limit, "--seed", str(seed), "--out", str(out)]
        weft.run("run", *traffic.split(), *change, *own)
        return fmean(int(row["fct_ns"]) / MS_NS for row in rows(out / "flows.csv"))

    # By seed, 0.5 to 1.1.
    means = {
        limit: fmean(mean_ms(limit, seed) for seed in range(1, 6)) for limit in ("0.5%", "100%")
    }
    print(means)
    assert means["0.5%"] < 0.9 * means["100%"]


def test_drops_of_full_queues_do_not_count_as_losses_of_links(weft: Weft, tmp_path: Path) -> None:
    out = tmp_path / "x"
    # Hosts of two leaves send to one host of the third, so that spines drop too.
    fabric = "--leaves 3 --hosts 3 --queue 30 --spine-rate 1=300mbit --spine-rate 2=300mbit"
    traffic = "--traffic incast --senders 6 --bytes 3000000 --scheduler roundrobin --seed 1"
    weft.run("run", *fabric.split(), *traffic.split(), "--capture", "all", "--out", str(out))
    dropped: dict[str, int] = {}
    for row in rows(out / "queues.csv"):
        dropped[row["switch"]] = max(dropped.get(row["switch"], 0), int(row["dropped_packets"]))
    print(dropped)
    assert sum(count for switch, count in dropped.items() if switch.startswith("spine")) > 50
    assert not decided_ns(out, "gray")
    told = {digest.name for digest in digests(out / "capture")}
    assert "queue_sample_t" in told
    assert "loss_sample_t" not in told
