# SPDX-License-Identifier: Apache-2.0
"""`weft experiment` and `weft report` with real labs."""

import os
import signal
import subprocess
import time
from pathlib import Path

import polars as pl
import pytest
from driver import ROOT, Weft

pytestmark = pytest.mark.lab

EXPERIMENT = """
title = "Two sizes"
source = "a test"
setting = "An incast of three flows."

[flags]
hosts = 3
traffic = "incast"
senders = 3
scale = 0.5

[[experiment]]
name = "sizes"
seeds = 1
seconds = 1.0
evidence = true
scheduler = ["rb", "minrtt"]
[[experiment.axis]]
name = "size"
label = "Size (B)"
flag = "bytes"
values = [20000, 60000]

[[plot]]
name = "fct"
title = "FCT"
quantity = "fct_mean_ms"
x = "size"

[[claim]]
text = "Longer flows take longer."
source = "common sense"
metric = "fct_mean_ms"
which = { size = 60000 }
versus = { size = 20000 }
relation = ">="
"""


def command(folder: Path) -> list[str]:
    out = ["--out", str(folder / "out"), "--store", str(folder / "runs"), "--jobs", "1"]
    return ["experiment", str(folder / "sizes.toml"), *out]


def test_an_experiment_becomes_a_table_and_a_report(weft: Weft, tmp_path: Path) -> None:
    (tmp_path / "sizes.toml").write_text(EXPERIMENT)
    said = weft.run(*command(tmp_path))
    assert "NOT DECIDED: Longer flows take longer." in said
    flows = pl.read_parquet(tmp_path / "out" / "flows.parquet")
    assert flows.group_by("scheduler", "size").len()["len"].to_list() == [3] * 4
    assert set(flows["bytes"].unique()) == {10_000, 30_000}
    assert flows["slowdown"].min() > 1  # type: ignore[operator]
    assert "4 more are finished already" in weft.run(*command(tmp_path), "--plan")
    weft.run("report", str(tmp_path / "out"))
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Data ACK of the first connection over time" in page


def test_a_mistake_is_refused_before_anything_runs(weft: Weft, tmp_path: Path) -> None:
    for old, new, said in (
        ('"minrtt"', '"minrt"', "sizes.toml:17: experiment sizes: scheduler = 'minrt': there are"),
        ("hosts = 3", "hosts = 0", "sizes.toml:7: experiment sizes: "),
        ("senders", "sender", "no flag --sender; did you mean --senders?"),
        ("traffic =", "pattern =", "sizes: pattern is now called traffic"),
    ):
        (tmp_path / "sizes.toml").write_text(EXPERIMENT.replace(old, new, 1))
        done = weft.try_run(*command(tmp_path))
        assert done.returncode == 2
        assert said in done.stderr
        assert not (tmp_path / "runs").exists()


def guests(ancestor: int) -> list[int]:
    """Find the guests' kernels among the descendants of a process."""
    parents, kernels = {}, []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, fields = stat.read_text().split("(", 1)[1].rsplit(") ", 1)
        except OSError:
            continue  # It ended meanwhile.
        process = int(stat.parent.name)
        parents[process] = int(fields.split()[1])
        if name == "linux":
            kernels.append(process)

    def descends(process: int) -> bool:
        return process == ancestor or (process in parents and descends(parents[process]))

    return [kernel for kernel in kernels if descends(kernel)]


def test_a_killed_guest_fails_its_run_and_leaves_its_log(weft: Weft, tmp_path: Path) -> None:
    (tmp_path / "sizes.toml").write_text(EXPERIMENT)
    child = subprocess.Popen(
        weft.command(*command(tmp_path)), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    while not (killed := guests(child.pid)):
        assert child.poll() is None
        time.sleep(0.02)
    for guest in killed:
        os.kill(guest, signal.SIGKILL)
    _, said = child.communicate(timeout=200)
    assert child.returncode == 1
    assert b"1 runs failed" in said
    assert len(list((tmp_path / "runs" / "failed").glob("*/run.log"))) == 1
    assert pl.read_parquet(tmp_path / "out" / "flows.parquet")["run"].n_unique() == 3
    weft.run(*command(tmp_path))
    assert pl.read_parquet(tmp_path / "out" / "flows.parquet")["run"].n_unique() == 4
