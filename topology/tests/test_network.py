# SPDX-License-Identifier: Apache-2.0
"""The network as the kernel has it, in a network namespace of the test's own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import needs
import pytest
from weft_topology import netlink

# Runs inside: builds a fabric, evaluates `expression` with it, prints that as JSON.
_PROGRAM = """
import json, subprocess, sys
subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
from weft_topology.emulation import WeftNet
from weft_topology.leaf_spine import LeafSpine
from weft_topology.fabrics import LeafSpineSpec

def seen(*argv):
    return json.loads(subprocess.run(argv, check=True, capture_output=True).stdout)

given = json.loads(sys.argv[1])
how = {name: given.pop(name) for name in ("wired", "timer_slack_ns") if name in given}
net = WeftNet(LeafSpine(LeafSpineSpec(**given)), **how)
net.build()
try:
    result = eval(sys.argv[2])
finally:
    net.stop()
print(json.dumps(result if sys.argv[3] == "before" else eval(sys.argv[2])))
"""

# `tc` and `ethtool` are where Debian's users do not look.
_ENVIRONMENT = os.environ | {"PATH": f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"}


def _unshare() -> list[str]:
    command = ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc"]
    return command if os.geteuid() == 0 else [*command, "--map-root-user"]


@pytest.fixture(scope="module", autouse=True)
def namespaces() -> None:
    """Every test here needs them."""
    needs.require("namespaces")


def in_network(expression: str, when: str = "before", **parameters: Any) -> Any:
    """Evaluate `expression` in a built network, or after it was stopped."""
    command = [sys.executable, "-c", _PROGRAM, json.dumps(parameters), expression, when]
    done = subprocess.run([*_unshare(), *command], capture_output=True, text=True, env=_ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def has_carrier(link: dict[str, Any]) -> bool:
    """Whether a link is up now; the kernel sets its `operstate` up to a second later."""
    return {"UP", "LOWER_UP"} <= set(link["flags"])


def test_a_host_has_one_address_per_path_on_one_interface() -> None:
    (_, cable) = in_network('seen("ip", "-j", "-n", "h2_1", "addr")', spines=3, hosts=1)
    assert cable["ifname"] == "h2_1-eth0"
    assert cable["address"] == "02:00:00:00:02:01"
    assert cable["mtu"] == 1500
    assert has_carrier(cable)
    assert [(a["local"], a["prefixlen"]) for a in cable["addr_info"]] == [
        ("10.2.1.1", 24),
        ("10.2.1.2", 24),
        ("10.2.1.3", 24),
    ]


def test_a_host_needs_no_arp_to_reach_everybody() -> None:
    routes, neighbours = in_network(
        'seen("ip", "-j", "-n", "h1_2", "route"), seen("ip", "-j", "-n", "h1_2", "neigh")'
    )
    assert {"dst": "default", "gateway": "10.1.2.254", "dev": "h1_2-eth0", "flags": []} in routes
    (gateway,) = neighbours
    assert (gateway["dst"], gateway["lladdr"]) == ("10.1.2.254", "02:00:00:ff:00:01")
    assert gateway["state"] == ["PERMANENT"]


@pytest.mark.parametrize(
    ("metrics", "shown"),
    [
        ({}, ""),
        ({"initial_window": 2}, "initcwnd 2"),
        ({"rto_min_ms": 5}, "rto_min lock 5ms"),
        ({"rto_min_ms": 1, "initial_window": 3}, "initcwnd 3 rto_min lock 1ms"),
    ],
)
def test_route_metrics_are_those_of_both_versions_of_ip(metrics: Any, shown: str) -> None:
    routes = in_network(
        '[subprocess.run(["ip", v, "-n", "h1_1", "route", "show", "default"], check=True, '
        'capture_output=True, text=True).stdout for v in ("-4", "-6")]',
        ip=6,
        hosts=1,
        route_metrics=metrics,
    )
    gateways = ("10.1.1.254", "fd57:6566:7400::a01:1fe")
    of_ipv6 = ("", "metric 1024 onlink"), ("", "pref medium")
    for route, gateway, before, after in zip(routes, gateways, *of_ipv6, strict=True):
        expected = f"default via {gateway} dev h1_1-eth0 {before} {shown} {after}"
        assert route.split() == expected.split()


@pytest.mark.parametrize(
    ("rate_bps", "timer_slack_ns"),
    [
        (10**9, netlink.TIMER_SLACK_NS),
        (10**11, netlink.TIMER_SLACK_NS),
        (50 * 10**6, netlink.REAL_TIMER_SLACK_NS),
    ],
)
def test_a_host_sends_at_its_rate_one_frame_at_a_time(rate_bps: int, timer_slack_ns: int) -> None:
    (queue,) = in_network(
        'seen("tc", "-n", "h1_1", "-j", "qdisc", "show", "dev", "h1_1-eth0")',
        host_rate_bps=rate_bps,
        timer_slack_ns=timer_slack_ns,
        hosts=1,
    )
    assert queue["kind"] == "tbf"
    assert queue["options"]["rate"] == rate_bps // 8
    burst = 1514 + rate_bps // 8 * timer_slack_ns // 10**9
    # The kernel rounds to ticks of 64 ns when it reports the burst, and to bytes.
    assert queue["options"]["burst"] == pytest.approx(burst, abs=2 + 64e-9 * rate_bps / 8 * 2)


def test_a_packet_is_a_packet_at_both_ends_of_a_cable() -> None:
    host, port = in_network(
        '[net[n].cmd("ethtool", "-k", i) for n, i in '
        '(("h1_1", "h1_1-eth0"), ("leaf1", "leaf1-eth1"))]',
        hosts=1,
    )
    for features in (host, port):
        states = dict(line.strip().split(": ", 1) for line in features.splitlines()[1:])
        for feature in (
            "rx-checksumming",
            "tx-checksumming",
            "scatter-gather",
            "tx-tcp-segmentation",
            "generic-segmentation-offload",
            "generic-receive-offload",
            "large-receive-offload",
        ):
            assert states[feature].startswith("off"), feature


def test_only_cables_to_hosts_are_interfaces_of_the_machine() -> None:
    interfaces = in_network('[i["ifname"] for i in seen("ip", "-j", "link")]', hosts=2)
    assert sorted(set(interfaces) - {"lo"}) == [
        "leaf1-eth1",
        "leaf1-eth2",
        "leaf2-eth1",
        "leaf2-eth2",
    ]


def test_links_of_switches_that_are_processes_are_wires_that_carry_telemetry_besides() -> None:
    links, text = in_network(
        '(seen("ip", "-j", "link"), net.links[-1].status())',
        wired=True,
        hosts=1,
        spines=1,
        delay_ns=0,
    )
    mtus = {
        link["ifname"]: link["mtu"]
        for link in links
        if has_carrier(link) and link["link_type"] != "loopback"
    }
    assert mtus == {
        "leaf1-eth1": 1500,
        "leaf2-eth1": 1500,
        "leaf1-eth2": 2000,
        "spine1-eth1": 2000,
        "leaf2-eth2": 2000,
        "spine1-eth2": 2000,
    }
    assert text == "(OK OK)"


def test_wires_leave_nothing_when_they_stop() -> None:
    left = in_network(
        '[i["ifname"] for i in seen("ip", "-j", "link")]', when="after", wired=True, delay_ns=0
    )
    assert left == ["lo"]


@pytest.mark.parametrize("wired", [False, True])
def test_nobody_speaks_ipv6(wired: bool) -> None:
    families = in_network(
        '[a["family"] for n in ((), ("-n", "h1_1")) for i in seen("ip", *n, "-j", "addr") '
        'if i["ifname"] != "lo" for a in i["addr_info"]]',
        wired=wired,
        hosts=1,
        delay_ns=0,
    )
    assert set(families) <= {"inet"}


def test_mininet_knows_addresses_and_runs_commands_in_hosts() -> None:
    address, interfaces, (route,) = in_network(
        '(net["h1_1"].IP(), net["h1_1"].cmd("ls /sys/class/net").split(), '
        'json.loads(net["h2_1"].popen("ip -j route get 10.1.1.1").communicate()[0]))',
        hosts=1,
    )
    assert address == "10.1.1.1"
    assert interfaces == ["h1_1-eth0", "lo"]
    assert (route["gateway"], route["prefsrc"]) == ("10.2.1.254", "10.2.1.1")


def test_nothing_is_left_when_it_stops() -> None:
    left = in_network(
        '(net["h1_1"].cmd("true"), [i["ifname"] for i in seen("ip", "-j", "link")], '
        '__import__("os").listdir("/run/netns"), '
        'subprocess.run(["pgrep", "-c", "bash"], capture_output=True).stdout.decode())',
        when="after",
    )
    assert left == ["", ["lo"], [], "0\n"]


def test_a_network_that_cannot_be_built_leaves_nothing(tmp_path: Path) -> None:
    program = """
import subprocess, os
subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
from weft_topology.emulation import WeftNet
from weft_topology.leaf_spine import LeafSpine
from weft_topology.fabrics import LeafSpineSpec
subprocess.run("ip link add leaf2-eth1 type veth peer name other", shell=True, check=True)
try:
    WeftNet(LeafSpine(LeafSpineSpec())).build()
except OSError as error:
    print(error, os.listdir("/run/netns"))
"""
    done = subprocess.run(
        [*_unshare(), sys.executable, "-c", program], capture_output=True, text=True
    )
    assert done.stdout.endswith("veth leaf2-eth1 to h2_1-eth0: File exists []\n"), done
