# SPDX-License-Identifier: Apache-2.0
"""A lab in real time: the same kernel and programs, without the virtual clock.

Nothing here depends on how fast the machine is.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from driver import Lab, Labs, Weft, rows

pytestmark = pytest.mark.lab

SLOW = "--clock real --hosts 2 --rate 20mbit --host-rate 20mbit".split()


@pytest.fixture(scope="module")
def lab(labs: Labs) -> Iterator[Lab]:
    """A lab of 4 hosts."""
    lab = labs.up(*SLOW)
    yield lab
    lab.run("topo", "down")


def test_status_shows_real_time_alone(lab: Lab) -> None:
    (clock,) = (line for line in lab.run("topo", "status").splitlines() if "clock" in line)
    assert "real; " in clock
    assert "virtual" not in clock


def test_a_workload_runs_and_its_flows_take_their_time(lab: Lab, tmp_path: Path) -> None:
    out = tmp_path / "x"
    lab.run(*"workload --traffic bulk --bytes 500000 --scheduler weft --out".split(), str(out))
    (flow,) = rows(out / "flows.csv")
    assert flow["bytes"] == "500000"
    # A busy machine may note late when a flow begins. Without the clock it would take no time.
    assert int(flow["fct_ns"]) >= 0.9 * int(flow["ideal_fct_ns"])


def test_a_clock_of_real_time_cannot_be_set(lab: Lab) -> None:
    refused = lab.try_clock("paused")
    assert refused.returncode != 0
    assert "real time" in refused.stderr


def test_a_run_in_real_time_leaves_the_same_files(weft: Weft, tmp_path: Path) -> None:
    flows = "--traffic bulk --bytes 100000 --seed 3 --out".split()
    said = weft.run("run", *SLOW, *flows, str(tmp_path / "real"))
    assert " of real time" in said
    assert "virtual" not in said
    weft.run("run", *SLOW[2:], *flows, str(tmp_path / "virtual"))
    real, virtual = (rows(tmp_path / name / "flows.csv") for name in ("real", "virtual"))
    assert [flow["bytes"] for flow in real] == [flow["bytes"] for flow in virtual]
