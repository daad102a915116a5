# SPDX-License-Identifier: Apache-2.0
"""Numbers of the generic netlink family `mptcp_pattern`.

Generated from host/kernel/mptcp_pattern.yaml by `make -C host/kernel netlink`;
do not edit.
"""

from enum import IntEnum

NAME = "mptcp_pattern"
PATHS_MAX = 8
SEQUENCE_MAX = 256
WAIT_UNIT_NS_MAX = 10000
TTL_NS_MAX = 60000000000
VERSION_MAX = 9223372036854775807
THRESHOLDS_MAX = 6
THRESHOLD_BYTES_MAX = 1000000000000


class Command(IntEnum):
    """What a message is about."""

    PATTERN_SET = 1
    PATTERN_DEL = 2
    PATTERN_GET = 3
    FLOW_GET = 4
    PATTERN_RENEW = 5
    THRESHOLDS_SET = 6
    THRESHOLDS_DEL = 7
    THRESHOLDS_GET = 8


class Source(IntEnum):
    """Where the pattern that a flow uses comes from."""

    NONE = 0
    LOCAL = 1
    CONTROLLER = 2


class Message(IntEnum):
    """Attributes: attributes of a message."""

    PREFIX = 1
    PREFIX_LEN = 2
    VERSION = 3
    TTL_NS = 4
    AGE_NS = 5
    PATHS = 6
    PATH = 7
    SEQUENCE = 8
    TOKEN = 9
    SOURCE = 10
    SCHEDULER = 11
    SUBFLOWS = 12
    SUBFLOW = 13
    PAD = 14
    WAIT_UNIT_NS = 15
    THRESHOLDS = 16
    THRESHOLD = 17


class Path(IntEnum):
    """Attributes: one local address of a pattern."""

    LOCAL = 1
    GAP = 2
    RTT_NS = 3
    PAD = 4
    LOWEST_RTT_NS = 5


class Subflow(IntEnum):
    """Attributes: one subflow of a connection."""

    LOCAL = 1
    REMOTE = 2
    GAP = 3
    RTT_NS = 4
    PACKETS = 5
    BYTES = 6
    PAD = 7
