# SPDX-License-Identifier: Apache-2.0
"""Every name, address and number of a fabric; no other module derives any.

Numbers count from 1. Host H of leaf L is `hL_H`:

    interface   hL_H-eth0        in the host's own network namespace
    MAC         02:00:00:00:LL:HH (hexadecimal)
    addresses   10.L.H.P/24      one for each path P, all on that interface
    gateway     10.L.H.254       a permanent neighbour, MAC 02:00:00:ff:00:LL
    over IPv6   fd57:6566:7400::10.L.H.P, a unique local prefix (RFC 4193) before each of these
    nicL_H                       its network card, where that runs a program

Leaves are `leafL`, spines `spineS`. A leaf's port i leads to its host i, the port
after the last host to spine 1, the next one to spine 2, and so on. Port l of a spine
leads to leaf l. Interfaces of switches are `<switch>-eth<port>`; the host-facing ones
are real interfaces of the switches' namespace, MAC 02:00:00:fe:LL:PP.

In a fat-tree the leaves are `edgeL`, the aggregation switches `aggP_A` (the A-th of pod
P), the cores `coreC`. After its hosts an edge switch has ports to the aggregation of its
pod, in order. An aggregation switch has ports to the edge of its pod, then to cores: the
A-th of every pod to the A-th k/2 of them. Port p of a core leads to pod p.
"""

from ipaddress import IPv4Address, IPv6Address

MAX_LEAVES = 250
"""A byte of the address."""

MAX_HOSTS = 250
"""Per leaf; a byte of the address."""

MAX_PATHS = 250
"""Spines; the last byte of the address, where 254 is the gateway."""

NETNS_DIR = "/run/netns"
"""Where `ip netns` looks; so `ip netns exec h1_1 ...` works."""

NIC_HEADER_BYTES = 18
"""What a network card that runs a program adds to a frame: `nic_t` of p4/src."""

PREFIX_LEN = 24
"""Length of a host's own prefix, which holds all its addresses."""

P4RUNTIME_PORT = 9559
"""The first switch's P4Runtime port (the one IANA gave); the others follow."""

IPV6_PREFIX = 0xFD5765667400 << 80
"""What IPv6 addresses of hosts have before the IPv4 address; `p4/src/stages/headers.p4`."""

THRIFT_PORT = 10559
"""Of the first BMv2, where the rates of its queues are set; the others follow."""

SCHEDULE_SOCKET = "/run/weft-switch.sock"
"""Where weft-switch is told that traffic starts, when links are to change."""

DEVICE_IDS = {"leaf": 0, "spine": 256, "aggregation": 512, "core": 768}
"""P4Runtime device ids of a role's switches follow these."""

NIC_DEVICE_ID = 1000
"""Device ids of network cards start after it, 256 for each leaf."""


def host(leaf: int, index: int) -> str:
    """Name of a host."""
    return f"h{leaf}_{index}"


def leaf(index: int) -> str:
    """Name of a leaf."""
    return f"leaf{index}"


def spine(index: int) -> str:
    """Name of a spine."""
    return f"spine{index}"


def nic(leaf: int, index: int) -> str:
    """Name of the network card of a host, if it runs a program."""
    return f"nic{leaf}_{index}"


def nic_device_id(leaf_index: int, host_index: int) -> int:
    """P4Runtime device id of the network card of a host."""
    return NIC_DEVICE_ID + 256 * leaf_index + host_index


def edge(index: int) -> str:
    """Name of an edge switch of a fat-tree."""
    return f"edge{index}"


def aggregation(pod: int, index: int) -> str:
    """Name of an aggregation switch of a fat-tree, by its pod and its place there."""
    return f"agg{pod}_{index}"


def core(index: int) -> str:
    """Name of a core of a fat-tree."""
    return f"core{index}"


def interface(node: str, port: int) -> str:
    """Name of the interface of a switch's port, or of a host's (port 0)."""
    return f"{node}-eth{port}"


def netns(host_name: str) -> str:
    """File that stands for a host's network namespace."""
    return f"{NETNS_DIR}/{host_name}"


def host_mac(leaf_index: int, host_index: int) -> str:
    """Ethernet address of a host."""
    return f"02:00:00:00:{leaf_index:02x}:{host_index:02x}"


def gateway_mac(leaf_index: int) -> str:
    """Ethernet address that the hosts of a leaf send to."""
    return f"02:00:00:ff:00:{leaf_index:02x}"


def port_mac(leaf_index: int, port: int) -> str:
    """Ethernet address of the switch's end of a host's cable; packets never bear it."""
    return f"02:00:00:fe:{leaf_index:02x}:{port:02x}"


def address(leaf_index: int, host_index: int, path: int) -> str:
    """Address of a host for a path (from 1)."""
    return f"10.{leaf_index}.{host_index}.{path}"


def gateway(leaf_index: int, host_index: int) -> str:
    """Address that a host's default route goes through."""
    return f"10.{leaf_index}.{host_index}.254"


def ipv6(address: str) -> IPv6Address:
    """Give the IPv6 address that goes with an IPv4 address."""
    return IPv6Address(IPV6_PREFIX | int(IPv4Address(address)))


def device_id(role: str, index: int) -> int:
    """P4Runtime device id of a switch."""
    return DEVICE_IDS[role] + index
