# SPDX-License-Identifier: Apache-2.0
"""Two network namespaces with two links between them, and MPTCP connections over both.

left   10.0.1.1 --- 10.0.1.2   right     100 Mbps, 1 ms each way
       10.0.2.1 --- 10.0.2.2
"""

import ctypes
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

IPPROTO_MPTCP = 262
SOL_MPTCP, MPTCP_SCHEDULER = 284, 64
_CLONE_NEWNET = 0x4000_0000
_libc = ctypes.CDLL(None, use_errno=True)


def ip(*words: str) -> None:
    """Run `ip`; it must succeed."""
    subprocess.run(["ip", *words], check=True)


def command(line: str) -> None:
    """Run a program; it must succeed."""
    subprocess.run(line.split(), check=True)


def make(left: str, right: str) -> None:
    """Make the namespaces and the links between them."""
    for name in (left, right):
        ip("netns", "add", name)
        ip("-n", name, "link", "set", "lo", "up")
        ip("-n", name, "mptcp", "limits", "set", "subflows", "1", "add_addr_accepted", "0")
    for link in ("1", "2"):
        ip(*f"link add eth{link} netns {left} type veth peer name eth{link} netns {right}".split())
        for name, host in ((left, "1"), (right, "2")):
            ip("-n", name, "address", "add", f"10.0.{link}.{host}/24", "dev", f"eth{link}")
            ip("-n", name, "link", "set", f"eth{link}", "up")
            command(f"tc -n {name} qdisc add dev eth{link} root netem rate 100mbit delay 1ms")
        # all subflows go to the peer's first address
        ip("-n", right, "route", "add", f"10.0.{link}.1/32", "dev", f"eth{link}")
    ip(*f"-n {left} rule add from 10.0.2.1 table 2".split())
    ip(*f"-n {left} route add default via 10.0.2.2 dev eth2 table 2".split())
    ip(*f"-n {left} mptcp endpoint add 10.0.2.1 dev eth2 subflow".split())
    for name in (left, right):
        with inside(name):
            Path("/proc/sys/net/ipv4/conf/all/rp_filter").write_text("0")


def remove(name: str) -> None:
    """Forget a namespace; it ends with its last socket."""
    ip("netns", "delete", name)


@contextmanager
def inside(name: str) -> Iterator[None]:
    """Enter a namespace; sockets made meanwhile stay in it."""
    here = os.open("/proc/self/ns/net", os.O_RDONLY)
    there = os.open(f"/run/netns/{name}", os.O_RDONLY)
    try:
        enter(there)
        yield
    finally:
        enter(here)
        os.close(there)
        os.close(here)


def enter(descriptor: int) -> None:
    """Go to a namespace."""
    if _libc.setns(descriptor, _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


def set_scheduler(name: str) -> None:
    """Choose the scheduler of the namespace; raises when the kernel refuses."""
    Path("/proc/sys/net/mptcp/scheduler").write_text(name)


def schedulers() -> list[str]:
    """Name all registered schedulers."""
    return Path("/proc/sys/net/mptcp/available_schedulers").read_text().split()


def mptcp_socket(scheduler: str | None = None) -> socket.socket:
    """Make a socket, with a scheduler of its own if given."""
    result = socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP)
    result.settimeout(60)
    if scheduler is not None:
        result.setsockopt(SOL_MPTCP, MPTCP_SCHEDULER, scheduler.encode())
    return result


def listener(port: int, scheduler: str | None = None) -> socket.socket:
    """Listen on an address of `right`; the thread has to be in that namespace."""
    result = mptcp_socket(scheduler)
    result.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    result.bind(("10.0.1.2", port))
    result.listen(64)
    return result


def exchange(client: socket.socket, server: socket.socket, size_bytes: int) -> bool:
    """Send bytes from one end of a connection to the other; whether they arrive unchanged.

    This thread serves both ends, so neither blocks on the other.
    """
    data = os.urandom(min(size_bytes, 1 << 16))
    sent, received = 0, bytearray()
    client.setblocking(False)
    server.settimeout(60)
    while len(received) < size_bytes:
        try:
            while sent < size_bytes:
                at = sent % len(data)
                sent += client.send(data[at : at + size_bytes - sent])
        except BlockingIOError:
            pass
        chunk = server.recv(1 << 20)
        if not chunk:
            break
        received += chunk
    client.settimeout(60)
    expected = (data * (size_bytes // len(data) + 1))[:size_bytes]
    return bytes(received) == expected
