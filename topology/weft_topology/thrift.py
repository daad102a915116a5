# SPDX-License-Identifier: Apache-2.0
"""Calls of numbers over Apache Thrift: what BMv2 has no P4Runtime for.

A message of the strict binary protocol over a plain socket, as BMv2's server takes it:

    version 0x8001, 0, type   i32      1 call, 2 reply, 3 exception
    name                      i32 + bytes; with several services, "Service:method"
    sequence number           i32
    arguments                 each: type i8, id i16, value; then type 0
"""

import socket
import struct
from types import TracebackType

_VERSION = 0x8001_0000
_CALL, _REPLY = 1, 2
_STOP, _I32, _I64 = 0, 8, 10
_FORMS = {_I32: "!bhi", _I64: "!bhq"}
_LONGEST_NAME = 256


class ThriftError(OSError):
    """The server did not do what it was asked."""


class I32(int):
    """An argument of type i32."""

    kind = _I32


class I64(int):
    """An argument of type i64."""

    kind = _I64


class Client:
    """A connection to a server of several services."""

    def __init__(self, address: tuple[str, int], timeout_s: float) -> None:
        """Connects; raises OSError when nobody listens."""
        self._socket = socket.create_connection(address, timeout_s)
        self._sequence = 0

    def __enter__(self) -> "Client":
        """Use as a context."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connection."""
        self._socket.close()

    def call(self, service: str, method: str, *arguments: I32 | I64) -> int:
        """Call a method whose arguments, numbered from 1, and result are such numbers."""
        self._sequence += 1
        self._socket.sendall(encode(f"{service}:{method}", self._sequence, arguments))
        kind = self._number("!I") & 0xFF
        length = self._number("!i")
        if not 0 <= length <= _LONGEST_NAME:
            raise ThriftError(f"{method}: the answer is not Thrift's")
        self._read(length)
        sequence = self._number("!i")
        if kind != _REPLY or sequence != self._sequence:
            raise ThriftError(f"{service} has no {method}")
        if self._number("!b") != _I32 or self._number("!h") != 0:
            raise ThriftError(f"{method}: the answer is not a number")
        result = self._number("!i")
        self._read(1)  # the end of the result
        return result

    def _number(self, form: str) -> int:
        (number,) = struct.unpack(form, self._read(struct.calcsize(form)))
        return int(number)

    def _read(self, length: int) -> bytes:
        data = b""
        while len(data) < length:
            more = self._socket.recv(length - len(data))
            if not more:
                raise ThriftError("the server has hung up")
            data += more
        return data


def encode(name: str, sequence: int, arguments: tuple[I32 | I64, ...]) -> bytes:
    """Give the message of a call."""
    header = struct.pack("!Ii", _VERSION | _CALL, len(name)) + name.encode()
    fields = (
        struct.pack(_FORMS[argument.kind], argument.kind, number, argument)
        for number, argument in enumerate(arguments, 1)
    )
    return header + struct.pack("!i", sequence) + b"".join(fields) + bytes([_STOP])
