# SPDX-License-Identifier: Apache-2.0
"""Flow completion times of the fluid model, for cases with known answers."""

import re
from pathlib import Path

import polars as pl
import pytest
from weft_scenarios.measures import fluid

RATE_BPS = 1_000_000_000
MB_MS = 8e9 / RATE_BPS * 1514 / 1424
"""Transmission time of a megabyte on a link, in milliseconds."""
TOPOLOGY = {
    "kind": "leaf-spine", "leaves": 2, "hosts": 4, "spines": 2, "spine_rate_bps": {},
    "rate_bps": RATE_BPS, "host_rate_bps": RATE_BPS,
}  # fmt: skip


def at(megabytes: float) -> int:
    """Give the transmission time of megabytes in nanoseconds."""
    return int(megabytes * MB_MS * 1e6)


def ratios(
    *flows: tuple[str, str, float, float, float], traffic: str = "random", **topology: object
) -> dict[str, float]:
    """Compare flows: source, destination, MB, start and FCT in units of a megabyte's time."""
    return fluid.metrics(*run(*flows, traffic=traffic, **topology))


def run(
    *flows: tuple[str, str, float, float, float], traffic: str = "random", **topology: object
) -> tuple[dict[str, object], pl.DataFrame]:
    """Give what a run leaves of flows as in `ratios`."""
    rows = [
        {
            "src": source,
            "dst": destination,
            "bytes": size * 1_000_000,
            "start_ns": at(start),
            "fct_ns": at(fct),
            "ideal_fct_ns": at(size),
        }
        for source, destination, size, start, fct in flows
    ]
    info = {"workload": {"traffic": traffic}, "lab": {"topology": TOPOLOGY | topology}}
    return info, pl.DataFrame(rows)


def test_flows_share_a_link_evenly_or_the_shortest_goes_first() -> None:
    # Evenly: 1 MB is done after 2, 3 MB after 4; shortest first: after 1 and 4.
    found = ratios(("h1_1", "h2_1", 3, 0, 4), ("h1_1", "h2_2", 1, 0, 2))
    assert found["fct_mean_by_even"] == pytest.approx(1)
    assert found["fct_p99_by_even"] == pytest.approx(1)
    assert found["fct_mean_by_shortest"] == pytest.approx(6 / 5)
    assert found["fct_p99_by_shortest"] == pytest.approx(1)


def test_each_flow_has_its_time_with_the_shortest_first() -> None:
    flows = ("h1_1", "h2_1", 3, 0, 4), ("h1_1", "h2_2", 1, 0, 2)
    found = fluid.covered(*run(*flows))
    assert found is not None
    assert found.fct_s(fluid.shortest_first) == pytest.approx([at(4) / 1e9, at(1) / 1e9])
    assert fluid.covered(*run(*flows, kind="fat-tree")) is None


def test_equal_flows_of_an_incast_have_half_the_mean_when_one_goes_first() -> None:
    flows = [(f"h1_{host}", "h2_1", 1, 0, 3) for host in (1, 2, 3)]
    found = ratios(*flows, traffic="incast")
    assert found["fct_mean_by_even"] == pytest.approx(1)
    assert found["fct_mean_even_ms"] == pytest.approx(3 * MB_MS)
    assert found["fct_mean_shortest_ms"] == pytest.approx(2 * MB_MS)


def test_flows_of_one_class_share_evenly_and_the_lower_class_gets_what_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fluid, "_SPREAD_DOUBLINGS", 0)
    # Class 3 goes before class 4: done after 0.9 and 2.4.
    found = ratios(("h1_1", "h2_1", 1.5, 0, 2.4), ("h1_1", "h2_2", 0.9, 0, 0.9))
    assert found["fct_mean_by_class"] == pytest.approx(1)
    assert found["fct_p99_by_class"] == pytest.approx(1)
    # Both share evenly until one has 1 MB left, after 0.4; it is then done after 1.4.
    found = ratios(("h1_1", "h2_1", 1.5, 0, 2.7), ("h1_1", "h2_2", 1.2, 0, 1.4))
    assert found["fct_mean_by_class"] == pytest.approx(1)
    # The lower class has its own way to the other rack, and waits for nobody there.
    found = ratios(("h1_1", "h2_1", 20, 0, 20), ("h1_2", "h2_2", 1, 0, 1))
    assert found["fct_mean_by_class"] == pytest.approx(1)


def test_equal_flows_have_a_mean_between_sharing_evenly_and_one_after_another() -> None:
    flows = [(f"h1_{host % 4 + 1}", "h2_1", 0.2, 0, 1) for host in range(32)]
    found = ratios(*flows, traffic="incast")
    even, shortest = found["fct_mean_even_ms"], found["fct_mean_shortest_ms"]
    assert 1.05 * shortest < found["fct_mean_class_ms"] < 0.95 * even


def test_the_model_has_the_kernels_classes() -> None:
    code = (Path(__file__).parents[2] / "host" / "kernel" / "priority.c").read_text()
    thresholds = re.search(r"weft_thresholds_kb\[\w+\] = \{([^}]*)\}", code)
    spread = re.search(r"weft_spread_percent = (\d+);", code)
    assert thresholds
    assert spread
    kb = tuple(int(number) for number in re.findall(r"\d+", thresholds[1]))
    assert kb == fluid._THRESHOLDS_KB
    assert int(spread[1]) == 100 * fluid._SPREAD_DOUBLINGS


def test_rates_follow_as_flows_come_and_go() -> None:
    # The first flow is alone until 1, then both have half the rate until it completes at 3.
    found = ratios(("h1_1", "h2_1", 2, 0, 3), ("h1_2", "h2_1", 2, 1, 3))
    assert found["fct_mean_by_even"] == pytest.approx(1)


def test_a_flow_has_all_paths_and_those_of_a_rack_share_them() -> None:
    # Flows for three links share paths of 1 and 0.5 times the rate: half the rate for each.
    flows = [(f"h1_{host}", f"h2_{host}", 1, 0, 2) for host in (1, 2, 3)]
    found = ratios(*flows, spine_rate_bps={"2": RATE_BPS // 2})
    assert found["fct_mean_by_even"] == pytest.approx(1)
    assert ratios(*flows[:1])["fct_mean_by_even"] == pytest.approx(2)


def test_a_flow_that_stays_in_its_rack_crosses_no_path() -> None:
    flows = ("h1_1", "h1_2", 1, 0, 1), ("h1_3", "h1_2", 1, 1, 1)
    found = ratios(*flows, spine_rate_bps={"1": 1, "2": 1})
    assert found["fct_mean_by_even"] == pytest.approx(1)


def test_rates_follow_as_paths_fail_return_and_change() -> None:
    # Two hosts, and two paths with the rate of a host. Without the second path they share one.
    flows = [(f"h1_{host}", f"h2_{host}", 2, 0, 3) for host in (1, 2)]
    fails = {"at_ns": at(1), "target": "spine2", "up": False}
    returns = {"at_ns": at(3), "target": "spine2", "up": True}
    assert ratios(*flows, changes=[fails])["fct_mean_by_even"] == pytest.approx(1)
    # Each has 3 MB: 1 MB before the failure, 1 MB in the next 2 units, 1 MB in the last unit.
    slower = [(source, to, size + 1, start, 4) for source, to, size, start, _ in flows]
    found = ratios(*slower, changes=[fails, returns])
    assert found["fct_mean_by_even"] == pytest.approx(1)
    for change in {"rate_bps": RATE_BPS // 2}, {"rate_ppm": 500_000}:
        found = ratios(*flows, changes=[fails | {"up": True} | change])
        assert found["fct_mean_by_even"] == pytest.approx(3 / (7 / 3))


def test_runs_that_the_model_does_not_cover_are_not_compared() -> None:
    flow = ("h1_1", "h2_1", 1, 0, 1)
    assert ratios(flow)
    assert not ratios(flow, kind="fat-tree")
    assert not ratios(flow, changes=[{"at_ns": 1, "target": "leaf1-spine1", "rate_bps": 1}])
    assert not ratios(flow, changes=[{"at_ns": 1, "target": "leaf1", "up": False}])
    assert not ratios(flow, traffic="bulk")
