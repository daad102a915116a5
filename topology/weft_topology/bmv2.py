# SPDX-License-Identifier: Apache-2.0
"""BMv2 in place of `weft-switch`: a `simple_switch_grpc` for every switch.

What the one program does for all switches is spread over several things here:

    rate and queue of a port       BMv2's own queue, in packets; Thrift sets it, for BMv2
                                   has neither an option nor P4Runtime for it
    delay and loss of a link       netem, on the ends of veth pairs (`wires`)
    a switch's clock               microseconds since its start: the controller is told

A port's queue serves packets, not bytes: its rate is that of full-size frames, and
shorter ones take as long. `weft topo up` says that and more to the user.
"""

import os
import select
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from weft_topology import naming, netlink, thrift
from weft_topology.daemons import READY_TIMEOUT_S, Daemon
from weft_topology.errors import StepError
from weft_topology.fabrics import CPU_PORT

LOOK_AGAIN_S = 0.01
"""Pause between two looks whether a switch listens; there is no file to wait for."""

THRIFT_AFTER_S = 5.0
"""Its Thrift server follows the P4Runtime server at once, if it has one."""

_CALL_TIMEOUT_S = 5.0
_NO_THRIFT = "has no Thrift server, which alone sets rates and queues: build it --with-thrift"


def packets_per_second(rate_bps: int) -> int:
    """Give a link's rate in full-size frames."""
    return max(1, round(rate_bps / (8 * netlink.FRAME_BYTES)))


class Bmv2Switch(Daemon):
    """One switch. It is ready when it answers and its queues are as the topology has them."""

    def __init__(
        self, program: Path, switch: dict[str, Any], links: list[dict[str, Any]], rundir: Path
    ) -> None:
        """Takes a switch and all links as `topology.json` has them."""
        self._p4runtime = _address(switch["grpc"])
        self._thrift = (self._p4runtime[0], thrift_port(self._p4runtime[1]))
        self._ports = [
            (port["number"], rate_from(links[port["link"]], switch["name"]), links[port["link"]])
            for port in switch["ports"]
        ]
        interfaces = [f"{port['number']}@{port['interface']}" for port in switch["ports"]]
        argv = [os.fspath(program), "--no-p4", "--device-id", str(switch["device_id"])]
        argv += ["--thrift-port", str(self._thrift[1]), "--log-console", "--log-level", "warn"]
        argv += [word for interface in interfaces for word in ("--interface", interface)]
        argv += ["--", "--grpc-server-addr", switch["grpc"], "--cpu-port", str(CPU_PORT)]
        super().__init__(switch["name"], argv, rundir)

    @contextmanager
    def _readiness(self) -> Iterator[Callable[[int], bool]]:
        yield self._set_up

    def _set_up(self, pid: int) -> bool:
        """Wait until it listens, and set its queues; False when it ended or the time is over."""
        refusal: OSError | None = None
        deadline = time.monotonic() + READY_TIMEOUT_S
        ended = os.pidfd_open(pid)
        try:
            while time.monotonic() < deadline:
                try:
                    self._set_queues()
                    return True
                except OSError as error:
                    if refusal is None and _listens(self._p4runtime):
                        deadline = time.monotonic() + THRIFT_AFTER_S
                        refusal = error
                if select.select([ended], [], [], LOOK_AGAIN_S)[0]:
                    return False
        finally:
            os.close(ended)
        if isinstance(refusal, ConnectionRefusedError):
            raise StepError(self.name, _NO_THRIFT)
        if refusal:
            raise StepError(self.name, f"sets no queues: {refusal}")
        return False

    def _set_queues(self) -> None:
        with thrift.Client(self._thrift, _CALL_TIMEOUT_S) as switch:
            for number, rate_bps, link in self._ports:
                for method, value in (
                    ("set_egress_queue_rate", thrift.I64(packets_per_second(rate_bps))),
                    ("set_egress_queue_depth", thrift.I32(link["queue_packets"])),
                ):
                    switch.call("simple_switch", method, thrift.I32(number), value)


def rate_from(link: dict[str, Any], node: str) -> int:
    """Give what a link carries from one of its ends, in bits per second."""
    if node == link["a"]["node"]:
        return int(link.get("rate_from_a_bps", link["rate_bps"]))
    return int(link["rate_bps"])


def thrift_port(p4runtime_port: int) -> int:
    """Give a switch's Thrift port by its P4Runtime port."""
    return naming.THRIFT_PORT + p4runtime_port - naming.P4RUNTIME_PORT


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


def _listens(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, _CALL_TIMEOUT_S).close()
    except OSError:
        return False
    return True
