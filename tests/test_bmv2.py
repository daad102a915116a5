# SPDX-License-Identifier: Apache-2.0
"""The closed loop on BMv2, where it is installed: every switch is a simple_switch_grpc."""

import re
from pathlib import Path

import needs
import pytest
from driver import Lab, Labs, Weft, rows

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module", autouse=True)
def bmv2() -> None:
    """Every test here needs it."""
    needs.require("bmv2")


@pytest.fixture(scope="module")
def lab(labs: Labs) -> Lab:
    """A lab of 4 hosts; spine 2 is far away."""
    return labs.up(*"--switch bmv2 --hosts 2 --rate 200mbit --spine-delay 2=300us".split())


def test_limitations_of_bmv2_are_printed_at_start(lab: Lab) -> None:
    for what in ("nanoseconds", "bit rates", "200mbit is 16513 frames/s", "speed"):
        assert what in lab.said


def test_every_host_reaches_every_other(lab: Lab) -> None:
    assert "*** Results: 0% dropped (12/12 received)" in lab.shell("pingall")


def test_every_switch_is_a_process_of_its_own(lab: Lab) -> None:
    daemons = dict(
        line.split(maxsplit=1) for line in lab.shell("daemons").splitlines() if "pid " in line
    )
    assert daemons.keys() >= {"leaf1", "leaf2", "spine1", "spine2", "weft-controller"}
    assert len(set(daemons.values())) == len(daemons)


def test_a_ping_takes_the_time_that_its_path_has(lab: Lab) -> None:
    """Without queueing, a frame takes only the delays of four links each way."""
    ways = {path: lab.shell(f"h1_1 ping -c 5 -i 0.01 -I 10.1.1.{path} 10.2.1.1") for path in (1, 2)}
    found = {
        float(ms[0])
        for text in ways.values()
        if (ms := re.findall(r"rtt min/avg/max/mdev = ([\d.]+)/", text))
    }
    assert sorted(found) == [pytest.approx(0.08, abs=0.02), pytest.approx(1.24, abs=0.04)]


def test_patterns_follow_what_its_leaves_measure_and_queues_keep_their_rates(
    lab: Lab, tmp_path: Path
) -> None:
    out = tmp_path / "x"
    lab.run(*"workload --traffic bulk --bytes 3000000 --scheduler rb --out".split(), str(out))
    (flow,) = rows(out / "flows.csv")
    assert flow["subflows"] == "2"
    # Two paths carry 16513 frames a second, each with up to 1448 bytes. Queues start empty, and
    # what fits into them is sent at the host's rate.
    fastest_ns = (3_000_000 / 1448 - 2 * 100) / (2 * 16_513) * 1e9
    assert int(flow["fct_ns"]) > fastest_ns
    (there, _) = lab.json("paths")
    near, far = there["paths"]
    assert (near["via"], far["via"]) == ("spine1", "spine2")
    assert near["rtt_min_ns"] == pytest.approx(92_000, abs=30_000)
    assert far["rtt_min_ns"] == pytest.approx(1_252_000, abs=60_000)
    assert lab.patterns()[1, 2]["acknowledged_by"] == ["h1_1", "h1_2"]


def test_a_switch_that_restarts_gets_its_queues_and_its_entries_again(lab: Lab) -> None:
    lab.shell("daemon restart leaf1")
    assert "0% dropped" in lab.shell("sh sleep 2", "pingall")


def test_weft_run_uses_bmv2_too(weft: Weft, tmp_path: Path) -> None:
    out = tmp_path / "x"
    flags = "--switch bmv2 --hosts 1 --rate 200mbit --traffic bulk --bytes 300000 --out"
    said = weft.run("run", *flags.split(), str(out))
    assert "switches are BMv2" in said
    (flow,) = rows(out / "flows.csv")
    assert not flow["error"]
    assert not (out / "queues.csv").exists()


def test_packets_between_switches_carry_telemetry_and_hosts_see_none_of_it(labs: Labs) -> None:
    lab = labs.up(*"--switch bmv2 --hosts 2 --rate 200mbit --int md".split())
    receive = (
        "import socket; s = socket.create_server(('', 5000)); c, _ = s.accept(); n = 0; "
        "exec('while (d := c.recv(99999)): n += len(d)'); print('received', n)"
    )
    said = lab.shell(
        f'h2_1 python3 -c "{receive}" > /tmp/received 2>&1 &',
        'sh sh -c "tcpdump -nl -i leaf1-eth3 udp port 54321 > /tmp/trunk 2>&1 &"',
        'sh sh -c "tcpdump -nl -i leaf1-eth1 udp port 54321 > /tmp/host 2>&1 &"',
        "sh sleep 1",
        'h1_1 bash -c "head -c 300000 /dev/zero > /dev/tcp/10.2.1.1/5000"',
        "sh sleep 1",
        'sh sh -c "cat /tmp/received; grep -c UDP /tmp/trunk /tmp/host"',
    )
    assert "received 300000" in said
    packets = dict(re.findall(r"^/tmp/(trunk|host):(\d+)", said, re.MULTILINE))
    assert int(packets["trunk"]) > 0
    assert packets["host"] == "0"
