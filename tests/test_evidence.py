# SPDX-License-Identifier: Apache-2.0
"""`weft run --capture` and `weft evidence`: what happened to every packet."""

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from driver import Weft, rows

pytestmark = pytest.mark.lab

INCAST = "--traffic incast --senders 4 --bytes 225000 --send-buffer 65536 --queue 60"


@pytest.fixture(scope="module")
def runs(weft: Weft, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run per scheduler, with its evidence."""
    return captured(weft, tmp_path_factory.mktemp("evidence") / "runs", INCAST)


def captured(weft: Weft, out: Path, traffic: str) -> Path:
    flags = f"compare {traffic} --schedulers rb,roundrobin --capture all --arrivals all --out"
    weft.run(*flags.split(), str(out))
    text = weft.run("evidence", str(out / "rb"), str(out / "roundrobin"))
    assert "out-of-order delay" in text
    return out


def summary(run: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((run / "evidence/summary.json").read_text())
    return document


def test_packets_interleaved_by_a_pattern_wait_less_for_each_other(
    weft: Weft, tmp_path: Path
) -> None:
    # With overflowing queues, packets would wait for lost ones.
    runs = captured(weft, tmp_path / "runs", INCAST.replace("--queue 60", "--queue 100"))
    delay = {s: summary(runs / s)["out_of_order_delay_ns"] for s in ("rb", "roundrobin")}
    assert delay["rb"]["p99"] < delay["roundrobin"]["p99"]
    assert delay["rb"]["mean"] < delay["roundrobin"]["mean"]


@pytest.mark.parametrize("scheduler", ["rb", "roundrobin"])
def test_every_byte_of_every_flow_is_in_the_captures(runs: Path, scheduler: str) -> None:
    run = runs / scheduler
    sent: Counter[tuple[str, str]] = Counter()
    for flow in rows(run / "flows.csv"):
        sent[flow["src"], flow["dst"]] += int(flow["bytes"])
    arrived: Counter[tuple[str, str]] = Counter()
    for connection in rows(run / "evidence/connections.csv"):
        arrived[connection["source"], connection["destination"]] += int(connection["data_bytes"])
    assert sum(sent.values()) == 4 * 225_000
    assert arrived == sent


@pytest.mark.parametrize("scheduler", ["rb", "roundrobin"])
def test_losses_agree_with_the_counters_of_switches_and_kernels(runs: Path, scheduler: str) -> None:
    run = runs / scheduler
    last = {(r["switch"], r["port"]): int(r["dropped_packets"]) for r in rows(run / "queues.csv")}
    seen = {
        (r["switch"], r["port"]): int(r["dropped_packets"])
        for r in rows(run / "evidence/ports.csv")
    }
    assert seen == {port: last[port] for port in seen}
    assert sum(seen.values()) == sum(last.values())
    found = summary(run)
    assert found["dropped_packets"] > 0
    assert found["lost_packets"] == found["dropped_packets"]
    again = sum(int(flow["retransmissions"]) for flow in rows(run / "flows.csv"))
    # The kernel's count is from the end of the flow. After that, a subflow may still retransmit
    # data that another one has delivered.
    assert again <= found["retransmitted_packets"] <= again + found["duplicate_packets"]


def test_the_longest_queue_is_that_of_the_switches_own_log(runs: Path) -> None:
    longest = max(int(r["queue_max_packets"]) for r in rows(runs / "rb/queues.csv"))
    # An arrival sees the queue in front of it; a dropped one sees the full queue.
    assert summary(runs / "rb")["queue_packets"]["max"] == longest == 60


def test_percentiles_and_counts_of_one_run_agree_with_its_packets(weft: Weft, runs: Path) -> None:
    weft.run("evidence", "--packets", str(runs / "rb"))
    packets = rows(runs / "rb/evidence/packets.csv")
    delays = sorted(int(p["out_of_order_delay_ns"]) for p in packets if p["kind"] != "duplicate")
    found = summary(runs / "rb")
    assert len(delays) == found["data_packets"]
    assert delays[-1] == found["out_of_order_delay_ns"]["max"]
    median = delays[(len(delays) + 1) // 2 - 1]
    assert found["out_of_order_delay_ns"]["p50"] == pytest.approx(median, rel=1e-3)
    acks = rows(runs / "rb/evidence/data_acks.csv")
    assert sum(int(ack["leap_packets"]) for ack in acks) == len(delays)


def test_a_capture_does_not_change_what_it_captures(weft: Weft, runs: Path, tmp_path: Path) -> None:
    """A repeated capture is also identical."""
    bare = "run --scheduler rb --out"
    weft.run(*bare.split(), str(tmp_path / "bare"), *INCAST.split())
    assert not (tmp_path / "bare/capture").exists()
    weft.run(*bare.split(), str(tmp_path / "again"), *INCAST.split(), "--capture", "h1_1,h2_1")
    for run in ("bare", "again"):
        flows = (tmp_path / run / "flows.csv").read_bytes()
        assert flows == (runs / "rb/flows.csv").read_bytes(), run
    captured = {file.name for file in (tmp_path / "again/capture").iterdir()}
    assert captured == {
        "arrivals.csv",
        "digests.csv",
        "h1_1.pcap",
        "h2_1.pcap",
        "topology.json",
    }
    for name in ("h1_1.pcap", "h2_1.pcap"):
        again = (tmp_path / "again/capture" / name).read_bytes()
        assert again == (runs / "rb/capture" / name).read_bytes()
    document = json.loads((tmp_path / "again/run.json").read_text())
    assert document["lab"]["capture"] == {"hosts": ["h1_1", "h2_1"], "arrivals": "hosts"}


def test_a_capture_opens_in_other_tools(runs: Path) -> None:
    """All segments can be decoded by tcpdump from the captured bytes."""
    path = runs / "rb/capture/h2_1.pcap"
    text = subprocess.run(
        ["tcpdump", "-n", "-r", str(path)], capture_output=True, text=True, check=True
    ).stdout
    assert len(text.splitlines()) == len(frames(path))
    assert "mptcp" in text


def frames(path: Path) -> list[int]:
    """Give the length of each frame of a capture."""
    data, at, lengths = path.read_bytes(), 24, []
    while at < len(data):
        kept, length = (int.from_bytes(data[at + i : at + i + 4], "little") for i in (8, 12))
        lengths.append(length)
        at += 16 + kept
    return lengths


def test_a_run_without_captures_says_so(weft: Weft, tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    done = weft.try_run("evidence", str(tmp_path / "x"))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "no folder capture in it; run it with --capture all" in done.stderr


def test_an_unknown_host_is_refused_by_name(weft: Weft, tmp_path: Path) -> None:
    done = weft.try_run("run", "--flows", "1", "--capture", "h9_9", "--out", str(tmp_path / "x"))
    assert done.returncode != 0
    assert "--capture h9_9: no such host; there are h1_1" in done.stderr
    assert not (tmp_path / "x").exists()
