# SPDX-License-Identifier: Apache-2.0
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


def rate(bits_per_second: int) -> str:
    """Text of a rate in the largest unit that is below it."""
    unit, size = [(unit, size) for unit, size in _RATES.items() if size <= bits_per_second][-1]
    return f"{bits_per_second / size:g}{unit}"


def duration(nanoseconds: int) -> str:
    """Text of a time in the largest unit that holds it whole."""
    unit = next(u for u in ("s", "ms", "us", "ns") if nanoseconds % _TIMES[u] == 0)
    return f"{nanoseconds // _TIMES[unit]}{unit}"


def packets(text: str) -> int:
    """Number of packets of `text`."""
    if not text.isdecimal():
        raise UsageError(f"{text!r} is not a number of packets; write it like 100")
    return int(text)


def share_ppm(text: str) -> int:
    """Parts in a million of a percentage such as `1%` or `0.05%`."""
    match = re.fullmatch(r"(\d+(\.\d{1,4})?)%", text)
    if match is None:
        raise UsageError(f"{text!r} is not a percentage of at most four decimals; write it like 1%")
    return round(float(match[1]) * 10_000)
