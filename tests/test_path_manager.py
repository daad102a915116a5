# SPDX-License-Identifier: Apache-2.0
"""The adaptive path manager opens more subflows per path as long as they add throughput."""

import json
import subprocess
import time
from pathlib import Path

import pytest
from driver import LIMIT_S, Lab, Labs, Weft, rows

pytestmark = pytest.mark.lab

FABRIC = "--leaves 2 --spines 2 --hosts 1 --rate 50mbit --host-rate 1gbit --delay 2500us"
"""Two paths of 50 Mbit/s and 20 ms."""
TRAFFIC = "--traffic bulk --scheduler default"


def run(weft: Weft, out: Path, path_manager: str, flags: str) -> tuple[float, int]:
    """Run a long flow; give its goodput in Mbit/s and its number of subflows at the end."""
    words = f"{FABRIC} {TRAFFIC} --path-manager {path_manager} {flags}"
    weft.run("run", *words.split(), "--out", str(out))
    (flow,) = rows(out / "flows.csv")
    return 8e3 * int(flow["bytes"]) / int(flow["fct_ns"]), int(flow["subflows"])


def test_without_loss_a_path_keeps_one_subflow(weft: Weft, tmp_path: Path) -> None:
    goodput, subflows = run(weft, tmp_path / "adaptive", "adaptive", "--bytes 25MB")
    assert subflows == 2
    assert goodput > 0.85 * 100


def test_with_loss_adaptive_beats_one_subflow_per_path(weft: Weft, tmp_path: Path) -> None:
    loss = "--bytes 20MB --spine-loss 1=1%,2=1%"
    one, _ = run(weft, tmp_path / "one", "fixed:1", loss)
    adaptive, subflows = run(weft, tmp_path / "adaptive", "adaptive", loss)
    assert subflows > 2
    assert adaptive > 1.5 * one


def test_only_the_lossy_path_gets_more_subflows(weft: Weft, tmp_path: Path) -> None:
    _, subflows = run(weft, tmp_path / "x", "adaptive:max=3", "--bytes 40MB --spine-loss 2=1%")
    # Drops of a full queue are losses too: the other path may be trying a second subflow.
    assert 1 + 3 <= subflows < 3 + 3


def test_the_path_manager_is_recorded_in_the_results(weft: Weft, tmp_path: Path) -> None:
    run(weft, tmp_path / "x", "fixed:3", "--bytes 1MB")
    lab = json.loads((tmp_path / "x" / "run.json").read_text())["lab"]
    assert lab["path_manager"] == "fixed:3"


def test_more_subflows_than_a_connection_has_are_refused(weft: Weft) -> None:
    done = weft.try_run("run", "--spines", "4", "--path-manager", "fixed:4")
    assert done.returncode == 2
    assert "at most 8" in done.stderr
    assert done.stderr.count("\n") == 1


def per_path(lab: Lab) -> list[int]:
    """Give the number of subflows on each path, requested ones too."""
    return [len(path["subflows"]) for path in lab.json("flows", "--subflows")]


def carrying_per_path(lab: Lab) -> list[int]:
    """Give the number of subflows on each path over which the peer has acknowledged data.

    Before that its kernel may still refuse them: it does while its agent isn't running.
    """
    paths = lab.json("flows", "--subflows")
    return [sum(subflow["acked_bytes"] > 0 for subflow in path["subflows"]) for path in paths]


def test_a_restarted_agent_takes_over_existing_connections(labs: Labs, tmp_path: Path) -> None:
    lab = labs.up(*FABRIC.split(), "--path-manager", "fixed:2")
    # More than the paths carry in LIMIT_S, however busy the machine is.
    flags = f"workload {TRAFFIC} --bytes 4GB --name {lab.name} --out"
    command = lab.weft.command(*flags.split(), str(tmp_path / "x"))
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=lab.weft.folder) as load:
        try:
            deadline = time.monotonic() + LIMIT_S
            while carrying_per_path(lab) != [2, 2]:
                assert load.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.05)
            lab.shell("daemon kill weft-agent")
            lab.shell("daemon start weft-agent")
            assert per_path(lab) == [2, 2]
            assert load.poll() is None
        finally:
            load.kill()
