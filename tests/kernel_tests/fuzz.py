# SPDX-License-Identifier: Apache-2.0
"""Fuzzes the netlink interface while connections use it: fuzz SEED ROUNDS [MODULE].

Every round draws one of these, from a generator with the given seed:

- a valid message of any command in which a few bytes, lengths, kinds, flags or attributes
  are changed, cut off, doubled, swapped or nested too deeply;
- a valid PATTERN_SET, which must be accepted, or a PATTERN_DEL;
- a dump that is abandoned after its first part;
- random bytes as the name of a scheduler, for a socket and for the namespace;
- a namespace with patterns and a connection, which is deleted while both are in use;
- an attempt to remove the module, which must be refused while it is in use.

Meanwhile another process opens connections with every scheduler, sends, and closes them.
At the end, valid patterns must be accepted and used, and it must be possible to remove the
module and load it again (if its path is given). The caller reads the kernel log (slab_debug,
KASAN).
"""

import errno
import os
import random
import signal
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from kernel_tests import network
from kernel_tests.genetlink import (
    ACK,
    DUMP,
    GENERIC_HEADER,
    HEADER,
    NESTED,
    REQUEST,
    GenericSocket,
    address,
    attribute,
    nest,
    request,
    u8,
)
from kernel_tests.pattern_family import (
    DEL,
    DEL_THRESHOLDS,
    FLOWS,
    GET,
    GET_THRESHOLDS,
    OF_CONTROLLER,
    PREFIX,
    PREFIX_LEN,
    RENEW,
    SET,
    SET_THRESHOLDS,
    SOURCE,
    PatternFamily,
    path,
    pattern,
    thresholds,
)
from kernel_tests.pattern_numbers import NAME, TTL_NS_MAX, VERSION_MAX
from kernel_tests.sockets import connect, delete_module, load_module, settle
from kernel_tests.tap import Tap

PAUSE_S = 0.002
"""Virtual time between rounds, in which the traffic continues."""
BODY = HEADER.size + GENERIC_HEADER.size
SHORT_FLOW_BYTES, LONG_FLOW_BYTES = 20_000, 400_000


class Fuzzer:
    """Draws actions and performs them."""

    def __init__(self, seed: int) -> None:
        """The thread has to be in the namespace that is fuzzed."""
        self.random = random.Random(seed)
        self.socket = GenericSocket()
        self.kind = self.socket.family(NAME)
        self.refused = 0
        self.accepted = 0
        self.wrong: list[str] = []
        self.rounds: list[tuple[int, Callable[[], None]]] = [
            (600, self.broken_message),
            (200, self.good_pattern),
            (60, self.delete_pattern),
            (60, self.abandoned_dump),
            (40, self.scheduler_names),
            (10, self.doomed_namespace),
            (20, self.module_removal),
        ]

    def round(self) -> None:
        """Perform one action."""
        weights = [weight for weight, _ in self.rounds]
        (act,) = self.random.choices([act for _, act in self.rounds], weights)
        act()

    def drawn_pattern(self) -> dict[int, bytes]:
        """Draw a valid pattern; some expire soon, and some match no flow."""
        draw = self.random
        prefix_len = draw.choice([0, 8, 16, 24, 32])
        gaps = [draw.randint(0, 20), draw.randint(1, 20)]
        sequence = [0] * gaps[0] + [1] * gaps[1]
        draw.shuffle(sequence)
        mask = 0xFFFFFFFF << (32 - prefix_len) & 0xFFFFFFFF
        prefix = (0x0A000100 | draw.randint(0, 3)) & mask
        return pattern(
            ".".join(str(byte) for byte in prefix.to_bytes(4, "big")),
            prefix_len,
            draw.randint(0, VERSION_MAX),
            draw.choice([1, 1000, 5_000_000, TTL_NS_MAX]),
            [path("10.0.1.1", gaps[0]), path("10.0.2.1", gaps[1])],
            bytes(sequence),
        )

    def good_pattern(self) -> None:
        """Set a valid pattern."""
        body = b"".join(self.drawn_pattern().values())
        said = self.socket.call(request(self.kind, SET, body))
        if said.errno:
            self.wrong.append(f"a valid pattern was refused: {said}")

    def delete_pattern(self) -> None:
        """Delete one pattern, or all."""
        body = b""
        if self.random.random() < 0.7:
            chosen = self.drawn_pattern()
            body = chosen[PREFIX] + chosen[PREFIX_LEN]
        said = self.socket.call(request(self.kind, DEL, body))
        if said.errno not in (0, errno.ENOENT):
            self.wrong.append(f"a valid deletion was refused: {said}")

    def broken_message(self) -> None:
        """Change a message and send it, on a socket of its own."""
        message = self.valid_message()
        for _ in range(self.random.randint(1, 4)):
            message = self.random.choice(MUTATIONS)(self.random, message)
        broken = GenericSocket()
        broken.socket.setblocking(False)
        with suppress(OSError):
            broken.socket.send(message)
        with suppress(OSError):
            for _ in range(100):
                reply = broken.socket.recv(1 << 16)
                if struct.unpack_from("=H", reply, 4)[0] == 2:
                    if struct.unpack_from("=i", reply, HEADER.size)[0]:
                        self.refused += 1
                    else:
                        self.accepted += 1
        broken.close()

    def valid_message(self) -> bytes:
        """Draw a valid message."""
        command = self.random.choice(
            [SET, SET, SET, SET_THRESHOLDS, DEL, DEL_THRESHOLDS, GET, GET_THRESHOLDS, FLOWS, RENEW]
        )
        chosen = self.drawn_pattern()
        if command == SET:
            return request(self.kind, SET, b"".join(chosen.values()))
        if command == DEL:
            return request(self.kind, DEL, chosen[PREFIX] + chosen[PREFIX_LEN])
        if command == SET_THRESHOLDS:
            sizes = sorted(self.random.sample(range(1, 10**7), self.random.randint(1, 6)))
            lived = {"ttl_ns": self.random.choice([1, 5_000_000, TTL_NS_MAX])}
            return request(self.kind, command, b"".join(thresholds(*sizes, **lived).values()))
        if command in (RENEW, DEL_THRESHOLDS):
            return request(self.kind, command, b"")
        return request(self.kind, command, b"", REQUEST | DUMP)

    def abandoned_dump(self) -> None:
        """Begin a dump of many patterns, delete them, and abandon it."""
        for last in range(40):
            body = b"".join(pattern(f"10.9.{last}.0", 24).values())
            self.socket.call(request(self.kind, SET, body))
        dumping = GenericSocket()
        dumping.socket.send(
            request(
                self.kind,
                self.random.choice([GET, FLOWS, GET_THRESHOLDS]),
                b"",
                REQUEST | DUMP,
            )
        )
        if self.random.random() < 0.5:
            dumping.socket.recv(4096)
        self.socket.call(request(self.kind, DEL, b""))
        if self.random.random() < 0.5:
            with suppress(OSError):
                dumping.socket.recv(4096)
        dumping.close()

    def scheduler_names(self) -> None:
        """Ask for schedulers that do not exist, and for some that do."""
        name = self.random.choice(
            [
                self.random.randbytes(self.random.randint(0, 40)),
                self.random.choice(network.schedulers()).encode(),
            ]
        )
        socket = network.mptcp_socket()
        with suppress(OSError):
            socket.setsockopt(network.SOL_MPTCP, network.MPTCP_SCHEDULER, name)
        with suppress(OSError, ValueError):
            socket.getsockopt(network.SOL_MPTCP, network.MPTCP_SCHEDULER, 16)
        socket.close()
        sysctl = Path("/proc/sys/net/mptcp/scheduler")
        with suppress(OSError):
            sysctl.write_bytes(name)
        sysctl.write_text("rb")

    def doomed_namespace(self) -> None:
        """Make a namespace, and delete it while it is in use."""
        network.ip("netns", "add", "doomed")
        network.ip("-n", "doomed", "link", "set", "lo", "up")
        with network.inside("doomed"):
            network.set_scheduler(self.random.choice(network.schedulers()))
            family = PatternFamily()
            paths = [path("127.0.0.1", 1)]
            family.netlink.call(family.set(pattern("127.0.0.0", 8, paths=paths, sequence=b"\0")))
            listening = network.mptcp_socket()
            listening.bind(("127.0.0.1", 7000))
            listening.listen()
            client = network.mptcp_socket()
            client.connect(("127.0.0.1", 7000))
            accepted, _ = listening.accept()
        if not network.exchange(client, accepted, SHORT_FLOW_BYTES):
            self.wrong.append("data of a doomed namespace did not arrive")
        network.remove("doomed")
        family.netlink.socket.send(family.message(FLOWS, b"", REQUEST | DUMP))
        for one in (client, accepted, listening):
            one.close()
        family.netlink.close()

    def module_removal(self) -> None:
        """Try to remove the module; the fuzzer's namespace has a listener that uses it."""
        code = delete_module()
        if code not in (errno.EAGAIN, errno.EBUSY):
            self.wrong.append(f"removing the module in use: {os.strerror(code)}")


# --- mutations of a message --------------------------------------------------------

Mutation = Callable[[random.Random, bytes], bytes]


def flipped(draw: random.Random, message: bytes) -> bytes:
    """Change bits of a few bytes of the body."""
    changed = bytearray(message)
    for _ in range(draw.randint(1, 6)):
        if len(changed) > BODY:
            changed[draw.randrange(BODY, len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def at_attribute(draw: random.Random, message: bytes) -> int:
    """Draw the offset of an attribute, also in a nest; 0 for none."""
    starts = []
    at = BODY
    while at + 4 <= len(message):
        length, kind = struct.unpack_from("=HH", message, at)
        starts.append(at)
        if length < 4:
            break
        at += 4 if kind & NESTED else (length + 3) & ~3
    return draw.choice(starts) if starts else 0


def other_length(draw: random.Random, message: bytes) -> bytes:
    """Change the length of an attribute."""
    at = at_attribute(draw, message)
    if not at:
        return message
    (length,) = struct.unpack_from("=H", message, at)
    length = draw.choice([0, 1, 3, 4, 5, 0xFFFF, length - 1, length + 1, length + 4]) & 0xFFFF
    return message[:at] + struct.pack("=H", length) + message[at + 2 :]


def other_kind(draw: random.Random, message: bytes) -> bytes:
    """Change the kind of an attribute, and its flags for nests and byte order."""
    at = at_attribute(draw, message)
    if not at:
        return message
    kind = draw.randint(0, 16) | draw.choice([0, NESTED, 0x4000, 0xC000])
    return message[: at + 2] + struct.pack("=H", kind) + message[at + 4 :]


def cut(draw: random.Random, message: bytes) -> bytes:
    """End a message early; half of the time its header says so."""
    return relabelled(draw, message[: draw.randint(HEADER.size, len(message))])


def extended(draw: random.Random, message: bytes) -> bytes:
    """Add random bytes."""
    return relabelled(draw, message + draw.randbytes(draw.randint(1, 3000)))


def doubled(draw: random.Random, message: bytes) -> bytes:
    """Repeat an attribute."""
    at = at_attribute(draw, message)
    if not at:
        return message
    length = (struct.unpack_from("=H", message, at)[0] + 3) & ~3
    part = message[at : at + length]
    place = draw.choice([BODY, at, len(message)])
    return relabelled(draw, message[:place] + part + message[place:], always=True)


def dropped(draw: random.Random, message: bytes) -> bytes:
    """Omit an attribute."""
    at = at_attribute(draw, message)
    if not at:
        return message
    length = max((struct.unpack_from("=H", message, at)[0] + 3) & ~3, 4)
    return relabelled(draw, message[:at] + message[at + length :], always=True)


def deepened(draw: random.Random, message: bytes) -> bytes:
    """Nest attributes deeply."""
    body = message[BODY : BODY + 200]
    for _ in range(draw.randint(1, 60)):
        body = nest(draw.randint(0, 14), body)
    return relabelled(draw, message + body, always=True)


def stuffed(draw: random.Random, message: bytes) -> bytes:
    """Add one large attribute, or many small ones."""
    kind = draw.randint(0, 20)
    if draw.random() < 0.5:
        added = attribute(kind, draw.randbytes(draw.choice([255, 256, 257, 4096, 30000])))
    else:
        added = u8(kind, 0) * draw.randint(1, 500)
    return relabelled(draw, message + added, always=True)


def other_header(draw: random.Random, message: bytes) -> bytes:
    """Change command, version or flags."""
    length, kind, flags, sequence, port = HEADER.unpack_from(message)
    flags ^= draw.choice([0, ACK, DUMP, 0x100, 0x200, 0x800])
    command, version = draw.randint(0, 8), draw.randint(0, 3)
    header = HEADER.pack(length, kind, flags, sequence, port)
    rest = GENERIC_HEADER.pack(command, version, draw.choice([0, 0xFFFF]))
    return header + rest + message[BODY:]


def relabelled(draw: random.Random, message: bytes, always: bool = False) -> bytes:
    """Correct the length in the header, or not."""
    if always or draw.random() < 0.5:
        return struct.pack("=I", len(message)) + message[4:]
    return message


def foreign(draw: random.Random, message: bytes) -> bytes:
    """Add another prefix."""
    text = draw.choice(["0.0.0.0", "255.255.255.255", "10.0.1.1", "224.0.0.1"])
    return relabelled(draw, message + address(PREFIX, text), always=True)


MUTATIONS: tuple[Mutation, ...] = (
    *(flipped, other_length, other_length, other_kind, cut, extended),
    *(doubled, dropped, deepened, stuffed, other_header, foreign),
)


# --- traffic -----------------------------------------------------------------------


def traffic(seed: int) -> None:
    """Open connections, send, and close them, for ever; at most three at a time."""
    draw = random.Random(seed)
    port = 8000
    open_ones: list[tuple[object, ...]] = []
    while True:
        port = 8000 + (port - 7999) % 20000
        name = draw.choice(["rb", "rb", draw.choice(network.schedulers())])
        client, accepted, listening = connect(port, name, name)
        size = draw.choice([SHORT_FLOW_BYTES, LONG_FLOW_BYTES])
        if not network.exchange(client, accepted, size):
            print(f"not ok 999 - {name}: data arrive", flush=True)
        listening.close()
        open_ones.append((client, accepted))
        if len(open_ones) > 3:
            for one in open_ones.pop(draw.randrange(len(open_ones))):
                one.close()  # type: ignore[attr-defined]


def main() -> None:
    """Fuzz, then check that everything still works."""
    seed, rounds = int(sys.argv[1]), int(sys.argv[2])
    tap = Tap()
    network.make("left", "right")
    child = os.fork()
    if child == 0:
        traffic(seed)
    with network.inside("left"):
        network.set_scheduler("rb")
        user = network.mptcp_socket("rb")
        fuzzer = Fuzzer(seed)
        for _ in range(rounds):
            fuzzer.round()
            time.sleep(PAUSE_S)
        user.close()
    ended, status = os.waitpid(child, os.WNOHANG)
    tap.check(ended == 0, "traffic continues during the fuzzing", status)
    tap.check(not fuzzer.wrong, "valid messages are accepted during the fuzzing", fuzzer.wrong[:5])
    said = f"{fuzzer.refused} refused, {fuzzer.accepted} still valid"
    tap.check(fuzzer.refused > rounds // 4, f"broken messages get an answer: {said}", said)

    with network.inside("left"):
        family = PatternFamily()
        family.netlink.call(family.message(DEL, b""))
        code = family.netlink.call(family.set(pattern("10.0.1.0", 24)))
        tap.check(code.errno == 0, "a valid pattern is accepted afterwards", code)
    client, accepted, listening = connect(31000, "rb", "rb")
    tap.check(network.exchange(client, accepted, LONG_FLOW_BYTES), "a connection carries data")
    with network.inside("left"):
        sources = [flow[SOURCE][0] for flow in family.flows()]
        family.netlink.close()
        fuzzer.socket.close()
    tap.check(OF_CONTROLLER in sources, "and uses the pattern", sources)

    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    for one in (client, accepted, listening):
        one.close()
    settle()
    if sys.argv[3:]:
        code_of_removal = delete_module()
        tap.check(code_of_removal == 0, "the module can be removed", code_of_removal)
        tap.check(load_module(Path(sys.argv[3])) == 0, "and loaded again")
    validate_slabs()
    tap.finish()


def validate_slabs() -> None:
    """Let the kernel validate every slab object; it reports to its log.

    `kmem_cache_node` never passes, because its first objects are older than the debugging.
    """
    for cache in Path("/sys/kernel/slab").glob("*/validate"):
        if cache.parent.name != "kmem_cache_node":
            with suppress(OSError):
                cache.write_text("1")


if __name__ == "__main__":
    main()
