"""What a user can ask for: the lab's document `lab.json`, checked."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from weft_topology import naming
from weft_topology.errors import UsageError

ROUTINGS = ("weft", "ecmp")
NICS = ("plain", "p4")
IN_BAND = ("off", "md")
ARRIVALS = ("hosts", "all")
CPU_PORT = 510
"""P4 port number of the controller; a switch's own ports stay below."""


@dataclass(frozen=True)
class Change:
    """A change of all links of a spine; what is None stays as it is."""

    at_ns: int
    """From the start of traffic."""
    spine: int
    rate_bps: int | None = None
    delay_ns: int | None = None
    queue_packets: int | None = None
    loss_ppm: int | None = None
    up: bool | None = None
    """Whether it works; one that does not loses all that arrives."""

    def properties(self) -> dict[str, int]:
        """Give what changes, by name."""
        values = {name: getattr(self, name) for name in (*_BOUNDS, "up")}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True)
class LeafSpineSpec:
    """A leaf-spine fabric: every leaf is cabled to every spine, hosts hang on leaves."""

    leaves: int = 2
    spines: int = 2
    hosts: int = 4
    """Per leaf."""
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
    routing: str = "weft"
    spine_delay_ns: Mapping[int, int] = field(default_factory=dict)
    """Spines all of whose links have another delay."""
    spine_rate_bps: Mapping[int, int] = field(default_factory=dict)
    spine_queue_packets: Mapping[int, int] = field(default_factory=dict)
    """Spines whose links have other queues, at both ends."""
    spine_loss_ppm: Mapping[int, int] = field(default_factory=dict)
    """Spines that lose so many in a million frames that arrive."""
    changes: tuple[Change, ...] = ()
    """What becomes of spines while traffic runs."""
    host_jitter_ns: int = 0
    """Mean stall of the scheduling noise between a host's kernel and its network card."""
    nic: str = "plain"
    """Hosts' network cards: `plain` ones, or such that run a P4 program."""
    in_band: str = "off"
    """In-band telemetry between leaves: none, or INT-MD."""

    def __post_init__(self) -> None:
        """Refuses what cannot be built."""
        _within("leaves", self.leaves, 1, naming.MAX_LEAVES)
        _within("spines", self.spines, 1, naming.MAX_PATHS)
        _within("hosts", self.hosts, 1, naming.MAX_HOSTS)
        if self.hosts + self.spines >= CPU_PORT:
            raise UsageError(
                f"hosts + spines = {self.hosts + self.spines} ports of a leaf; "
                f"P4 port numbers allow {CPU_PORT - 1}"
            )
        for name, rate in (
            ("rate_bps", self.rate_bps),
            ("host_rate_bps", self.host_rate_bps),
            ("sender_rate_bps", self.host_send_bps),
        ):
            _within(name, rate, *_BOUNDS["rate_bps"])
        _within("delay_ns", self.delay_ns, *_BOUNDS["delay_ns"])
        _within("host_jitter_ns", self.host_jitter_ns, 0, 10**9)
        _within("queue_packets", self.queue_packets, *_BOUNDS["queue_packets"])
        if self.routing not in ROUTINGS:
            raise UsageError(f"routing {self.routing!r} is none of {', '.join(ROUTINGS)}")
        if self.nic not in NICS:
            raise UsageError(f"nic {self.nic!r} is none of {', '.join(NICS)}")
        if self.in_band not in IN_BAND:
            raise UsageError(f"in_band {self.in_band!r} is none of {', '.join(IN_BAND)}")
        for name, bounds in _BOUNDS.items():
            for spine, value in getattr(self, f"spine_{name}").items():
                self._check_spine(f"spine_{name}", spine)
                _within(f"spine_{name} of spine {spine}", value, *bounds)
        for change in self.changes:
            self._check_spine("changes", change.spine)
            for name, value in change.properties().items():
                _within(f"changes: {name}", value, *_BOUNDS.get(name, (0, 1)))

    def _check_spine(self, name: str, spine: int) -> None:
        if not 1 <= spine <= self.spines:
            raise UsageError(f"{name} names spine {spine}; there are 1..{self.spines}")

    @property
    def host_send_bps(self) -> int:
        """Rate from hosts to their leaf."""
        return self.host_rate_bps if self.sender_rate_bps is None else self.sender_rate_bps

    def link_delay_ns(self, spine: int) -> int:
        """Delay of the links of a spine."""
        return self.spine_delay_ns.get(spine, self.delay_ns)

    def link_rate_bps(self, spine: int) -> int:
        """Rate of the links of a spine."""
        return self.spine_rate_bps.get(spine, self.rate_bps)

    def link_queue_packets(self, spine: int) -> int:
        """Depth of the queues of the links of a spine."""
        return self.spine_queue_packets.get(spine, self.queue_packets)


_BOUNDS = {
    "rate_bps": (10**6, 10**12),
    "delay_ns": (0, 10**10),
    "queue_packets": (1, 10**6),
    "loss_ppm": (0, 10**6),
}
"""Properties of links, and theirs."""

_OF_SPINES = [f"spine_{name}" for name in _BOUNDS]
"""What single spines may have of their own."""


@dataclass(frozen=True)
class Paths:
    """Where things are on this machine."""

    repo: Path
    bin: Path
    """Folder of the built programs."""
    pipelines: Path
    """Folder of the compiled P4 programs."""


@dataclass(frozen=True)
class CaptureSpec:
    """What the switches capture, packet by packet."""

    hosts: tuple[str, ...]
    """Names, or `all`."""
    arrivals: str
    """Whose queues' arrivals are noted: those of these `hosts`, or `all`."""

    def __post_init__(self) -> None:
        """Refuses what weft-switch would not take."""
        if not self.hosts:
            raise UsageError("capture: hosts: name at least one, or all")
        if self.arrivals not in ARRIVALS:
            raise UsageError(
                f"capture: arrivals {self.arrivals!r} is none of {', '.join(ARRIVALS)}"
            )


@dataclass(frozen=True)
class LabSpec:
    """A whole lab; what the launcher alone needs is not read here."""

    topology: LeafSpineSpec
    pattern_ttl_ns: int
    paths: Paths
    seed: int = 1
    """Of everything random."""
    path_manager: str = "kernel"
    """Who opens subflows, as `weft-agent --path-manager` takes it."""
    pattern_input: str = "rtt"
    """What patterns follow from, as `weft-controller --pattern-input` takes it."""
    controllers: int = 1
    """One of them is primary."""
    control_delay_ns: int = 0
    """One-way delay between switches and controller, and between controller and agents."""
    capture: CaptureSpec | None = None


def read_lab(path: Path) -> LabSpec:
    """Read and check the document at `path`."""
    try:
        text = path.read_text()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError(f"{path}: not JSON: {error}") from None
    try:
        return lab_of(document)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


def lab_of(document: Any) -> LabSpec:
    """Lab of a parsed document."""
    paths = _object(document, "paths")
    return LabSpec(
        topology=topology_of(_object(document, "topology")),
        pattern_ttl_ns=_integer(document, "pattern_ttl_ns"),
        seed=_integer(document, "seed"),
        path_manager=_string({"path_manager": "kernel"} | document, "path_manager"),
        paths=Paths(**{f.name: Path(_string(paths, f.name)) for f in fields(Paths)}),
        pattern_input=_string({"pattern_input": "rtt"} | document, "pattern_input"),
        controllers=_integer({"controllers": 1} | document, "controllers"),
        control_delay_ns=_integer({"control_delay_ns": 0} | document, "control_delay_ns"),
        capture=_capture(document.get("capture")),
    )


def _capture(document: Any) -> CaptureSpec | None:
    if document is None:
        return None
    hosts = _value(document, "hosts")
    if not isinstance(hosts, list) or not all(isinstance(host, str) for host in hosts):
        raise UsageError(f"capture: hosts: not a list of names: {hosts!r}")
    return CaptureSpec(tuple(hosts), _string(document, "arrivals"))


def topology_of(document: dict[str, Any]) -> LeafSpineSpec:
    """Fabric of a parsed `topology` object."""
    kind = _string(document, "kind")
    if kind != "leaf-spine":
        raise UsageError(f"topology kind {kind!r} is unknown; there is leaf-spine")
    known = {f.name for f in fields(LeafSpineSpec)}
    unknown = sorted(document.keys() - known - {"kind"})
    if unknown:
        raise UsageError(f"topology: {unknown[0]!r} is unknown; there are {', '.join(known)}")
    given: dict[str, Any] = {
        name: _integer(document, name) for name in document.keys() & known - _NOT_NUMBERS
    }
    for name in document.keys() & _OF_SPINES:
        given[name] = _by_spine(document, name)
    if "changes" in document:
        given["changes"] = tuple(_change(change) for change in _list(document, "changes"))
    for name in document.keys() & _WORDS:
        given[name] = _string(document, name)
    return LeafSpineSpec(**given)


_WORDS = {"routing", "nic", "in_band"}
_NOT_NUMBERS = {"changes", *_WORDS, *_OF_SPINES}


def _change(document: Any) -> Change:
    at_ns, spine = _integer(document, "at_ns"), _integer(document, "spine")
    given: dict[str, Any] = {name: _integer(document, name) for name in _BOUNDS if name in document}
    if "up" in document:
        given["up"] = _value(document, "up")
        if not isinstance(given["up"], bool):
            raise UsageError(f"up: neither true nor false: {given['up']!r}")
    return Change(at_ns, spine, **given)


def _by_spine(document: dict[str, Any], name: str) -> dict[int, int]:
    spines = _object(document, name)
    if not all(key.isdecimal() for key in spines):
        raise UsageError(f'{name}: write it like {{"2": 40000}}')
    return {int(spine): _integer(spines, spine) for spine in spines}


def _object(document: Any, key: str) -> dict[str, Any]:
    value = _value(document, key)
    if not isinstance(value, dict):
        raise UsageError(f"{key}: not an object")
    return value


def _list(document: Any, key: str) -> list[Any]:
    value = _value(document, key)
    if not isinstance(value, list):
        raise UsageError(f"{key}: not a list")
    return value


def _string(document: Any, key: str) -> str:
    value = _value(document, key)
    if not isinstance(value, str):
        raise UsageError(f"{key}: not a string: {value!r}")
    return value


def _integer(document: Any, key: str) -> int:
    value = _value(document, key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise UsageError(f"{key}: not a whole number: {value!r}")
    return value


def _value(document: Any, key: str) -> Any:
    if not isinstance(document, dict):
        raise UsageError("not a JSON object")
    if key not in document:
        raise UsageError(f"{key} is missing")
    return document[key]


def _within(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise UsageError(f"{name} {value} is out of range {low}..{high}")
