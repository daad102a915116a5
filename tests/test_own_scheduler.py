# SPDX-License-Identifier: Apache-2.0
"""A scheduler in a module of one's own, from its C file to the packets in the switches."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import plain_lab
import pytest
from driver import ROOT, Weft, rows, sent_bytes

EXAMPLE = ROOT / "examples" / "scheduler"
BUILD = ROOT / "topology" / "lab" / "kernel" / "build.py"
CACHE = Path(os.environ.get("WEFT_CACHE") or Path.home() / ".cache" / "weft")
ONE_FLOW = "--workload websearch --scale 160 --flows 1 --seed 2"
"""20 MB between two racks."""


@pytest.fixture(scope="module")
def module() -> Path:
    """The example's module, built as its README says."""
    subprocess.run(["make", "-C", EXAMPLE], check=True)
    return EXAMPLE / "weighted.ko"


@pytest.fixture
def _loaded(module: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Labs load the module beside Weft's."""
    record = json.loads((CACHE / "kernel" / "current.json").read_text())
    record["modules"].append(str(module))
    folder = tmp_path / "cache" / "kernel"
    folder.mkdir(parents=True)
    (folder / "current.json").write_text(json.dumps(record))
    monkeypatch.setenv("WEFT_CACHE", str(folder.parent))


def share_of_first_subflow(weft: Weft, out: Path, scheduler: str) -> float:
    """Run one flow; give the part of its bytes that its first subflow carried."""
    weft.run("run", *ONE_FLOW.split(), "--scheduler", scheduler, "--out", str(out))
    (flow,) = rows(out / "flows.csv")
    assert flow["error"] == ""
    assert flow["subflows"] == "2"
    assert int(flow["bytes"]) > 10_000_000
    sent = sent_bytes(out, f"leaf{flow['src'][1]}")
    by_spine = sorted((sent["spine1"], sent["spine2"]), reverse=True)
    return by_spine[0] / sum(by_spine)


@pytest.mark.lab
@pytest.mark.usefixtures("_loaded")
def test_packets_go_where_a_scheduler_of_ones_own_sends_them(weft: Weft, tmp_path: Path) -> None:
    weighted = share_of_first_subflow(weft, tmp_path / "weighted", "weighted")
    assert weighted == pytest.approx(0.75, abs=0.01)
    # The paths are equal: the scheduler makes the difference.
    assert share_of_first_subflow(weft, tmp_path / "rr_packet", "rr_packet") < 0.6


@pytest.mark.lab
def test_sockets_choose_it_and_its_connections_are_among_the_kernels_flows(module: Path) -> None:
    kernel = plain_lab.kernel()
    with_module = plain_lab.Kernel(kernel.version, kernel.image, (*kernel.modules, module))
    assert plain_lab.run_program(with_module, "one_scheduler", "weighted") == []


@pytest.mark.lab
def test_what_the_compiler_says_of_a_module_of_ones_own_is_shown(tmp_path: Path) -> None:
    shutil.copyfile(EXAMPLE / "weighted.c", tmp_path / "mine.c")
    text = (tmp_path / "mine.c").read_text()
    (tmp_path / "mine.c").write_text(text.replace("best = 0", "first = 0"))
    done = subprocess.run(
        [sys.executable, BUILD, "--module", tmp_path], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "mine.c:" in done.stderr
    assert "'best' undeclared" in done.stderr
    assert not list(tmp_path.glob("*.ko"))
