# SPDX-License-Identifier: Apache-2.0
"""The network on this machine's own kernel, without a lab: in namespaces, in real time.

What this kernel lacks (netem, Weft's module) is not asked for, and nothing here depends on
how fast the machine is.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import needs
import pytest
from driver import Lab, Labs, Weft, rows

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module", autouse=True)
def namespaces() -> None:
    """Every test here needs them."""
    needs.require("namespaces")


@pytest.fixture(scope="module", params=["weft", "bmv2"])
def lab(labs: Labs, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """A network of 4 hosts."""
    if request.param == "bmv2":
        needs.require("bmv2")
    flags = "--clock native --hosts 2 --rate 20mbit --delay 0ns --control-delay 0ns"
    lab = labs.up("--switch", request.param, *flags.split())
    yield lab
    lab.run("topo", "down")


def test_status_shows_that_it_is_native(lab: Lab) -> None:
    assert "clock   native" in lab.run("topo", "status")


def test_a_host_reaches_others_at_its_leaf_and_over_every_spine(lab: Lab) -> None:
    """Pings until one answer arrives, however long the machine takes."""
    pings = [
        f"h1_1 ping -c 1 -w 60 -I {source} {destination}"
        for source, destination in (
            ("10.1.1.1", "10.1.2.1"),
            ("10.1.1.1", "10.2.1.1"),
            ("10.1.1.2", "10.2.1.1"),
        )
    ]
    assert lab.shell(*pings).count(" 1 received") == len(pings)


def test_flows_cross_the_fabric_and_its_leaves_measure_them(lab: Lab, tmp_path: Path) -> None:
    out = tmp_path / "x"
    lab.run(*"workload --traffic bulk --bytes 500000 --scheduler default --out".split(), str(out))
    (flow,) = rows(out / "flows.csv")
    assert flow["bytes"] == "500000"
    (pair,) = (pair for pair in lab.json("paths") if pair["source_leaf"] == 1)
    assert sum(path["samples"] for path in pair["paths"]) > 0


def test_nothing_of_it_is_seen_outside(lab: Lab) -> None:
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True)
    assert "leaf1-eth" not in links.stdout
    assert not Path("/run/weft/lab.json").exists()


def test_a_clock_that_is_not_virtual_cannot_be_set(lab: Lab) -> None:
    refused = lab.try_clock("paused")
    assert refused.returncode != 0
    assert "real time" in refused.stderr


def test_a_missing_bmv2_is_reported_in_one_line_before_anything_starts(weft: Weft) -> None:
    command = weft.command("topo", "up", "--name", "none", "--switch", "bmv2")
    environment = os.environ | {"PATH": "/nowhere"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "no simple_switch_grpc on PATH" in line
    assert "p4lang-bmv2" in line
    assert done.stdout == ""
