# SPDX-License-Identifier: Apache-2.0
"""Mininet's nodes and links, made by a few system calls instead of hundreds of commands.

Mininet starts a shell for every node and configures each interface with several
commands; a fork and exec costs 10-50 ms in the lab, where boots have to be short. Here
a node's shell starts when it is first used, all interfaces are made by netlink, and
switches are no processes of Mininet's: one `weft-switch` serves them all, or a BMv2 each
(`bmv2`), whose links are `wires`. What a user of the Mininet prompt or of Mininet's Python
API sees is the same.
"""

import os
import signal
import socket
import sys
import types
from contextlib import suppress
from ipaddress import IPv4Address
from subprocess import Popen
from typing import Any

from weft_topology import (
    namespaces,
    naming,
    netlink,
    offloads,
    route_metrics,
    sysctls,
    wires,
)


def _without_distutils() -> None:
    """Spare mininet.node its one import from distutils: gone from Python 3.12 on, slow before.

    It compares versions of Open vSwitch with it, which is not used here.
    """
    stub = types.ModuleType("distutils.version")
    stub.StrictVersion = str  # type: ignore[attr-defined]
    sys.modules.setdefault("distutils", types.ModuleType("distutils"))
    sys.modules.setdefault("distutils.version", stub)


_without_distutils()

from mininet.link import Intf, Link  # noqa: E402
from mininet.net import Mininet  # noqa: E402
from mininet.node import Host, Node, Switch  # noqa: E402
from mininet.topo import Topo  # noqa: E402

_HOST_INDEX = 2
"""Interface index of a host's only cable, after the loopback."""


class _LazyShell(Node):  # type: ignore[misc]
    """A Mininet node whose shell starts when somebody uses it."""

    isSetup = True  # noqa: N815 (no need to look for programs on PATH)

    def __init__(self, name: str, **params: Any) -> None:
        self._shell: Popen[bytes] | None = None
        self._pid: int | None = None
        self._starting = False
        self._stopped = True  # until Mininet's constructor is done with it
        super().__init__(name, **params)
        self._stopped = False

    def startShell(self, mnopts: str | None = None) -> None:  # noqa: N802
        """Mininet's constructor asks for a shell; it comes later."""

    @property
    def shell(self) -> Popen[bytes] | None:
        """The shell's process."""
        self._ensure_shell()
        return self._shell

    @shell.setter
    def shell(self, process: Popen[bytes] | None) -> None:
        self._shell = process

    @property
    def pid(self) -> int | None:
        """The shell's process id; Mininet finds the node's namespaces by it."""
        self._ensure_shell()
        return self._pid

    @pid.setter
    def pid(self, pid: int | None) -> None:
        self._pid = pid

    def _ensure_shell(self) -> None:
        if self._shell or self._starting or self._stopped:
            return
        self._starting = True
        try:
            super().startShell()
        finally:
            self._starting = False

    def _popen(self, cmd: list[str], **params: Any) -> Any:
        """Start a process; the shell's own command is ours, in the node's namespace."""
        if not self._starting:
            return super()._popen(cmd, **params)
        # Mininet's `mnexec -cdn` would make a new namespace, and detaches by a session of
        # its own.
        shell = cmd[cmd.index("env") :]
        return Popen(
            self.namespace_command() + shell, start_new_session=True, **params | {"close_fds": True}
        )

    def namespace_command(self) -> list[str]:
        """Command that runs the rest of its arguments where the node is."""
        return ["ip", "netns", "exec", self.name] if self.inNamespace else []

    def cmd(self, *args: Any, **options: Any) -> Any:
        """Run a command in the shell. Mininet's constructors would; netlink does it for them."""
        return "" if self._stopped else super().cmd(*args, **options)

    def forget_shell(self) -> None:
        """Note that the shell ended by itself."""
        self.cleanup()
        self.waiting = False
        self.readbuf = ""

    def terminate(self) -> None:
        """End the shell, if there is one."""
        self._stopped = True
        if self._shell is None:
            return
        if self._shell.poll() is None:
            os.killpg(self._shell.pid, signal.SIGHUP)
        self.cleanup()

    def config(self, **_params: Any) -> dict[str, Any]:
        """All is configured by `WeftNet`, all at once."""
        return {}


class FabricHost(_LazyShell, Host):  # type: ignore[misc]
    """A host: a network namespace."""

    def __init__(self, name: str, **params: Any) -> None:
        namespaces.create(name)
        super().__init__(name, **params)


class FabricSwitch(_LazyShell, Switch):  # type: ignore[misc]
    """A switch whose ports a daemon serves, in the namespace of the lab itself."""

    def start(self, controllers: list[Any]) -> None:
        """Nothing to start: that is the daemons' part."""

    def stop(self, deleteIntfs: bool = True) -> None:  # noqa: N803
        """End its shell."""
        self.terminate()

    def connected(self) -> bool:
        """Say that it is there; Mininet's `wait` command asks."""
        return True


class FabricIntf(Intf):  # type: ignore[misc]
    """An interface whose addresses are known, because we gave them."""

    def config(self, **_params: Any) -> dict[str, Any]:
        """All is configured by `WeftNet`, all at once."""
        return {}

    def updateIP(self) -> Any:  # noqa: N802
        """Give the first address."""
        return self.ip

    def updateMAC(self) -> Any:  # noqa: N802
        """Give the Ethernet address."""
        return self.mac

    def updateAddr(self) -> tuple[Any, Any]:  # noqa: N802
        """Give both."""
        return self.ip, self.mac


class FabricLink(Link):  # type: ignore[misc]
    """A cable. One to a host is a veth pair; one between switches only if it is a wire."""

    is_wire = False
    """Whether it is a veth pair between two switches."""

    @classmethod
    def makeIntfPair(cls, *_args: Any, **_options: Any) -> None:  # noqa: N802
        """`WeftNet` makes them, all at once."""

    def status(self) -> str:
        """Give what Mininet's `links` command shows."""
        hosts = [i.node for i in (self.intf1, self.intf2) if isinstance(i.node, FabricHost)]
        return super().status() if hosts or self.is_wire else "(inside weft-switch)"

    def stop(self) -> None:
        """Nothing to do: a veth pair ends with the host's namespace."""


class WeftNet(Mininet):  # type: ignore[misc]
    """A running network of a described topology. `build` makes it, `stop` leaves nothing."""

    def __init__(
        self, topo: Topo, wired: bool = False, timer_slack_ns: int = netlink.TIMER_SLACK_NS
    ) -> None:
        """Takes the description; `build` is the caller's to call.

        `wired`: links between switches are veth pairs, with their delays; otherwise they are
        the switches' own affair. `timer_slack_ns`: how late timers of the kernel may be.
        """
        self._wired = wired
        self._timer_slack_ns = timer_slack_ns
        # Mininet would raise system-wide limits by a dozen commands; none matters here.
        Mininet.inited = True
        super().__init__(
            topo=topo,
            host=FabricHost,
            switch=FabricSwitch,
            link=FabricLink,
            intf=FabricIntf,
            controller=None,
            build=False,
        )

    def build(self) -> None:
        """Make namespaces, cables and addresses; leaves nothing behind when it fails."""
        namespaces.prepare()
        try:
            super().build()
        except BaseException:
            self.stop()
            raise

    def configHosts(self) -> None:  # noqa: N802
        """Make what the nodes and links stand for."""
        cables = self._cables()
        sysctls.allow_congestion_controls()
        with netlink.Netlink() as fabric, _control_socket() as control:
            for host in self.hosts:
                with namespaces.opened(host.name) as namespace:
                    link = cables[host.name]
                    _configure(host, link, namespace, fabric, self._timer_slack_ns)
                port = cables[host.name].intf2.name
                offloads.disable(control, port)
                sysctls.silence(port)
            if self._wired:
                for link in self._trunks():
                    link.is_wire = True
                wires.connect(self.links, fabric, control)

    def stop(self) -> None:
        """End all shells, remove all cables and namespaces."""
        for node in [*self.switches, *self.hosts]:
            node.terminate()
        with netlink.Netlink() as fabric:
            made = [*self._cables().values(), *(self._trunks() if self._wired else [])]
            for link in made:
                # A build that failed has not made them all.
                with suppress(netlink.NetlinkError):
                    fabric.send([netlink.link_delete(link.intf2.name)])
        for host in self.hosts:
            namespaces.delete(host.name)

    def _trunks(self) -> list[FabricLink]:
        """Give the links between switches."""
        return [link for link in self.links if not isinstance(link.intf1.node, FabricHost)]

    def _cables(self) -> dict[str, FabricLink]:
        """Give each host's cable by the host's name."""
        ends = ((link.intf1.node, link) for link in self.links)
        return {node.name: link for node, link in ends if isinstance(node, FabricHost)}


def _configure(
    host: FabricHost,
    link: FabricLink,
    namespace: int,
    fabric: netlink.Netlink,
    timer_slack_ns: int,
) -> None:
    """Cable a host to its leaf and give it its addresses."""
    params = host.params
    here, there = link.intf1, link.intf2
    here.ip, _, here.prefixLen = params["ip"].partition("/")
    with namespaces.inside(namespace):
        # Before the interface comes up: that is when IPv6 would speak.
        sysctls.apply(sysctls.ALSO_IPV6 if params["ipv6"] else sysctls.ONLY_IPV4)
        sysctls.apply(sysctls.HOST)
        if here.params["ecn_packets"] or here.params["ecn_bytes"]:
            sysctls.apply(sysctls.MARKED)
        own = netlink.Netlink()
        control = _control_socket()
    with own, control:
        pair = netlink.veth(there.name, there.mac, here.name, here.mac, _HOST_INDEX, namespace)
        fabric.send([pair, netlink.link_up(there.name)])
        prefix_len = int(here.prefixLen)
        addresses = [IPv4Address(address) for address in params["addresses"]]
        gateway = IPv4Address(params["gateway"])
        own.send(
            [
                netlink.link_up(netlink.LOOPBACK_INDEX),
                netlink.link_up(_HOST_INDEX),
                *(netlink.address(_HOST_INDEX, a, prefix_len) for a in addresses),
                *_way_out(gateway, params),
                *(_over_ipv6(params) if params["ipv6"] else ()),
                netlink.token_bucket(
                    _HOST_INDEX,
                    here.params["rate_from_a_bps"],
                    naming.NIC_HEADER_BYTES if params["nic"] else 0,
                    timer_slack_ns,
                ),
                *_by_class(params["classes"]),
            ]
        )
        offloads.disable(control, here.name)


def _by_class(classes: dict[str, int] | None) -> list[netlink.Request]:
    """Serve a host's packets by class."""
    return netlink.priority_bands(_HOST_INDEX, **classes) if classes else []


def _way_out(gateway: netlink.Address, params: dict[str, Any]) -> list[netlink.Request]:
    """Send a host's packets to its leaf, which it need not ask for."""
    return [
        netlink.neighbour(_HOST_INDEX, gateway, params["gateway_mac"]),
        netlink.default_route(
            _HOST_INDEX, gateway, route_metrics.by_number(params["route_metrics"])
        ),
    ]


def _over_ipv6(params: dict[str, Any]) -> list[netlink.Request]:
    """Give a host its IPv6 addresses.

    They are the loopback's: an interface to a network would report each to its routers as
    a multicast group (RFC 3810), packets that nobody sent on purpose.
    """
    addresses = [naming.ipv6(address) for address in params["addresses"]]
    return [
        *(netlink.address(netlink.LOOPBACK_INDEX, address, 128) for address in addresses),
        *_way_out(naming.ipv6(params["gateway"]), params),
    ]


def _control_socket() -> socket.socket:
    """A socket to configure interfaces through, in the thread's network namespace."""
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
