# SPDX-License-Identifier: Apache-2.0
"""Thresholds of the namespace: `thresholds show` prints them, `thresholds lie` makes all urgent.

`show` prints a line of JSON: the thresholds in bytes that were set last, and whether they live.
With those of `lie`, whatever is left to send is in class 1, for a minute.
"""

import json
import struct
import sys

from kernel_tests.genetlink import DUMP, REQUEST
from kernel_tests.pattern_family import (
    GET_THRESHOLDS,
    THRESHOLDS,
    TTL_NS,
    PatternFamily,
    thresholds,
)
from kernel_tests.pattern_numbers import (
    THRESHOLD_BYTES_MAX,
    THRESHOLDS_MAX,
    VERSION_MAX,
    Message,
)


def show(family: PatternFamily) -> None:
    """Print what the kernel holds."""

    def number(one: dict[int, bytes], kind: int) -> int:
        return int(struct.unpack("=Q", one[kind])[0])

    found = family.netlink.dump(family.message(GET_THRESHOLDS, b"", REQUEST | DUMP))
    live = any(number(one, Message.AGE_NS) < number(one, TTL_NS) for one in found)
    print(json.dumps({"most_bytes": family.thresholds(), "live": live}))


def lie(family: PatternFamily) -> None:
    """Set thresholds above everything, newer than any of a controller."""
    most = range(THRESHOLD_BYTES_MAX - THRESHOLDS_MAX + 1, THRESHOLD_BYTES_MAX + 1)
    said = family.netlink.call(family.set_thresholds(thresholds(*most, version=VERSION_MAX)))
    if said.errno:
        sys.exit(f"{THRESHOLDS}: {said}")


def main() -> None:
    """Run the command line."""
    {"show": show, "lie": lie}[sys.argv[1]](PatternFamily())


if __name__ == "__main__":
    main()
