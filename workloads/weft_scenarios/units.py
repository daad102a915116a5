# SPDX-License-Identifier: Apache-2.0
"""The units in which times are read: from microseconds to hours."""

_NEXT = {"µs": "ms", "ms": "s"}
_LONG = 5000.0
"""Times from here on are shown in the next unit."""


def readable(most: float, unit: str) -> tuple[str, float]:
    """Give the unit for values up to `most`, which are in `unit`, and the factor to it.

    Whatever is no time keeps its unit.
    """
    factor = 1.0
    while unit in _NEXT and most * factor >= _LONG:
        unit, factor = _NEXT[unit], factor / 1e3
    return unit, factor


def spent(seconds: float) -> str:
    """Give real time that was or will be spent: `38 s`, `12 min`, `2 h 05 min`."""
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min"


def relabelled(label: str, most: float) -> tuple[str, float]:
    """Give a label such as `Mean FCT (ms)` the unit for values up to `most`, and the factor."""
    name, _, unit = label.rpartition(" (")
    read, factor = readable(most, unit.removesuffix(")"))
    return (label, factor) if factor == 1 else (f"{name} ({read})", factor)
