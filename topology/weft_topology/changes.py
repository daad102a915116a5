"""What becomes of links while traffic runs, as written on a command line.

`at 20ms link leaf1-spine2 down`, or in short `20ms:leaf1-spine2:down`.
"""

import re
from collections.abc import Iterator
from typing import Any

from weft_topology import units
from weft_topology.errors import UsageError

_RATE_OR_SHARE = re.compile(r"\d+(\.\d+)?%?")


def of(texts: list[str]) -> list[dict[str, Any]]:
    """Give the changes of some texts, each with one or several separated by `;`, by time."""
    changes = [_change(text.strip()) for given in texts for text in given.split(";")]
    return sorted(changes, key=lambda change: int(change["at_ns"]))


def _change(text: str) -> dict[str, Any]:
    at, target, properties = _in_words(text) if text.startswith("at ") else _in_short(text)
    change: dict[str, Any] = {"at_ns": units.time_ns(at), "target": target}
    for key, value in properties:
        name, number = _property(key, value)
        if name in change or (name.startswith("rate") and {"rate_bps", "rate_ppm"} & change.keys()):
            raise UsageError(f"change {text!r}: {key} is said already")
        change[name] = number
    if len(change) == 2:
        raise _wrong(text)
    return change


def _wrong(text: str) -> UsageError:
    return UsageError(
        f'{text!r} is no change; write "at 20ms link leaf1-spine2 down", "at 2s switch spine1 rate '
        '0.5 loss 1%" or 2s:spine1:rate=10mbit,delay=50ms'
    )


def _in_words(text: str) -> tuple[str, str, list[tuple[str, str]]]:
    words = text.split()[1:]
    if len(words) < 3 or words[1] not in ("link", "switch"):
        raise _wrong(text)
    at, kind, target = words[:3]
    if (kind == "link") != ("-" in target):
        raise UsageError(
            f"change {text!r}: a link is named by its ends, such as leaf1-spine2, a switch like "
            "spine1"
        )
    return at, target, list(_pairs(text, words[3:]))


def _pairs(text: str, words: list[str]) -> Iterator[tuple[str, str]]:
    rest = iter(words)
    for key in rest:
        value = "" if key in ("up", "down") else next(rest, None)
        if value is None:
            raise UsageError(f"change {text!r}: {key} of how much?")
        yield key, value


def _in_short(text: str) -> tuple[str, str, list[tuple[str, str]]]:
    at, _, rest = text.partition(":")
    target, colon, properties = rest.partition(":")
    if not (colon and target):
        raise _wrong(text)
    pairs = [part.partition("=") for part in properties.split(",")]
    name = f"spine{target}" if target.isdecimal() else target
    return at, name, [(key, value) for key, _, value in pairs]


def _property(key: str, value: str) -> tuple[str, Any]:
    match key, value:
        case (("down" | "up"), ""):
            return "up", key == "up"
        case "rate", _ if _RATE_OR_SHARE.fullmatch(value):
            share = units.share_ppm(value) if value.endswith("%") else round(float(value) * 10**6)
            return "rate_ppm", share
        case "rate", _:
            return "rate_bps", units.rate_bps(value)
        case "delay", _:
            return "delay_ns", units.time_ns(value)
        case "queue", _:
            return "queue_packets", units.packets(value)
        case "loss", _:
            return "loss_ppm", units.share_ppm(value)
    raise UsageError(f"{key!r}: links have rate, delay, queue and loss, or are down or up")
