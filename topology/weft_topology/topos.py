# SPDX-License-Identifier: Apache-2.0
"""The Mininet topology of every kind of fabric."""

from weft_topology.fabric import Fabric
from weft_topology.fabrics import AnySpec
from weft_topology.fat_tree import FatTree
from weft_topology.leaf_spine import LeafSpine
from weft_topology.testbeds import Dumbbell, ManyToOne, TwoPath

topos: dict[str, type[Fabric]] = {
    "leaf-spine": LeafSpine,
    "fat-tree": FatTree,
    "many-to-one": ManyToOne,
    "two-path": TwoPath,
    "dumbbell": Dumbbell,
}
"""By kind. Mininet's `mn --custom` reads this name."""


def of(spec: AnySpec) -> Fabric:
    """Describe the fabric of a spec."""
    return topos[spec.kind](spec)
