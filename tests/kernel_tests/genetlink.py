# SPDX-License-Identifier: Apache-2.0
"""Generic netlink at the level of bytes: valid messages and broken ones."""

import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

HEADER = struct.Struct("=IHHII")
GENERIC_HEADER = struct.Struct("=BBH")

# include/uapi/linux/{netlink,genetlink}.h
REQUEST, ACK, DUMP = 0x1, 0x4, 0x300
ERROR, DONE = 2, 3
NESTED = 0x8000
_SOL_NETLINK, _CAP_ACK, _EXT_ACK, _STRICT_CHECK = 270, 10, 11, 12
_CAPPED, _TLVS = 0x100, 0x200
_MESSAGE, _OFFSET, _MISSING = 1, 2, 5
_CONTROL, _GETFAMILY, _FAMILY_ID, _FAMILY_NAME = 16, 3, 1, 2


def attribute(kind: int, payload: bytes) -> bytes:
    """Give an attribute with its padding."""
    length = 4 + len(payload)
    return struct.pack("=HH", length, kind) + payload + bytes(-length % 4)


def u8(kind: int, value: int) -> bytes:
    """Give an attribute of a byte."""
    return attribute(kind, struct.pack("=B", value))


def u16(kind: int, value: int) -> bytes:
    """Give an attribute of two bytes."""
    return attribute(kind, struct.pack("=H", value))


def u32(kind: int, value: int) -> bytes:
    """Give an attribute of four bytes."""
    return attribute(kind, struct.pack("=I", value))


def u64(kind: int, value: int) -> bytes:
    """Give an attribute of eight bytes."""
    return attribute(kind, struct.pack("=Q", value))


def address(kind: int, text: str) -> bytes:
    """Give an attribute of an IPv4 address."""
    return attribute(kind, socket.inet_aton(text))


def nest(kind: int, *members: bytes) -> bytes:
    """Give an attribute that nests others."""
    return attribute(kind | NESTED, b"".join(members))


def attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Take attributes apart: kind without flags, payload."""
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        if length < 4:
            return
        yield kind & 0x3FFF, data[4:length]
        data = data[(length + 3) & ~3 :]


@dataclass(frozen=True)
class Answer:
    """The kernel's answer to a request."""

    errno: int
    """0 for success."""
    message: str = ""
    """Its error message, if any."""
    offset: int = 0
    """Offset in the request of the attribute that is wrong; 0 for none."""
    missing: int = 0
    """Kind of the attribute that is missing; 0 for none."""

    def __str__(self) -> str:
        """As a person would read it."""
        name = os.strerror(self.errno) if self.errno else "accepted"
        return f"{name}; {self.message!r} at {self.offset}, missing {self.missing}"


class GenericSocket:
    """A generic netlink socket in the thread's current network namespace."""

    def __init__(self) -> None:
        """Ask the kernel for extended ACKs."""
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16)
        self.socket.bind((0, 0))
        for option in (_CAP_ACK, _EXT_ACK, _STRICT_CHECK):
            self.socket.setsockopt(_SOL_NETLINK, option, 1)
        self.socket.settimeout(10)

    def close(self) -> None:
        """Close it; a dump that has not been read ends."""
        self.socket.close()

    def family(self, name: str) -> int:
        """Look a family up."""
        body = attribute(_FAMILY_NAME, name.encode() + b"\0")
        self.socket.send(request(_CONTROL, _GETFAMILY, body, REQUEST))
        reply = self.socket.recv(1 << 16)
        if struct.unpack_from("=H", reply, 4)[0] == ERROR:
            raise OSError(f"no generic netlink family {name}")
        found = dict(attributes(reply[HEADER.size + GENERIC_HEADER.size :]))
        return int(struct.unpack("=H", found[_FAMILY_ID])[0])

    def call(self, message: bytes) -> Answer:
        """Send a request that asks for an acknowledgement; give that."""
        self.socket.send(message)
        while True:
            data = self.socket.recv(1 << 16)
            kind, flags = struct.unpack_from("=HH", data, 4)
            if kind in (ERROR, DONE):
                return answer(data, flags)

    def dump(self, message: bytes) -> list[dict[int, bytes]]:
        """Send a request for a dump; give the attributes of each object."""
        self.socket.send(message)
        result: list[dict[int, bytes]] = []
        while True:
            data = self.socket.recv(1 << 16)
            while data:
                length, kind, flags, _, _ = HEADER.unpack_from(data)
                if kind == DONE:
                    return result
                if kind == ERROR:
                    said = answer(data, flags)
                    raise OSError(said.errno, str(said))
                body = data[HEADER.size + GENERIC_HEADER.size : length]
                result.append(dict(attributes(body)))
                data = data[(length + 3) & ~3 :]


def request(kind: int, command: int, body: bytes, flags: int = REQUEST | ACK) -> bytes:
    """Give a whole message."""
    length = HEADER.size + GENERIC_HEADER.size + len(body)
    return HEADER.pack(length, kind, flags, 1, 0) + GENERIC_HEADER.pack(command, 1, 0) + body


def answer(data: bytes, flags: int) -> Answer:
    """Read an error message, which is an acknowledgement when the error is 0."""
    (error,) = struct.unpack_from("=i", data, HEADER.size)
    if not flags & _TLVS:
        return Answer(-error)
    start = HEADER.size + 4
    start += HEADER.size if flags & _CAPPED else struct.unpack_from("=I", data, start)[0]
    found = dict(attributes(data[start:]))

    def number(kind: int) -> int:
        return int(struct.unpack("=I", found.get(kind, bytes(4)))[0])

    return Answer(
        -error,
        found.get(_MESSAGE, b"").rstrip(b"\0").decode(errors="replace"),
        number(_OFFSET),
        number(_MISSING),
    )
