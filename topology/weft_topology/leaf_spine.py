r"""The leaf-spine fabric as a Mininet topology. It only describes.

   spine1      spine2         each leaf has an uplink to each spine:
    |  \       /  |            path p (from 1) of a host pair crosses
    |    \   /    |            spine p
    |      X      |
    |    /   \    |
   leaf1       leaf2
   | | |       | | |
h1_1 h1_2 ..  h2_1 h2_2 ..
"""

from typing import Any

from mininet.topo import Topo

from weft_topology import naming
from weft_topology.spec import LeafSpineSpec

BUS_RATE_BPS = 252 * 10**9
"""Between a host and its network card: 16 lanes of PCIe 4.0."""


class LeafSpine(Topo):  # type: ignore[misc]
    """Leaves, spines, hosts and cables of a spec, with all that `document` writes down."""

    def build(self, spec: LeafSpineSpec) -> None:
        """Describe the fabric; Mininet calls this."""
        self.name = "leaf-spine"
        self.paths = spec.spines
        self.routing = spec.routing
        self.int_md = spec.in_band == "md"
        self.changes = [
            {"at_ns": change.at_ns, "switch": naming.spine(change.spine)} | change.properties()
            for change in spec.changes
        ]
        for leaf in range(1, spec.leaves + 1):
            self._add_switch("leaf", leaf, 0)
        for spine in range(1, spec.spines + 1):
            self._add_switch("spine", spine, spec.spine_loss_ppm.get(spine, 0))
        for leaf in range(1, spec.leaves + 1):
            for index in range(1, spec.hosts + 1):
                self._add_host(spec, leaf, index)
        for leaf in range(1, spec.leaves + 1):
            for spine in range(1, spec.spines + 1):
                self.addLink(
                    naming.leaf(leaf),
                    naming.spine(spine),
                    port1=spec.hosts + spine,
                    port2=leaf,
                    rate_bps=spec.link_rate_bps(spine),
                    delay_ns=spec.link_delay_ns(spine),
                    queue_packets=spec.link_queue_packets(spine),
                )

    def _add_switch(self, role: str, index: int, loss_ppm: int) -> None:
        name = naming.leaf(index) if role == "leaf" else naming.spine(index)
        order = len(self.switches())
        self.addSwitch(
            name,
            role=role,
            index=index,
            device_id=naming.device_id(role, index),
            grpc=f"127.0.0.1:{naming.P4RUNTIME_PORT + order}",
            loss_ppm=loss_ppm,
        )

    def _add_host(self, spec: LeafSpineSpec, leaf: int, index: int) -> None:
        name = naming.host(leaf, index)
        addresses = [naming.address(leaf, index, path) for path in range(1, spec.spines + 1)]
        self.addHost(
            name,
            leaf=leaf,
            index=index,
            mac=naming.host_mac(leaf, index),
            addresses=addresses,
            ip=f"{addresses[0]}/{naming.PREFIX_LEN}",
            gateway=naming.gateway(leaf, index),
            gateway_mac=naming.gateway_mac(leaf),
            jitter_ns=spec.host_jitter_ns,
            nic=self._nic(spec, leaf, index) if spec.nic == "p4" else None,
        )
        self.addLink(
            name,
            naming.leaf(leaf),
            port1=0,
            port2=index,
            addr1=naming.host_mac(leaf, index),
            addr2=naming.port_mac(leaf, index),
            rate_bps=spec.host_rate_bps,
            rate_from_a_bps=spec.host_send_bps,
            delay_ns=spec.delay_ns,
            queue_packets=spec.queue_packets,
        )

    def _nic(self, spec: LeafSpineSpec, leaf: int, index: int) -> dict[str, Any]:
        order = len(self.switches()) + len(self.hosts())
        return {
            "name": naming.nic(leaf, index),
            "device_id": naming.nic_device_id(leaf, index),
            "grpc": f"127.0.0.1:{naming.P4RUNTIME_PORT + order}",
            "rate_bps": max(BUS_RATE_BPS, spec.host_rate_bps, spec.host_send_bps),
            "delay_ns": spec.delay_ns // 2,
        }
