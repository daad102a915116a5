# SPDX-License-Identifier: Apache-2.0
"""What `weft topo show` makes of flags, and what it refuses."""

import json
import shlex
import subprocess
import sys

import pytest
from driver import Weft
from weft_topology import fabrics, route_metrics

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("kind", fabrics.KINDS)
def test_what_no_flag_says_is_the_same_to_python(weft: Weft, kind: str) -> None:
    command = [sys.executable, "-m", "weft_topology", "draw", "--json", "-"]
    document = json.dumps({"kind": kind})
    done = subprocess.run(command, input=document, capture_output=True, text=True, check=True)
    assert done.stdout == weft.run("topo", "show", "--json", "--topology", kind)


def test_every_route_metric_has_a_flag_whose_name_python_knows(weft: Weft) -> None:
    flags = {"initial_window": "--initial-window 2", "rto_min_ms": "--rto-min 5ms"}
    assert flags.keys() == route_metrics.METRICS.keys()
    weft.run("topo", "show", *" ".join(flags.values()).split())


def test_changes_of_links_are_described(weft: Weft) -> None:
    flags = ["--change", "2s:1:rate=0.5,loss=1%;1s:leaf1-spine2:down"]
    flags += ["--change", "at 3s switch leaf1 up"]
    fabric = json.loads(weft.run("topo", "show", "--json", *flags))
    changes = fabric["schedule"]["changes"]
    assert [change["at_ns"] for change in changes] == [10**9, *[2 * 10**9] * 3, 3 * 10**9]
    assert changes[0] == {"at_ns": 10**9, "link": changes[0]["link"], "up": False}
    assert changes[1] == {"at_ns": 2 * 10**9, "switch": "spine1", "loss_ppm": 10_000}
    assert [change["rate_bps"] for change in changes[2:4]] == [500_000_000] * 2
    assert changes[4] == {"at_ns": 3 * 10**9, "switch": "leaf1", "up": True}


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
        "--initial-window 0",
        "--rto-min 0",
        "--rto-min 1500us",
    ],
)
def test_what_no_fabric_can_have_is_refused_in_one_line(weft: Weft, line: str) -> None:
    done = weft.try_run("topo", "show", *shlex.split(line))
    assert done.returncode == 2, done.stdout
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr
