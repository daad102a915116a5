# SPDX-License-Identifier: Apache-2.0
"""Scheduling noise in hosts does not affect what NICs measure.

A leaf's RTTs include delays in the receiver's hypervisor, and a kernel's RTTs those at both ends.
NICs that run a P4 program exclude the delays in their hosts.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from driver import Weft, rows
from ground_truth import GroundTruth
from ground_truth_nics import Nics
from telemetry import Digest, digests, quantile, spread

pytestmark = pytest.mark.lab

WEB_SEARCH = "--traffic random --workload websearch --load 0.3 --flows 60 --seed 3"
JITTERS_NS = (0, 50_000, 500_000)
MANY = 80
"""Samples that a 99th percentile needs."""


@dataclass(frozen=True)
class Run:
    """A captured run."""

    out: Path
    jitter_ns: int
    truth: GroundTruth

    def rtt_samples(self) -> Iterator[Digest]:
        """Give the RTT samples."""
        samples = digests(self.out / "capture")
        return (digest for digest in samples if digest.name == "rtt_sample_t")


def run(weft: Weft, folder: Path, jitter_ns: int, nic: str) -> Run:
    out = folder / "run"
    flags = f"--host-jitter {jitter_ns}ns --nic {nic} --capture all --arrivals all --out"
    weft.run("run", *WEB_SEARCH.split(), *flags.split(), str(out))
    return Run(out, jitter_ns, GroundTruth(out / "capture"))


def kernels_errors_ns(run: Run, nics: Nics) -> list[int]:
    """Errors of smoothed RTTs at the ends of flows, against the last RTT of the network."""
    outcome = json.loads((run.out / "run.json").read_text())["outcome"]
    errors = []
    for row in rows(run.out / "subflows.csv"):
        addresses = (int(IPv4Address(row["source"])), int(IPv4Address(row["destination"])))
        subflow = (*addresses, int(row["source_port"]), int(row["destination_port"]))
        true_ns = nics.rtt_ns(subflow, outcome["start_ns"] + int(row["time_ns"]))
        if true_ns is not None:
            errors.append(abs(int(row["srtt_ns"]) - nics.beyond_ns(subflow) - true_ns))
    return errors


@pytest.mark.parametrize("jitter_ns", JITTERS_NS)
def test_nics_measure_the_network_whatever_hosts_do(
    weft: Weft, tmp_path: Path, jitter_ns: int
) -> None:
    nics_run = run(weft, tmp_path, jitter_ns, "p4")
    nics = Nics(nics_run.truth)
    errors, unexplained = [], 0
    for digest in nics_run.rtt_samples():
        assert digest.switch.startswith("nic")
        source, destination, source_port, destination_port, _, _, rtt_ns, *_ = digest.fields
        subflow = (source, destination, source_port, destination_port)
        true_ns = nics.rtt_ns(subflow, digest.at_ns)
        if true_ns is None:
            unexplained += 1
        else:
            errors.append(abs(rtt_ns - true_ns))
    kernels = kernels_errors_ns(nics_run, nics)
    print(f"jitter {jitter_ns} ns: {len(errors)} RTTs of cards: {spread(errors)}; ", end="")
    print(f"{len(kernels)} of kernels: {spread(kernels)}")
    assert unexplained == 0
    assert len(errors) > MANY
    assert quantile(errors, 0.5) <= 1_000
    assert quantile(errors, 0.99) <= 10_000
    assert quantile(kernels, 0.5) > max(jitter_ns / 4, 1_000)


@pytest.mark.parametrize("jitter_ns", JITTERS_NS[1:])
def test_leaves_measure_the_noise_of_receivers_as_rtt_of_the_network(
    weft: Weft, tmp_path: Path, jitter_ns: int
) -> None:
    leaves_run = run(weft, tmp_path, jitter_ns, "plain")
    errors = []
    for digest in leaves_run.rtt_samples():
        source, destination, source_port, destination_port, _, _, rtt_ns, *_ = digest.fields
        subflow = (source, destination, source_port, destination_port)
        true_ns = leaves_run.truth.rtt_ns(subflow, digest.at_ns)
        if true_ns is not None:
            errors.append(abs(rtt_ns - true_ns))
    print(f"jitter {jitter_ns} ns: {len(errors)} RTTs of leaves: {spread(errors)}")
    # Leaves reject sudden RTTs that no other sample confirms, so fewer than half are wrong.
    assert quantile(errors, 0.99) > jitter_ns
