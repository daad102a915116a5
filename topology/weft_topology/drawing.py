# SPDX-License-Identifier: Apache-2.0
"""A fabric as text: tiers from top to bottom, and what its links are.

It draws what `topology.json` says. Where a line has branches on both sides, every node
above it is cabled to every node below it. Of many equal columns only some are shown, and
`...` for the others.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeVar

from weft_topology import units

MOST_COLUMNS = 7
"""That are drawn side by side."""

Document = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Pod:
    """Leaves, and what is right above them; a whole leaf-spine is one pod."""

    upper: list[str]
    leaves: list[str]


@dataclass(frozen=True)
class Tiers:
    """A fabric's nodes by where they stand."""

    pods: list[Pod]
    cores: list[list[str]]
    """Groups of cores: all of one are cabled to the same aggregation switches."""
    hosts: dict[str, list[str]]
    """By leaf."""

    @classmethod
    def of(cls, document: Document) -> "Tiers":
        """Sort out the nodes of a document."""
        roles = {switch["name"]: switch["role"] for switch in document["switches"]}
        above: dict[str, list[str]] = defaultdict(list)
        hosts: dict[str, list[str]] = defaultdict(list)
        for link in document["links"]:
            lower, upper = link["a"]["node"], link["b"]["node"]
            if lower in roles:
                above[lower].append(upper)
            else:
                hosts[upper].append(lower)
        pods: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for name in (name for name, role in roles.items() if role == "leaf"):
            pods[tuple(above[name])].append(name)
        cores: dict[tuple[str, ...], None] = {}
        for name in (name for name, role in roles.items() if role == "aggregation"):
            cores[tuple(above[name])] = None
        return cls(
            [Pod(list(upper), leaves) for upper, leaves in pods.items()],
            [list(group) for group in cores],
            hosts,
        )


class Canvas:
    """Lines of characters, as long as need be."""

    def __init__(self) -> None:
        """Nothing is drawn yet."""
        self._rows: dict[int, dict[int, str]] = defaultdict(dict)

    def text(self, row: int, column: int, text: str) -> None:
        """Write to the right from a place."""
        for offset, character in enumerate(text):
            self._rows[row][column + offset] = character

    def centred(self, row: int, column: int, text: str) -> None:
        """Write around a place."""
        self.text(row, column - (len(text) - 1) // 2, text)

    def get(self, row: int, column: int) -> str:
        """Give what is at a place."""
        return self._rows[row].get(column, " ")

    def lines(self) -> list[str]:
        """Give all lines."""
        lines = []
        for row in range(max(self._rows, default=-1) + 1):
            last = max(self._rows[row], default=-1)
            lines.append("".join(self.get(row, column) for column in range(last + 1)).rstrip())
        return lines


def text(document: Document) -> str:
    """Draw a fabric and say what its links are."""
    parts = [_heading(document), _picture(document), _links(document), _changes(document)]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _heading(document: Document) -> list[str]:
    roles = Counter(switch["role"] for switch in document["switches"])
    names = {"leaf": ("leaf", "leaves"), "core": ("core", "cores"), "spine": ("spine", "spines")}
    switches = [
        f"{count} {names[role][count != 1] if role in names else f'{role} switches'}"
        for role, count in roles.items()
    ]
    hosts = len(document["hosts"])
    paths = document["paths"]
    return [
        f"{document['name']}: {', '.join(switches)}, {hosts} host{'s' * (hosts != 1)}; "
        f"{paths} path{'s' * (paths != 1)} for a connection, routing {document['routing']}"
    ]


def _picture(document: Document) -> list[str]:
    tiers = Tiers.of(document)
    canvas = Canvas()
    margin = max((len(_names(group)) for group in tiers.cores), default=0)
    most = 4 if tiers.cores else MOST_COLUMNS
    # Of many aggregation switches only some are drawn, and of groups of cores those above.
    groups = some(range(len(tiers.cores)), most)
    row = 2 * len(groups)
    column = margin + 2 if margin else 0
    ups: list[list[int]] = []
    for pod in some(tiers.pods, 4 if len(tiers.pods) <= 4 else 2):
        if pod is None:
            canvas.text(row + 3, column, "...")
            column += 5
            continue
        column, places = _pod(canvas, row, column, pod, tiers.hosts, most)
        ups.append(places)
    drawn = 0
    for line, group in enumerate(groups):
        if group is None:
            canvas.text(2 * line, margin - 3, "...")
            _pass(canvas, 2 * line, row, {column for pod in ups for column in pod[:drawn]})
            continue
        _core_line(canvas, 2 * line, row, margin, tiers.cores[group], ups, drawn)
        drawn += 1
    return canvas.lines()


def _pod(
    canvas: Canvas, row: int, column: int, pod: Pod, hosts: dict[str, list[str]], most: int
) -> tuple[int, list[int]]:
    """Draw leaves below what is above them; where the next one goes, and the upper nodes."""
    leaves = [
        (leaf or "...", _names(hosts[leaf]) if leaf else "") for leaf in some(pod.leaves, most)
    ]
    uppers = [upper or "..." for upper in some(pod.upper, most)]
    widths = [max(len(leaf), len(names)) + 3 for leaf, names in leaves]
    width = max(sum(widths), sum(len(upper) + 3 for upper in uppers))
    below, middles, at = [], [], column + (width - sum(widths)) // 2
    for (leaf, names), leaf_width in zip(leaves, widths, strict=True):
        middle = at + (leaf_width - 3) // 2
        canvas.centred(row + 4, middle, leaf)
        if names:
            canvas.centred(row + 5, middle, "│")
            canvas.centred(row + 6, middle, names)
            below.append(middle)
        middles.append(middle)
        at += leaf_width
    if len(uppers) != len(leaves):
        step = width / len(uppers)
        middles = [column + round(step * (place + 0.5)) - 2 for place in range(len(uppers))]
    above = []
    for upper, middle in zip(uppers, middles, strict=True):
        canvas.centred(row, middle, upper)
        if upper != "...":
            above.append(middle)
    _mesh(canvas, row + 1, above, below)
    return column + width + 1, above


def _mesh(canvas: Canvas, row: int, above: Sequence[int], below: Sequence[int]) -> None:
    """Cable everything above to everything below."""
    for place in above:
        canvas.text(row, place, "│")
    for place in below:
        canvas.text(row + 2, place, "│")
    ends = sorted({*above, *below})
    for place in range(ends[0], ends[-1] + 1):
        up, down = place in above, place in below
        left, right = place > ends[0], place < ends[-1]
        canvas.text(row + 1, place, _LINES[up, down, left, right])


_LINES = dict(zip(product((False, True), repeat=4), " ╶╴─╷┌┐┬╵└┘┴│├┤┼", strict=True))
"""By whether a line goes up, down, left and right from there."""


def _core_line(
    canvas: Canvas,
    row: int,
    bottom: int,
    margin: int,
    group: list[str],
    ups: list[list[int]],
    place: int,
) -> None:
    """Draw a line from a group of cores down to an aggregation switch of each pod."""
    canvas.text(row, 0, _names(group).rjust(margin))
    drops = [pod[place] for pod in ups]
    passing = {column for pod in ups for column in pod[:place]}
    for column in range(margin + 1, drops[-1] + 1):
        line = _LINES[False, column in drops, True, column < drops[-1]]
        canvas.text(row, column, "│" if column in passing else line)
    _pass(canvas, row + 1, bottom, set(drops))


def _pass(canvas: Canvas, top: int, bottom: int, columns: set[int]) -> None:
    """Draw lines straight down."""
    for column in columns:
        for row in range(top, bottom):
            canvas.text(row, column, "│")


def some(items: Sequence[T], most: int) -> list[T | None]:
    """Give all items, or of more than `most` the first and the last, and None between."""
    if len(items) <= most:
        return list(items)
    return [*items[: most - 2], None, items[-1]] if most > 2 else [items[0], None, items[-1]]


def _names(names: list[str]) -> str:
    """Give a row of names in short."""
    return " ".join(names) if len(names) <= 2 else f"{names[0]}..{names[-1]}"


def _links(document: Document) -> list[str]:
    """Say what links are, those of the same properties together."""
    roles = {switch["name"]: switch for switch in document["switches"]}
    kinds: Counter[tuple[str, ...]] = Counter()
    for link in document["links"]:
        ends = [roles.get(link[end]["node"]) for end in ("a", "b")]
        between = " - ".join(end["role"] if end else "host" for end in ends)
        kinds[(between, *_properties(link, [end for end in ends if end]))] += 1
    rows: list[tuple[str, ...]] = [("links", "", "rate", "delay", "queue", "")]
    rows += [(str(count), *kind) for kind, count in kinds.items()]
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        cells[0] = row[0].rjust(widths[0])
        lines.append("  ".join(cells).rstrip())
    return lines


def _properties(link: Document, switches: Iterable[Document]) -> tuple[str, str, str, str]:
    rate = units.rate(link["rate_bps"])
    if "rate_from_a_bps" in link:
        rate = f"{units.rate(link['rate_from_a_bps'])} up, {rate} down"
    queue = f"{link['queue_packets']} packets"
    if "queue_bytes" in link:
        queue = f"{link['queue_bytes']} bytes"
    if "ecn_packets" in link:
        queue += f", marks above {link['ecn_packets']}"
    if "ecn_bytes" in link:
        queue += f", marks above {link['ecn_bytes']} bytes"
    losses = [
        f"{switch['name']} loses {switch['loss_ppm'] / 10_000:g}%"
        for switch in switches
        if "loss_ppm" in switch
    ]
    return rate, units.duration(link["delay_ns"]), queue, ", ".join(losses)


def _changes(document: Document) -> list[str]:
    """Say what becomes of links, as `--change` takes it."""
    links = document["links"]
    lines = []
    for change in document.get("schedule", {}).get("changes", []):
        if "link" in change:
            link = links[change["link"]]
            what = f"link {link['a']['node']}-{link['b']['node']}"
        else:
            what = f"switch {change['switch']}"
        words = [f"at {units.duration(change['at_ns'])} {what}"]
        for name, show in _PROPERTIES.items():
            if name in change:
                words.append(show(change[name]))
        lines.append(" ".join(words))
    return lines


_PROPERTIES: dict[str, Callable[[int], str]] = {
    "rate_bps": lambda rate: f"rate {units.rate(rate)}",
    "delay_ns": lambda delay: f"delay {units.duration(delay)}",
    "queue_packets": lambda packets: f"queue {packets}",
    "loss_ppm": lambda loss: f"loss {loss / 10_000:g}%",
    "up": lambda up: "up" if up else "down",
}
