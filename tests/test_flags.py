"""`weft topo` and `python -m weft_topology describe` take the same flags, and mean the same."""

import re
import shlex
import subprocess
import sys

import pytest
from driver import Weft

pytestmark = pytest.mark.lab

NOT_OF_TOPOLOGY = {
    "pattern-ttl",
    "pattern-input",
    "controllers",
    "control-delay",
    "path-manager",
    "gray-loss",
}
"""What `weft topo` has of hosts and controllers."""
OF_DRAWING = {"name", "svg", "json"}


def described(line: str) -> "subprocess.CompletedProcess[str]":
    """Run `python -m weft_topology describe`."""
    command = [sys.executable, "-m", "weft_topology", "describe", *shlex.split(line)]
    return subprocess.run(command, capture_output=True, text=True)


def flags_of(text: str) -> set[str]:
    """Give the flags that a help describes."""
    return set(re.findall(r"^ +(?:-h, )?--([a-z][a-z-]*)", text, re.M)) - {"help"}


def test_both_have_the_same_flags(weft: Weft) -> None:
    helped = weft.run("topo", "show", "--help")
    fabric = re.split(r"\n[A-Z]\w+:\n", helped.partition("\nFabric:\n")[2])[0]
    assert flags_of(fabric) - NOT_OF_TOPOLOGY - OF_DRAWING == flags_of(described("--help").stdout)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "--leaves 3 --spines 4 --hosts 2 --rate 2.5gbit --host-rate 10gbit --delay 12500ns",
        "--hosts 4,8 --spines 20 --oversubscription 2",
        "--spine-delay 1=20us,2=40us --spine-rate 2=5mbit --spine-queue 2=3750 --spine-loss 1=0.5%",
        "--sender-rate 2gbit --host-rate 1gbit --queue 150KB --routing ecmp",
        "--sender-rate 1gbit --ecn 20",
        "--queue 64KiB --ecn 30KB",
        "--host-jitter 500us --nic p4 --int md --ip 6",
        "--change '2s:1:rate=0.5,loss=1%;1s:leaf1-spine2:down' --change 'at 3s switch leaf1 up'",
        "--change 'at 2s link leaf1-spine1 rate 50% delay 1ms queue 20'",
        "--topology fat-tree --k 6 --oversubscription 4",
        "--topology fat-tree --change 'at 1s link agg1_1-core1 rate 10mbit; at 2s switch core4 up'",
        "--topology many-to-one --hosts 5 --links 3 --rate 2500mbit --host-rate 10gbit",
        "--topology two-path --profile wifi,lte --ecn 9",
        "--topology dumbbell --hosts 3 --profile wlan,20mbit/50ms/30/1%",
    ],
)
def test_both_make_the_same_fabric_of_them(weft: Weft, line: str) -> None:
    done = described(line)
    assert done.returncode == 0, done.stderr
    assert done.stdout == weft.run("topo", "show", "--json", *shlex.split(line))


@pytest.mark.parametrize(
    "line",
    [
        "--topology ring",
        "--leaves 0",
        "--leaves many",
        "--k 4",
        "--topology fat-tree --k 5",
        "--topology fat-tree --leaves 2",
        "--hosts 4,8 --leaves 3",
        "--oversubscription 2 --rate 1gbit",
        "--rate fast",
        "--queue 0",
        "--queue 1KB",
        "--ecn 100",
        "--ecn 0",
        "--spine-loss 1=101%",
        "--spine-delay 3=1ms",
        "--change 1s:spine9:down",
        "--change 1s:spine1:speed=3",
        "--change 'at 1s switch spine1'",
        "--change 1s:1:down,up",
        "--change 1s:1:rate=0",
        "--change 1s:h1_1-leaf1:rate=0.5",
        "--profile wlan,3g",
        "--nic fast",
        "--ip 5",
        "--host-jitter 2s",
    ],
)
def test_both_refuse_the_same(weft: Weft, line: str) -> None:
    assert weft.try_run("topo", "show", *shlex.split(line)).returncode == 2
    done = described(line)
    assert done.returncode == 2, done.stdout
    assert done.stdout == ""
