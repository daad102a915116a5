# SPDX-License-Identifier: Apache-2.0
r"""The k-ary fat-tree as a Mininet topology (here k = 4). It only describes.

        core1   core2   core3   core4           (k/2)² cores: the first k/2 are cabled to
          | \   / |       | \   / |             the first aggregation switch of each
          |   X   |       |   X   |             pod, the next k/2 to the second, ...
   pod 1  | /   \ |       | /   \ |  ...
        agg1_1   '---.   .---'  agg1_2          k pods: every edge switch is cabled to
          |  \        \ /        /  |           every aggregation switch of its pod
        edge1   ...            edge2
        |   |                  |   |
     h1_1   h1_2            h2_1   h2_2         k/2 hosts per edge switch

Between hosts of different pods there are (k/2)² paths: path p (from 0) crosses the
aggregation switch p mod k/2 and, of its cores, p div k/2. Where there are more paths than
a connection has subflows, each pair of leaves has so many of them. Through a pod there are
k/2.
"""

from weft_topology import naming
from weft_topology.fabric import Fabric
from weft_topology.fabrics import FatTreeSpec


class FatTree(Fabric):
    """Pods, cores, hosts and cables of a spec."""

    def build(self, spec: FatTreeSpec) -> None:
        """Describe the fabric; Mininet calls this."""
        self.describe(spec.kind, spec, spec.paths)
        pods, places = range(1, spec.k + 1), range(1, spec.half + 1)
        leaves = [(pod, place, (pod - 1) * spec.half + place) for pod in pods for place in places]
        for _, _, leaf in leaves:
            self.add_switch(naming.edge(leaf), "leaf", leaf)
        for pod, place, index in leaves:
            self.add_switch(naming.aggregation(pod, place), "aggregation", index)
        for index in range(1, spec.half**2 + 1):
            self.add_switch(naming.core(index), "core", index)
        for _, _, leaf in leaves:
            for index in places:
                self.add_host(spec, naming.edge(leaf), leaf, index)
        for pod, place, leaf in leaves:
            for up in places:
                lower = (naming.edge(leaf), spec.half + up)
                self._cable(spec, lower, (naming.aggregation(pod, up), place))
        for pod, place, _ in leaves:
            for up in places:
                core = naming.core((place - 1) * spec.half + up)
                lower = (naming.aggregation(pod, place), spec.half + up)
                self._cable(spec, lower, (core, pod))
        self.change(spec)

    def _cable(self, spec: FatTreeSpec, lower: tuple[str, int], upper: tuple[str, int]) -> None:
        self.addLink(
            lower[0],
            upper[0],
            port1=lower[1],
            port2=upper[1],
            rate_bps=spec.rate_bps,
            delay_ns=spec.delay_ns,
            **spec.queue(),
        )
