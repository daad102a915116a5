# SPDX-License-Identifier: Apache-2.0
"""The few rtnetlink requests that a network needs, many of them in one system call.

A general library does this too, but importing one costs more time in the lab, where a
system call takes 10 us, than everything that it would do; and a token bucket whose burst
is exactly one frame, or whose rate is above 34 Gbps, needs attributes that they leave out.
"""

import os
import socket
import struct
from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address, IPv6Address

MTU_BYTES = 1500
FRAME_BYTES = 14 + MTU_BYTES
"""A full-size Ethernet frame as captured."""

WIRE_MTU_BYTES = 2000
"""Between switches, where a frame may carry in-band telemetry besides."""

TBF_LIMIT_BYTES = 1 << 26
"""Of a host's own queue: so long that TCP's own limit (TSQ) is what senders feel."""

NETEM_LIMIT_PACKETS = 1 << 20
"""Of a delay line: more than can be under way."""

TIMER_SLACK_NS = 1000
"""How late a timer of the lab's kernel may be, which takes one every 500 ns at most."""

REAL_TIMER_SLACK_NS = 1_000_000
"""How late one may be in real time: other processes may have the CPU."""

# Numbers of the kernel's ABI: include/uapi/linux/{netlink,rtnetlink,if_link,neighbour}.h,
# {veth,pkt_sched,pkt_cls,if_ether}.h.
_REQUEST, _ACK, _EXCL, _CREATE = 0x1, 0x4, 0x200, 0x400
_ERROR = 2
_NEWLINK, _DELLINK, _NEWADDR, _NEWROUTE, _NEWNEIGH = 16, 17, 20, 24, 28
_NEWQDISC, _NEWTFILTER = 36, 44
_NESTED = 0x8000
_IFF_UP = 0x1
_IFLA_ADDRESS, _IFLA_IFNAME, _IFLA_MTU, _IFLA_LINKINFO, _IFLA_NET_NS_FD = 1, 3, 4, 18, 28
_IFLA_INFO_KIND, _IFLA_INFO_DATA, _VETH_INFO_PEER = 1, 2, 1
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_IFA_F_NODAD = 0x2
_RTA_OIF, _RTA_GATEWAY, _RTA_METRICS = 4, 5, 8
_RTNH_F_ONLINK = 4
_NDA_DST, _NDA_LLADDR, _NUD_PERMANENT = 1, 2, 0x80
_RT_TABLE_MAIN, _RTPROT_BOOT, _RT_SCOPE_UNIVERSE, _RTN_UNICAST = 254, 3, 0, 1
_TCA_KIND, _TCA_OPTIONS, _TC_ROOT = 1, 2, 0xFFFFFFFF
_TBF_HANDLE, _TBF_CLASS = 0x10000, 0x10001
_ETS_HANDLE, _PRIO_HANDLE, _PRIO_LEAST_BANDS = 0x20000, 0x30000, 2
_TCA_ETS_NBANDS, _TCA_ETS_NSTRICT, _TCA_ETS_QUANTA, _TCA_ETS_QUANTA_BAND = 1, 2, 3, 4
_TCA_ETS_PRIOMAP, _TCA_ETS_PRIOMAP_BAND = 5, 6
_MOST_FRAMES = 1000
"""Of one band in a round."""
_TCA_TBF_PARMS, _TCA_TBF_RATE64, _TCA_TBF_BURST = 1, 4, 6
_TCA_NETEM_LATENCY64 = 10
_LINKLAYER_ETHERNET = 1
_TCA_U32_CLASSID, _TCA_U32_SEL, _TC_U32_TERMINAL = 1, 5, 1
_ETH_P_IP, _ETH_P_IPV6 = 0x0800, 0x86DD

_HEADER = struct.Struct("=IHHII")
_CHUNK_BYTES = 16 << 10
"""Of requests sent at once: their answers must fit the socket's buffer."""

LOOPBACK_INDEX = 1


class NetlinkError(OSError):
    """The kernel refused a request."""


class Request:
    """One request, without its sequence number."""

    def __init__(self, what: str, kind: int, body: bytes, create: bool = True) -> None:
        """`what` names it in error messages."""
        self.what = what
        self.kind = kind
        self.flags = _REQUEST | _ACK | (_CREATE | _EXCL if create else 0)
        self.body = body

    def encode(self, sequence: int) -> bytes:
        """Give the bytes to send."""
        length = _HEADER.size + len(self.body)
        return _HEADER.pack(length, self.kind, self.flags, sequence, 0) + self.body


class Netlink:
    """An rtnetlink socket of the network namespace that the thread is in now."""

    def __init__(self) -> None:
        """It stays with that namespace, wherever the thread goes later."""
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._socket.bind((0, 0))

    def __enter__(self) -> "Netlink":
        """Use as a context."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the socket."""
        self._socket.close()

    def send(self, requests: Iterable[Request]) -> None:
        """Carry out the requests in order; raises on the first one refused."""
        chunk: list[Request] = []
        size = 0
        for request in requests:
            length = _HEADER.size + len(request.body)
            if size + length > _CHUNK_BYTES:
                self._exchange(chunk)
                chunk, size = [], 0
            chunk.append(request)
            size += length
        if chunk:
            self._exchange(chunk)

    def _exchange(self, requests: list[Request]) -> None:
        self._socket.send(b"".join(r.encode(n) for n, r in enumerate(requests)))
        answered = 0
        while answered < len(requests):
            for sequence, code in _answers(self._socket.recv(1 << 16)):
                answered += 1
                if code != 0:
                    what = requests[sequence].what
                    raise NetlinkError(-code, f"{what}: {os.strerror(-code)}")


def veth(
    name: str, mac: str, peer_name: str, peer_mac: str, peer_index: int, peer_netns: int
) -> Request:
    """Make a pair of interfaces, both down: `name` here, `peer_name` in another namespace.

    `peer_index` is the interface index that the far end gets; `peer_netns` a descriptor.
    """
    end = _text(_IFLA_IFNAME, name) + _attribute(_IFLA_ADDRESS, _mac(mac))
    peer = _text(_IFLA_IFNAME, peer_name) + _attribute(_IFLA_ADDRESS, _mac(peer_mac))
    peer += _u32(_IFLA_NET_NS_FD, peer_netns)
    pair = _pair(end, _link(peer_index) + peer, MTU_BYTES)
    return Request(f"veth {name} to {peer_name}", _NEWLINK, pair)


def wire(name: str, peer_name: str) -> Request:
    """Make a pair of interfaces here, both down, for frames between two switches.

    They get Ethernet addresses that no frame bears.
    """
    ends = (_text(_IFLA_IFNAME, name), _link(0) + _text(_IFLA_IFNAME, peer_name))
    return Request(f"veth {name} to {peer_name}", _NEWLINK, _pair(*ends, WIRE_MTU_BYTES))


def _pair(end: bytes, peer: bytes, mtu_bytes: int) -> bytes:
    """Body of a request for a veth pair; `peer` starts with its link header."""
    mtu = _u32(_IFLA_MTU, mtu_bytes)
    info = _text(_IFLA_INFO_KIND, "veth") + _attribute(
        _IFLA_INFO_DATA | _NESTED, _attribute(_VETH_INFO_PEER | _NESTED, peer + mtu)
    )
    return _link(0) + end + mtu + _attribute(_IFLA_LINKINFO | _NESTED, info)


def link_up(link: int | str) -> Request:
    """Bring an interface up, which is given by its index or its name."""
    if isinstance(link, int):
        body = _link(link, _IFF_UP)
    else:
        body = _link(0, _IFF_UP) + _text(_IFLA_IFNAME, link)
    return Request(f"interface {link} up", _NEWLINK, body, create=False)


def link_delete(name: str) -> Request:
    """Remove an interface, and with it the other end of its pair."""
    body = _link(0) + _text(_IFLA_IFNAME, name)
    return Request(f"interface {name} away", _DELLINK, body, create=False)


Address = IPv4Address | IPv6Address


def address(index: int, local: Address, prefix_len: int) -> Request:
    """Add an address to an interface; nobody is asked whether he has it already."""
    flags = _IFA_F_NODAD if local.version == 6 else 0
    body = struct.pack("=BBBBi", _family(local), prefix_len, flags, 0, index)
    body += _attribute(_IFA_LOCAL, local.packed) + _attribute(_IFA_ADDRESS, local.packed)
    return Request(f"address {local}", _NEWADDR, body)


def neighbour(index: int, destination: Address, mac: str) -> Request:
    """Set the Ethernet address of a neighbour for good: nobody asks for it."""
    body = struct.pack("=BxxxiHBB", _family(destination), index, _NUD_PERMANENT, 0, 0)
    body += _attribute(_NDA_DST, destination.packed)
    body += _attribute(_NDA_LLADDR, _mac(mac))
    return Request(f"neighbour {destination}", _NEWNEIGH, body)


def default_route(index: int, gateway: Address, metrics: Mapping[int, int]) -> Request:
    """Send everything that is not local through a gateway, which is on the link.

    `metrics` has the values of the route's `RTAX_*`, by their numbers.
    """
    body = struct.pack(
        "=BBBBBBBBI",
        _family(gateway),
        0,
        0,
        0,
        _RT_TABLE_MAIN,
        _RTPROT_BOOT,
        _RT_SCOPE_UNIVERSE,
        _RTN_UNICAST,
        # No address of the interface says that the gateway is there.
        _RTNH_F_ONLINK if gateway.version == 6 else 0,
    )
    body += _attribute(_RTA_GATEWAY, gateway.packed) + _u32(_RTA_OIF, index)
    if metrics:
        values = b"".join(_u32(number, value) for number, value in metrics.items())
        body += _attribute(_RTA_METRICS | _NESTED, values)
    return Request(f"default route via {gateway}", _NEWROUTE, body)


def priority_bands(index: int, classes: int, lowest_share_ppm: int) -> list[Request]:
    """Serve what waits in a token bucket by the priority of its socket.

    `host/kernel/priority.c` gives sockets the priorities from 8, a class each. All other sockets
    are in the last class, as in switches, which gets its share of the link (Enhanced Transmission
    Selection, IEEE 802.1Qaz). Packets of less than 128 bytes, which carry no data or next to none,
    are urgent whatever their socket.
    """
    urgent = classes - 1
    others = max(urgent, _PRIO_LEAST_BANDS)
    is_last = [not 8 <= priority < 8 + urgent for priority in range(16)]
    band_of = [0 if last else priority - 8 for priority, last in enumerate(is_last)]
    options = [
        _u8(_TCA_ETS_NBANDS, 2),
        _attribute(
            _TCA_ETS_PRIOMAP | _NESTED,
            b"".join(_u8(_TCA_ETS_PRIOMAP_BAND, last) for last in is_last),
        ),
    ]
    if lowest_share_ppm:
        quanta = _quanta_bytes(10**6 - lowest_share_ppm, lowest_share_ppm)
        bands = b"".join(_u32(_TCA_ETS_QUANTA_BAND, quantum) for quantum in quanta)
        options.append(_attribute(_TCA_ETS_QUANTA | _NESTED, bands))
    else:
        options.append(_u8(_TCA_ETS_NSTRICT, 2))
    bands = struct.pack("=i", others) + bytes(band_of)
    what = f"of interface {index}"
    return [
        _qdisc(
            index, f"shares {what}", "ets", (_ETS_HANDLE, _TBF_CLASS), b"".join(options), _NESTED
        ),
        _qdisc(index, f"priorities {what}", "prio", (_PRIO_HANDLE, _ETS_HANDLE | 1), bands),
        # The total length of IPv4, in bytes 2 and 3; the payload length of IPv6, in 4 and 5.
        *(
            _short_packets(index, parent, protocol, offset, mask)
            for parent in (_ETS_HANDLE, _PRIO_HANDLE)
            for protocol, offset, mask in (
                (_ETH_P_IP, 0, 0x0000FF80),
                (_ETH_P_IPV6, 4, 0xFF800000),
            )
        ),
    ]


def _quanta_bytes(*shares: int) -> list[int]:
    """Give what bands may send in a round, a frame or more, for them to get these shares."""
    least = max(min(shares), max(shares) // _MOST_FRAMES)
    return [max(FRAME_BYTES * share // least, FRAME_BYTES) for share in shares]


def _qdisc(
    index: int, what: str, kind: str, handles: tuple[int, int], options: bytes, flags: int = 0
) -> Request:
    """Add a queueing discipline: handles are its own and its parent's."""
    body = struct.pack("=BxxxiIII", socket.AF_UNSPEC, index, *handles, 0)
    body += _text(_TCA_KIND, kind) + _attribute(_TCA_OPTIONS | flags, options)
    return Request(what, _NEWQDISC, body)


def _short_packets(index: int, parent: int, protocol: int, offset: int, mask: int) -> Request:
    """Send packets whose word at `offset` has no bit of `mask` to the first band of `parent`."""
    key = struct.pack("=4s4sii", mask.to_bytes(4, "big"), bytes(4), offset, 0)
    selector = struct.pack("=BBBxHHhhI", _TC_U32_TERMINAL, 0, 1, 0, 0, 0, 0, 0) + key
    options = _u32(_TCA_U32_CLASSID, parent | 1) + _attribute(_TCA_U32_SEL, selector)
    # Filters of different protocols have different priorities.
    info = protocol << 16 | socket.htons(protocol)
    body = struct.pack("=BxxxiIII", socket.AF_UNSPEC, index, 0, parent, info)
    body += _text(_TCA_KIND, "u32") + _attribute(_TCA_OPTIONS | _NESTED, options)
    return Request(f"short packets of interface {index}", _NEWTFILTER, body)


def token_bucket(
    index: int, rate_bps: int, overhead_bytes: int = 0, timer_slack_ns: int = TIMER_SLACK_NS
) -> Request:
    """Let an interface send at a rate, one frame at a time: a network card's line rate.

    On the wire every frame is `overhead_bytes` longer than here.

    The bucket holds one full-size frame, so that frames leave back to back and never
    faster; and what flows in while the kernel's timer is late, by up to `timer_slack_ns`, for
    that would be lost.
    Time is counted in whole nanoseconds: at 10 Gbps a full-size frame's is exact to 0.02%.
    """
    rate = rate_bps // 8
    ratespec = struct.pack(
        "=BBHhHI", 0, _LINKLAYER_ETHERNET, overhead_bytes, 0, 0, min(rate, 0xFFFF_FFFF)
    )
    no_peak = bytes(len(ratespec))
    options = b"".join(
        (
            _attribute(
                _TCA_TBF_PARMS, ratespec + no_peak + struct.pack("=III", TBF_LIMIT_BYTES, 0, 0)
            ),
            _u32(_TCA_TBF_BURST, FRAME_BYTES + rate * timer_slack_ns // 10**9),
            _attribute(_TCA_TBF_RATE64, struct.pack("=Q", rate)),
        )
    )
    what = f"token bucket of interface {index}"
    return _qdisc(index, what, "tbf", (_TBF_HANDLE, _TC_ROOT), options, _NESTED)


def delay(index: int, delay_ns: int, loss_ppm: int = 0) -> Request:
    """Let everything that an interface sends arrive so much later, in order; or not at all."""
    loss = loss_ppm * 0xFFFF_FFFF // 10**6
    options = struct.pack("=IIIIII", 0, NETEM_LIMIT_PACKETS, loss, 0, 0, 0)
    options += _attribute(_TCA_NETEM_LATENCY64, struct.pack("=q", delay_ns))
    return _qdisc(index, f"delay of interface {index}", "netem", (0, _TC_ROOT), options)


def _family(address: Address) -> int:
    return socket.AF_INET if address.version == 4 else socket.AF_INET6


def _answers(data: bytes) -> Iterable[tuple[int, int]]:
    """Sequence number and negative errno of each answer in a datagram."""
    while len(data) >= _HEADER.size:
        length, kind, _, sequence, _ = _HEADER.unpack_from(data)
        if kind == _ERROR:
            yield sequence, struct.unpack_from("=i", data, _HEADER.size)[0]
        data = data[_aligned(length) :]


def _link(index: int, flags: int = 0) -> bytes:
    return struct.pack("=BxHiII", socket.AF_UNSPEC, 0, index, flags, flags)


def _attribute(kind: int, payload: bytes) -> bytes:
    length = 4 + len(payload)
    return struct.pack("=HH", length, kind) + payload + bytes(_aligned(length) - length)


def _text(kind: int, text: str) -> bytes:
    return _attribute(kind, text.encode() + b"\0")


def _u8(kind: int, value: int) -> bytes:
    return _attribute(kind, struct.pack("=B", value))


def _u32(kind: int, value: int) -> bytes:
    return _attribute(kind, struct.pack("=I", value))


def _aligned(length: int) -> int:
    return (length + 3) & ~3


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))
