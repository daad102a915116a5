# SPDX-License-Identifier: Apache-2.0
"""Metrics of the samples of subflows, and of the gaps that STMS sent."""

from pathlib import Path

import pytest
from weft_scenarios.measures import evidence, samples

HEAD = (
    "flow,time_ns,source,source_port,destination,srtt_ns,min_rtt_ns,cwnd_packets,in_flight_packets"
)


def sampled(folder: Path, rows: list[str]) -> Path:
    (folder / samples.FILE).write_text("\n".join([HEAD, *rows]) + "\n")
    return folder


def test_free_window_and_gap_are_those_of_the_first_flows_fast_and_slow_subflow(
    tmp_path: Path,
) -> None:
    slow, fast = "10.1.1.1,1,10.2.1.1,100000000,90", "10.1.1.2,2,10.2.1.1,20000000,10"
    rows = [
        f"0,0,{slow},40,40", f"0,0,{fast},10,4",
        f"0,5000000,{slow},40,39", f"0,5000000,{fast},20,20",
        f"1,5000000,{fast},99,0",
    ]  # fmt: skip
    metrics, curves = samples.read(sampled(tmp_path, rows))
    assert metrics["fast_free_window_mean_packets"] == 3
    assert metrics["fast_free_window_max_packets"] == 6
    assert metrics["fast_cwnd_mean_packets"] == 15
    assert curves["slow_cwnd_packets"] == ([0, 5], [40, 40])
    # Equation 2: 10 packets per 20 ms, for 40 ms; and twice as many.
    assert curves["true_gap_packets"][1] == pytest.approx([20, 40])


def test_a_single_subflow_has_no_gap(tmp_path: Path) -> None:
    rows = ["0,0,10.1.1.1,1,10.2.1.1,20000000,10,10,4"]
    metrics, curves = samples.read(sampled(tmp_path, rows))
    assert metrics["fast_free_window_mean_packets"] == 6
    assert curves.keys() == {"fast_cwnd_packets"}


def test_a_run_without_samples_has_no_sample_metrics(tmp_path: Path) -> None:
    assert samples.read(tmp_path) == ({}, {})
    assert samples.read(sampled(tmp_path, [])) == ({}, {})


def captured(run: Path, *gaps: str) -> Path:
    head = "time_ns,connection,source,destination,subflow,data_sequence,unsent_bytes"
    (run / evidence.FOLDER).mkdir()
    (run / evidence.FOLDER / "gaps.csv").write_text("\n".join([head, *gaps]) + "\n")
    return run


def test_gaps_are_in_packets_of_the_first_connection(tmp_path: Path) -> None:
    run = captured(
        tmp_path,
        f"1000000,3,h1_1,h2_1,1,9999,{5 * evidence.PACKET_BYTES}",
        f"2000000,3,h1_1,h2_1,1,99999,{7 * evidence.PACKET_BYTES}",
        "2000000,4,h1_1,h2_1,1,99999,1",
    )
    gaps = evidence.gap_packets(run)
    assert gaps["time_ms"].to_list() == [1, 2]
    assert gaps["packets"].to_list() == [5, 7]


def test_a_capture_without_gaps_has_no_gap_metrics(tmp_path: Path) -> None:
    assert evidence.gap_packets(captured(tmp_path)).is_empty()
