"""Links of switches that are processes of their own: veth pairs with delay and loss.

Rate and queue are the switch's. What follows them is netem on the switch's end of a pair:
delay and loss of the link, for what the switch sends. A host's kernel must not feel a delay
line at its own end (netem would hide from TCP what still waits there), so the switch's end
has the delay of both ways: round trips are what the topology says, the two ways are not.
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
            hold(fabric, there.name, 2 * delay_ns, _loss_ppm(there))
            continue
        fabric.send([netlink.wire(here.name, there.name)])
        for end, far in ((here, there), (there, here)):
            # Before it comes up: that is when IPv6 would speak.
            sysctls.silence(end.name)
            offloads.disable(control, end.name)
            fabric.send([netlink.link_up(end.name)])
            hold(fabric, end.name, delay_ns, _loss_ppm(far))


def _loss_ppm(end: Any) -> int:
    """Give the share of frames that are lost on their way to a switch."""
    return int(end.node.params["loss_ppm"])


def hold(fabric: netlink.Netlink, name: str, delay_ns: int, loss_ppm: int = 0) -> None:
    """Let what an interface sends arrive later, or not at all."""
    if not delay_ns and not loss_ppm:
        return
    try:
        fabric.send([netlink.delay(socket.if_nametoindex(name), delay_ns, loss_ppm)])
    except netlink.NetlinkError as error:
        if error.errno != errno.ENOENT:
            raise
        reason = f"this kernel has no netem (sch_netem), so {name} has neither delay nor loss"
        raise StepError("network", f"{reason}: ask for 0ns, of --control-delay too") from None
