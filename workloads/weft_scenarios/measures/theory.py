# SPDX-License-Identifier: Apache-2.0
"""Formulas of the literature about long flows: windows, queues, and the use of a link.

Windows and queues are in packets, times in seconds, rates of loss and shares from 0 to 1.
"""

import math
import random
from functools import lru_cache
from math import erf, sqrt

_RENO_FACTOR = 1.2
_CUBIC_C, _CUBIC_BETA = 0.4, 0.7
"""C and beta_cubic of RFC 9438, section 5; Linux has the same."""
_FRIENDLY_GROWTH = 3 * (1 - _CUBIC_BETA) / (1 + _CUBIC_BETA)
"""Packets by which the estimate of Reno's window grows in an RTT (section 4.3)."""
_LOSSES, _LEAST_WINDOW = 4000, 2.0
"""Of a computed mean window; it is then known to 1 or 2%."""


def reno_window(loss: float) -> float:
    """Give Reno's mean window: `1.2 / p^0.5` (RFC 3649, section 5, and RFC 9438's tables)."""
    return _RENO_FACTOR / sqrt(loss)


def cubic_window(loss: float, rtt_s: float) -> float:
    """Give CUBIC's mean window, as RFC 9438's tables 1 and 2 have it.

    That is `(C (3 + beta) / (4 (1 - beta)))^(1/4) (RTT / p)^(3/4)` (section 5.1), and Reno's
    window where that is larger: there CUBIC is in its Reno-friendly region.
    """
    factor = _CUBIC_C * (3 + _CUBIC_BETA) / (4 * (1 - _CUBIC_BETA))
    cubic = math.pow(factor, 0.25) * math.pow(rtt_s / loss, 0.75)
    return max(cubic, reno_window(loss))


@lru_cache
def window_by_rounds(congestion: str, loss: float, rtt_s: float, is_random: bool) -> float:
    """Compute the mean window of Reno (RFC 5681) or CUBIC (RFC 9438) round trip by round trip.

    The formulas above assume that every 1/p-th packet is lost. With losses at random, each packet
    by itself, the same algorithms have larger windows: the longer a window grows, the faster it
    sends, and CUBIC's growth is convex. Slow start and the round trip of a recovery are left out.
    """
    numbers = random.Random(0)

    def distance() -> int:
        if not is_random:
            return round(1 / loss)
        return int(math.log(1 - numbers.random()) / math.log(1 - loss)) + 1

    window = _Reno() if congestion == "reno" else _Cubic(rtt_s)
    packets, rounds, left = 0.0, 0, distance()
    for _ in range(_LOSSES):
        until_loss = left
        while until_loss > 0:
            packets += window.packets
            rounds += 1
            until_loss -= int(window.packets)
            if until_loss > 0:
                window.grow()
        window.cut()
        # Further losses in the same round trip are one event.
        while until_loss <= 0:
            until_loss += distance()
        left = until_loss
    return packets / rounds


class _Reno:
    def __init__(self) -> None:
        self.packets = 10.0

    def grow(self) -> None:
        self.packets += 1

    def cut(self) -> None:
        self.packets = max(self.packets / 2, _LEAST_WINDOW)


class _Cubic(_Reno):
    """Section 4 of RFC 9438, with fast convergence."""

    def __init__(self, rtt_s: float) -> None:
        super().__init__()
        self._rtt_s = rtt_s
        self._before = self.packets
        """The window when it was cut last."""
        self.cut()

    def cut(self) -> None:
        is_smaller = self.packets < self._before
        self._top = self.packets * (1 + _CUBIC_BETA) / 2 if is_smaller else self.packets
        self._before = self.packets
        self.packets = max(self.packets * _CUBIC_BETA, _LEAST_WINDOW)
        self._friendly = self.packets
        self._time_s = 0.0
        self._until_top_s = math.pow(max(self._top - self.packets, 0) / _CUBIC_C, 1 / 3)

    def grow(self) -> None:
        self._friendly += _FRIENDLY_GROWTH if self._friendly < self._before else 1
        self._time_s += self._rtt_s
        # The target is an RTT ahead.
        ahead_s = self._time_s + self._rtt_s - self._until_top_s
        target = self._top + _CUBIC_C * math.pow(ahead_s, 3)
        aim = max(min(target, 1.5 * self.packets), self._friendly)
        self.packets = max(self.packets, aim)


def pftk_window(loss: float, rtt_s: float, timeout_s: float, packets_per_ack: int = 1) -> float:
    """Give the packets that Reno sends in an RTT (Padhye et al., SIGCOMM 1998, section 2.3).

    `RTT / (RTT sqrt(2 b p / 3) + T0 min(1, 3 sqrt(3 b p / 8)) p (1 + 32 p^2))`, which RFC 5348 has
    too. The paper's b is 2, because its senders counted ACKs. Linux counts the packets that an ACK
    covers, so b is 1.
    """
    scaled = packets_per_ack * loss
    by_fast_retransmit = rtt_s * sqrt(2 * scaled / 3)
    share = min(1.0, 3 * sqrt(3 * scaled / 8))
    by_timeout = timeout_s * share * loss * (1 + 32 * loss**2)
    return rtt_s / (by_fast_retransmit + by_timeout)


def dctcp_highest_queue(marks_above: float, flows: int) -> float:
    """Give the top of DCTCP's sawtooth: `K + N` (Alizadeh et al., SIGCOMM 2010, section 3.3)."""
    return marks_above + flows


def dctcp_amplitude(marks_above: float, flows: int, bdp: float) -> float:
    """Give its height: `sqrt(2 N (C RTT + K)) / 2` (the same section)."""
    return sqrt(2 * flows * (bdp + marks_above)) / 2


def link_use(buffer: float, bdp: float, flows: int) -> float:
    """Give the share of its time that a link is busy, with Reno and a buffer of this size.

    For one flow it follows from the sawtooth. The buffer overflows at a window of `BDP + B`, and
    from half of that the window grows by a packet in each RTT. Below the BDP the link sends a
    window in each RTT, above it is always busy. So a buffer of one BDP suffices.

    For n flows that are not synchronised the sum of their windows is a normal variable, and the
    link is busy for at least `erf(3 sqrt(3) / (2 sqrt(2)) B sqrt(n) / (BDP + B))` of the time
    (Appenzeller et al., SIGCOMM 2004, section 3).
    """
    if flows > 1:
        scale = 3 * sqrt(3) / (2 * sqrt(2))
        return erf(scale * buffer * sqrt(flows) / (bdp + buffer))
    share = buffer / bdp
    if share >= 1:
        return 1.0
    rtts_below = (1 - share) / 2
    sent_below = (3 + share) * (1 - share) / 8
    sent_above = (2 * share + share**2) / 2
    return (sent_below + sent_above) / (rtts_below + sent_above)
