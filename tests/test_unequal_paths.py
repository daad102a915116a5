# SPDX-License-Identifier: Apache-2.0
"""Paths that differ, lose packets, change and fail, by flags of `weft run`."""

from collections import defaultdict
from math import sqrt
from pathlib import Path
from typing import Any

import pytest
from driver import SCHEDULERS, Weft, rows

pytestmark = pytest.mark.lab

SECOND_NS = 1_000_000_000
Rows = list[dict[str, str]]


def run(weft: Weft, out: Path, arguments: str) -> None:
    weft.run("run", "--hosts", "2", *arguments.split(), "--out", str(out))


def last(queues: Rows) -> dict[tuple[str, str], dict[str, int]]:
    """Give the final counters of each port, by switch and peer."""
    counts = ("tx_packets", "tx_bytes", "dropped_packets", "lost_packets")
    return {(r["switch"], r["peer"]): {c: int(r[c]) for c in counts} for r in queues}


def test_a_spine_loses_the_configured_share(weft: Weft, tmp_path: Path) -> None:
    run(weft, tmp_path / "x", "--traffic bulk --bytes 20MB --spine-loss 2=1% --rate 100mbit")
    counts = last(rows(tmp_path / "x" / "queues.csv"))
    for leaf in ("leaf1", "leaf2"):
        arrived = counts[leaf, "spine2"]["tx_packets"]
        lost = counts["spine2", leaf]["lost_packets"]
        assert arrived > 2000
        # Five standard deviations of a binomial distribution.
        assert abs(lost - 0.01 * arrived) < 5 * sqrt(0.01 * 0.99 * arrived), (leaf, lost, arrived)
        assert counts["spine1", leaf]["lost_packets"] == 0


def test_a_spine_has_its_own_rate_and_queue(weft: Weft, tmp_path: Path) -> None:
    run(
        weft,
        tmp_path / "x",
        "--traffic bulk --duration 1s --scheduler minrtt --spine-rate 1=100mbit,2=20mbit "
        "--spine-queue 1=50,2=10",
    )
    queues = rows(tmp_path / "x" / "queues.csv")
    counts = last(queues)
    for spine, rate_bps, depth in (("spine1", 100e6, 50), ("spine2", 20e6, 10)):
        sent_bps = counts["leaf1", spine]["tx_bytes"] * 8
        # The last row is from 20 ms after the end.
        assert 0.8 * rate_bps < sent_bps <= 1.03 * rate_bps
        depths = [int(r["queue_max_packets"]) for r in queues if r["peer"] == spine]
        assert max(depths) == depth


def goodput_bps(queues: Rows, spine: str, start_ns: int, end_ns: int) -> float:
    """Give the rate at which a spine sent to leaf 2."""
    points = [
        (int(r["time_ns"]), int(r["tx_bytes"]))
        for r in queues
        if (r["switch"], r["peer"]) == (spine, "leaf2") and start_ns <= int(r["time_ns"]) <= end_ns
    ]
    (first_ns, first), (last_ns, bytes_) = points[0], points[-1]
    return (bytes_ - first) * 8e9 / (last_ns - first_ns)


def test_a_rate_change_takes_effect_at_its_time(weft: Weft, tmp_path: Path) -> None:
    run(
        weft,
        tmp_path / "x",
        "--traffic bulk --duration 3s --rate 50mbit --change 1s:1:rate=10mbit;2s:1:rate=50mbit",
    )
    queues = rows(tmp_path / "x" / "queues.csv")
    margin_ns = SECOND_NS // 5
    for second, rate_bps in ((0, 50e6), (1, 10e6), (2, 50e6)):
        begin_ns = second * SECOND_NS + margin_ns
        found = goodput_bps(queues, "spine1", begin_ns, (second + 1) * SECOND_NS - 1)
        assert found <= 1.02 * rate_bps, second
        assert found >= 0.5 * rate_bps, second


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_spine_that_fails_costs_a_flow_at_most_one_timeout(
    weft: Weft, tmp_path: Path, scheduler: str
) -> None:
    out = tmp_path / "x"
    run(weft, out, f"--traffic bulk --bytes 20MB --change 30ms:2:down --scheduler {scheduler}")
    (flow,) = rows(out / "flows.csv")
    assert flow["error"] == ""
    # Both paths together do not exceed the host's link. The RTO of Linux is 200 ms after the last
    # ACK, which receivers delay by up to 40 ms; queues add the rest.
    timeout_ns = 270_000_000
    assert int(flow["fct_ns"]) < int(flow["ideal_fct_ns"]) + timeout_ns
    assert last(rows(out / "queues.csv"))["spine2", "leaf2"]["lost_packets"] > 0


def test_with_the_kernels_own_scheduler_a_flow_survives_a_spine_that_fails(
    weft: Weft, tmp_path: Path
) -> None:
    """It may wait until the kernel marks the subflow as stale: four timeouts with backoff."""
    run(
        weft, tmp_path / "x", "--traffic bulk --bytes 20MB --change 30ms:2:down --scheduler default"
    )
    (flow,) = rows(tmp_path / "x" / "flows.csv")
    assert flow["error"] == ""


def test_hosts_can_send_faster_than_they_receive(weft: Weft, tmp_path: Path) -> None:
    run(
        weft,
        tmp_path / "x",
        "--traffic incast --senders 2 --bytes 2MB --host-rate 100mbit --sender-rate 200mbit",
    )
    flows = rows(tmp_path / "x" / "flows.csv")
    assert len(flows) == 2
    for flow in flows:
        assert int(flow["fct_ns"]) >= int(flow["ideal_fct_ns"])
    counts = last(rows(tmp_path / "x" / "queues.csv"))
    receiver = flows[0]["dst"]
    leaf = f"leaf{receiver[1]}"
    end_ns = max(int(flow["fct_ns"]) for flow in flows)
    received_bps = counts[leaf, receiver]["tx_bytes"] * 8e9 / end_ns
    assert received_bps <= 1.01 * 100e6


def test_a_stopped_flow_reports_its_bytes_and_a_page_keeps_its_connections_busy(
    weft: Weft, tmp_path: Path
) -> None:
    run(weft, tmp_path / "bulk", "--traffic bulk --flows 3 --duration 500ms --host-rate 100mbit")
    flows = rows(tmp_path / "bulk" / "flows.csv")
    assert [(f["src"], f["dst"]) for f in flows] == [
        ("h1_1", "h2_1"),
        ("h1_2", "h2_2"),
        ("h1_1", "h2_1"),
    ]
    by_host: dict[str, int] = defaultdict(int)
    for flow in flows:
        assert abs(int(flow["fct_ns"]) - SECOND_NS // 2) < 10_000
        by_host[flow["dst"]] += int(flow["bytes"])
    assert all(0.8 * 50e6 < bytes_ * 8 < 50e6 for bytes_ in by_host.values())

    run(weft, tmp_path / "page", "--traffic page --objects 20 --bytes 2MB --parallel 4")
    objects = rows(tmp_path / "page" / "flows.csv")
    spans = [(int(o["start_ns"]), int(o["start_ns"]) + int(o["fct_ns"])) for o in objects]
    assert [int(o["bytes"]) for o in objects] == [100_000] * 20
    moments = [start for start, _ in spans if start < spans[16][0]]
    assert len(moments) >= 4
    for moment in moments:
        running = sum(start <= moment < end for start, end in spans)
        assert running <= 4
    assert sum(start == spans[0][0] for start, _ in spans) == 4


@pytest.mark.parametrize(
    ("arguments", "rtt_ns", "tolerance"),
    [
        ("--spine-delay 1=149.99ms,2=149.99ms --bytes 2MB", 600_000_000, 0.02),
        ("--rate 1mbit --host-rate 1mbit --bytes 100KB", 0, 0.05),
        ("--rate 100gbit --host-rate 100gbit --delay 2us --bytes 20MB", 0, 0.2),
    ],
)
def test_very_long_slow_and_fast_paths_work(
    weft: Weft, tmp_path: Path, arguments: str, rtt_ns: int, tolerance: float
) -> None:
    run(weft, tmp_path / "x", f"--traffic bulk {arguments}")
    (flow,) = rows(tmp_path / "x" / "flows.csv")
    assert (flow["error"], flow["subflows"]) == ("", "2")
    measured: dict[str, Any] = {
        row["path"]: int(row["rtt_ns"]) for row in rows(tmp_path / "x" / "patterns.csv")
    }
    assert set(measured) == {"0", "1"}
    if rtt_ns:
        assert all(rtt == pytest.approx(rtt_ns, rel=tolerance) for rtt in measured.values())
