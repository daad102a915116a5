# SPDX-License-Identifier: Apache-2.0
"""Connections over IPv6: the same paths, patterns and measurements as over IPv4."""

import json
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from driver import Labs, Weft, rows, sent_bytes
from telemetry import digests

pytestmark = pytest.mark.lab

SLOW_SPINE = "--ip 6 --spine-delay 2=40us --hosts 2 --traffic incast --senders 1 --bytes 5MB"
PCAP_HEADER_BYTES = 24


@pytest.fixture(scope="module")
def out(weft: Weft, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run a flow over two paths, one slower than the other."""
    out = tmp_path_factory.mktemp("ipv6") / "x"
    weft.run("run", *SLOW_SPINE.split(), *"--scheduler rb --capture all --out".split(), str(out))
    return out


def test_packets_are_spread_by_the_controllers_pattern(out: Path) -> None:
    sent = sent_bytes(out, "leaf1")
    assert sent["spine1"] / sent["spine2"] == pytest.approx(2, rel=0.1)


def test_leaves_measure_its_rtts(out: Path) -> None:
    rtts_ns: dict[tuple[str, ...], list[int]] = {}
    for digest in digests(out / "capture"):
        if digest.name == "rtt_sample_t":
            source, destination, _, _, _, _, rtt_ns, *_ = digest.fields
            ends = (str(IPv4Address(source)), str(IPv4Address(destination)))
            rtts_ns.setdefault(ends, []).append(rtt_ns)
    # Two hops each way, of 10 us or 40 us, and transmission times.
    for sender, links_ns in (("10.1.1.1", 60_000), ("10.1.1.2", 180_000)):
        assert links_ns <= min(rtts_ns[sender, "10.2.1.1"]) <= links_ns + 60_000


def test_captures_have_every_byte_and_no_unexpected_packet(weft: Weft, out: Path) -> None:
    weft.run("evidence", str(out))
    summary = json.loads((out / "evidence" / "summary.json").read_text())
    assert summary["data_bytes"] == 5_000_000
    assert summary["connections"] == 1
    # Hosts without flows send no neighbor solicitations and no multicast listener reports.
    assert {(out / "capture" / f"{host}.pcap").stat().st_size for host in ("h1_2", "h2_2")} == {
        PCAP_HEADER_BYTES
    }


@pytest.mark.parametrize(
    "more",
    [
        "--path-manager fixed:2",
        "--nic p4 --int md --ecn 20",
        "--background-udp 1 --udp-rate 100mbit --background-tcp 1",
    ],
)
def test_ipv6_works_with_other_options(weft: Weft, tmp_path: Path, more: str) -> None:
    weft.run("run", *SLOW_SPINE.split(), *more.split(), "--out", str(tmp_path / "x"))
    (flow,) = rows(tmp_path / "x" / "flows.csv")
    assert not flow["error"]
    assert flow["subflows"] == ("4" if "fixed" in more else "2")


def test_hosts_reach_each_other_at_every_address(labs: Labs) -> None:
    lab = labs.up("--ip", "6", "--hosts", "1")
    pings = [
        f"h1_1 ping -6 -c 1 -I fd57:6566:7400::10.1.1.{path} fd57:6566:7400::10.2.1.1"
        for path in (1, 2)
    ]
    assert lab.shell(*pings, "h1_1 ping -c 1 h2_1").count(" 1 received") == 3
