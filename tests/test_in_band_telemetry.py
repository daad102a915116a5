# SPDX-License-Identifier: Apache-2.0
"""In-band telemetry reports the true queueing delays, and hosts see nothing of it."""

from bisect import bisect_left, bisect_right
from pathlib import Path

import pytest
from driver import Weft
from ground_truth import GroundTruth
from telemetry import DIGEST_BYTES, digests, quantile, spread

pytestmark = pytest.mark.lab

RUN = "--traffic random --workload websearch --load 0.5 --flows 40 --seed 3 --int md"
MEMBERS_OF_HOP = 4
LONGEST_FRAME_NS = 13_000
"""Transmission time at 1 Gbit/s, including telemetry."""
INT_PORT = (54321).to_bytes(2)
MANY = 80
"""Samples that a 99th percentile needs."""


@pytest.fixture(scope="module")
def capture(weft: Weft, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The captures of a run whose packets carry telemetry."""
    out = tmp_path_factory.mktemp("int") / "run"
    weft.run("run", *RUN.split(), *"--capture all --arrivals all --out".split(), str(out))
    return out / "capture"


@pytest.fixture(scope="module")
def truth(capture: Path) -> GroundTruth:
    return GroundTruth(capture)


def test_packets_report_their_queueing_delays(capture: Path, truth: GroundTruth) -> None:
    """Checks the last queue, which the packet left one link before its report."""
    names = {switch["device_id"]: switch["name"] for switch in truth.topology["switches"]}
    (delay_ns,) = {link["delay_ns"] for link in truth.topology["links"]}
    errors, paths = [], set()
    for digest in digests(capture):
        if digest.name != "int_sample_t":
            continue
        hops, *members, at_ns = digest.fields
        assert hops == 2
        chunks = [members[i : i + MEMBERS_OF_HOP] for i in range(0, 2 * MEMBERS_OF_HOP, 4)]
        (spine, port, _, waited_ns), (leaf, *_) = chunks
        paths.add((names[leaf], names[spine], digest.switch))
        queue = truth.queues[names[spine], port]
        latest = digest.at_ns - delay_ns
        first = bisect_left(queue.left, latest - LONGEST_FRAME_NS)
        last = bisect_right(queue.left, latest)
        waits = [queue.left[i] - queue.entered[i] for i in range(first, last)]
        errors.append(min(abs(waited_ns - ns) for ns in waits))
        assert at_ns <= digest.at_ns
    print(f"{len(errors)} packets: {spread(errors)}")
    assert paths == {
        (source, spine, destination)
        for source, destination in (("leaf1", "leaf2"), ("leaf2", "leaf1"))
        for spine in ("spine1", "spine2")
    }
    assert len(errors) > MANY
    assert quantile(errors, 0.5) <= 1_000
    assert quantile(errors, 0.99) <= 10_000


def test_hosts_get_no_telemetry(capture: Path, truth: GroundTruth) -> None:
    assert len(truth.hosts) == 8
    for host in truth.hosts:
        assert truth.cables[host["name"]].received
        assert INT_PORT not in _destination_ports(capture / f"{host['name']}.pcap")


def _destination_ports(pcap: Path) -> set[bytes]:
    """Give the destination ports of all UDP packets."""
    data, at, ports = pcap.read_bytes(), 24, set()
    while at + 16 <= len(data):
        kept = int.from_bytes(data[at + 8 : at + 12], "little")
        frame = data[at + 16 : at + 16 + kept]
        if frame[23] == 17:
            ports.add(frame[36:38])
        at += 16 + kept
    return ports


def test_telemetry_stays_below_a_hundredth_of_the_traffic(
    capture: Path, truth: GroundTruth
) -> None:
    told = sum(1 for _ in digests(capture))
    sent = sum(frame.frame_bytes for cable in truth.cables.values() for frame in cable.sent)
    assert told * DIGEST_BYTES < sent / 100
