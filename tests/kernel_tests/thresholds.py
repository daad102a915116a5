# SPDX-License-Identifier: Apache-2.0
"""Thresholds of the namespace: `show` prints them, `lie` and `churn` set others.

`show` prints a line of JSON: the thresholds in bytes that were set last, and whether they live.
With those of `lie`, whatever is left to send is in class 1, for a minute. `churn` sets these and
their opposite, with which it is in the last class, in turn every 2 ms for 2 seconds.
"""

import json
import struct
import sys
import time

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


URGENT = range(THRESHOLD_BYTES_MAX - THRESHOLDS_MAX + 1, THRESHOLD_BYTES_MAX + 1)
"""Above everything that is left to send."""
PATIENT = range(1, THRESHOLDS_MAX + 1)
"""Below everything."""
CHANGES, INTERVAL_S = 1000, 0.002


def lie(family: PatternFamily) -> None:
    """Set thresholds above everything, newer than any of a controller."""
    _set(family, URGENT, VERSION_MAX)


def churn(family: PatternFamily) -> None:
    """Set other thresholds again and again."""
    for version in range(VERSION_MAX - CHANGES, VERSION_MAX):
        _set(family, PATIENT if version % 2 else URGENT, version)
        time.sleep(INTERVAL_S)


def _set(family: PatternFamily, most: range, version: int) -> None:
    said = family.netlink.call(family.set_thresholds(thresholds(*most, version=version)))
    if said.errno:
        sys.exit(f"{THRESHOLDS}: {said}")


def main() -> None:
    """Run the command line."""
    {"show": show, "lie": lie, "churn": churn}[sys.argv[1]](PatternFamily())


if __name__ == "__main__":
    main()
