# SPDX-License-Identifier: Apache-2.0
"""The true RTTs from NIC to NIC of a captured run.

The captures are from the buses between hosts and their NICs, at a known delay from the NIC. When a
frame started to leave a NIC follows from the frames before it. The RTT of a segment is the time
from then to its arrival at the other NIC, plus the same time of the next packet back.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from typing import Any

from ground_truth import Frame, GroundTruth, Queue, Subflow

HEADER_BYTES = 18
"""Added to frames between NICs."""


class Nic:
    """The NIC of a host."""

    def __init__(self, truth: GroundTruth, host: dict[str, Any]) -> None:
        """Compute when it sent and received each frame."""
        nic = host["nic"]
        link = truth.links[host["name"]]
        self.delay_ns = int(nic["delay_ns"])
        """Between NIC and kernel."""
        self._bus_bps = int(nic["rate_bps"])
        cable = truth.cables[host["name"]]
        wire = Queue(int(link.get("rate_from_a_bps", link["rate_bps"])))
        for frame in cable.sent:
            wire.enter(frame.at_ns + self.delay_ns, frame.frame_bytes + HEADER_BYTES)
        self.left_at = {
            frame.identity: left for frame, left in zip(cable.sent, wire.left, strict=True)
        }
        self.received: dict[Subflow, list[Frame]] = defaultdict(list)
        self.arrivals: dict[Subflow, list[int]] = defaultdict(list)
        """When the received frames arrived from the network."""
        for frame in filter(None, cable.received):
            self.received[frame.subflow].append(frame)
            bus_ns = frame.frame_bytes * 8 * 1_000_000_000 // self._bus_bps
            self.arrivals[frame.subflow].append(frame.at_ns - self.delay_ns - bus_ns)

    def last_segment(self, subflow: Subflow, at_ns: int) -> tuple[Frame, int] | None:
        """Give the last segment of a subflow that had arrived by then, and its arrival time."""
        arrivals = self.arrivals[subflow]
        for index in range(bisect_right(arrivals, at_ns) - 1, -1, -1):
            if self.received[subflow][index].space:
                return self.received[subflow][index], arrivals[index]
        return None


class Nics:
    """All NICs of a captured run."""

    def __init__(self, truth: GroundTruth) -> None:
        """Compute the times of all hosts' frames."""
        self._truth = truth
        self._nics = {host["name"]: Nic(truth, host) for host in truth.hosts}

    def rtt_ns(self, subflow: Subflow, at_ns: int) -> int | None:
        """Give the RTT that the NIC of a subflow's sender could know at a time.

        It is that of the last packet that had arrived from the receiver by then; None if there was
        none, or if it did not answer a segment.
        """
        near, far = (self._nics[self._truth.owner[address]] for address in subflow[:2])
        back = (subflow[1], subflow[0], subflow[3], subflow[2])
        # Bus times are rounded.
        index = bisect_left(near.arrivals[back], at_ns + 2) - 1
        if index < 0:
            return None
        answer = near.received[back][index]
        answered_ns = far.left_at.get(answer.identity)
        if answered_ns is None:
            return None
        echoed = far.last_segment(subflow, answered_ns)
        if echoed is None:
            return None
        segment, arrived_ns = echoed
        back_ns = near.arrivals[back][index] - answered_ns
        return arrived_ns - near.left_at[segment.identity] + back_ns

    def beyond_ns(self, subflow: Subflow) -> int:
        """Give the extra RTT between kernels, on idle hosts."""
        ends = (self._nics[self._truth.owner[address]] for address in subflow[:2])
        return 2 * sum(nic.delay_ns for nic in ends)
