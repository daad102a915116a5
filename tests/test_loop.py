"""From a sample in a switch to the pattern in every kernel concerned."""

import csv
from pathlib import Path

import pytest
from driver import Weft

pytestmark = pytest.mark.lab

TRAFFIC = "--workload websearch --load 0.4 --flows 40 --seed 1 --scheduler rb"
STEP = "20ms:2:delay=100us;200ms:2:delay=10us"
"""A path becomes slow, and fast again."""
BOUND_NS = 200_000
DIGEST_WAIT_NS = 20_000
"""A digest may wait so long in its switch; `sampled_ns` counts it in full."""


def loops(weft: Weft, out: Path, flags: str = "") -> list[dict[str, str]]:
    """Run that step; give the rows of `loop.csv`."""
    weft.run(
        "run", *TRAFFIC.split(), "--hosts", "2", "--change", STEP, *flags.split(), "--out", str(out)
    )
    with (out / "loop.csv").open() as rows:
        return list(csv.DictReader(rows))


def delays_ns(rows: list[dict[str, str]]) -> list[int]:
    """From sample to kernel, of patterns that had not to wait for the one before."""
    return [
        int(row["applied_ns"]) - int(row["sampled_ns"])
        for row in rows
        if row["sampled_ns"] and row["rested"] == "false"
    ]


@pytest.mark.parametrize("source", ["rtt", "rtt+queue"])
def test_a_sample_that_moves_a_gap_is_in_the_kernels_within_200_us(
    weft: Weft, tmp_path: Path, source: str
) -> None:
    rows = loops(weft, tmp_path / "x", f"--pattern-input {source}")
    delays = delays_ns(rows)
    assert len(delays) >= 4
    assert max(delays) <= BOUND_NS
    # Digest and pattern have both crossed the control network.
    assert min(delays) >= 2 * 20_000
    # Both hosts of a leaf have every pattern of theirs.
    hosts_of: dict[tuple[str, str, str], set[str]] = {}
    for row in rows:
        key = (row["source_leaf"], row["destination_leaf"], row["version"])
        hosts_of.setdefault(key, set()).add(row["host"])
    for (leaf, _, _), hosts in list(hosts_of.items())[:-2]:
        assert hosts == {f"h{leaf}_1", f"h{leaf}_2"}


def test_the_control_networks_delay_counts_once_for_digest_and_once_for_pattern(
    weft: Weft, tmp_path: Path
) -> None:
    delays = delays_ns(loops(weft, tmp_path / "x", "--control-delay 300us"))
    assert delays
    assert min(delays) >= 2 * 300_000
    assert max(delays) <= 2 * 300_000 + DIGEST_WAIT_NS + BOUND_NS - 2 * 20_000


def test_with_srtt_the_controller_makes_no_patterns(weft: Weft, tmp_path: Path) -> None:
    assert loops(weft, tmp_path / "x", "--pattern-input srtt") == []
