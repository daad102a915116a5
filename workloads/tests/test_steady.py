# SPDX-License-Identifier: Apache-2.0
"""What is measured about long flows, for counters with known answers."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import pytest
from weft_scenarios.measures import steady, theory

MBPS_12_112 = 12_112_000
"""At this rate a full frame takes 1 ms."""
SECOND_NS = 1_000_000_000


def info(**workload: object) -> dict[str, Any]:
    """Describe a run over two spines with different delays: 40 and 80 ms, 60 ms on average."""
    links = [
        {"between": "host-switch", "count": 2, "delay_ns": 5_000_000},
        {"between": "switch-switch", "count": 2, "delay_ns": 5_000_000},
        {"between": "switch-switch", "count": 2, "delay_ns": 14_750_000},
    ]
    common = {"rate_bps": MBPS_12_112, "queue_packets": 30}
    return {
        "workload": {"traffic": "bulk", "protocol": "tcp", **workload},
        "topology": {"name": "leaf-spine", "links": [link | common for link in links]},
    }


def flows(ends_s: Sequence[float]) -> pl.DataFrame:
    fct_ns = [int(end * SECOND_NS) for end in ends_s]
    return pl.DataFrame({"start_ns": [0] * len(fct_ns), "fct_ns": fct_ns})


def port(rows: Sequence[tuple[float, int, int]], peer: str = "h2_1") -> pl.DataFrame:
    """Give the rows of a port: time in s, frames sent so far, queue."""
    return pl.DataFrame(
        {
            "time_ns": [int(time * SECOND_NS) for time, _, _ in rows],
            "switch": ["leaf2"] * len(rows),
            "port": [int(peer[-1])] * len(rows),
            "peer": [peer] * len(rows),
            "tx_bytes": [1514 * frames for _, frames, _ in rows],
            "queue_packets": [queue for _, _, queue in rows],
        }
    )


def metrics(run: Mapping[str, Any], ends_s: Sequence[float], rows: Any) -> dict[str, float]:
    return steady.metrics(run, flows(ends_s), port(rows))


def test_the_first_quarter_and_what_follows_the_first_end_are_left_out() -> None:
    rows = [(0.5, 900, 0), (1.0, 1000, 0), (2.5, 1600, 0), (4.0, 2500, 0), (5.0, 9000, 0)]
    # From 1 to 4 s, 1500 frames of 1 ms.
    assert metrics(info(), [4, 5], rows)["steady_use_percent"] == pytest.approx(50)


def test_the_use_is_that_of_all_receivers_links() -> None:
    ports = pl.concat([port([(1.0, 0, 0), (4.0, 3000, 0)]), port([(4.0, 0, 0)], "h2_2")])
    found = steady.metrics(info(), flows([4]), ports)
    assert found == {"steady_use_percent": pytest.approx(50)}


def test_the_window_is_what_is_sent_in_an_rtt_and_counts_what_was_lost() -> None:
    run = info(congestion="reno")
    run["topology"]["loss_ppm"] = {"spine1": 10_000}
    found = metrics(run, [4, 4], [(1.0, 0, 0), (4.0, 1500, 0)])
    # 500 frames/s for an RTT of 60 ms, and 1 ms for the frame itself: 30.5 of two flows.
    assert found["window_packets"] == pytest.approx(500 * 0.0605 / 2 / 0.99)
    assert found["window_model_packets"] == pytest.approx(12)
    assert found["window_pftk_packets"] == theory.pftk_window(0.01, 0.0605, 0.2605)


def test_timeouts_are_as_long_as_the_minimum_rto_and_an_rtt() -> None:
    run = info(congestion="reno")
    run["topology"]["loss_ppm"] = {"spine1": 10_000}
    run["lab"] = {"topology": {"rto_min_ms": 10}}
    found = metrics(run, [4], [(1.0, 0, 0), (4.0, 1500, 0)])
    assert found["window_pftk_packets"] == theory.pftk_window(0.01, 0.0605, 0.0705)


@pytest.mark.parametrize("congestion", ["cubic", "reno", "bbr"])
def test_only_random_losses_and_algorithms_with_a_formula_have_a_window(congestion: str) -> None:
    rows = [(1.0, 0, 0), (4.0, 1500, 0)]
    assert "window_packets" not in metrics(info(congestion=congestion), [4], rows)
    lossy = info(congestion=congestion)
    lossy["topology"]["loss_ppm"] = {"spine1": 1000}
    assert ("window_packets" in metrics(lossy, [4], rows)) == (congestion != "bbr")


def test_the_sawtooth_of_dctcp_is_compared_with_k_n_and_the_amplitude() -> None:
    run = info(congestion="dctcp")
    run["lab"] = {"topology": {"ecn_packets": 20}}
    found = metrics(run, [4, 4], [(1 + i / 100, i, i) for i in range(100)])
    # The means of the lowest and of the highest tenth.
    assert (found["queue_low_packets"], found["queue_high_packets"]) == (4.5, 94.5)
    assert found["queue_high_by_model"] == pytest.approx(94.5 / 22)
    assert found["queue_swing_by_model"] == pytest.approx(90 / theory.dctcp_amplitude(20, 2, 60.5))


def test_the_use_of_a_link_is_compared_with_that_of_its_buffer() -> None:
    found = metrics(info(congestion="reno"), [4], [(1.0, 0, 0), (4.0, 3000, 0)])
    assert found["use_by_model"] == pytest.approx(1 / theory.link_use(30, 60.5, 1))


def test_other_traffic_has_no_model() -> None:
    rows = [(1.0, 0, 0), (4.0, 1500, 0)]
    for other in ({"traffic": "incast"}, {"protocol": "mptcp"}):
        assert set(metrics(info(congestion="reno", **other), [4], rows)) == {"steady_use_percent"}
