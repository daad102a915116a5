# SPDX-License-Identifier: Apache-2.0
"""Sockets choose their scheduler, accepted sockets inherit it, and keep the module loaded."""

import ctypes
import errno
import os
import socket
import sys
import time
from pathlib import Path

from kernel_tests import network
from kernel_tests.bad_input import refusal
from kernel_tests.pattern_family import SEQUENCE, PatternFamily, packets_of, pattern, scheduler_of
from kernel_tests.tap import Tap

SIZE_BYTES = 2_000_000
JOIN_S = 0.1
"""The second subflow is established by then."""
_SYS_DELETE_MODULE, _SYS_FINIT_MODULE = 176, 313
_libc = ctypes.CDLL(None, use_errno=True)


def connect(
    port: int, ours: str | None, theirs: str | None
) -> tuple[socket.socket, socket.socket, socket.socket]:
    """Connect `left` to `right`; give client, accepted socket and listener."""
    with network.inside("right"):
        listening = network.listener(port, theirs)
    with network.inside("left"):
        client = network.mptcp_socket(ours)
    client.connect(("10.0.1.2", port))
    accepted, _ = listening.accept()
    time.sleep(JOIN_S)
    return client, accepted, listening


def scheduler_in(name: str) -> list[str]:
    """Name the schedulers of a namespace's connections, without those of upstream."""
    with network.inside(name):
        return [scheduler_of(flow) for flow in PatternFamily().flows()]


def check_scheduler(tap: Tap, number: int, name: str) -> None:
    """A socket chooses the scheduler, an accepted socket inherits it, and it carries data."""
    client, accepted, listening = connect(5000 + number, name, name)
    upstream = name == "default"
    same = network.exchange(client, accepted, SIZE_BYTES)
    same &= network.exchange(accepted, client, SIZE_BYTES)
    tap.check(same, f"{name}: data arrive unchanged in both directions")
    expected = [] if upstream else [name]
    tap.check(scheduler_in("left") == expected, f"{name}: a socket chooses it", expected)
    tap.check(scheduler_in("right") == expected, f"{name}: an accepted socket inherits it")
    if not upstream:
        with network.inside("left"):
            packets = packets_of(PatternFamily().flows()[0])
        tap.check(all(packets) and len(packets) == 2, f"{name}: both subflows are used", packets)
    code = refusal(lambda: client.setsockopt(network.SOL_MPTCP, network.MPTCP_SCHEDULER, b"minrtt"))
    tap.check(code == errno.EISCONN, f"{name}: a connection keeps its scheduler", code)
    for one in (client, accepted, listening):
        one.close()


def disconnect(client: socket.socket) -> None:
    """End a connection so that the socket can have another: connect() to AF_UNSPEC."""
    nowhere = ctypes.create_string_buffer(16)
    if _libc.connect(client.fileno(), nowhere, len(nowhere)):
        raise OSError(ctypes.get_errno(), "disconnect")


def check_disconnected(tap: Tap, port: int) -> None:
    """A socket that connects again has no scheduler state of its first connection."""

    def sequence() -> bytes:
        with network.inside("left"):
            return PatternFamily().flows()[0].get(SEQUENCE, b"")

    client, accepted, listening = connect(port, "rb", None)
    network.exchange(client, accepted, SIZE_BYTES)
    tap.check(len(sequence()) > 0, "a connection has a sequence")
    disconnect(client)
    accepted.close()
    client.connect(("10.0.1.2", port))
    accepted, _ = listening.accept()
    time.sleep(JOIN_S)
    left = sequence()
    tap.check(not left, "the next connection of its socket begins without one", left)
    same = network.exchange(client, accepted, SIZE_BYTES)
    tap.check(same and len(sequence()) > 0, "and gets its own sequence")
    for one in (client, accepted, listening):
        one.close()


def delete_module() -> int:
    """Remove the module; give the errno, 0 when it is gone."""
    if _libc.syscall(_SYS_DELETE_MODULE, b"weft", os.O_NONBLOCK) == 0:
        return 0
    return ctypes.get_errno()


def load_module(path: Path) -> int:
    """Load the module; give the errno."""
    with path.open("rb") as file:
        if _libc.syscall(_SYS_FINIT_MODULE, file.fileno(), b"", 0) == 0:
            return 0
    return ctypes.get_errno()


def check_module(tap: Tap, module: Path) -> None:
    """The module cannot be removed while a connection uses it."""
    client, accepted, listening = connect(6000, "rb", None)
    with network.inside("left"):
        family = PatternFamily()
        said = family.netlink.call(family.set(pattern()))
        tap.check(said.errno == 0, "a pattern is set", said)
        family.netlink.close()
    code = delete_module()
    tap.check(code in (errno.EAGAIN, errno.EBUSY), "a module in use cannot be removed", code)
    tap.check(network.exchange(client, accepted, SIZE_BYTES), "and the connection continues")
    for one in (client, accepted):
        one.close()
    settle()
    with network.inside("left"):
        network.set_scheduler("rb")
    tap.check(delete_module() == 0, "after the last connection the module can be removed")
    offered = network.schedulers()
    tap.check(offered == ["default"], "and its schedulers are gone", offered)
    # the namespace still asks for rb; connections use the default
    client, accepted, again = connect(6001, None, None)
    with network.inside("left"):
        named = Path("/proc/sys/net/mptcp/scheduler").read_text().strip()
    same = network.exchange(client, accepted, SIZE_BYTES)
    tap.check(same, f"connections work in a namespace that still asks for {named}")
    for one in (client, accepted, again, listening):
        one.close()
    code = load_module(module)
    tap.check(code == 0, "the module can be loaded again", code)


def settle() -> None:
    """Wait, on virtual time, until closed connections have ended."""
    time.sleep(120)


def main() -> None:
    """Check every scheduler, sockets that connect twice, and the module at this path."""
    tap = Tap()
    network.make("left", "right")
    for number, name in enumerate(network.schedulers()):
        check_scheduler(tap, number, name)
    settle()
    check_disconnected(tap, 5100)
    settle()
    check_module(tap, Path(sys.argv[1]))
    tap.finish()


if __name__ == "__main__":
    main()
