# SPDX-License-Identifier: Apache-2.0
"""Kinds of paths, as the papers set them up, and one's own: `wlan`, `3g`, `20mbit/50ms`."""

from dataclasses import dataclass

from weft_topology import units
from weft_topology.errors import UsageError


@dataclass(frozen=True)
class Profile:
    """One path from end to end."""

    rate_bps: int
    rtt_ns: int
    """Of propagation, there and back."""
    queue_packets: int
    loss_ppm: int = 0


_MS = 10**6

PROFILES = {
    # BLEST, Fig. 14.
    "wlan": Profile(25_000_000, 25 * _MS, 100, 10_000),
    "3g": Profile(5_000_000, 65 * _MS, 3750),
    # STMS, section 5: a WiFi and an LTE path of equal rate; 50 ms and 500 ms of queue.
    "wifi": Profile(30_000_000, 20 * _MS, 124, 100),
    "lte": Profile(30_000_000, 100 * _MS, 1239, 100),
}


def of(text: str) -> Profile:
    """Give the profile of a name, or of RATE/RTT[/PACKETS[/LOSS]]."""
    if text in PROFILES:
        return PROFILES[text]
    parts = text.split("/")
    if not 2 <= len(parts) <= 4:
        raise UsageError(
            f"path {text!r} is none of {', '.join(PROFILES)}, and no RATE/RTT[/PACKETS[/LOSS]] "
            f"such as 20mbit/50ms/100/1%"
        )
    rate, rtt, *rest = parts
    queue = units.packets(rest[0]) if rest else 100
    loss = units.share_ppm(rest[1]) if len(rest) > 1 else 0
    return Profile(units.rate_bps(rate), units.time_ns(rtt), queue, loss)
