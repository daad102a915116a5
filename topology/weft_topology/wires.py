# SPDX-License-Identifier: Apache-2.0
"""Links of switches that are processes of their own: veth pairs with delay and loss.

The switch itself has the rate and the queue. Behind them, netem on the switch's end of the pair
adds the delay and loss of the link to what the switch sends. A host's own end has no netem, which
would hide from TCP the packets that wait there. So the switch's end delays by both directions:
round-trip times are what the topology says, one-way delays are not.
"""

import errno
import socket
from collections.abc import Iterable
from typing import Any

from mininet.node import Switch

from weft_topology import netlink, offloads, sysctls
from weft_topology.errors import StepError


def connect(links: Iterable[Any], fabric: netlink.Netlink, control: socket.socket) -> None:
    """Make the veth pairs between switches, and give all links their delays and losses."""
    for link in links:
        here, there = link.intf1, link.intf2
        delay_ns = here.params["delay_ns"]
        if not isinstance(here.node, Switch):
            impair(fabric, there.name, 2 * delay_ns, _loss_ppm(there))
            continue
        fabric.send([netlink.wire(here.name, there.name)])
        for end, far in ((here, there), (there, here)):
            # Before it comes up: that is when IPv6 would speak.
            sysctls.silence(end.name)
            offloads.disable(control, end.name)
            fabric.send([netlink.link_up(end.name)])
            impair(fabric, end.name, delay_ns, _loss_ppm(far))


def _loss_ppm(end: Any) -> int:
    """Give the share of frames that are lost on their way to a switch."""
    return int(end.node.params["loss_ppm"])


def impair(fabric: netlink.Netlink, name: str, delay_ns: int, loss_ppm: int = 0) -> None:
    """Delay what an interface sends, and drop a share of it."""
    if not delay_ns and not loss_ppm:
        return
    try:
        fabric.send([netlink.delay(socket.if_nametoindex(name), delay_ns, loss_ppm)])
    except netlink.NetlinkError as error:
        if error.errno != errno.ENOENT:
            raise
        reason = f"this kernel has no netem (sch_netem), so {name} has neither delay nor loss"
        raise StepError("network", f"{reason}: ask for 0ns, of --control-delay too") from None
