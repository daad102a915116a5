# SPDX-License-Identifier: Apache-2.0
r"""The testbeds of the papers as Mininet topologies. They only describe.

Each is built as a leaf-spine whose spines stand for paths: path p crosses spine p, which has the
rate, delay, queue and loss of whatever that path is (an access point and the Internet, or one of a
host's two links). The names are those of a leaf-spine.

    many-to-one                             two-path (dumbbell: several hosts at each end)

     spine1   spine2      one switch's                     spine1: wlan
      / | \  / | \        ports for the      h1_1 -- leaf1 <             > leaf2 -- h2_1
     /  |  \/  |  \       first and the                    spine2: 3g
     \  |  /\  |  /       the second link
    leaf1  leaf2  ...     of each host,      a path is two links, each with half of its
      |      |            its two cards      delay; rate, queue and loss are its own
    h1_1   h2_1
"""

from weft_topology.fabric import Fabric
from weft_topology.fabrics import ManyToOneSpec, TwoPathSpec
from weft_topology.leaf_spine import add_leaf_spine


class ManyToOne(Fabric):
    """The testbed of MPTCP-RB (section 7): hosts with two links each, and one switch."""

    def build(self, spec: ManyToOneSpec) -> None:
        """Describe the fabric; Mininet calls this."""
        add_leaf_spine(self, spec.kind, spec.leaf_spine())


class TwoPath(Fabric):
    """The testbeds of STMS and BLEST: two hosts, and two paths that differ."""

    def build(self, spec: TwoPathSpec) -> None:
        """Describe the fabric; Mininet calls this."""
        add_leaf_spine(self, spec.kind, spec.leaf_spine())


class Dumbbell(TwoPath):
    """The same with several hosts at each end, who share the paths."""
