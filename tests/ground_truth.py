# SPDX-License-Identifier: Apache-2.0
"""The true RTTs and queues of a captured run, against which telemetry is compared.

They are computed from the frames on the links of hosts and the arrivals at the queues of switches,
and use nothing that a switch has measured.

The RTT of a segment at its sender's leaf is the time between two arrivals there: of the packet that
completed the data up to some byte at the receiver, and of the ACK for that byte. The time that the
receiver's kernel delayed the ACK while its NIC was idle is subtracted. The order of arrivals at the
receiver tells which packet completed the data, so that retransmissions, reordering, losses and
delayed ACKs are accounted for.

In a queue in front of a link, a packet starts to leave when the one before it has left.
"""

import csv
import json
import struct
from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

SEQUENCE_NUMBERS = 1 << 32
PRIORITIES = 8
Subflow = tuple[int, int, int, int]
"""Source address, destination address, source port, destination port."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A TCP segment on the link of a host."""

    at_ns: int
    """When its last bit passed the end of the link at the host."""
    frame_bytes: int
    subflow: Subflow
    sign: bytes
    """Does not change on the way: the IPv4 identification, or the TCP header if there is no data,
    because switches write the delay of ACKs into the identification."""
    sequence: int
    acknowledgement: int
    space: int
    """Sequence numbers that it occupies."""
    acknowledges: bool

    @property
    def end(self) -> int:
        """The next sequence number."""
        return (self.sequence + self.space) % SEQUENCE_NUMBERS

    @property
    def identity(self) -> tuple[Subflow, bytes, int, int]:
        """Identifies the segment wherever it is captured."""
        return self.subflow, self.sign, self.sequence, self.acknowledgement


def _frames(path: Path) -> Iterator[tuple[bool, Frame | None]]:
    """Give every frame of a capture, and whether the host sent it; None if it is not TCP."""
    data = path.read_bytes()
    at = 24
    while at + 16 <= len(data):
        seconds, nanoseconds, kept, length = struct.unpack_from("<IIII", data, at)
        raw = data[at + 16 : at + 16 + kept]
        at += 16 + kept
        # Hosts address a gateway, 02:00:00:ff:...; switches address hosts.
        sent = raw[3] == 0xFF
        if raw[12:14] != b"\x08\x00" or raw[23] != 6:
            yield sent, None
            continue
        (total,) = struct.unpack_from(">H", raw, 16)
        addresses = struct.unpack_from(">II", raw, 26)
        source, destination, sequence, acknowledgement, words, flags = struct.unpack_from(
            ">HHIIBB", raw, 34
        )
        tcp_bytes = (words >> 4) * 4
        payload = total - 20 - tcp_bytes
        yield (
            sent,
            Frame(
                at_ns=seconds * 1_000_000_000 + nanoseconds,
                frame_bytes=length,
                subflow=(*addresses, source, destination),
                sign=raw[18:20] if payload else raw[34 : 34 + tcp_bytes],
                sequence=sequence,
                acknowledgement=acknowledgement,
                space=payload + (flags >> 1 & 1) + (flags & 1),
                acknowledges=bool(flags & 16),
            ),
        )


class Cable:
    """The link of one host."""

    def __init__(self, path: Path) -> None:
        """Read the capture at `path`."""
        self.received: list[Frame | None] = []
        self.sent: list[Frame] = []
        for sent, frame in _frames(path):
            if not sent:
                self.received.append(frame)
            elif frame is not None:
                self.sent.append(frame)

    @cached_property
    def sent_at(self) -> dict[Any, Frame]:
        """The segments that the host sent, by identity."""
        return {frame.identity: frame for frame in self.sent}

    @cached_property
    def sent_times(self) -> list[int]:
        """When each of these segments had left the host."""
        return [frame.at_ns for frame in self.sent]

    @cached_property
    def completions(self) -> dict[Subflow, tuple[list[int], list[Frame]]]:
        """For each subflow to this host, how its data became complete.

        Lengths of data without a hole, from the first byte on, and the frames that completed them.
        """
        streams: dict[Subflow, _Stream] = defaultdict(_Stream)
        for frame in self.received:
            if frame is not None and frame.space:
                streams[frame.subflow].arrive(frame)
        return {subflow: (s.ends, s.frames) for subflow, s in streams.items()}

    def idle_ns(self, from_ns: int, last: Frame, rate_bps: int) -> int:
        """Time that the NIC was idle, from `from_ns` until it started to send the frame `last`."""
        index = bisect_left(self.sent_times, last.at_ns)
        idle, until = 0, last.at_ns
        while index >= 0 and until > from_ns:
            frame = self.sent[index]
            idle += max(0, until - max(frame.at_ns, from_ns))
            until = min(until, frame.at_ns - frame.frame_bytes * 8 * 1_000_000_000 // rate_bps)
            index -= 1
        return idle if index >= 0 else idle + max(0, until - from_ns)


@dataclass
class _Stream:
    """The data of a subflow that a receiver has."""

    first: int | None = None
    next: int = 0
    waiting: dict[int, int] = field(default_factory=dict)
    ends: list[int] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)

    def arrive(self, frame: Frame) -> None:
        if self.first is None:
            self.first = frame.sequence
        start = (frame.sequence - self.first) % SEQUENCE_NUMBERS
        if start > SEQUENCE_NUMBERS // 2:
            return
        self.waiting[start] = max(self.waiting.get(start, 0), start + frame.space)
        reached = self.next
        while ready := [begin for begin in self.waiting if begin <= self.next]:
            self.next = max(self.next, *(self.waiting.pop(begin) for begin in ready))
        if self.next > reached:
            self.ends.append(self.next)
            self.frames.append(frame)


class Queue:
    """An egress queue: when packets entered, and when they started to leave."""

    def __init__(self, rate_bps: int) -> None:
        """An empty queue in front of a link of this rate."""
        self.rate_bps = rate_bps
        self._free = 0
        """When the link becomes idle, in units of 1 / rate nanoseconds."""
        self.entered: list[int] = []
        self.left: list[int] = []
        self.busy: list[tuple[int, int]] = []
        """For each packet, since when the link was busy, and the bytes sent since then."""

    def enter(self, at_ns: int, frame_bytes: int) -> None:
        """Enqueue a packet that was not dropped."""
        start = max(at_ns * self.rate_bps, self._free)
        # The link counts whole nanoseconds, and carries the remainder over while it is busy.
        if self._free // self.rate_bps < at_ns:
            start = at_ns * self.rate_bps
        self.entered.append(at_ns)
        self.left.append(start // self.rate_bps)
        waited = self.left[-1] > at_ns
        since_ns, sent_bytes = self.busy[-1] if waited else (at_ns, 0)
        self.busy.append((since_ns, sent_bytes + frame_bytes))
        self._free = start + frame_bytes * 8 * 1_000_000_000

    def waiting(self, at_ns: int) -> range:
        """Possible queue lengths at a time, because events at the same time have no order."""
        with_ties = bisect_right(self.entered, at_ns) - bisect_left(self.left, at_ns)
        without = bisect_left(self.entered, at_ns) - bisect_right(self.left, at_ns)
        return range(max(0, without), max(0, with_ties) + 1)

    def delays_ns(self, at_ns: int) -> list[int]:
        """Queueing delay of the last packet that left; two values if one leaves at that time."""
        return [self.left[index] - self.entered[index] for index in self._last(at_ns)]

    def sent(self, at_ns: int) -> list[tuple[int, int]]:
        """Since when the link was busy, and the bytes sent since then; likewise."""
        return [self.busy[index] for index in self._last(at_ns)]

    def _last(self, at_ns: int) -> list[int]:
        last = {bisect_left(self.left, at_ns) - 1, bisect_right(self.left, at_ns) - 1}
        return [index for index in last if index >= 0]


class PriorityQueue:
    """The same with priorities, the greatest first, and no share for the lowest."""

    def __init__(self, rate_bps: int, arrivals_first: bool) -> None:
        """An empty queue in front of a link of this rate.

        `arrivals_first` tells whether a packet that arrives when the link becomes idle comes before
        the next one leaves, and may go first: events at the same time have no order.
        """
        self._rate_bps = rate_bps
        self._arrivals_first = arrivals_first
        self._free = 0
        self._waiting: list[deque[int]] = [deque() for _ in range(PRIORITIES)]
        """Lengths of the packets of each priority."""
        self.by_priority = [Queue(rate_bps) for _ in range(PRIORITIES)]
        """When packets of each priority entered and left."""

    def enter(self, at_ns: int, frame_bytes: int, priority: int) -> None:
        """Enqueue a packet that was not dropped."""
        self.serve(at_ns)
        if self._free // self._rate_bps < at_ns:
            self._free = at_ns * self._rate_bps
        self._waiting[priority].append(frame_bytes)
        self.by_priority[priority].entered.append(at_ns)

    def serve(self, until_ns: int | None = None) -> None:
        """Send what leaves before a time, or everything."""
        while any(self._waiting):
            now_ns = self._free // self._rate_bps
            if until_ns is not None and now_ns + self._arrivals_first > until_ns:
                return
            priority = max(p for p, waiting in enumerate(self._waiting) if waiting)
            self.by_priority[priority].left.append(now_ns)
            frame_bytes = self._waiting[priority].popleft()
            self._free += frame_bytes * 8 * 1_000_000_000


class GroundTruth:
    """The true RTTs and queues of a captured run."""

    def __init__(self, capture: Path) -> None:
        """Read the folder `capture`."""
        self._capture = capture
        self.topology = json.loads((capture / "topology.json").read_text())
        self.cables = {h["name"]: Cable(capture / f"{h['name']}.pcap") for h in self.hosts}
        self.owner = {
            int(IPv4Address(address)): host["name"]
            for host in self.hosts
            for address in host["addresses"]
        }
        self.queues: dict[tuple[str, int], Queue] = {}
        self.links: dict[str, dict[str, Any]] = {}
        """The link of each host."""
        self.leaf_port: dict[str, tuple[str, int]] = {}
        """Leaf and port of each host."""
        links = self.topology["links"]
        for switch in self.topology["switches"]:
            for port in switch["ports"]:
                link = links[port["link"]]
                key = (switch["name"], port["number"])
                self.queues[key] = Queue(link["rate_bps"])
                ends = {link["a"]["node"], link["b"]["node"]} - {switch["name"]}
                (peer,) = ends
                if peer in self.cables:
                    self.links[peer] = link
                    self.leaf_port[peer] = key
        for key, row in self._arrivals():
            if row["dropped"] == "0":
                self.queues[key].enter(int(row["time_ns"]), int(row["bytes"]))

    def _arrivals(self) -> Iterator[tuple[tuple[str, int], dict[str, str]]]:
        """Give switch and port of every packet that came to a queue, and its row."""
        with (self._capture / "arrivals.csv").open() as rows:
            for row in csv.DictReader(rows):
                yield (row["switch"], int(row["port"])), row

    @cached_property
    def priority_queues(self) -> dict[tuple[str, int], list[PriorityQueue]]:
        """The queues by priority with either order of events, if nothing was dropped."""
        queues: dict[tuple[str, int], list[PriorityQueue]] = {
            key: [PriorityQueue(queue.rate_bps, first) for first in (True, False)]
            for key, queue in self.queues.items()
        }
        for key, row in self._arrivals():
            assert row["dropped"] == "0"
            for queue in queues[key]:
                queue.enter(int(row["time_ns"]), int(row["bytes"]), int(row["priority"]))
        for either in queues.values():
            for queue in either:
                queue.serve()
        return queues

    @property
    def hosts(self) -> list[dict[str, Any]]:
        """The hosts, as the topology describes them."""
        hosts: list[dict[str, Any]] = self.topology["hosts"]
        return hosts

    def leaves(self, source: int, destination: int) -> tuple[int, int]:
        """Give the leaves of two addresses."""
        leaf = {host["name"]: int(host["leaf"]) for host in self.hosts}
        return leaf[self.owner[source]], leaf[self.owner[destination]]

    def rtt_ns(self, subflow: Subflow, at_ns: int) -> int | None:
        """Give the RTT of the segment whose ACK reached the leaf of `subflow`'s sender at a time.

        None if no ACK arrived then, or if it was for a segment that was not captured.
        """
        sender, receiver = self.owner[subflow[0]], self.owner[subflow[1]]
        queue = self.queues[self.leaf_port[sender]]
        cable = self.cables[sender]
        back = (subflow[1], subflow[0], subflow[3], subflow[2])
        first = bisect_left(queue.entered, at_ns)
        # Packets leave a queue in order, and appear so on the link of the host.
        for index in range(first, min(bisect_right(queue.entered, at_ns), len(cable.received))):
            ack = cable.received[index]
            if ack is not None and ack.subflow == back and ack.acknowledges:
                return self._rtt_of(subflow, ack, at_ns, receiver)
        return None

    def _rtt_of(self, subflow: Subflow, ack: Frame, at_ns: int, receiver: str) -> int | None:
        far, near = self.cables[receiver], self.owner[subflow[0]]
        ends, frames = far.completions[subflow]
        start = frames[0].sequence
        wanted = (ack.acknowledgement - start) % SEQUENCE_NUMBERS
        index = bisect_left(ends, wanted)
        answer = far.sent_at.get(ack.identity)
        if index == len(ends) or answer is None:
            return None
        brought = frames[index]
        sent = self.cables[near].sent_at[brought.identity]
        passed_ns = sent.at_ns + int(self.links[near]["delay_ns"])
        held_ns = far.idle_ns(brought.at_ns, answer, self.links[receiver]["rate_bps"])
        return at_ns - passed_ns - held_ns

    def last_rtt_ns(self, subflow: Subflow, before_ns: int) -> int | None:
        """Give the RTT of the last segment of `subflow` that was acknowledged before a time."""
        sender, receiver = self.owner[subflow[0]], self.owner[subflow[1]]
        queue, cable = self.queues[self.leaf_port[sender]], self.cables[sender]
        back = (subflow[1], subflow[0], subflow[3], subflow[2])
        last = min(bisect_left(queue.entered, before_ns), len(cable.received)) - 1
        for index in range(last, -1, -1):
            ack = cable.received[index]
            if ack is not None and ack.subflow == back and ack.acknowledges:
                return self._rtt_of(subflow, ack, queue.entered[index], receiver)
        return None
