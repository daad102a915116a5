# SPDX-License-Identifier: Apache-2.0
"""The scheduler weft keeps queues short and links full, and does not wait for timeouts."""

from pathlib import Path
from statistics import mean

import pytest
from driver import Weft, rows

pytestmark = pytest.mark.lab


def run(weft: Weft, out: Path, arguments: str) -> list[dict[str, str]]:
    """Run flows under weft; gives the rows of flows.csv."""
    weft.run("run", "--scheduler", "weft", *arguments.split(), "--out", str(out))
    return rows(out / "flows.csv")


def longest_queue(out: Path) -> int:
    """Give the packets in the longest queue of a run."""
    return max(int(row["queue_max_packets"]) for row in rows(out / "queues.csv"))


@pytest.mark.parametrize(("senders", "spines"), [(10, 2), (16, 2), (8, 4)])
def test_an_incast_completes_in_the_transmission_time_of_its_link(
    weft: Weft, tmp_path: Path, senders: int, spines: int
) -> None:
    """With several seeds: one that waits for a delayed ACK now and then has luck with some."""
    incast = f"--traffic incast --senders {senders} --hosts {senders} --spines {spines}"
    for seed in range(1, 5):
        flows = run(weft, tmp_path / str(seed), f"{incast} --seed {seed}")
        # A frame of 1514 bytes carries at most 1424 bytes of data.
        ideal_ns = senders * int(flows[0]["bytes"]) * 1514 / 1424 * 8
        assert max(int(flow["fct_ns"]) for flow in flows) <= 1.1 * ideal_ns
        assert sum(int(flow["timeouts"]) for flow in flows) == 0


@pytest.mark.parametrize(
    "paths",
    ["", "--spine-delay 2=160us", "--spine-rate 2=200mbit", "--spines 4", "--spines 8"],
)
def test_a_long_flow_fills_its_link(weft: Weft, tmp_path: Path, paths: str) -> None:
    (flow,) = run(weft, tmp_path / "x", f"--traffic bulk --bytes 20MB {paths}")
    assert int(flow["fct_ns"]) <= 1.05 * int(flow["ideal_fct_ns"])


BOTH_WAYS = """source,destination,bytes,start_ns
h2_1,h1_1,40000000,0
h2_2,h1_2,40000000,0
h2_3,h1_3,40000000,0
h1_4,h2_4,10000000,10000000
"""


@pytest.mark.parametrize("ip", [4, 6])
def test_reverse_traffic_does_not_slow_a_flow_down(weft: Weft, tmp_path: Path, ip: int) -> None:
    """Its ACKs share a queue with their data, but its own data does not pass that queue."""
    (tmp_path / "flows").write_text(BOTH_WAYS)
    replay = f"--traffic replay --flow-list {tmp_path / 'flows'} --ip {ip}"
    flows = run(weft, tmp_path / "x", replay)
    assert int(flows[3]["fct_ns"]) <= 1.2 * int(flows[3]["ideal_fct_ns"])
    assert longest_queue(tmp_path / "x") <= 40


def test_no_queue_grows_long_under_long_flows(weft: Weft, tmp_path: Path) -> None:
    run(weft, tmp_path / "x", "--traffic bulk --flows 4 --bytes 10MB")
    assert longest_queue(tmp_path / "x") <= 25


@pytest.mark.parametrize("seed", ["84", "85"])
def test_short_flows_do_not_fill_the_path_that_once_had_the_shortest_queue(
    weft: Weft, tmp_path: Path, seed: str
) -> None:
    """Neither patterns that are only renewed nor the others' competition keep it full."""
    fabric = "--spines 4 --rate 100mbit --host-rate 100mbit --ecn 20 --congestion dctcp"
    flows = "--workload websearch --scale 0.01 --load 0.7 --flows 8000"
    classes = "--priorities 8 --class-thresholds built-in --rto-min 20ms"
    run(weft, tmp_path / "x", f"{fabric} {flows} {classes} --seed {seed}")
    queued: dict[str, list[int]] = {}
    for row in rows(tmp_path / "x" / "queues.csv"):
        is_uplink = row["switch"].startswith("leaf") and row["peer"].startswith("spine")
        if is_uplink and 1_000_000_000 < int(row["time_ns"]) < 2_000_000_000:
            queued.setdefault(row["switch"] + row["peer"], []).append(int(row["queue_packets"]))
    assert len(queued) == 8
    assert max(mean(packets) for packets in queued.values()) < 15


LONG_AND_SHORT = """source,destination,bytes,start_ns
h1_1,h2_1,40000000,0
h1_2,h2_1,2000000,100000000
"""


@pytest.mark.parametrize("off", ["weft_even_kb=0", "weft_send_buffer=N"])
def test_the_connection_with_less_data_left_completes_sooner(
    weft: Weft, tmp_path: Path, off: str
) -> None:
    """Two flows go to one host; the scheduler has to see what the application has written."""
    (tmp_path / "flows").write_text(LONG_AND_SHORT)
    replay = f"--traffic replay --flow-list {tmp_path / 'flows'}"
    long, short = run(weft, tmp_path / "with", replay)
    _, even = run(weft, tmp_path / "without", f"{replay} --scheduler-options {off}")
    assert int(short["fct_ns"]) <= 0.85 * int(even["fct_ns"])
    # The long flow completes when the link has carried both.
    both_ns = int(long["ideal_fct_ns"]) + int(short["ideal_fct_ns"])
    assert int(long["fct_ns"]) <= 1.05 * both_ns


def test_a_send_buffer_that_the_application_sets_is_left_alone(weft: Weft, tmp_path: Path) -> None:
    (tmp_path / "flows").write_text(LONG_AND_SHORT)
    replay = f"--traffic replay --flow-list {tmp_path / 'flows'} --send-buffer 200KB"
    with_it = run(weft, tmp_path / "with", replay)
    assert with_it == run(
        weft, tmp_path / "without", f"{replay} --scheduler-options weft_send_buffer=N"
    )


def test_a_path_that_fails_costs_no_timeout(weft: Weft, tmp_path: Path) -> None:
    (flow,) = run(weft, tmp_path / "x", "--traffic bulk --bytes 20MB --change 30ms:2:down")
    # Data on the failed path counts as lost after 5 ms and two RTTs, and is sent again.
    assert int(flow["fct_ns"]) <= int(flow["ideal_fct_ns"]) + 20_000_000


@pytest.mark.parametrize("spine", [1, 2])
def test_a_short_flow_loses_milliseconds_to_a_path_that_is_dead(
    weft: Weft, tmp_path: Path, spine: int
) -> None:
    """Its whole first window may be on that path: it is sent again at once, not bit by bit."""
    dead = f"--hosts 1 --traffic bulk --bytes 60000 --change 0ns:{spine}:down"
    (flow,) = run(weft, tmp_path / "x", dead)
    assert int(flow["fct_ns"]) <= 6_000_000
    (late,) = run(
        weft, tmp_path / "late", f"{dead} --scheduler-options weft_rescue_short_rtts=1000"
    )
    assert int(late["fct_ns"]) >= 10_000_000


def test_an_option_of_the_scheduler_can_be_set(weft: Weft, tmp_path: Path) -> None:
    option = "--scheduler-options weft_queue_packets=400"
    run(weft, tmp_path / "x", f"--traffic bulk --flows 4 --bytes 10MB {option}")
    assert longest_queue(tmp_path / "x") > 50


def test_an_unknown_option_is_refused_with_a_list_of_all(weft: Weft, tmp_path: Path) -> None:
    out = tmp_path / "x"
    done = weft.try_run("run", "--scheduler-options", "wft_rescue_ms=0", "--out", str(out))
    assert done.returncode == 2
    assert "wft_rescue_ms=0" in done.stderr
    assert "weft_rescue_ms," in done.stderr
    assert not out.exists()
