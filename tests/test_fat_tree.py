# SPDX-License-Identifier: Apache-2.0
"""Fat-trees with k = 4 (four paths between pods, two within a pod), k = 6 and k = 16."""

import json
from collections import defaultdict
from pathlib import Path

import pytest
from driver import Labs, Weft, rows

pytestmark = pytest.mark.lab


def test_flows_between_pods_use_four_paths_and_patterns_name_them(
    labs: Labs, tmp_path: Path
) -> None:
    lab = labs.up("--topology", "fat-tree", "--k", "4")
    lab.run("workload", "--workload", "websearch", "--flows", "40", "--out", str(tmp_path / "x"))
    flows = rows(tmp_path / "x" / "flows.csv")
    assert len(flows) == 40
    assert [flow["error"] for flow in flows] == [""] * 40
    patterns = lab.patterns().values()
    between_pods = [[path["via"] for path in p["paths"]] for p in patterns if is_far(p)]
    within_pods = [[path["via"] for path in p["paths"]] for p in patterns if not is_far(p)]
    assert between_pods
    assert within_pods
    for routes in between_pods:
        assert len(set(routes)) == 4
        cores = [core_of(route) for route in routes]
        assert sorted(cores) == ["core1", "core2", "core3", "core4"]
    for routes in within_pods:
        assert len(set(routes)) == 2
    for pattern in patterns:
        assert pattern["paths"]
        for path in pattern["paths"]:
            # At least the delay of the links, except for rounding; queues may add to it.
            assert path["rtt_min_ns"] >= 0.99 * path["rtt_configured_ns"]


def is_far(pattern: dict[str, object]) -> bool:
    """Say whether a pattern is for leaves of different pods."""
    pods = [(int(str(pattern[end])) - 1) // 2 for end in ("source_leaf", "destination_leaf")]
    return pods[0] != pods[1]


def core_of(via: str) -> str:
    """Give the core of a path between pods."""
    return via.split("-")[1]


def most_sent_by_cores(out: Path) -> dict[str, int]:
    """Give the bytes sent by the busiest port of each core."""
    sent = defaultdict[str, int](int)
    for row in rows(out / "queues.csv"):
        if row["switch"].startswith("core"):
            sent[row["switch"]] = max(sent[row["switch"]], int(row["tx_bytes"]))
    return sent


# Senders are at edge switches of all pods.
INCAST = "run --topology fat-tree --traffic incast --senders 6 --bytes 6MB --scheduler rb"


def test_all_cores_carry_a_connections_data(weft: Weft, tmp_path: Path) -> None:
    out = tmp_path / "x"
    weft.run(*INCAST.split(), "--out", str(out))
    assert [flow["error"] for flow in rows(out / "flows.csv")] == [""] * 6
    sent = most_sent_by_cores(out)
    assert sorted(sent) == ["core1", "core2", "core3", "core4"]
    # Equal paths carry a quarter each, apart from shifts by their queues. Some senders are in the
    # receiver's pod.
    assert min(sent.values()) > max(sent.values()) / 2 > 36e6 / 16, sent


# Each pair of leaves uses two of nine paths; leaves and aggregation switches both choose.
ONE_FLOW = "run --topology fat-tree --k 6 --subflows 2 --traffic incast --senders 1 --bytes 3MB"


def test_two_subflows_cross_the_two_of_nine_cores_that_patterns_name(
    weft: Weft, tmp_path: Path
) -> None:
    out = tmp_path / "x"
    weft.run(*ONE_FLOW.split(), "--out", str(out))
    (flow,) = rows(out / "flows.csv")
    assert (flow["error"], flow["subflows"]) == ("", "2")
    leaves = [flow[end].removeprefix("h").split("_")[0] for end in ("src", "dst")]
    patterns = rows(out / "patterns.csv")
    own = [p for p in patterns if [p["source_leaf"], p["destination_leaf"]] == leaves]
    sent = most_sent_by_cores(out)
    assert {core for core in sent if sent[core] > 10**6} == {core_of(p["via"]) for p in own}


def test_a_core_that_fails_leaves_patterns_with_exactly_its_paths(
    weft: Weft, tmp_path: Path
) -> None:
    out = tmp_path / "x"
    weft.run(*INCAST.split(), "--change", "30ms:core3:down", "--out", str(out))
    assert [flow["error"] for flow in rows(out / "flows.csv")] == [""] * 6
    versions = defaultdict[tuple[str, str, str], list[tuple[str, int]]](list)
    for row in rows(out / "patterns.csv"):
        key = (row["source_leaf"], row["destination_leaf"], row["version"])
        versions[key].append((row["via"], int(row["gap"])))
    without = [
        {core_of(via) for via, gap in paths if gap == 0}
        for paths in versions.values()
        if any(gap == 0 for _, gap in paths)
    ]
    assert without, "no pattern has left out a path"
    assert set(map(frozenset, without)) == {frozenset({"core3"})}


LARGEST = "run --topology fat-tree --k 16 --traffic incast --senders 64 --bytes 225KB"


def test_the_largest_fat_tree_starts_and_carries_flows_over_eight_paths(
    weft: Weft, tmp_path: Path
) -> None:
    out = tmp_path / "x"
    weft.run(*LARGEST.split(), "--out", str(out))
    topology = json.loads((out / "run.json").read_text())["topology"]
    assert (topology["hosts"], sum(topology["switches"].values())) == (1024, 320)
    flows = rows(out / "flows.csv")
    assert [flow["error"] for flow in flows] == [""] * 64
    assert {flow["subflows"] for flow in flows} == {"8"}
