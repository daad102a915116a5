# SPDX-License-Identifier: Apache-2.0
"""The lab's document `lab.json`, read and checked."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft_topology import fabrics, netlink
from weft_topology.errors import UsageError
from weft_topology.json_fields import integer, mapping, string, value

ARRIVALS = ("hosts", "all")
REAL_TIME = ("real", "native")
"""Clocks that are not virtual."""


@dataclass(frozen=True)
class Paths:
    """Where things are on this machine."""

    repo: Path
    bin: Path
    """Folder of the built programs."""
    programs: tuple[Path, ...]
    """Folders of compiled P4 programs; the first that has a program decides."""


@dataclass(frozen=True)
class CaptureSpec:
    """What the switches capture, packet by packet."""

    hosts: tuple[str, ...]
    """Names, or `all`."""
    arrivals: str
    """Which queues' arrivals are recorded: those in front of these `hosts`, or `all`."""

    def __post_init__(self) -> None:
        """Refuses what weft-switch would not take."""
        if not self.hosts:
            raise UsageError("capture: hosts: name at least one, or all")
        if self.arrivals not in ARRIVALS:
            raise UsageError(
                f"capture: arrivals {self.arrivals!r} is none of {', '.join(ARRIVALS)}"
            )


@dataclass(frozen=True)
class LabSpec:
    """A whole lab, without the fields that only the launcher reads."""

    topology: fabrics.AnySpec
    pattern_ttl_ns: int
    paths: Paths
    seed: int = 1
    """Of everything random."""
    path_manager: str = "kernel"
    """Who opens subflows, as `weft-agent --path-manager` takes it."""
    pattern_input: str = "rtt"
    """What patterns follow from, as `weft-controller --pattern-input` takes it."""
    gray_loss_ppm: int = 5_000
    """Paths that lose so much are avoided, as `weft-controller --gray-loss` takes it."""
    class_thresholds: str = "seen"
    """Where the thresholds between classes come from, as `weft-controller --class-thresholds`
    takes it."""
    controllers: int = 1
    """One of them is primary."""
    control_delay_ns: int = 0
    """One-way delay between switches and controller, and between controller and agents."""
    capture: CaptureSpec | None = None
    bmv2: Path | None = None
    """A `simple_switch_grpc` that every switch runs in place of `weft-switch`."""
    timer_slack_ns: int = netlink.TIMER_SLACK_NS
    """How late timers of its kernel may be."""


def read_lab(path: Path) -> LabSpec:
    """Read and check the document at `path`."""
    try:
        text = path.read_text()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError(f"{path}: not JSON: {error}") from None
    try:
        return lab_of(document)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


def lab_of(document: Any) -> LabSpec:
    """Lab of a parsed document."""
    return LabSpec(
        topology=fabrics.of_document(mapping(document, "topology")),
        pattern_ttl_ns=integer(document, "pattern_ttl_ns"),
        seed=integer(document, "seed"),
        path_manager=string({"path_manager": "kernel"} | document, "path_manager"),
        paths=_paths(mapping(document, "paths")),
        pattern_input=string({"pattern_input": "rtt"} | document, "pattern_input"),
        gray_loss_ppm=integer({"gray_loss_ppm": 5_000} | document, "gray_loss_ppm"),
        class_thresholds=string({"class_thresholds": "seen"} | document, "class_thresholds"),
        controllers=integer({"controllers": 1} | document, "controllers"),
        control_delay_ns=integer({"control_delay_ns": 0} | document, "control_delay_ns"),
        capture=_capture(document.get("capture")),
        bmv2=Path(string(document, "bmv2")) if document.get("bmv2") else None,
        timer_slack_ns=netlink.REAL_TIMER_SLACK_NS
        if document.get("clock") in REAL_TIME
        else netlink.TIMER_SLACK_NS,
    )


def _paths(document: Any) -> Paths:
    repo, built = Path(string(document, "repo")), Path(string(document, "bin"))
    programs = value(document, "programs")
    if not isinstance(programs, list) or not programs:
        raise UsageError(f"paths: programs: not a list of folders: {programs!r}")
    return Paths(repo, built, tuple(Path(folder) for folder in programs))


def _capture(document: Any) -> CaptureSpec | None:
    if document is None:
        return None
    hosts = value(document, "hosts")
    if not isinstance(hosts, list) or not all(isinstance(host, str) for host in hosts):
        raise UsageError(f"capture: hosts: not a list of names: {hosts!r}")
    return CaptureSpec(tuple(hosts), string(document, "arrivals"))
