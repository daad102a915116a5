# SPDX-License-Identifier: Apache-2.0
"""What the descriptions of all fabrics have in common. They only describe."""

from typing import Any

from mininet.topo import Topo

from weft_topology import naming
from weft_topology.errors import UsageError
from weft_topology.fabrics import LOWEST_SHARE_PPM, Change, FabricSpec

Links = dict[str, tuple[int, dict[str, Any]]]
"""By name: each link's place in the document, and its properties."""


BUS_RATE_BPS = 252 * 10**9
"""Between a host and its network card: 16 lanes of PCIe 4.0."""


HOSTS, SWITCHES = "hosts", "switches"
"""What `first_come` calls all of them."""


class Fabric(Topo):  # type: ignore[misc]
    """A Mininet topology with all that `document` writes down."""

    def describe(self, kind: str, spec: FabricSpec, paths: int) -> None:
        """Record what belongs to no node or link. Call it first."""
        self.name = kind
        self.paths = paths
        self.routing = spec.routing
        self.flowlet_timeout_ns = spec.flowlet_timeout_ns
        self.priorities = spec.priorities
        self.lowest_share_ppm = spec.lowest_share_ppm
        self.first_come = spec.first_come
        self.clear_classes = spec.clear_classes
        self.int_md = spec.in_band == "md"
        self.ipv6 = spec.ip == 6
        self.changes: list[dict[str, Any]] = []
        self._switches = 0
        self._hosts = 0

    def change(self, spec: FabricSpec) -> None:
        """Record the changes of switches and links. Call it last, when they exist."""
        self._require("first_come", spec.first_come, [HOSTS, SWITCHES, *self.switches(sort=False)])
        self._require("clear_classes", spec.clear_classes, self.hosts(sort=False))
        if not spec.changes:
            return
        links = {
            f"{info['node1']}-{info['node2']}": (number, info)
            for number, (_, _, info) in enumerate(self.links(sort=False, withInfo=True))
        }
        for change in spec.changes:
            if change.target in links:
                number, info = links[change.target]
                if self.isSwitch(info["node1"]):
                    self._change_link(change, number, info)
                else:
                    self._change_cable(change, number)
            elif change.target in self.switches():
                self._change_switch(change, links)
            else:
                raise UsageError(
                    f"changes name {change.target}, which is no switch and no link; there are "
                    f"{_abridged(self.switches(sort=False))} and {_abridged([*links])}"
                )

    def _require(self, field: str, given: tuple[str, ...], known: list[str]) -> None:
        if unknown := set(given).difference(known):
            raise UsageError(f"{field} names {min(unknown)}; there are {_abridged(known)}")

    def _change_switch(self, change: Change, links: Links) -> None:
        given: dict[str, Any] = {**change.properties()}
        if given:
            self.changes.append({"at_ns": change.at_ns, "switch": change.target} | given)
        if change.rate_ppm is None:
            return
        share = Change(change.at_ns, change.target, rate_ppm=change.rate_ppm)
        for number, info in links.values():
            ends = (info["node1"], info["node2"])
            if change.target in ends and all(map(self.isSwitch, ends)):
                self._change_link(share, number, info)

    def _change_link(self, change: Change, link: int, info: dict[str, Any]) -> None:
        given: dict[str, Any] = {**change.properties()}
        if change.rate_ppm is not None:
            # Of the way down, where both differ.
            given["rate_bps"] = max(info["rate_bps"] * change.rate_ppm // 10**6, 1)
        self.changes.append({"at_ns": change.at_ns, "link": link} | given)

    def _change_cable(self, change: Change, link: int) -> None:
        given: dict[str, Any] = {**change.properties()}
        if change.rate_ppm is not None or not given.keys() <= {"loss_ppm", "up"}:
            raise UsageError(
                f"changes of {change.target}: a link to a host has loss_ppm and up; its rate, "
                f"delay and queue stay"
            )
        self.changes.append({"at_ns": change.at_ns, "link": link} | given)

    def add_switch(self, name: str, role: str, index: int, loss_ppm: int = 0) -> None:
        """Add a switch; they number their P4Runtime servers in the order they come."""
        self.addSwitch(
            name,
            role=role,
            index=index,
            device_id=naming.device_id(role, index),
            grpc=f"127.0.0.1:{naming.P4RUNTIME_PORT + self._switches}",
            loss_ppm=loss_ppm,
            first_come=bool({SWITCHES, name}.intersection(self.first_come)),
        )
        self._switches += 1

    def add_host(self, spec: FabricSpec, leaf_name: str, leaf: int, index: int) -> None:
        """Add a host and its cable to its leaf."""
        name = naming.host(leaf, index)
        addresses = [naming.address(leaf, index, path) for path in range(1, self.paths + 1)]
        self.addHost(
            name,
            leaf=leaf,
            index=index,
            mac=naming.host_mac(leaf, index),
            addresses=addresses,
            ip=f"{addresses[0]}/{naming.PREFIX_LEN}",
            gateway=naming.gateway(leaf, index),
            gateway_mac=naming.gateway_mac(leaf),
            ipv6=self.ipv6,
            classes=self._classes_of_hosts(),
            classes_cleared=name in self.clear_classes,
            jitter_ns=spec.host_jitter_ns,
            route_metrics=spec.route_metrics,
            nic=self._nic(spec, leaf, index) if spec.nic == "p4" else None,
        )
        self._hosts += 1
        self.addLink(
            name,
            leaf_name,
            port1=0,
            port2=index,
            addr1=naming.host_mac(leaf, index),
            addr2=naming.port_mac(leaf, index),
            rate_bps=spec.host_rate_bps,
            rate_from_a_bps=spec.host_send_bps,
            delay_ns=spec.delay_ns,
            **spec.queue(),
        )

    def _classes_of_hosts(self) -> dict[str, int] | None:
        """Give what the queues of hosts have to know of classes."""
        if self.priorities is None or HOSTS in self.first_come:
            return None
        given = self.lowest_share_ppm
        share = LOWEST_SHARE_PPM if given is None else given
        return {"classes": self.priorities, "lowest_share_ppm": share}

    def _nic(self, spec: FabricSpec, leaf: int, index: int) -> dict[str, Any]:
        order = self._switches + self._hosts
        return {
            "name": naming.nic(leaf, index),
            "device_id": naming.nic_device_id(leaf, index),
            "grpc": f"127.0.0.1:{naming.P4RUNTIME_PORT + order}",
            "rate_bps": max(BUS_RATE_BPS, spec.host_rate_bps, spec.host_send_bps),
            "delay_ns": spec.delay_ns // 2,
        }


def _abridged(names: list[str]) -> str:
    """Give a list of names; of a long one, the first six and the last."""
    return ", ".join(names if len(names) <= 8 else [*names[:6], "...", names[-1]])
