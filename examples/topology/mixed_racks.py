# SPDX-License-Identifier: Apache-2.0
r"""A topology of one's own: a leaf-spine in the middle of an upgrade. It only describes.

       spine1     spine2
        | \  \   / /  |         Each rack has uplinks of its own rate: rack 1 still has the old
        |  \  \ / /   |         ones, the others have the new ones. No flag of `weft` says that:
        |   \  X /    |         `--spine-rate` sets the links of a spine, not those of a leaf.
      leaf1 leaf2 leaf3
       | |   | |   | |

To make it yours: change `MixedRacksSpec` (what can be chosen) and `MixedRacks.build` (which
switches, hosts and links there are). The P4 programs and the controller run any tree of tiers in
which all switches of a tier have the same number of uplinks, and exactly one way leads down from
a switch to each leaf.
"""

from dataclasses import dataclass
from typing import ClassVar

from weft_topology import naming
from weft_topology.fabric import Fabric
from weft_topology.fabrics import BOUNDS, MAX_SPINES, FabricSpec
from weft_topology.json_fields import within


@dataclass(frozen=True, kw_only=True)
class MixedRacksSpec(FabricSpec):
    """What can be chosen, besides what all fabrics have (rates, delays, queues, ...)."""

    kind: ClassVar[str] = "mixed-racks"
    uplink_rates_bps: tuple[int, ...] = (500_000_000, 1_000_000_000, 1_000_000_000)
    """Rate of each rack's uplinks; as many racks as there are rates."""
    spines: int = 2
    hosts: int = 2
    """Of each rack."""

    def __post_init__(self) -> None:
        """Refuse what cannot be built."""
        super().__post_init__()
        within("uplink_rates_bps: racks", len(self.uplink_rates_bps), 1, naming.MAX_LEAVES)
        for rate_bps in self.uplink_rates_bps:
            within("uplink_rates_bps", rate_bps, *BOUNDS["rate_bps"])
        within("spines", self.spines, 1, MAX_SPINES)
        within("hosts", self.hosts, 1, naming.MAX_HOSTS)


class MixedRacks(Fabric):
    """Racks, spines, hosts and links of a spec: a Mininet `Topo`."""

    def build(self, spec: MixedRacksSpec) -> None:
        """Describe the fabric; Mininet calls this."""
        racks = dict(enumerate(spec.uplink_rates_bps, 1))
        spines = range(1, spec.spines + 1)
        self.describe(spec.kind, spec, paths=min(spec.spines, spec.subflows))
        for rack in racks:
            self.add_switch(naming.leaf(rack), "leaf", rack)
        for spine in spines:
            self.add_switch(naming.spine(spine), "spine", spine)
        for rack in racks:
            for index in range(1, spec.hosts + 1):
                self.add_host(spec, naming.leaf(rack), rack, index)
        for rack, rate_bps in racks.items():
            for spine in spines:
                self.addLink(
                    naming.leaf(rack),
                    naming.spine(spine),
                    port1=spec.hosts + spine,
                    port2=rack,
                    rate_bps=rate_bps,
                    delay_ns=spec.delay_ns,
                    **spec.queue(),
                )
        self.change(spec)


SPEC = MixedRacksSpec
TOPO = MixedRacks
"""What `run.py` takes from this file."""
