# SPDX-License-Identifier: Apache-2.0
"""Telemetry is accurate: every RTT and queue sample against the packets of the run."""

import json
from collections.abc import Iterator
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from driver import Weft, rows
from ground_truth import PRIORITIES, GroundTruth
from telemetry import DIGEST_BYTES, Digest, digests, quantile, spread

pytestmark = pytest.mark.lab

WEB_SEARCH = "--traffic random --workload websearch --load 0.5 --flows 80"
ERROR_NS = 10_000
RATES = ("1gbit", "10gbit")
"""Of all links."""
CPU_PORT = 510
MANY = 80
"""Samples that a quantile needs."""


def queue_samples(capture: Path) -> Iterator[Digest]:
    """Give all queue samples, except those of the controller's port, which has no link."""
    for digest in digests(capture):
        if digest.name == "queue_sample_t" and digest.fields[0] != CPU_PORT:
            yield digest


def queue_packets(truth: GroundTruth) -> int:
    (packets,) = {link["queue_packets"] for link in truth.topology["links"]}
    return int(packets)


def captured_run(weft: Weft, out: Path, flags: str, seed: int) -> Path:
    """The captures of a run of one run of Web Search between random hosts."""
    everything = f"--seed {seed} --capture all --arrivals all --out"
    weft.run("run", *WEB_SEARCH.split(), *flags.split(), *everything.split(), str(out))
    return out / "capture"


@pytest.fixture(scope="module", params=RATES)
def capture(
    request: pytest.FixtureRequest, weft: Weft, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The captures of a run at one rate of all links."""
    out = tmp_path_factory.mktemp("telemetry") / "run"
    return captured_run(weft, out, f"--rate {request.param} --host-rate {request.param}", seed=3)


@pytest.fixture(scope="module")
def truth(capture: Path) -> GroundTruth:
    return GroundTruth(capture)


def test_rtt_samples_are_the_true_rtts_of_segments(capture: Path, truth: GroundTruth) -> None:
    errors, unexplained = [], 0
    for digest in digests(capture):
        if digest.name == "rtt_sample_t":
            source, destination, source_port, destination_port, _, _, rtt_ns, *_ = digest.fields
            subflow = (source, destination, source_port, destination_port)
            true = truth.rtt_ns(subflow, digest.at_ns)
            if true is None:
                unexplained += 1
                continue
            errors.append(abs(rtt_ns - true))
    print(f"{len(errors)} RTTs: {spread(errors)}")
    # A measured ACK may be dropped by the queue to its host; no link has captured it.
    assert unexplained <= len(errors) // 100
    assert len(errors) > MANY
    assert quantile(errors, 0.5) <= 1_000
    assert quantile(errors, 0.99) <= ERROR_NS


def test_queue_samples_are_the_true_depths_and_delays(capture: Path, truth: GroundTruth) -> None:
    errors, wrong_depths, full = [], 0, queue_packets(truth)
    for digest in queue_samples(capture):
        port, depth, delay_ns, *_ = digest.fields
        queue = truth.queues[digest.switch, port]
        waiting = queue.waiting(digest.at_ns)
        # Ingress counts packets that a full queue has dropped, until the next one leaves.
        wrong_depths += depth not in waiting and not (depth > full and full in waiting)
        true = queue.delays_ns(digest.at_ns) if depth else [0]
        errors.append(min(abs(delay_ns - ns) for ns in true or [0]))
    print(f"{len(errors)} queues: {spread(errors)}, {wrong_depths} wrong depths")
    assert len(errors) > MANY
    assert wrong_depths == 0
    assert quantile(errors, 0.5) <= 1_000
    assert quantile(errors, 0.99) <= 10_000


def test_queue_samples_are_the_true_depths_and_delays_of_every_class(
    weft: Weft, tmp_path: Path
) -> None:
    # Nothing is dropped, and the order is strict.
    flags = "--priorities 8 --lowest-share 0% --queue 5000 --ecn 20 --congestion dctcp --scale 0.5"
    errors, wrong_depths, seen = [], 0, set()
    # Of one run the 99th percentile are a few samples.
    for seed in (3, 4, 5, 6):
        capture = captured_run(weft, tmp_path / f"run-{seed}", flags, seed)
        truth = GroundTruth(capture)
        for digest in queue_samples(capture):
            port, depth, *_ = digest.fields
            either = [queue.by_priority for queue in truth.priority_queues[digest.switch, port]]
            depths, delays_ns = digest.fields[6 : 6 + PRIORITIES], digest.fields[6 + PRIORITIES :]
            assert sum(depths) == depth
            for priority, queues in enumerate(zip(*either, strict=True)):
                waiting = [queue.waiting(digest.at_ns) for queue in queues]
                wrong_depths += all(depths[priority] not in packets for packets in waiting)
                if depths[priority]:
                    seen.add(priority)
                    true = [ns for queue in queues for ns in queue.delays_ns(digest.at_ns)]
                    errors.append(min(abs(delays_ns[priority] - ns) for ns in true or [0]))
                else:
                    assert delays_ns[priority] == 0
    print(f"{len(errors)} classes in queues: {spread(errors)}, {wrong_depths} wrong depths")
    assert len(errors) > MANY
    assert len(seen) >= PRIORITIES - 1
    # Events at the same time may have one order here and the other there.
    assert wrong_depths <= len(errors) // 1000
    assert quantile(errors, 0.99) <= 1_000


def test_samples_of_sent_bytes_are_the_true_counts_since_the_link_was_idle(
    capture: Path, truth: GroundTruth
) -> None:
    # A sample of an empty queue has no link data.
    told = [digest for digest in queue_samples(capture) if digest.fields[1]]
    assert len(told) > MANY
    for digest in told:
        port, _, _, at_ns, busy_since_ns, sent_bytes, *_ = digest.fields
        # The clock of a switch starts with the switch.
        since_ns = busy_since_ns + digest.at_ns - at_ns
        assert (since_ns, sent_bytes) in truth.queues[digest.switch, port].sent(digest.at_ns)


def test_a_leafs_smoothed_rtt_is_more_accurate_than_a_kernels(
    capture: Path, truth: GroundTruth
) -> None:
    run = json.loads((capture.parent / "run.json").read_text())
    told = [digest for digest in digests(capture) if digest.name == "rtt_sample_t"]
    paths = {digest.fields[:2]: digest.fields[4] for digest in told}
    kernels, leaves = [], []
    for row in rows(capture.parent / "subflows.csv"):
        # Both RTTs at the end of a flow, against the last true RTT.
        end_ns = run["outcome"]["start_ns"] + int(row["time_ns"])
        ends = (int(IPv4Address(row["source"])), int(IPv4Address(row["destination"])))
        ports = (int(row["source_port"]), int(row["destination_port"]))
        true_ns = truth.last_rtt_ns((*ends, *ports), end_ns)
        route = (*truth.leaves(*ends), paths.get(ends))
        smoothed_ns = [
            digest.fields[7]
            for digest in told
            if digest.at_ns <= end_ns
            and (*truth.leaves(*digest.fields[:2]), digest.fields[4]) == route
        ]
        if true_ns is None or not smoothed_ns:
            continue
        near_ns = 2 * int(truth.links[truth.owner[ends[0]]]["delay_ns"])
        kernels.append(abs(int(row["srtt_ns"]) - near_ns - true_ns))
        leaves.append(abs(smoothed_ns[-1] - true_ns))
    print(f"{len(kernels)} subflows: kernel {spread(kernels)}; leaf {spread(leaves)}")
    assert len(kernels) > MANY
    assert quantile(leaves, 0.5) < quantile(kernels, 0.5)


def test_digests_are_less_than_a_hundredth_of_the_traffic(
    capture: Path, truth: GroundTruth
) -> None:
    told = sum(1 for _ in digests(capture))
    sent = sum(frame.frame_bytes for cable in truth.cables.values() for frame in cable.sent)
    print(f"{told} digests, {sent} bytes of traffic: {told * DIGEST_BYTES / sent:.3%}")
    assert told * DIGEST_BYTES < sent / 100
