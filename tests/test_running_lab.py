# SPDX-License-Identifier: Apache-2.0
"""The closed loop in a running lab: kernel, switch, controller, agent, kernel."""

import re
import subprocess
from pathlib import Path

import pytest
from driver import Lab, Labs, rows

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def lab(labs: Labs) -> Lab:
    """A lab of 8 hosts."""
    return labs.up()


def test_status_says_what_is_up(lab: Lab) -> None:
    text = lab.run("topo", "status")
    assert f"lab {lab.name}: ready" in text
    assert "2 leaves x 4 hosts, 2 spines" in text


def test_every_host_reaches_every_other(lab: Lab) -> None:
    assert "*** Results: 0% dropped (56/56 received)" in lab.shell("pingall")


def test_a_ping_takes_the_time_that_the_links_have(lab: Lab) -> None:
    text = lab.shell("h1_1 ping -c 3 -i 0.2 h2_1")
    (lowest_ms,) = re.findall(r"rtt min/avg/max/mdev = ([\d.]+)/", text)
    # Eight links of 10 us, and 98 bytes on each: at 1 Gbps 0.8 us.
    assert float(lowest_ms) == pytest.approx(0.086, abs=0.006)


def test_iperf3_runs_between_two_hosts(lab: Lab) -> None:
    # With an amount (-n), a thread of iperf3 from 3.16 on polls without a system call, which stops
    # virtual time.
    text = lab.shell("h2_2 iperf3 --server --one-off --daemon", "h1_2 iperf3 -c h2_2 -t 1 -f m")
    (mbps,) = re.findall(r"([\d.]+) Mbits/sec.*receiver", text)
    assert 800 < float(mbps) < 1000


def test_a_workload_ends_with_a_table_and_files(lab: Lab, tmp_path: Path) -> None:
    out = tmp_path / "x"
    text = lab.run(
        *"workload --workload websearch --load 0.3 --flows 20 --seed 1 --out".split(), str(out)
    )
    assert "p99" in text
    flows = rows(out / "flows.csv")
    assert len(flows) == 20
    assert all(int(f["fct_ns"]) >= int(f["ideal_fct_ns"]) for f in flows)
    assert all(int(f["subflows"]) == 2 for f in flows)
    assert (out / "run.json").exists()


def test_patterns_come_from_the_switches_and_reach_the_kernels(lab: Lab) -> None:
    pattern = lab.patterns()[1, 2]
    assert {p["via"] for p in pattern["paths"]} == {"spine1", "spine2"}
    for path in pattern["paths"]:
        assert path["samples"] > 0
        assert path["rtt_min_ns"] == pytest.approx(path["rtt_configured_ns"], rel=0.02)
    assert set(pattern["acknowledged_by"]) >= {"h1_1", "h1_2", "h1_3", "h1_4"}


def test_only_one_can_have_the_prompt(lab: Lab) -> None:
    first = subprocess.Popen(
        lab.weft.command("shell", "--name", lab.name),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert first.stdin is not None
    assert first.stdout is not None
    assert "mininet>" in first.stdout.read(len("mininet>"))
    second = lab.weft.try_run("shell", "--name", lab.name)
    first.communicate("exit\n", timeout=30)
    assert second.returncode != 0
    assert "somebody else has the Mininet prompt" in second.stderr


def test_a_file_that_a_running_lab_does_not_see_is_refused(lab: Lab, tmp_path: Path) -> None:
    flows = tmp_path / "flows"
    flows.write_text("source,destination,bytes,start_ns\nh1_1,h2_1,1000,0\n")
    flags = ("--traffic", "replay", "--flow-list", str(flows), "--name", lab.name)
    done = lab.weft.try_run("workload", *flags)
    assert done.returncode == 2
    said = f"weft: {flows}: the lab has folders /run, /tmp, /dev/shm of its own"
    assert done.stderr == f"{said}; put the file into another\n"


def test_down_leaves_no_process_and_no_folder(labs: Labs) -> None:
    lab = labs.up("--hosts", "1")
    status = lab.json("topo", "status")
    assert Path(status["rundir"]).exists()
    lab.run("topo", "down")
    assert not Path(status["rundir"]).exists()
    # A zombie has no command line, so pgrep does not list it.
    left = subprocess.run(["pgrep", "-f", status["rundir"]], capture_output=True, text=True)
    assert left.stdout == ""
