"""Rates and times as `tc` writes them: `1gbit`, `10us`."""

import re

from weft_topology.errors import UsageError

_RATES = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9, "tbit": 10**12}
_TIMES = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
_QUANTITY = re.compile(r"(?P<number>\d+(\.\d+)?)(?P<unit>[a-z]+)")


def rate_bps(text: str) -> int:
    """Bits per second of `text`."""
    return _quantity(text, _RATES, "a rate", "1gbit")


def time_ns(text: str) -> int:
    """Nanoseconds of `text`."""
    return _quantity(text, _TIMES, "a time", "10us")


def _quantity(text: str, units: dict[str, int], what: str, example: str) -> int:
    match = _QUANTITY.fullmatch(text.lower())
    if match is None or match["unit"] not in units:
        raise UsageError(f"{text!r} is not {what}; write it like {example} ({', '.join(units)})")
    return round(float(match["number"]) * units[match["unit"]])


def duration(nanoseconds: int) -> str:
    """Text of a time in the largest unit that holds it whole."""
    unit = next(u for u in ("s", "ms", "us", "ns") if nanoseconds % _TIMES[u] == 0)
    return f"{nanoseconds // _TIMES[unit]}{unit}"


def spine_delays(texts: list[str]) -> dict[int, int]:
    """Delays in nanoseconds by spine, of texts like `2=40us` or `1=20us,2=40us`."""
    delays = {}
    for text in ",".join(texts).split(",") if texts else []:
        spine, _, delay = text.partition("=")
        if not spine.isdecimal() or not delay:
            raise UsageError(f"{text!r} is not a spine's delay; write it like 2=40us")
        delays[int(spine)] = time_ns(delay)
    return delays
