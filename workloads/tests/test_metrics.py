# SPDX-License-Identifier: Apache-2.0
"""Metrics of runs, for cases with known answers."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from weft_scenarios.measures import rb_model
from weft_scenarios.measures.metrics import measure
from weft_scenarios.measures.rb_model import Setting

FLOWS = (
    "flow,src,dst,bytes,start_ns,fct_ns,subflows,timeouts,retransmissions,reinjected_bytes,error"
)
QUEUES = (
    "time_ns,switch,port,peer,queue_packets,queue_max_packets,tx_packets,tx_bytes,dropped_packets"
)


LINKS = [
    {"between": "host-switch", "count": 4, "rate_bps": 1_000_000},
    {"between": "switch-switch", "count": 4, "rate_bps": 2_000_000},
]


def folder_of_a_run(
    folder: Path, fcts_ms: Sequence[int | None], gap_ms: int = 0, **workload: object
) -> Path:
    """Write the folder of a run whose flows start together, or with an interval."""
    info = {"kernel": "Linux 7", "revision": "1", "workload": workload}
    info |= {"topology": {"links": LINKS}}
    (folder / "run.json").write_text(json.dumps(info))
    gap_ns = gap_ms * 1_000_000
    rows = [f"{i},h1_{i},h2_1,1000,{i * gap_ns},{'' if f is None else f * 1_000_000},2,0,0,0,"
            for i, f in enumerate(fcts_ms)]  # fmt: skip
    (folder / "flows.csv").write_text("\n".join([FLOWS, *rows, ""]))
    (folder / "queues.csv").write_text(f"{QUEUES}\n1000000,leaf2,1,h2_1,5,9,90,90000,10\n")
    return folder


def test_a_query_takes_as_long_as_its_last_answer(tmp_path: Path) -> None:
    folder = folder_of_a_run(tmp_path, [1, 4, 2, 2, 9, 1], fan_out=2, deadline_ns=4_000_000)
    metrics = measure(folder).metrics
    assert metrics["query_mean_ms"] == pytest.approx((4 + 2 + 9) / 3)
    assert metrics["deadline_missed_percent"] == pytest.approx(100 / 3)


def test_a_query_without_all_answers_has_missed_its_deadline(tmp_path: Path) -> None:
    folder = folder_of_a_run(tmp_path, [1, None, 2, 3], fan_out=2, deadline_ns=4_000_000)
    metrics = measure(folder).metrics
    assert metrics["query_mean_ms"] == 3
    assert metrics["deadline_missed_percent"] == 50


def test_flows_that_are_not_queries_have_no_query_metrics(tmp_path: Path) -> None:
    assert "query_mean_ms" not in measure(folder_of_a_run(tmp_path, [1, 2])).metrics


def test_flows_from_1_mb_are_the_long_ones(tmp_path: Path) -> None:
    folder = folder_of_a_run(tmp_path, [30, 10, 20])
    flows = folder / "flows.csv"
    flows.write_text(flows.read_text().replace(",1000,", ",999999,", 1))
    assert "fct_long_p99_ms" not in measure(folder).metrics
    flows.write_text(flows.read_text().replace(",1000,", ",1000000,"))
    assert measure(folder).metrics["fct_long_p99_ms"] == 20


def test_flows_of_the_warm_up_are_in_no_metric(tmp_path: Path) -> None:
    warm = folder_of_a_run(tmp_path, [90, 90, 1, 3], gap_ms=1, warmup_ns=2_000_000)
    measured = measure(warm)
    assert measured.metrics["fct_mean_ms"] == 2
    assert measured.metrics["fct_max_ms"] == 3
    assert max(measured.curves["fct_ms"][1]) == 3


def test_what_switches_sent_is_divided_by_the_time_of_the_whole_run(tmp_path: Path) -> None:
    def sent_mbps(name: str, **workload: object) -> float:
        (tmp_path / name).mkdir()
        folder = folder_of_a_run(tmp_path / name, [90, 1, 1, 1], gap_ms=1, **workload)
        with (folder / "queues.csv").open("a") as queues:
            queues.write("1000000,leaf1,3,spine1,5,9,90,900000,0\n")
        return measure(folder).metrics["path1_mbps"]

    whole = sent_mbps("whole")
    assert whole == pytest.approx(900_000 * 8 / 90e3)
    assert sent_mbps("warm", warmup_ns=1_000_000) == whole


def test_jains_index_is_one_for_equal_rates_and_a_share_for_one_of_many(tmp_path: Path) -> None:
    assert measure(folder_of_a_run(tmp_path, [2, 2, 2])).metrics["jain_index"] == 1
    unequal = measure(folder_of_a_run(tmp_path, [1, 100_000_000, 100_000_000])).metrics
    assert unequal["jain_index"] == pytest.approx(1 / 3, rel=1e-3)
    assert "jain_index" not in measure(folder_of_a_run(tmp_path, [2, 2], gap_ms=1)).metrics


def test_background_flows_count_where_they_go_the_same_way(tmp_path: Path) -> None:
    folder = folder_of_a_run(tmp_path, [4, 4])
    assert "background_mbps" not in measure(folder).metrics
    same_way, other_way, elsewhere = "h1_9,h2_3,500", "h2_1,h1_1,9000", "h3_1,h2_1,9000"
    rows = ["src,dst,bytes", same_way, same_way, other_way, elsewhere, ""]
    (folder / "background.csv").write_text("\n".join(rows))
    assert measure(folder).metrics["background_mbps"] == pytest.approx(8000 / 4e3)
    # Nothing that goes the same way is no goodput of 0, which a ratio could be taken of.
    (folder / "background.csv").write_text("\n".join(["src,dst,bytes", other_way, elsewhere, ""]))
    assert "background_mbps" not in measure(folder).metrics


def test_the_offered_load_follows_from_sizes_and_start_times(tmp_path: Path) -> None:
    # 1000 B every 10 ms are 0.8 Mbit/s; one host, or each of four, has 1 Mbit/s.
    one = folder_of_a_run(tmp_path, [1, 2, 3], 10, traffic="many-to-one", load=0.5)
    assert measure(one).metrics["offered_load"] == pytest.approx(0.8)
    four = folder_of_a_run(tmp_path, [1, 2, 3], 10, traffic="random", load=0.5)
    assert measure(four).metrics["offered_load"] == pytest.approx(0.2)
    others = folder_of_a_run(tmp_path, [1, 2, 3], 10, traffic="replay")
    assert "offered_load" not in measure(others).metrics


FIG_12 = Setting(
    flows=15, subflows=6, window_packets=8, queue_packets=60, rtt_ms=6, subflow_packets=500
)
"""The right end of MPTCP-RB, Fig. 12(b)."""


def test_the_model_gives_the_thirty_percent_that_the_paper_reads_from_it() -> None:
    gain = 1 - rb_model.fct_ms(FIG_12, interleaves=True) / rb_model.fct_ms(FIG_12, False)
    assert gain == pytest.approx(0.30, abs=0.005)


def test_the_model_has_no_loss_where_all_bursts_find_room() -> None:
    few = Setting(**{**FIG_12.__dict__, "flows": 2})
    assert rb_model.loss_rate(few, rb_model.rb_strength(few)) == 0
    assert rb_model.fct_ms(few, interleaves=True) == pytest.approx(500 / 8 * 6)
