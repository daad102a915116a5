# SPDX-License-Identifier: Apache-2.0
"""Metrics of the patterns of a run, and of the delays of the control loop."""

from pathlib import Path

import pytest
from weft_scenarios.measures import control_loop

PATTERNS = "time_ns,source_leaf,destination_leaf,version,path,via,rtt_ns,queue_packets,gap,sequence"
LOOP = "source_leaf,destination_leaf,version,host,sampled_ns,decided_ns,applied_ns,rested,rule"


def written(folder: Path, patterns: list[str], loops: list[str]) -> Path:
    (folder / "patterns.csv").write_text("\n".join([PATTERNS, *patterns]) + "\n")
    (folder / "loop.csv").write_text("\n".join([LOOP, *loops]) + "\n")
    return folder


def test_the_share_of_a_path_is_that_of_the_first_pair_until_the_next_pattern(
    tmp_path: Path,
) -> None:
    patterns = [
        "0,1,2,7,0,spine1,1,0,1,AB", "0,1,2,7,1,spine2,1,0,1,AB",
        "0,2,1,8,0,spine1,1,0,1,BBBA", "0,2,1,8,1,spine2,1,0,1,BBBA",
        "5000000,1,2,9,0,spine1,1,0,3,AAAB", "5000000,1,2,9,1,spine2,1,0,1,AAAB",
    ]  # fmt: skip
    metrics, curves = control_loop.read(written(tmp_path, patterns, []), 20.0)
    assert curves == {"path2_share_percent": ([0, 5, 20], [50, 25, 25])}
    assert metrics == {"patterns_per_s": 50}


def test_patterns_that_waited_or_had_no_sample_are_not_in_the_delays(tmp_path: Path) -> None:
    patterns = ["0,1,2,7,0,spine1,1,0,1,AB"]
    loops = [
        "1,2,7,h1_1,1000000,1050000,1070000,false,moved",
        "1,2,7,h1_2,1000000,1050000,1090000,false,moved",
        "1,2,8,h1_1,1000000,1050000,9000000,true,moved",
        "1,2,9,h1_1,,1050000,9000000,false,herd",
    ]
    metrics, _ = control_loop.read(written(tmp_path, patterns, loops), 20.0)
    assert metrics["sample_to_kernel_median_us"] == pytest.approx(80)
    assert metrics["sample_to_kernel_max_us"] == pytest.approx(90)


def test_a_run_without_patterns_has_no_pattern_metrics(tmp_path: Path) -> None:
    assert control_loop.read(tmp_path, 20.0) == ({}, {})
    assert control_loop.read(written(tmp_path, [], []), 20.0) == ({}, {})
