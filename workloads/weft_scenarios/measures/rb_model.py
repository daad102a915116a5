# SPDX-License-Identifier: Apache-2.0
"""The model of MPTCP-RB, section 5: FCT of synchronised flows at one bottleneck.

n flows of m subflows, each with a window of w packets, share a last hop whose queue holds B
packets. The copy of the paper at hand lacks the equations, so they are derived from its text.

**Bursty strength** (5.1): the mean of the packets that an arriving packet triggers, over the
packets that trigger any.

- MPTCP sends w packets in a row on each subflow. Each of the w - 1 packets of the first subflow
  but its last triggers 1; the last packet of subflow i releases itself and the w packets of all
  later subflows, (m - i) w + 1. So `b = (w - 1 + w m (m - 1) / 2 + m) / (w - 1 + m)`   (1)
- MPTCP-RB sends one packet on each subflow in turn. Each of the m (w - 1) packets before the last
  column triggers m, those of the last column m - i + 1. So `b = (m (w - 1) + (m + 1) / 2) / w` (2)

**Loss** (5.1.3): of n b packets that arrive at once, B fit: `p = 1 - B / (n b)`  (3)-(5)

**FCT** (5.2): a subflow's window grows by a = 1 packet per RTT, and a loss, one in 1/p packets,
cuts it by the share c = 1/2. A tooth of the sawtooth has 1/p packets, so its mean window is
`W = sqrt(a (1 - c / 2) / (c p))`, and `FCT = S RTT / W` for S packets per subflow      (6)-(8)

Without loss, which the model does not cover, a subflow sends w packets per RTT. A check: with
m = 6 and n = 15, (1)-(8) give 30% less for MPTCP-RB, which is what the paper reads from Fig. 12(b).
"""

from dataclasses import dataclass
from math import sqrt

WINDOW_PACKETS = 8.0
"""Of a subflow, in Fig. 12."""
_GROWTH_PACKETS = 1.0
_CUT = 0.5


@dataclass(frozen=True)
class Setting:
    """The parameters of the model."""

    flows: int
    subflows: int
    window_packets: float
    queue_packets: float
    rtt_ms: float
    subflow_packets: float
    """Packets that each subflow sends."""


def fct_ms(setting: Setting, interleaves: bool) -> float:
    """Give the FCT under MPTCP-RB, which `interleaves`, or under MPTCP."""
    strength = rb_strength(setting) if interleaves else mptcp_strength(setting)
    loss = loss_rate(setting, strength)
    window = setting.window_packets
    if loss > 0:
        window = sqrt(_GROWTH_PACKETS * (1 - _CUT / 2) / (_CUT * loss))
    return setting.subflow_packets * setting.rtt_ms / window


def mptcp_strength(setting: Setting) -> float:
    """Give the mean bursty strength of MPTCP, equation (1)."""
    w, m = setting.window_packets, setting.subflows
    return (w - 1 + w * m * (m - 1) / 2 + m) / (w - 1 + m)


def rb_strength(setting: Setting) -> float:
    """Give the mean bursty strength of MPTCP-RB, equation (2)."""
    w, m = setting.window_packets, setting.subflows
    return (m * (w - 1) + (m + 1) / 2) / w


def loss_rate(setting: Setting, strength: float) -> float:
    """Give the share of packets that the queue drops, equation (3)."""
    return max(0.0, 1 - setting.queue_packets / (setting.flows * strength))
