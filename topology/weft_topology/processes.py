# SPDX-License-Identifier: Apache-2.0
"""The processes of a lab, and their command lines: switches, controllers, agent."""

import os
from pathlib import Path
from typing import Any

from weft_topology import units
from weft_topology.bmv2 import Bmv2Switch
from weft_topology.daemons import Daemon, FileDaemon
from weft_topology.spec import LabSpec

CONTROLLER_PORT = 9339
"""TCP port of the first controller's weft.v1 server; the other controllers have the next ones."""

WEFT_MODULE = Path("/sys/module/weft")
"""Exists where the kernel takes patterns: in every lab, and on a machine that has the module."""


def of_lab(spec: LabSpec, rundir: Path, fabric: dict[str, Any]) -> list[Daemon]:
    """Give the daemons of a lab in the order of their start; `fabric` is its `topology.json`.

    The controller that starts last has the highest election id and becomes primary. That is the
    first one, which users query.
    """
    controllers = {_controller_name(n): CONTROLLER_PORT + n for n in range(spec.controllers)}
    common = ["--topology", str(rundir / "topology.json")]
    stats = ["--stats-dir", str(rundir)]
    switch = ["--timestamps", "ns", "--seed", str(spec.seed), *_capture(spec)]
    controller = [*stats]
    for folder in spec.paths.programs:
        controller += ["--pipelines", str(folder)]
    controller += ["--pattern-ttl", units.duration(spec.pattern_ttl_ns)]
    controller += ["--pattern-input", spec.pattern_input]
    controller += ["--gray-loss", f"{spec.gray_loss_ppm / 10_000}%"]
    controller += ["--class-thresholds", spec.class_thresholds]
    controller += ["--timestamps", "us" if spec.bmv2 else "ns"]
    urls = [f"http://127.0.0.1:{port}" for port in controllers.values()]
    agent = [argument for url in urls for argument in ("--controller", url)]
    agent += ["--path-manager", spec.path_manager]
    if not WEFT_MODULE.exists():
        agent.append("--no-patterns")

    def daemon(name: str, program: str, *arguments: str) -> Daemon:
        command = [os.fspath(spec.paths.bin / program), *common, *arguments]
        return FileDaemon(name, command, rundir)

    switches: list[Daemon] = [daemon("weft-switch", "weft-switch", *stats, *switch)]
    if spec.bmv2:
        switches = [
            Bmv2Switch(spec.bmv2, switch, fabric["links"], rundir) for switch in fabric["switches"]
        ]
    return [
        *switches,
        *(
            daemon(name, "weft-controller", "--listen", f"127.0.0.1:{port}", *controller)
            for name, port in reversed(controllers.items())
        ),
        daemon("weft-agent", "weft-agent", *agent),
    ]


def _controller_name(number: int) -> str:
    return f"weft-controller-{number + 1}" if number else "weft-controller"


def _capture(spec: LabSpec) -> list[str]:
    if spec.capture is None:
        return []
    return ["--capture", ",".join(spec.capture.hosts), "--arrivals", spec.capture.arrivals]
