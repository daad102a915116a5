# SPDX-License-Identifier: Apache-2.0
"""Fairness: how an MPTCP and a TCP connection to the same host share its link.

Runs inside a plain lab, on virtual time, and prints a JSON object: for each congestion control
on the command line, the goodput of each connection after slow start, in bits per second. The MPTCP
connection uses the kernel's default scheduler, or the one before a "+", as in weft+cubic.

    mptcp  10.0.1.2, .3 ---.
                            router --- 10.0.9.2 receiver
    tcp    10.0.2.2     ---'

The MPTCP connection has two subflows, one from each address. All data passes one drop-tail queue
in front of the link to the receiver. Beside a coupled congestion control, which has to be as fair
as another TCP connection, the TCP connection uses Reno. Beside an uncoupled one, both use the same.
"""

import json
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "topology"))

from weft_topology import namespaces, offloads

RATE_BPS = 50_000_000
RTT_MS = 4
JITTER_MS = 1
"""Without jitter, flows synchronise, and the drop-tail queue always hits the same one."""
QUEUE_PACKETS = 30
FRAME_BYTES = 1514
WARM_UP_S = 2.0
MEASURE_S = 30.0
READ_BYTES = 64 * 1024
"""Data after which a receiver wakes up; a wake-up costs real time."""

COUPLED = ("lia", "olia", "balia", "wvegas")
ADDRESSES = {
    "mptcp": ("10.0.1.2/24", "10.0.1.3/24"),
    "tcp": ("10.0.2.2/24",),
    "receiver": ("10.0.9.2/24",),
}
IPPROTO_MPTCP = 262
PORT = 5001


def build() -> None:
    """Build the network."""
    namespaces.prepare()
    for name in ("router", *ADDRESSES):
        namespaces.create(name)
    setting("router", "net/ipv4/ip_forward", "1")
    for name, addresses in ADDRESSES.items():
        gateway = f"{addresses[0].rpartition('.')[0]}.1"
        batch("ip", None, f"link add eth0 netns {name} type veth peer {name} netns router")
        batch("ip", "router", f"address add {gateway}/24 dev {name}", f"link set {name} up")
        batch(
            "ip",
            name,
            *(f"address add {one} dev eth0" for one in addresses),
            "link set eth0 up",
            f"route add default via {gateway}",
            "mptcp limits set subflows 1",
            *(f"mptcp endpoint add {one[:-3]} dev eth0 subflow" for one in addresses[1:]),
        )
        for namespace, interface in (("router", name), (name, "eth0")):
            with inside(namespace), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
                offloads.disable(control, interface)
    queue = f"limit {QUEUE_PACKETS * FRAME_BYTES} burst {FRAME_BYTES}"
    batch("tc", "router", f"qdisc add dev receiver root tbf rate {RATE_BPS}bit {queue}")
    # The whole delay is on the path of the ACKs, whose link is never full.
    delay = f"delay {RTT_MS}ms {JITTER_MS}ms limit 100000"
    batch("tc", "receiver", f"qdisc add dev eth0 root netem {delay}")


def batch(program: str, namespace: str | None, *commands: str) -> None:
    """Run commands of `ip` or `tc` in one process."""
    where = ["-n", namespace] if namespace else []
    text = "".join(f"{command}\n" for command in commands)
    subprocess.run([program, *where, "-batch", "-"], input=text, text=True, check=True)


@contextmanager
def inside(name: str) -> Iterator[None]:
    """Run in a network namespace."""
    with namespaces.opened(name) as namespace, namespaces.inside(namespace):
        yield


def setting(namespace: str, name: str, value: str) -> None:
    """Write a sysctl of a network namespace."""
    with inside(namespace):
        Path("/proc/sys", name).write_text(value)


@dataclass
class Connection:
    """Both ends of a connection, and the bytes that the far one has received."""

    near: socket.socket
    far: socket.socket
    received_bytes: int = 0


def stream_socket(namespace: str, protocol: int, port: int) -> socket.socket:
    """Open a socket that is bound to the first address of a host."""
    with inside(namespace):
        opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
    opened.bind((ADDRESSES[namespace][0][:-3], port))
    return opened


@contextmanager
def connected(sender: str, protocol: int, port: int) -> Iterator[Connection]:
    """Connect a host with the receiver."""
    with ExitStack() as stack:
        listener = stack.enter_context(stream_socket("receiver", protocol, port))
        listener.listen()
        near = stack.enter_context(stream_socket(sender, protocol, 0))
        near.connect(listener.getsockname())
        far = stack.enter_context(listener.accept()[0])
        far.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, READ_BYTES)
        for end in (near, far):
            end.setblocking(False)
        yield Connection(near, far)


def transfer(connections: list[Connection], seconds: float) -> None:
    """Send as much as possible on all connections."""
    data = bytes(256 * 1024)
    buffer = bytearray(1024 * 1024)
    end = time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:
        for connection in connections:
            selector.register(connection.near, selectors.EVENT_WRITE, connection)
            selector.register(connection.far, selectors.EVENT_READ, connection)
        while (left := end - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                ends: Connection = key.data
                if key.fileobj is ends.near:
                    ends.near.send(data)
                else:
                    ends.received_bytes += ends.far.recv_into(buffer)


def share(name: str, port: int) -> dict[str, float]:
    """Measure one congestion control, SCHEDULER+NAME or NAME; gives bits per second."""
    scheduler, _, congestion = name.rpartition("+")
    setting("mptcp", "net/mptcp/scheduler", scheduler or "default")
    setting("mptcp", "net/ipv4/tcp_congestion_control", congestion)
    beside = "reno" if congestion in COUPLED else congestion
    setting("tcp", "net/ipv4/tcp_congestion_control", beside)
    with (
        connected("mptcp", IPPROTO_MPTCP, port) as mptcp,
        connected("tcp", socket.IPPROTO_TCP, port + 1) as tcp,
    ):
        both = {"mptcp": mptcp, "tcp": tcp}
        transfer([mptcp, tcp], WARM_UP_S)
        for connection in both.values():
            connection.received_bytes = 0
        transfer([mptcp, tcp], MEASURE_S)
        return {name: one.received_bytes * 8 / MEASURE_S for name, one in both.items()}


if __name__ == "__main__":
    build()
    names = sys.argv[1:]
    print(json.dumps({name: share(name, PORT + 2 * i) for i, name in enumerate(names)}))
