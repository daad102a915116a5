# SPDX-License-Identifier: Apache-2.0
"""Flowlet switching and packet spraying: what one TCP flow takes of the fabric."""

from pathlib import Path
from statistics import mean

import pytest
from driver import Weft, rows, sent_bytes

pytestmark = pytest.mark.lab

ONE_FLOW = "--traffic bulk --flows 1 --duration 60ms --leaves 2 --hosts 1 --spines 2 --protocol tcp"
FLOWS = 40
SEEDS = range(1, 9)
WEBSEARCH = f"--workload websearch --load 0.4 --flows {FLOWS} --protocol tcp"


def shares(weft: Weft, out: Path, flags: str) -> dict[str, float]:
    """Run, and give the share that each uplink carried of what leaf1 sent up."""
    weft.run("run", *flags.split(), "--out", str(out))
    assert {flow["error"] for flow in rows(out / "flows.csv")} == {""}
    return shares_of_uplinks(out, "leaf1")


def shares_of_uplinks(out: Path, switch: str) -> dict[str, float]:
    """Give the share that each uplink carried of what a switch sent up."""
    up = {
        peer: sent
        for peer, sent in sent_bytes(out, switch).items()
        if peer.startswith(("spine", "agg", "core"))
    }
    return {peer: sent / sum(up.values()) for peer, sent in up.items()}


def test_the_packets_of_one_flow_are_sprayed_over_both_spines_alike(
    weft: Weft, tmp_path: Path
) -> None:
    found = shares(weft, tmp_path / "x", f"{ONE_FLOW} --routing spray")
    assert found == pytest.approx({"spine1": 0.5, "spine2": 0.5}, abs=0.03)


def test_a_flow_without_gaps_is_one_flowlet_and_takes_one_spine(weft: Weft, tmp_path: Path) -> None:
    flags = f"{ONE_FLOW} --routing flowlet --flowlet-timeout 10s"
    assert len(shares(weft, tmp_path / "x", flags)) == 1


def test_with_a_timeout_below_the_time_of_a_packet_every_packet_is_a_flowlet(
    weft: Weft, tmp_path: Path
) -> None:
    flags = f"{ONE_FLOW} --routing flowlet --flowlet-timeout 5us"
    found = shares(weft, tmp_path / "x", flags)
    assert found == pytest.approx({"spine1": 0.5, "spine2": 0.5}, abs=0.05)


@pytest.mark.parametrize("routing", ["flowlet", "spray"])
def test_all_flows_of_a_workload_arrive_and_a_repetition_gives_the_same_bytes(
    weft: Weft, tmp_path: Path, routing: str
) -> None:
    flags = f"{WEBSEARCH} --scale 0.3 --routing {routing}"

    def of_spine1(folder: str, seed: int) -> float:
        return shares(weft, tmp_path / folder, f"{flags} --seed {seed}")["spine1"]

    # A large flow may have few flowlets: with one seed the share is from 0.2 to 0.9.
    found = [of_spine1(f"seed{seed}", seed) for seed in SEEDS]
    print(f"{routing}: {found}")
    assert mean(found) == pytest.approx(0.5, abs=0.2)
    of_spine1("again", SEEDS[0])
    once, again = (tmp_path / folder / "flows.csv" for folder in (f"seed{SEEDS[0]}", "again"))
    assert len(rows(once)) == FLOWS
    assert once.read_bytes() == again.read_bytes()


@pytest.mark.parametrize("routing", ["flowlet", "spray"])
def test_every_tier_of_a_fat_tree_draws_uplinks(weft: Weft, tmp_path: Path, routing: str) -> None:
    flags = f"--topology fat-tree --k 4 {WEBSEARCH} --routing {routing}"
    weft.run("run", *flags.split(), "--out", str(tmp_path / "x"))
    flows = rows(tmp_path / "x" / "flows.csv")
    assert [flow["error"] for flow in flows] == [""] * FLOWS
    for switch, uplinks in (
        ("edge1", {"agg1_1", "agg1_2"}),
        ("agg1_1", {"core1", "core2"}),
        ("agg1_2", {"core3", "core4"}),
    ):
        # Of so few flows, a large one may have few flowlets.
        found = shares_of_uplinks(tmp_path / "x", switch)
        assert found.keys() == uplinks
        assert min(found.values()) > (0.4 if routing == "spray" else 0.05)


def test_a_flowlet_timeout_without_flowlets_is_one_clear_line(weft: Weft) -> None:
    done = weft.try_run("run", "--routing", "spray", "--flowlet-timeout", "1ms")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "--flowlet-timeout: only with --routing flowlet" in done.stderr
