# SPDX-License-Identifier: Apache-2.0
"""Fabrics other than a plain leaf-spine, and changes of links by name."""

from pathlib import Path
from xml.etree import ElementTree

import pytest
from driver import Weft, rows

pytestmark = pytest.mark.lab

Rows = list[dict[str, str]]


def run(weft: Weft, out: Path, arguments: str, *more: str) -> Rows:
    weft.run("run", *arguments.split(), *more, "--out", str(out))
    flows = rows(out / "flows.csv")
    assert {flow["error"] for flow in flows} == {""}
    return flows


def sent_bytes(out: Path) -> dict[tuple[str, str], int]:
    """Give the bytes that each port sent, by switch and peer."""
    return {(r["switch"], r["peer"]): int(r["tx_bytes"]) for r in rows(out / "queues.csv")}


def test_a_link_that_fails_takes_out_the_path_of_its_leaf_and_no_other(
    weft: Weft, tmp_path: Path
) -> None:
    out = tmp_path / "x"
    incast = "--leaves 3 --hosts 2 --traffic incast --senders 4 --bytes 8MB --scheduler rb"
    run(weft, out, incast, "--change", "at 30ms link leaf1-spine2 down")
    failed = [row for row in rows(out / "patterns.csv") if row["gap"] == "0"]
    assert failed, "no pattern has left out a path"
    for row in failed:
        assert "1" in (row["source_leaf"], row["destination_leaf"])
        assert row["via"] == "spine2"


def test_both_links_of_a_host_carry_what_the_switch_sends(weft: Weft, tmp_path: Path) -> None:
    out = tmp_path / "x"
    flags = "--topology many-to-one --rate 100mbit --host-rate 1gbit --delay 100us"
    flows = run(weft, out, f"{flags} --traffic incast --senders 2 --bytes 4MB --scheduler rb")
    (receiver,) = {flow["dst"] for flow in flows}
    leaf = receiver[1:].split("_")[0]
    sent = sent_bytes(out)
    # Each carries half of 8 MB.
    for spine in ("spine1", "spine2"):
        assert sent[spine, f"leaf{leaf}"] > 3e6
    last_ns = max(int(flow["start_ns"]) + int(flow["fct_ns"]) for flow in flows)
    first_ns = min(int(flow["start_ns"]) for flow in flows)
    assert 8e6 * 8 / ((last_ns - first_ns) / 1e9) < 200e6


@pytest.mark.parametrize(
    ("flags", "rates"),
    [
        ("two-path --profile wifi,10mbit/40ms", (30e6, 10e6)),
        ("dumbbell --hosts 2 --profile lte,3g", (30e6, 5e6)),
    ],
)
def test_paths_of_a_testbed_carry_their_rates(
    weft: Weft, tmp_path: Path, flags: str, rates: tuple[float, float]
) -> None:
    out = tmp_path / "x"
    run(weft, out, f"--topology {flags} --traffic bulk --duration 3s --scheduler minrtt")
    sent = sent_bytes(out)
    for spine, rate_bps in zip(("spine1", "spine2"), rates, strict=True):
        assert 0.1 * rate_bps < sent["leaf1", spine] * 8 / 3 <= 1.05 * rate_bps, spine


def test_queues_of_bytes_hold_more_small_packets(weft: Weft, tmp_path: Path) -> None:
    out = tmp_path / "x"
    flags = "--hosts 2 --spines 1 --rate 100mbit --queue 30280B --traffic bulk --duration 500ms"
    run(weft, out, flags)
    depths = [int(row["queue_max_packets"]) for row in rows(out / "queues.csv")]
    # Twenty full-size frames, and some ACKs.
    assert max(depths) >= 20


def test_more_spines_than_subflows_are_all_used(weft: Weft, tmp_path: Path) -> None:
    out = tmp_path / "x"
    flags = "--leaves 6 --spines 12 --hosts 4,1,1,1,1,1 --oversubscription 2"
    run(weft, out, f"{flags} --workload websearch --flows 60 --scheduler rb")
    spines = {switch for switch, _ in sent_bytes(out) if switch.startswith("spine")}
    assert spines == {f"spine{spine}" for spine in range(1, 13)}


def test_connections_have_all_subflows_where_both_ends_open_theirs_at_once(
    weft: Weft, tmp_path: Path
) -> None:
    # With links this fast, the receiver's own attempts are refused only after the sender's arrive.
    fabric = "--leaves 8 --spines 8 --hosts 8 --rate 25gbit --host-rate 25gbit --delay 1us"
    flows = run(weft, tmp_path / "x", f"{fabric} --subflows 4 --traffic incast --senders 56")
    assert {flow["subflows"] for flow in flows} == {"4"}


def test_hosts_of_a_lab_do_not_share_the_memory_limit_of_one_machine(
    weft: Weft, tmp_path: Path
) -> None:
    fabric = "--hosts 16 --memory 256MiB --ecn 20 --congestion dctcp --scheduler weft"
    # Send buffers of 4 MiB; run() fails if a flow does.
    run(weft, tmp_path / "x", f"{fabric} --traffic incast --senders 31 --bytes 3MB")


def test_a_fabric_is_drawn_without_a_lab(weft: Weft, tmp_path: Path) -> None:
    text = weft.run(
        "topo", "show", "--topology", "fat-tree", "--change", "at 5ms link agg1_1-core2 down"
    )
    assert "core3 core4" in text
    assert text.endswith("at 5ms link agg1_1-core2 down\n")
    weft.run("topo", "show", "--spines", "3", "--svg", str(tmp_path / "x.svg"))
    root = ElementTree.parse(tmp_path / "x.svg").getroot()
    assert len(list(root.iter("{http://www.w3.org/2000/svg}line"))) == 2 * 4 + 2 * 3


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("--topology fat-tree --k 5", "--k 5 is odd"),
        ("--topology fat-tree --leaves 2", "--leaves is of --topology leaf-spine"),
        ("--hosts 1,2,3 --leaves 2", "one of each leaf"),
        ("--topology two-path --profile wlna,3g", "wlan, 3g, wifi, lte"),
        ("--change 1s:leaf1-spine7:down", "leaf1-spine1"),
    ],
)
def test_what_cannot_be_built_is_refused_before_anything_runs(
    weft: Weft, flags: str, said: str
) -> None:
    done = weft.try_run("run", *flags.split())
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
