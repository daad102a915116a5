# SPDX-License-Identifier: Apache-2.0
"""Switches mark packets in long queues, and senders that use ECN keep queues short."""

from pathlib import Path

import polars as pl
import pytest
from driver import Weft

pytestmark = pytest.mark.lab

QUEUE, THRESHOLD = 200, 20
BULK = (
    "--traffic bulk --flows 2 --duration 150ms --leaves 2 --hosts 2 --spines 1 "
    f"--rate 1gbit --delay 20us --queue {QUEUE}"
)
"""Two hosts of 1 Gbit/s share a link of 1 Gbit/s."""


def bottleneck(weft: Weft, out: Path, arguments: str) -> tuple[pl.DataFrame, int]:
    """Give the queue of the shared link after the flows have converged, and its drops."""
    weft.run("run", *f"{BULK} {arguments}".split(), "--out", str(out))
    queues = pl.read_csv(out / "queues.csv")
    link = queues.filter((pl.col("switch") == "leaf1") & (pl.col("peer") == "spine1"))
    start_ns = pl.read_csv(out / "flows.csv")["start_ns"].min()
    assert isinstance(start_ns, int)
    settled = link.filter(pl.col("time_ns") > start_ns + 50_000_000)
    assert len(settled) > 10
    return settled, int(link["dropped_packets"].max())  # type: ignore[arg-type]


@pytest.mark.parametrize("protocol", ["tcp", "mptcp"])
@pytest.mark.parametrize("threshold", [f"{THRESHOLD}", f"{THRESHOLD * 1514}B"])
def test_dctcp_keeps_the_queue_at_the_threshold(
    weft: Weft, tmp_path: Path, protocol: str, threshold: str
) -> None:
    dctcp = f"--protocol {protocol} --congestion dctcp --ecn {threshold}"
    settled, dropped = bottleneck(weft, tmp_path / "x", dctcp)
    longest = settled["queue_max_packets"]
    assert dropped == 0
    # RFC 8257: flows exceed the threshold by what they send in one RTT before they react.
    assert THRESHOLD <= longest.max() <= THRESHOLD + 25  # type: ignore[operator]
    assert 5 <= longest.mean() <= THRESHOLD + 10  # type: ignore[operator]


def test_without_marks_the_same_flows_fill_the_queue(weft: Weft, tmp_path: Path) -> None:
    settled, dropped = bottleneck(weft, tmp_path / "x", "--protocol tcp --congestion cubic")
    assert settled["queue_max_packets"].max() > 5 * THRESHOLD  # type: ignore[operator]
    assert dropped > 0


def test_senders_that_treat_marks_as_losses_keep_the_queue_short_too(
    weft: Weft, tmp_path: Path
) -> None:
    marked = f"--protocol tcp --congestion cubic --ecn {THRESHOLD}"
    settled, dropped = bottleneck(weft, tmp_path / "x", marked)
    assert dropped == 0
    assert settled["queue_max_packets"].max() < QUEUE / 2  # type: ignore[operator]
