# SPDX-License-Identifier: Apache-2.0
"""Messages of the generic netlink family `mptcp_pattern` (host/kernel/mptcp_pattern.yaml)."""

import struct
from collections.abc import Sequence

from kernel_tests.genetlink import (
    ACK,
    DUMP,
    REQUEST,
    GenericSocket,
    address,
    attribute,
    attributes,
    nest,
    request,
    u8,
    u32,
    u64,
)
from kernel_tests.pattern_numbers import (
    NAME,
    TTL_NS_MAX,
    Command,
    Message,
    Path,
    Source,
    Subflow,
)

SET, DEL, GET = Command.PATTERN_SET, Command.PATTERN_DEL, Command.PATTERN_GET
FLOWS, RENEW = Command.FLOW_GET, Command.PATTERN_RENEW
SET_THRESHOLDS, DEL_THRESHOLDS = Command.THRESHOLDS_SET, Command.THRESHOLDS_DEL
GET_THRESHOLDS = Command.THRESHOLDS_GET
THRESHOLDS, THRESHOLD = Message.THRESHOLDS, Message.THRESHOLD
PREFIX, PREFIX_LEN, VERSION = Message.PREFIX, Message.PREFIX_LEN, Message.VERSION
TTL_NS, PATHS, PATH = Message.TTL_NS, Message.PATHS, Message.PATH
SEQUENCE, WAIT_UNIT_NS = Message.SEQUENCE, Message.WAIT_UNIT_NS
SOURCE, SCHEDULER, SUBFLOWS = Message.SOURCE, Message.SCHEDULER, Message.SUBFLOWS
LOCAL, GAP, RTT_NS, LOWEST_RTT_NS = Path.LOCAL, Path.GAP, Path.RTT_NS, Path.LOWEST_RTT_NS
OF_CONTROLLER = Source.CONTROLLER


def path(local: str, gap: int, rtt_ns: int = 100_000) -> bytes:
    """Give a local address and its packets per pattern."""
    rtts = u64(RTT_NS, rtt_ns), u64(LOWEST_RTT_NS, rtt_ns // 2)
    return nest(PATH, address(LOCAL, local), u32(GAP, gap), *rtts)


def pattern(
    prefix: str = "10.0.0.0",
    prefix_len: int = 16,
    version: int = 1,
    ttl_ns: int = TTL_NS_MAX,
    paths: Sequence[bytes] | None = None,
    sequence: bytes = b"\0\1",
) -> dict[int, bytes]:
    """Give the attributes of a PATTERN_SET, by default a valid one."""
    if paths is None:
        paths = [path("10.0.1.1", 1), path("10.0.2.1", 1)]
    return {
        PREFIX: address(PREFIX, prefix),
        PREFIX_LEN: u8(PREFIX_LEN, prefix_len),
        VERSION: u64(VERSION, version),
        TTL_NS: u64(TTL_NS, ttl_ns),
        WAIT_UNIT_NS: u32(WAIT_UNIT_NS, 1024),
        PATHS: nest(PATHS, *paths),
        SEQUENCE: attribute(SEQUENCE, sequence),
    }


def thresholds(*most_bytes: int, version: int = 1, ttl_ns: int = TTL_NS_MAX) -> dict[int, bytes]:
    """Give the attributes of a THRESHOLDS_SET."""
    return {
        VERSION: u64(VERSION, version),
        TTL_NS: u64(TTL_NS, ttl_ns),
        THRESHOLDS: nest(THRESHOLDS, *(u64(THRESHOLD, one) for one in most_bytes)),
    }


class PatternFamily:
    """The family in the thread's current network namespace."""

    def __init__(self) -> None:
        """Look the family up."""
        self.netlink = GenericSocket()
        self.kind = self.netlink.family(NAME)

    def message(self, command: int, body: bytes, flags: int = REQUEST | ACK) -> bytes:
        """Give a message for the family."""
        return request(self.kind, command, body, flags)

    def set(self, attributes: dict[int, bytes]) -> bytes:
        """Give a PATTERN_SET."""
        return self.message(SET, b"".join(attributes.values()))

    def set_thresholds(self, attributes: dict[int, bytes]) -> bytes:
        """Give a THRESHOLDS_SET."""
        return self.message(SET_THRESHOLDS, b"".join(attributes.values()))

    def patterns(self) -> list[dict[int, bytes]]:
        """Dump the patterns."""
        return self.netlink.dump(self.message(GET, b"", REQUEST | DUMP))

    def thresholds(self) -> list[int]:
        """Give the thresholds that were set last, in bytes; none if none were."""
        found = self.netlink.dump(self.message(GET_THRESHOLDS, b"", REQUEST | DUMP))
        return [
            int(struct.unpack("=Q", body)[0])
            for one in found
            for kind, body in attributes(one[THRESHOLDS])
            if kind == THRESHOLD
        ]

    def flows(self) -> list[dict[int, bytes]]:
        """Dump the connections."""
        return self.netlink.dump(self.message(FLOWS, b"", REQUEST | DUMP))


def scheduler_of(flow: dict[int, bytes]) -> str:
    """Name a flow's scheduler."""
    return flow[SCHEDULER].rstrip(b"\0").decode()


def packets_of(flow: dict[int, bytes]) -> list[int]:
    """Count what was scheduled on each subflow."""
    subflows = [dict(attributes(body)) for _, body in attributes(flow[SUBFLOWS])]
    return [int(struct.unpack("=Q", subflow[Subflow.PACKETS])[0]) for subflow in subflows]
