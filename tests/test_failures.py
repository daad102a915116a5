# SPDX-License-Identifier: Apache-2.0
"""Patterns and flows survive failures of paths, switches, agents and controllers."""

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from driver import LIMIT_S, Lab, Labs, sent_bytes

pytestmark = pytest.mark.lab

SECOND_NS = 1_000_000_000


@contextmanager
def long_flows(
    lab: Lab, out: Path, size_bytes: int = 60_000_000, senders: int = 3
) -> Iterator[subprocess.Popen[str]]:
    """Run flows into one host; three flows of 60 MB take at least 1.4 s of virtual time."""
    traffic = f"--traffic incast --senders {senders} --bytes {size_bytes}"
    flags = f"workload {traffic} --scheduler rb --out"
    command = lab.weft.command(*flags.split(), str(out), "--name", lab.name)
    load = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=lab.weft.folder
    )
    try:
        yield load
    finally:
        load.kill()
        load.communicate()


def sources(lab: Lab) -> set[str]:
    """Give the sources of the senders' patterns."""
    return sources_of(lab.json("flows"))


def sources_of(flows: list[dict[str, Any]]) -> set[str]:
    """Give the sources of the patterns of connections with data."""
    return {flow["source"] for flow in flows if any(s["packets"] > 10 for s in flow["subflows"])}


def gaps(lab: Lab) -> set[tuple[int, ...]]:
    """Give the gaps in the senders' patterns, smallest first."""
    flows = [flow for flow in lab.json("flows") if flow["source"] == "controller"]
    return {tuple(sorted(s["gap"] for s in flow["subflows"])) for flow in flows}


def wait_until(load: subprocess.Popen[str], condition: Callable[[], bool], what: str) -> None:
    """Poll a condition while the flows run."""
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert load.poll() is None, f"the flows ended before {what}"
        assert time.monotonic() < deadline, f"never saw {what}"
        time.sleep(0.05)


def virtual_ns(lab: Lab) -> int:
    """Give the lab's clock."""
    return int(lab.json("topo", "status")["virtual_ns"])


def test_a_slow_spine_gets_its_share_and_the_kernel_follows(labs: Labs, tmp_path: Path) -> None:
    lab = labs.up("--spine-delay", "2=40us")
    # The sender is as fast as one path. Where the paths meet again, a packet or two may queue all
    # the time, which the lowest RTT excludes.
    with long_flows(lab, tmp_path / "x", senders=1) as load:
        wait_until(load, lambda: sources(lab) == {"controller"}, "the controller's patterns in use")
        assert gaps(lab) == {(1, 2)}
        text, _ = load.communicate(timeout=LIMIT_S)
        assert load.returncode == 0, text
    patterns = lab.patterns()
    assert set(patterns) == {(1, 2), (2, 1)}
    for pattern in patterns.values():
        fast, slow = pattern["paths"]
        for path in (fast, slow):
            assert path["rtt_min_ns"] == pytest.approx(path["rtt_configured_ns"], rel=0.05)
        # Two links of that spine, each way, have 30 us more delay.
        assert slow["rtt_configured_ns"] - fast["rtt_configured_ns"] == 120_000
    sent = sent_bytes(tmp_path / "x", "leaf1")
    assert sent["spine1"] / sent["spine2"] == pytest.approx(2, rel=0.1)


def test_flows_outlive_the_controller_and_patterns_come_back(labs: Labs, tmp_path: Path) -> None:
    lab = labs.up()
    with long_flows(lab, tmp_path / "x") as load:
        wait_until(load, lambda: sources(lab) == {"controller"}, "the controller's patterns in use")
        lab.shell("daemon kill weft-controller")
        wait_until(load, lambda: sources(lab) == {"local"}, "patterns past their time to live")
        lab.shell("daemon start weft-controller")
        started_ns = virtual_ns(lab)
        wait_until(load, lambda: sources(lab) == {"controller"}, "patterns coming back")
        assert virtual_ns(lab) - started_ns <= SECOND_NS
        text, _ = load.communicate(timeout=LIMIT_S)
        assert load.returncode == 0, text


def newest(flows: list[dict[str, Any]]) -> dict[str, int]:
    """Give the version that each connection uses, of those that have one."""
    return {f"{flow['host']} {flow['token']}": flow["version"] for flow in flows if flow["version"]}


class Versions:
    """Versions that connections use; none may be older than the one before."""

    def __init__(self, lab: Lab) -> None:
        """No version is known yet."""
        self._lab = lab
        self._seen: dict[str, int] = {}

    def follow(self) -> set[str]:
        """Check the versions now; gives the sources of the senders' patterns."""
        flows = self._lab.json("flows")
        found, told = newest(flows), sources_of(flows)
        assert found or told != {"controller"}, "patterns of the controller without a version"
        for flow, version in found.items():
            assert version >= self._seen.get(flow, 0), f"{flow} went back"
            self._seen[flow] = version
        return told


def test_a_second_controller_takes_over_and_the_first_takes_back(
    labs: Labs, tmp_path: Path
) -> None:
    lab = labs.up("--controllers", "2")
    versions = Versions(lab)
    with long_flows(lab, tmp_path / "x") as load:
        wait_until(load, lambda: versions.follow() == {"controller"}, "the first one's patterns")
        lab.shell("daemon kill weft-controller")
        killed_ns = virtual_ns(lab)
        # The patterns of the first controller have expired.
        wait_until(load, lambda: virtual_ns(lab) - killed_ns > SECOND_NS // 2, "half a second")
        assert versions.follow() == {"controller"}
        lab.shell("daemon start weft-controller")
        wait_until(load, lambda: bool(lab.patterns()), "the first one's agents")
        assert versions.follow() == {"controller"}


def test_hosts_leave_a_controller_that_is_cut_off_and_never_use_older_patterns(
    labs: Labs, tmp_path: Path
) -> None:
    lab = labs.up("--controllers", "2")
    versions = Versions(lab)
    with long_flows(lab, tmp_path / "x", 200_000_000) as load:
        wait_until(load, lambda: versions.follow() == {"controller"}, "the first one's patterns")
        lab.shell("daemon pause weft-controller")
        wait_until(load, lambda: versions.follow() == {"local"}, "patterns past their time")
        # Switches and hosts notice after twice 200 ms, and reconnect a little later.
        wait_until(load, lambda: versions.follow() == {"controller"}, "the second one's patterns")
        lab.shell("daemon resume weft-controller")
        resumed_ns = virtual_ns(lab)
        while virtual_ns(lab) - resumed_ns < SECOND_NS // 4 and load.poll() is None:
            versions.follow()


def test_patterns_survive_a_restart_of_the_agents(labs: Labs, tmp_path: Path) -> None:
    lab = labs.up()
    versions = Versions(lab)
    with long_flows(lab, tmp_path / "x") as load:
        wait_until(load, lambda: versions.follow() == {"controller"}, "the controller's patterns")
        lab.shell("daemon kill weft-agent", "daemon start weft-agent")
        restarted_ns = virtual_ns(lab)
        wait_until(load, lambda: virtual_ns(lab) - restarted_ns > SECOND_NS // 4, "a life")
        assert versions.follow() == {"controller"}


def samples(lab: Lab) -> int:
    """Give how many RTTs the controller has used, of all paths together."""
    return sum(path["samples"] for pair in lab.json("paths") for path in pair["paths"])


def test_flows_telemetry_and_patterns_survive_a_restart_of_the_switches(
    labs: Labs, tmp_path: Path
) -> None:
    lab = labs.up()
    versions = Versions(lab)
    with long_flows(lab, tmp_path / "x") as load:
        wait_until(load, lambda: versions.follow() == {"controller"}, "the controller's patterns")
        lab.shell("daemon kill weft-switch", "daemon start weft-switch")
        # That needs programs, table entries and digests again.
        before = samples(lab)
        wait_until(load, lambda: samples(lab) > before + 10, "RTTs that the new switches measure")
        wait_until(load, lambda: versions.follow() == {"controller"}, "patterns in use")
        text, _ = load.communicate(timeout=LIMIT_S)
        assert load.returncode == 0, text


def test_queries_ask_the_controller_that_is_primary(labs: Labs, tmp_path: Path) -> None:
    lab = labs.up("--controllers", "2")
    with long_flows(lab, tmp_path / "x", 200_000_000) as load:
        wait_until(load, lambda: bool(lab.patterns()), "patterns of the first")
        # A dead controller refuses connections, one that hangs does not answer.
        for stop, go_on in (("kill", "start"), ("pause", "resume")):
            lab.shell(f"daemon {stop} weft-controller")
            wait_until(load, lambda: bool(lab.patterns()), f"patterns of the second ({stop})")
            assert lab.json("explain", "h1_1", "h2_1")["history"]
            lab.shell(f"daemon {go_on} weft-controller")
            wait_until(load, lambda: bool(lab.patterns()), f"patterns of the first ({stop})")
