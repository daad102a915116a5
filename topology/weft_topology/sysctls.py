# SPDX-License-Identifier: Apache-2.0
"""Kernel settings of a host: what a data centre sets, and why.

Left alone on purpose, because they are what is studied: congestion control, buffer
autotuning (`tcp_rmem`, `tcp_wmem`), delayed ACKs, the MPTCP scheduler (the workload chooses it),
the minimum RTO (`route_metrics` may set it).
"""

from contextlib import suppress
from pathlib import Path

ONLY_IPV4 = {
    "net/ipv6/conf/all/disable_ipv6": "1",
    "net/ipv6/conf/default/disable_ipv6": "1",
}
"""Of a host whose connections run over IPv4."""

ALSO_IPV6 = {
    # No link-local address, and so no duplicate address detection, router solicitations or
    # multicast reports: they would be packets that nobody sent on purpose.
    "net/ipv6/conf/all/addr_gen_mode": "1",
    "net/ipv6/conf/default/addr_gen_mode": "1",
    "net/ipv6/conf/all/accept_ra": "0",
    "net/ipv6/conf/default/accept_ra": "0",
}
"""Of one whose connections run over IPv6."""

HOST = {
    "net/mptcp/enabled": "1",
    # A flow must not start with the window and RTT that an earlier one left behind.
    "net/ipv4/tcp_no_metrics_save": "1",
    # Every address answers on the one interface, whichever path a packet took.
    "net/ipv4/conf/all/rp_filter": "0",
    "net/ipv4/conf/default/rp_filter": "0",
    # Ports for tens of thousands of connections in TIME_WAIT when each flow opens its own.
    "net/ipv4/ip_local_port_range": "10000 65535",
}


MARKED = {
    # Ask for ECN in every connection, where switches mark. Left alone, Linux only accepts it.
    "net/ipv4/tcp_ecn": "1",
}
"""More of a host whose switches mark packets."""


def apply(settings: dict[str, str]) -> None:
    """Write settings into the namespace of the thread; skips what this kernel lacks."""
    for name, value in settings.items():
        path = Path("/proc/sys", name)
        try:
            path.write_text(value)
        except FileNotFoundError:
            if name.startswith("net/ipv6/"):
                continue
            raise


def allow_congestion_controls() -> None:
    """Let hosts choose any TCP congestion control: Linux keeps some, as DCTCP, from namespaces.

    Only its first namespace may say so, which is a lab's own and natively somebody else's.
    """
    ipv4 = Path("/proc/sys/net/ipv4")
    available = (ipv4 / "tcp_available_congestion_control").read_text()
    with suppress(PermissionError):
        (ipv4 / "tcp_allowed_congestion_control").write_text(available)


def silence(interface: str) -> None:
    """Let an interface of a switch carry nothing of this machine's own."""
    apply({f"net/ipv6/conf/{interface}/disable_ipv6": "1"})
