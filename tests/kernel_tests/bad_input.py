# SPDX-License-Identifier: Apache-2.0
"""Bad netlink requests are refused, with a message or the attribute that is wrong."""

import errno
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kernel_tests import network
from kernel_tests.genetlink import (
    GENERIC_HEADER,
    HEADER,
    NESTED,
    address,
    attribute,
    nest,
    u8,
    u16,
    u32,
    u64,
)
from kernel_tests.pattern_family import (
    DEL,
    DEL_THRESHOLDS,
    GAP,
    LOCAL,
    LOWEST_RTT_NS,
    PATH,
    PATHS,
    PREFIX,
    PREFIX_LEN,
    RTT_NS,
    SEQUENCE,
    THRESHOLD,
    THRESHOLDS,
    TTL_NS,
    VERSION,
    WAIT_UNIT_NS,
    PatternFamily,
    path,
    pattern,
    thresholds,
)
from kernel_tests.pattern_numbers import TTL_NS_MAX
from kernel_tests.tap import Tap

FIRST, SECOND = "10.0.1.1", "10.0.2.1"


@dataclass(frozen=True)
class Bad:
    """A PATTERN_SET that is wrong in one way."""

    what: str
    attributes: dict[int, bytes]
    errno: int
    message: str = ""
    """The error message that the kernel has to give."""
    about: int = 0
    """Attribute of the request that the error has to point to, or into."""
    missing: int = 0
    """Attribute that the error has to name as missing."""


def without(kind: int) -> dict[int, bytes]:
    """Give a pattern that lacks an attribute."""
    return {key: value for key, value in pattern().items() if key != kind}


def with_paths(*paths: bytes, sequence: bytes = b"\0\1") -> dict[int, bytes]:
    """Give a pattern with these paths."""
    return pattern(paths=paths, sequence=sequence)


def replaced(kind: int, value: bytes) -> dict[int, bytes]:
    """Give a pattern with another attribute in the place of one."""
    return pattern() | {kind: value}


NINE = [f"10.0.3.{host}" for host in range(1, 10)]

BAD = (
    *(
        Bad(f"no {name}", without(kind), errno.EINVAL, missing=kind)
        for kind, name in {
            PREFIX: "prefix",
            PREFIX_LEN: "prefix length",
            VERSION: "version",
            TTL_NS: "time to live",
            PATHS: "paths",
            SEQUENCE: "sequence",
        }.items()
    ),
    Bad("a prefix of 33 bits", pattern(prefix_len=33), errno.ERANGE, about=PREFIX_LEN),
    Bad(
        "a prefix with host bits",
        pattern("10.0.0.1", 24),
        errno.EINVAL,
        "prefix has bits set beyond its length",
        PREFIX,
    ),
    Bad("a time to live of zero", pattern(ttl_ns=0), errno.ERANGE, about=TTL_NS),
    Bad("one above a minute", pattern(ttl_ns=TTL_NS_MAX + 1), errno.ERANGE, about=TTL_NS),
    Bad("one of 2^64 - 1", pattern(ttl_ns=2**64 - 1), errno.ERANGE, about=TTL_NS),
    Bad(
        "a version above which there is none",
        pattern(version=2**64 - 1),
        errno.ERANGE,
        about=VERSION,
    ),
    Bad(
        "waits in units above 10 us",
        replaced(WAIT_UNIT_NS, u32(WAIT_UNIT_NS, 10001)),
        errno.ERANGE,
        about=WAIT_UNIT_NS,
    ),
    Bad(
        "a lowest RTT of four bytes",
        with_paths(nest(PATH, u32(LOWEST_RTT_NS, 1))),
        errno.EINVAL,
        about=PATHS,
    ),
    Bad("no path", with_paths(), errno.EINVAL, "no path", PATHS),
    Bad(
        "nine paths",
        with_paths(*(path(local, 1) for local in NINE), sequence=bytes(range(9))),
        errno.E2BIG,
        "more than 8 paths",
        PATHS,
    ),
    Bad(
        "the same path twice",
        with_paths(path(FIRST, 1), path(FIRST, 1)),
        errno.EINVAL,
        "two paths have the same local address",
        PATHS,
    ),
    Bad(
        "a path whose address the namespace does not have",
        with_paths(path(FIRST, 1), path("10.0.77.1", 1)),
        errno.EADDRNOTAVAIL,
        "no such local address in this network namespace",
        PATHS,
    ),
    Bad(
        "a path without a gap",
        with_paths(nest(PATH, address(LOCAL, FIRST))),
        errno.EINVAL,
        "a path needs its local address and its gap",
        PATHS,
    ),
    Bad(
        "a path without an address",
        with_paths(nest(PATH, u32(GAP, 1))),
        errno.EINVAL,
        "a path needs its local address and its gap",
        PATHS,
    ),
    Bad("a gap of 257", with_paths(path(FIRST, 257)), errno.ERANGE, about=PATHS),
    Bad("a gap of 2^32 - 1", with_paths(path(FIRST, 0xFFFFFFFF)), errno.ERANGE, about=PATHS),
    Bad(
        "gaps of zero",
        with_paths(path(FIRST, 0), path(SECOND, 0)),
        errno.EINVAL,
        "sequence does not contain each path as often as its gap",
        SEQUENCE,
    ),
    Bad(
        "a sequence that does not match a gap",
        with_paths(path(FIRST, 2), path(SECOND, 1)),
        errno.EINVAL,
        "sequence does not contain each path as often as its gap",
        SEQUENCE,
    ),
    Bad("an empty sequence", pattern(sequence=b""), errno.ERANGE, about=SEQUENCE),
    Bad("a sequence of 257", pattern(sequence=b"\0" * 257), errno.ERANGE, about=SEQUENCE),
    Bad("a sequence of 60000", pattern(sequence=b"\0" * 60000), errno.ERANGE, about=SEQUENCE),
    Bad(
        "a sequence that names a third path of two",
        pattern(sequence=b"\0\2"),
        errno.EINVAL,
        "sequence names a path that does not exist",
        SEQUENCE,
    ),
    Bad(
        "an attribute that is no path among the paths",
        replaced(PATHS, nest(PATHS, path(FIRST, 1), u32(VERSION, 1))),
        errno.EINVAL,
        about=PATHS,
    ),
    Bad(
        "paths that are not marked as nested",
        replaced(PATHS, attribute(PATHS, path(FIRST, 1))),
        errno.EINVAL,
        about=PATHS,
    ),
    Bad(
        "a path of odd bytes",
        replaced(PATHS, nest(PATHS, attribute(PATH | NESTED, b"\1\2\3"))),
        errno.ERANGE,
        about=PATHS,
    ),
    Bad(
        "an unknown attribute in a path",
        with_paths(nest(PATH, address(LOCAL, FIRST), u32(GAP, 1), u32(99, 1))),
        errno.EINVAL,
        about=PATHS,
    ),
    Bad("an RTT of four bytes", with_paths(nest(PATH, u32(RTT_NS, 1))), errno.EINVAL, about=PATHS),
    Bad("a prefix of two bytes", replaced(PREFIX, u16(PREFIX, 1)), errno.EINVAL, about=PREFIX),
    Bad(
        "a prefix of 16 bytes",
        replaced(PREFIX, attribute(PREFIX, bytes(16))),
        errno.EINVAL,
        about=PREFIX,
    ),
    Bad("a version of a byte", replaced(VERSION, u8(VERSION, 1)), errno.EINVAL, about=VERSION),
    Bad("an unknown attribute", pattern() | {99: u32(99, 1)}, errno.EINVAL, about=99),
    Bad("an attribute that only answers have", pattern() | {5: u64(5, 1)}, errno.EINVAL, about=5),
)


SIX = (1, 2, 3, 4, 5, 6)

BAD_THRESHOLDS = (
    *(
        Bad(
            f"thresholds without {name}",
            {key: value for key, value in thresholds(*SIX).items() if key != kind},
            errno.EINVAL,
            missing=kind,
        )
        for kind, name in {
            VERSION: "a version",
            TTL_NS: "a time to live",
            THRESHOLDS: "thresholds",
        }.items()
    ),
    Bad("no threshold", thresholds(), errno.EINVAL, "no threshold", THRESHOLDS),
    Bad("seven", thresholds(*SIX, 7), errno.E2BIG, "more than 6 thresholds", THRESHOLDS),
    Bad("a threshold of 0", thresholds(0, 1), errno.ERANGE, about=THRESHOLDS),
    Bad("one above a terabyte", thresholds(10**12 + 1), errno.ERANGE, about=THRESHOLDS),
    Bad(
        "thresholds out of order",
        thresholds(1, 3, 2),
        errno.EINVAL,
        "thresholds have to rise",
        THRESHOLDS,
    ),
    Bad("two equal ones", thresholds(1, 1), errno.EINVAL, "thresholds have to rise", THRESHOLDS),
    Bad(
        "a threshold of four bytes",
        thresholds(1) | {THRESHOLDS: nest(THRESHOLDS, u32(THRESHOLD, 1))},
        errno.EINVAL,
        about=THRESHOLDS,
    ),
    Bad(
        "thresholds that live for ever",
        thresholds(*SIX, ttl_ns=2**64 - 1),
        errno.ERANGE,
        about=TTL_NS,
    ),
    Bad(
        "thresholds for six classes, where there are eight",
        thresholds(1, 2, 3, 4),
        errno.EINVAL,
        "4 thresholds make 6 classes, and weft_priorities is 8",
        THRESHOLDS,
    ),
    Bad(
        "an older version than that in use",
        thresholds(*SIX),
        errno.ESTALE,
        "thresholds of a newer version have not expired yet",
        VERSION,
    ),
)


def offset_of(message: bytes, kind: int) -> range:
    """Give the byte range of an attribute in a message; empty if it has none."""
    at = HEADER.size + GENERIC_HEADER.size
    while at + 4 <= len(message):
        length, found = struct.unpack_from("=HH", message, at)
        if found & 0x3FFF == kind:
            return range(at, at + length)
        at += (length + 3) & ~3
    return range(0)


def check_bad(tap: Tap, family: PatternFamily, bad: Bad, message: bytes) -> None:
    """Send it; the error has to be the expected one."""
    said = family.netlink.call(message)
    right = said.errno == bad.errno and said.missing == bad.missing
    if bad.message:
        right &= said.message == bad.message
    if bad.about:
        right &= said.offset in offset_of(message, bad.about)
    # one of the three says what is wrong
    right &= bool(said.message or said.offset or said.missing)
    tap.check(right, f"{bad.what} is refused with its reason", said)


def check_deletes(tap: Tap, family: PatternFamily) -> None:
    """PATTERN_DEL of a pattern that does not exist, and with half of a prefix."""
    said = family.netlink.call(
        family.message(DEL, address(PREFIX, "192.168.0.0") + u8(PREFIX_LEN, 16))
    )
    tap.check(
        said.errno == errno.ENOENT and said.message == "no pattern for this prefix",
        "deleting a pattern that is not there is refused with its reason",
        said,
    )
    said = family.netlink.call(family.message(DEL, address(PREFIX, "10.0.0.0")))
    tap.check(
        said.errno == errno.EINVAL and said.missing == PREFIX_LEN,
        "deleting with half of a prefix is refused, naming the other half",
        said,
    )


def check_thresholds(tap: Tap, family: PatternFamily) -> None:
    """Thresholds that are wrong leave those in use as they are."""
    classes = Path("/sys/module/weft/parameters/weft_priorities")
    classes.write_text("8")
    said = family.netlink.call(family.set_thresholds(thresholds(*SIX, version=2)))
    tap.check(said.errno == 0, "good thresholds are accepted", said)
    for bad in BAD_THRESHOLDS:
        check_bad(tap, family, bad, family.set_thresholds(bad.attributes))
    tap.check(family.thresholds() == list(SIX), "and they are as they were", family.thresholds())
    family.netlink.call(family.message(DEL_THRESHOLDS, b""))
    tap.check(family.thresholds() == [], "they can be deleted", family.thresholds())
    classes.write_text("0")


def check_message_ends(tap: Tap, family: PatternFamily) -> None:
    """Messages that end in the middle of an attribute."""
    whole = b"".join(pattern().values())
    refused = 0
    for length in range(1, len(whole)):
        said = family.netlink.call(family.message(1, whole[:length]))
        refused += said.errno != 0
    # an attribute's padding may be missing at the end
    tap.check(refused >= len(whole) - 3, "a message cut off anywhere is refused", refused)
    said = family.netlink.call(family.message(77, b""))
    tap.check(said.errno == errno.EOPNOTSUPP, "an unknown command is refused", said)


def refusal(attempt: Callable[[], object]) -> int:
    """Give the errno of an attempt, 0 when it succeeds."""
    try:
        attempt()
    except OSError as error:
        return error.errno or -1
    return 0


def check_scheduler_names(tap: Tap) -> None:
    """Unknown schedulers, for a namespace and for a socket."""
    sysctl = Path("/proc/sys/net/mptcp/scheduler")
    before = sysctl.read_text()
    for name in ("nonsense", "rb2", "r", "rbrbrbrbrbrbrbrbrbrbrbrb", "x" * 4096):
        code = refusal(lambda name=name: network.set_scheduler(name))  # type: ignore[misc]
        tap.check(code == errno.ENOENT, f"a namespace has no scheduler {name[:12]}...", code)
    tap.check(sysctl.read_text() == before, "a refused scheduler changes nothing")
    for name in ("nonsense", "rb2", "r", "x" * 4096):
        code = refusal(lambda name=name: network.mptcp_socket(name))  # type: ignore[misc]
        tap.check(code == errno.ENOENT, f"a socket has no scheduler {name[:12]}...", code)
    code = refusal(lambda: network.mptcp_socket(""))
    tap.check(code == errno.EINVAL, "a socket's scheduler has a name", code)


def main() -> None:
    """Check them all in a namespace that has the local addresses."""
    tap = Tap()
    network.make("left", "right")
    for local in NINE:
        network.ip("-n", "left", "address", "add", f"{local}/32", "dev", "lo")
    with network.inside("left"):
        family = PatternFamily()
        said = family.netlink.call(family.set(pattern()))
        tap.check(said.errno == 0, "a good pattern is accepted", said)
        for bad in BAD:
            check_bad(tap, family, bad, family.set(bad.attributes))
        check_thresholds(tap, family)
        check_deletes(tap, family)
        check_message_ends(tap, family)
        check_scheduler_names(tap)
        kept = [one[SEQUENCE] for one in family.patterns()]
        tap.check(kept == [b"\0\1"], "the good pattern is as it was", kept)
    tap.finish()


if __name__ == "__main__":
    main()
