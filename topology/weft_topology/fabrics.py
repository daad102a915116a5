# SPDX-License-Identifier: Apache-2.0
"""The kinds of fabrics, and the options of each, checked.

A kind of fabric is a dataclass here, which has its options, and a Mininet `Topo` that is built
from it (`topos.of`). In `lab.json` it is the object `topology`: its `kind`, and the fields of the
dataclass.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from weft_topology import json_fields, naming, profiles, route_metrics
from weft_topology.errors import UsageError
from weft_topology.json_fields import within

ROUTINGS = ("subflow", "ecmp", "flowlet", "spray")
IP_VERSIONS = (4, 6)
MAX_CLASSES = 8
"""A switch has so many priorities."""
LOWEST_SHARE_PPM = 100_000
"""As the crate `weft-topology` has it."""
NICS = ("plain", "p4")
IN_BAND = ("off", "md")
CPU_PORT = 510
"""P4 port number of the controller; a switch's own ports stay below."""

FRAME_BYTES = 1514
"""A full-size frame."""

BOUNDS = {
    "rate_bps": (10**6, 10**12),
    "delay_ns": (0, 10**10),
    "queue_packets": (1, 10**6),
    "loss_ppm": (0, 10**6),
}
"""Properties of links, and theirs."""

MAX_SUBFLOWS = 8
"""Of a connection: the kernel's limit, of MPTCP and of patterns."""

MAX_SPINES = 250
"""With the hosts of a leaf, fewer than there are port numbers."""


@dataclass(frozen=True)
class Change:
    """A change of one link, or of all links of a switch; what is None stays as it is."""

    at_ns: int
    """From the start of traffic."""
    target: str
    """The switch by its name, or the link by its ends': `leaf1-spine2`."""
    rate_bps: int | None = None
    rate_ppm: int | None = None
    """The same as a share of the rate that each link has at first."""
    delay_ns: int | None = None
    queue_packets: int | None = None
    loss_ppm: int | None = None
    up: bool | None = None
    """Whether it works; one that does not loses all that arrives."""

    def __post_init__(self) -> None:
        """Refuses what no link can have."""
        for name, number in self.properties().items():
            within(f"changes: {name}", number, *BOUNDS.get(name, (0, 1)))
        if self.rate_ppm is not None:
            within("changes: rate_ppm", self.rate_ppm, 1, 10**6)

    def properties(self) -> dict[str, int]:
        """Give what changes, by name; of rates, those that are not shares."""
        values = {name: getattr(self, name) for name in (*BOUNDS, "up")}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class FabricSpec:
    """What all fabrics have."""

    kind: ClassVar[str]
    rate_bps: int = 10**9
    """Of links between switches."""
    host_rate_bps: int = 10**9
    """Of links to hosts, both ways."""
    sender_rate_bps: int | None = None
    """From hosts to their leaf, where it differs."""
    delay_ns: int = 10_000
    """One-way propagation delay of every link."""
    queue_packets: int = 100
    """Depth of every egress queue."""
    queue_bytes: int | None = None
    """The same in bytes of the frames that wait, which then alone limits it."""
    ecn_packets: int | None = None
    """Packets in an egress queue of a switch above which it marks ECN-capable ones."""
    ecn_bytes: int | None = None
    """The same in bytes."""
    subflows: int = MAX_SUBFLOWS
    """Of a connection, each on a path of its own: at most so many of all paths."""
    route_metrics: Mapping[str, int] = field(default_factory=dict)
    """Of the hosts' routes, see `route_metrics`."""
    routing: str = "subflow"
    """How switches choose the path of a packet."""
    flowlet_timeout_ns: int | None = None
    """Gap in a flow that ends a flowlet; only with the routing `flowlet`, where the controller
    otherwise derives it from the RTTs."""
    priorities: int | None = None
    """Number of classes by what is left to send, which switches serve in order."""
    lowest_share_ppm: int | None = None
    """Share of a link for the lowest class that waits, in millionths; by default a tenth. Only with
    `priorities`."""
    first_come: tuple[str, ...] = ()
    """Whose queues stay first in, first out, although there are priorities: `hosts`, `switches`, or
    switches by name."""
    clear_classes: tuple[str, ...] = ()
    """Hosts whose classes their leaf clears."""
    ip: int = 4
    """Version of IP that connections run over."""
    changes: tuple[Change, ...] = ()
    """Changes of links while traffic runs."""
    host_jitter_ns: int = 0
    """Mean stall of the scheduling noise between a host's kernel and its network card."""
    nic: str = "plain"
    """Hosts' network cards: `plain` ones, or such that run a P4 program."""
    in_band: str = "off"
    """In-band telemetry between leaves: none, or INT-MD."""

    def __post_init__(self) -> None:
        """Refuses what cannot be built."""
        for name, rate in (
            ("rate_bps", self.rate_bps),
            ("host_rate_bps", self.host_rate_bps),
            ("sender_rate_bps", self.host_send_bps),
        ):
            within(name, rate, *BOUNDS["rate_bps"])
        within("delay_ns", self.delay_ns, *BOUNDS["delay_ns"])
        within("host_jitter_ns", self.host_jitter_ns, 0, 10**9)
        within("queue_packets", self.queue_packets, *BOUNDS["queue_packets"])
        if self.queue_bytes is not None:
            within("queue_bytes", self.queue_bytes, FRAME_BYTES, FRAME_BYTES * 10**6)
        if self.ecn_packets is not None:
            within("ecn_packets", self.ecn_packets, *BOUNDS["queue_packets"])
        if self.ecn_bytes is not None:
            within("ecn_bytes", self.ecn_bytes, FRAME_BYTES, FRAME_BYTES * 10**6)
        if self.ecn_packets is not None and self.ecn_bytes is not None:
            raise UsageError("ecn_packets and ecn_bytes: give one of them")
        queue_bytes = self.queue_bytes or FRAME_BYTES * self.queue_packets
        if (self.ecn_packets or 0) >= self.queue_packets or (self.ecn_bytes or 0) >= queue_bytes:
            raise UsageError("ecn: give less than the queue, where packets are dropped")
        within("subflows", self.subflows, 1, MAX_SUBFLOWS)
        if self.routing not in ROUTINGS:
            raise UsageError(f"routing {self.routing!r} is none of {', '.join(ROUTINGS)}")
        if self.flowlet_timeout_ns is not None:
            if self.routing != "flowlet":
                raise UsageError("flowlet_timeout_ns: only with the routing flowlet")
            within("flowlet_timeout_ns", self.flowlet_timeout_ns, 1000, 10**10)
        if self.priorities is not None:
            within("priorities", self.priorities, 2, MAX_CLASSES)
        if self.lowest_share_ppm is not None:
            if self.priorities is None:
                raise UsageError("lowest_share_ppm: only with priorities")
            within("lowest_share_ppm", self.lowest_share_ppm, 0, 10**6)
        if self.priorities is None and (self.first_come or self.clear_classes):
            raise UsageError("first_come and clear_classes: only with priorities")
        if self.ip not in IP_VERSIONS:
            raise UsageError(f"ip: {self.ip} is no version of IP; give 4 or 6")
        if self.nic not in NICS:
            raise UsageError(f"nic {self.nic!r} is none of {', '.join(NICS)}")
        if self.in_band not in IN_BAND:
            raise UsageError(f"in_band {self.in_band!r} is none of {', '.join(IN_BAND)}")

    def queue(self, packets: int | None = None) -> dict[str, int | None]:
        """Give the properties of a link that say how much waits for it."""
        marks = {"ecn_packets": self.ecn_packets, "ecn_bytes": self.ecn_bytes}
        if packets is not None:
            return {"queue_packets": packets, "queue_bytes": None} | marks
        return {"queue_packets": self.queue_packets, "queue_bytes": self.queue_bytes} | marks

    @property
    def host_send_bps(self) -> int:
        """Rate from hosts to their leaf."""
        return self.host_rate_bps if self.sender_rate_bps is None else self.sender_rate_bps

    def common(self) -> dict[str, Any]:
        """Give the fields that all fabrics have."""
        return {known.name: getattr(self, known.name) for known in fields(FabricSpec)}


@dataclass(frozen=True, kw_only=True)
class LeafSpineSpec(FabricSpec):
    """Every leaf is cabled to every spine, hosts hang on leaves."""

    kind = "leaf-spine"
    leaves: int = 2
    spines: int = 2
    hosts: int | tuple[int, ...] = 4
    """Per leaf; of each leaf, where they differ."""
    uplink_rate_bps: int | None = None
    """From leaves to spines, where it differs from the way back."""
    spine_delay_ns: Mapping[int, int] = field(default_factory=dict)
    """Spines all of whose links have another delay."""
    spine_rate_bps: Mapping[int, int] = field(default_factory=dict)
    spine_queue_packets: Mapping[int, int] = field(default_factory=dict)
    """Spines whose links have other queues, at both ends."""
    spine_loss_ppm: Mapping[int, int] = field(default_factory=dict)
    """Spines that lose so many in a million frames that arrive."""

    def __post_init__(self) -> None:
        """Refuses what cannot be built."""
        super().__post_init__()
        within("leaves", self.leaves, 1, naming.MAX_LEAVES)
        within("spines", self.spines, 1, MAX_SPINES)
        if isinstance(self.hosts, tuple) and len(self.hosts) != self.leaves:
            raise UsageError(
                f"hosts: {len(self.hosts)} numbers for {self.leaves} leaves; give one, or one each"
            )
        for leaf in range(1, self.leaves + 1):
            within("hosts", self.hosts_of(leaf), 1, naming.MAX_HOSTS)
        if self.uplink_rate_bps is not None:
            within("uplink_rate_bps", self.uplink_rate_bps, *BOUNDS["rate_bps"])
        for name, bounds in BOUNDS.items():
            for spine, value in getattr(self, f"spine_{name}").items():
                if not 1 <= spine <= self.spines:
                    raise UsageError(
                        f"spine_{name} names spine {spine}; there are 1..{self.spines}"
                    )
                within(f"spine_{name} of spine {spine}", value, *bounds)

    @property
    def paths(self) -> int:
        """Paths between two leaves that a connection may use."""
        return min(self.spines, self.subflows)

    def hosts_of(self, leaf: int) -> int:
        """Hosts of a leaf."""
        return self.hosts if isinstance(self.hosts, int) else self.hosts[leaf - 1]

    def link_delay_ns(self, spine: int) -> int:
        """Delay of the links of a spine."""
        return self.spine_delay_ns.get(spine, self.delay_ns)

    def link_rate_bps(self, spine: int) -> int:
        """Rate of the links of a spine."""
        return self.spine_rate_bps.get(spine, self.rate_bps)

    def link_queue(self, spine: int) -> dict[str, int | None]:
        """Depth of the queues of the links of a spine."""
        return self.queue(self.spine_queue_packets.get(spine))


@dataclass(frozen=True, kw_only=True)
class FatTreeSpec(FabricSpec):
    """A k-ary fat-tree: k pods of k/2 edge and k/2 aggregation switches, and (k/2)² cores."""

    kind = "fat-tree"
    k: int = 4

    def __post_init__(self) -> None:
        """Refuses what cannot be built."""
        super().__post_init__()
        within("k", self.k, 4, 16)
        if self.k % 2:
            raise UsageError(f"k {self.k} is odd; a fat-tree has k/2 hosts at each edge switch")

    @property
    def half(self) -> int:
        """k/2: hosts of an edge switch, edge and aggregation switches of a pod."""
        return self.k // 2

    @property
    def paths(self) -> int:
        """Paths between two leaves of different pods that a connection may use."""
        return min(self.half**2, self.subflows)


@dataclass(frozen=True, kw_only=True)
class ManyToOneSpec(FabricSpec):
    """Hosts with several links each, all to one switch.

    `host_rate_bps` is what a host sends on each link, `rate_bps` what the switch sends.
    """

    kind = "many-to-one"
    hosts: int = 3
    """The receiver among them."""
    links: int = 2
    """Of each host; each carries a subflow."""

    def __post_init__(self) -> None:
        """Refuses what cannot be built."""
        super().__post_init__()
        within("hosts", self.hosts, 2, naming.MAX_LEAVES)
        within("links", self.links, 1, MAX_SUBFLOWS)

    def leaf_spine(self) -> LeafSpineSpec:
        """Give the same as a leaf-spine: a leaf is a host's cards, a spine one link of all."""
        card_bps = self.links * max(self.rate_bps, self.host_send_bps)
        return LeafSpineSpec(
            **self.common() | {"host_rate_bps": card_bps, "sender_rate_bps": None},
            leaves=self.hosts,
            spines=self.links,
            hosts=1,
            uplink_rate_bps=self.host_send_bps,
        )


@dataclass(frozen=True, kw_only=True)
class TwoPathSpec(FabricSpec):
    """Two hosts, or two groups of hosts, and paths of known kinds between them."""

    kind = "two-path"
    hosts: int = 1
    """At each end."""
    profiles: tuple[str, ...] = ("wlan", "3g")
    """Of each path: a name or numbers, see `profiles`."""

    def __post_init__(self) -> None:
        """Refuses what cannot be built."""
        super().__post_init__()
        within("hosts", self.hosts, 1, naming.MAX_HOSTS)
        within("profiles: number of paths", len(self.profiles), 1, MAX_SUBFLOWS)
        self.leaf_spine()

    def leaf_spine(self) -> LeafSpineSpec:
        """Give the same as a leaf-spine: a spine is a path, its links half of that each."""
        paths = dict(enumerate(map(profiles.of, self.profiles), 1))
        return LeafSpineSpec(
            **self.common(),
            leaves=2,
            spines=len(paths),
            hosts=self.hosts,
            spine_rate_bps={spine: path.rate_bps for spine, path in paths.items()},
            spine_delay_ns={spine: path.rtt_ns // 4 for spine, path in paths.items()},
            spine_queue_packets={spine: path.queue_packets for spine, path in paths.items()},
            spine_loss_ppm={spine: path.loss_ppm for spine, path in paths.items()},
        )


@dataclass(frozen=True, kw_only=True)
class DumbbellSpec(TwoPathSpec):
    """The same with several hosts at each end, who share the paths."""

    kind = "dumbbell"
    hosts: int = 4


AnySpec = LeafSpineSpec | FatTreeSpec | ManyToOneSpec | TwoPathSpec

KINDS: dict[str, type[AnySpec]] = {
    spec.kind: spec
    for spec in (LeafSpineSpec, FatTreeSpec, ManyToOneSpec, TwoPathSpec, DumbbellSpec)
}
"""All kinds of fabrics."""


def of_document(document: dict[str, Any]) -> AnySpec:
    """Fabric of a parsed `topology` object."""
    kind = json_fields.string(document, "kind")
    if kind not in KINDS:
        raise UsageError(f"topology kind {kind!r} is unknown; there is {', '.join(KINDS)}")
    spec = KINDS[kind]
    known = {f.name: f for f in fields(spec)}
    unknown = sorted(document.keys() - known - {"kind"})
    if unknown:
        raise UsageError(f"topology: {unknown[0]!r} is unknown; there are {', '.join(known)}")
    given = {name: _reader(name)(document, name) for name in known if name in document}
    return spec(**given)


def _reader(name: str) -> Callable[[Any, str], Any]:
    """Give what reads a field."""
    readers: dict[str, Callable[[Any, str], Any]] = {
        "routing": json_fields.string,
        "nic": json_fields.string,
        "in_band": json_fields.string,
        "changes": _changes,
        "profiles": _texts,
        "first_come": _texts,
        "clear_classes": _texts,
        "hosts": _hosts,
        "route_metrics": route_metrics.of_document,
    }
    of_spines = {f"spine_{name}": json_fields.by_number for name in BOUNDS}
    return (readers | of_spines).get(name, json_fields.integer)


def _texts(document: Any, key: str) -> tuple[str, ...]:
    texts = json_fields.sequence(document, key)
    if not all(isinstance(text, str) for text in texts):
        raise UsageError(f"{key}: not a list of texts: {texts!r}")
    return tuple(texts)


def _hosts(document: Any, key: str) -> int | tuple[int, ...]:
    if not isinstance(document[key], list):
        return json_fields.integer(document, key)
    return tuple(json_fields.integer({key: count}, key) for count in document[key])


def _changes(document: Any, key: str) -> tuple[Change, ...]:
    return tuple(_change(change) for change in json_fields.sequence(document, key))


def _change(document: Any) -> Change:
    numbers = (*BOUNDS, "rate_ppm")
    given: dict[str, Any] = {
        name: json_fields.integer(document, name) for name in numbers if name in document
    }
    if "up" in document:
        given["up"] = json_fields.flag(document, "up")
    at_ns, target = json_fields.integer(document, "at_ns"), json_fields.string(document, "target")
    return Change(at_ns, target, **given)
