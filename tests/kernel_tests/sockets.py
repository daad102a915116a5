"""Sockets choose their scheduler, what they accept inherits it, and the module stays for them."""

import ctypes
import errno
import os
import socket
import sys
import time
from pathlib import Path

from kernel_tests import network
from kernel_tests.bad_input import refusal
from kernel_tests.tap import Tap
from kernel_tests.weft_family import SEQUENCE, Weft, packets_of, pattern, scheduler_of

SIZE_BYTES = 2_000_000
JOIN_S = 0.1
"""By then the second subflow is there."""
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
    """Name the schedulers of a namespace's connections; upstream's own are not told."""
    with network.inside(name):
        return [scheduler_of(flow) for flow in Weft().flows()]


def check_scheduler(tap: Tap, number: int, name: str) -> None:
    """One scheduler: chosen by a socket, inherited by an accepted one, and it carries data."""
    client, accepted, listening = connect(5000 + number, name, name)
    upstream = name == "default"
    same = network.exchange(client, accepted, SIZE_BYTES)
    same &= network.exchange(accepted, client, SIZE_BYTES)
    tap.check(same, f"{name}: data arrive as they were sent, both ways")
    expected = [] if upstream else [name]
    tap.check(scheduler_in("left") == expected, f"{name}: a socket chooses it", expected)
    tap.check(scheduler_in("right") == expected, f"{name}: an accepted socket inherits it")
    if not upstream:
        with network.inside("left"):
            packets = packets_of(Weft().flows()[0])
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
    """A socket that connects a second time has a scheduler that knows nothing of the first."""

    def sequence() -> bytes:
        with network.inside("left"):
            return Weft().flows()[0].get(SEQUENCE, b"")

    client, accepted, listening = connect(port, "rb", None)
    network.exchange(client, accepted, SIZE_BYTES)
    tap.check(len(sequence()) > 0, "a connection has a sequence")
    disconnect(client)
    accepted.close()
    client.connect(("10.0.1.2", port))
    accepted, _ = listening.accept()
    time.sleep(JOIN_S)
    left = sequence()
    tap.check(not left, "the next one of its socket begins without", left)
    same = network.exchange(client, accepted, SIZE_BYTES)
    tap.check(same and len(sequence()) > 0, "and gets one of its own")
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
    """The module stays as long as a connection needs it, and then goes."""
    client, accepted, listening = connect(6000, "rb", None)
    with network.inside("left"):
        weft = Weft()
        said = weft.netlink.call(weft.set(pattern()))
        tap.check(said.errno == 0, "a pattern is set", said)
        weft.netlink.close()
    code = delete_module()
    tap.check(code in (errno.EAGAIN, errno.EBUSY), "the module of a connection stays", code)
    tap.check(network.exchange(client, accepted, SIZE_BYTES), "and the connection goes on")
    for one in (client, accepted):
        one.close()
    settle()
    with network.inside("left"):
        network.set_scheduler("rb")
    tap.check(delete_module() == 0, "the module goes when its last connection has")
    offered = network.schedulers()
    tap.check(offered == ["default"], "and its schedulers with it", offered)
    # the namespace still asks for rb: connections do without
    client, accepted, again = connect(6001, None, None)
    with network.inside("left"):
        named = Path("/proc/sys/net/mptcp/scheduler").read_text().strip()
    same = network.exchange(client, accepted, SIZE_BYTES)
    tap.check(same, f"a namespace that still asks for {named} has connections")
    for one in (client, accepted, again, listening):
        one.close()
    code = load_module(module)
    tap.check(code == 0, "the module can be loaded again", code)


def settle() -> None:
    """Let closed connections come to their end, on virtual time."""
    time.sleep(120)


def main() -> None:
    """Check every scheduler there is, sockets that are used twice, and the module at this path."""
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
