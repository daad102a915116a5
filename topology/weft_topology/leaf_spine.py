# SPDX-License-Identifier: Apache-2.0
r"""The leaf-spine fabric as a Mininet topology. It only describes.

   spine1      spine2         each leaf has an uplink to each spine:
    |  \       /  |            path p (from 1) of a host pair crosses
    |    \   /    |            spine p. With more spines than a connection has
    |      X      |            subflows, each pair of leaves has so many of them
    |    /   \    |
   leaf1       leaf2
   | | |       | | |
h1_1 h1_2 ..  h2_1 h2_2 ..
"""

from weft_topology import naming
from weft_topology.fabric import Fabric
from weft_topology.fabrics import LeafSpineSpec


class LeafSpine(Fabric):
    """Leaves, spines, hosts and cables of a spec."""

    def build(self, spec: LeafSpineSpec) -> None:
        """Describe the fabric; Mininet calls this."""
        add_leaf_spine(self, spec.kind, spec)


def add_leaf_spine(topo: Fabric, kind: str, spec: LeafSpineSpec) -> None:
    """Describe a fabric that calls itself `kind` as a leaf-spine."""
    topo.describe(kind, spec, spec.paths)
    leaves, spines = range(1, spec.leaves + 1), range(1, spec.spines + 1)
    for leaf in leaves:
        topo.add_switch(naming.leaf(leaf), "leaf", leaf)
    for spine in spines:
        topo.add_switch(naming.spine(spine), "spine", spine, spec.spine_loss_ppm.get(spine, 0))
    for leaf in leaves:
        for index in range(1, spec.hosts_of(leaf) + 1):
            topo.add_host(spec, naming.leaf(leaf), leaf, index)
    for leaf in leaves:
        for spine in spines:
            rate_bps = spec.link_rate_bps(spine)
            topo.addLink(
                naming.leaf(leaf),
                naming.spine(spine),
                port1=spec.hosts_of(leaf) + spine,
                port2=leaf,
                rate_bps=rate_bps,
                rate_from_a_bps=spec.uplink_rate_bps or rate_bps,
                delay_ns=spec.link_delay_ns(spine),
                **spec.link_queue(spine),
            )
    topo.change(spec)
