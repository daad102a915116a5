# SPDX-License-Identifier: Apache-2.0
"""Labels of axes, as people write numbers."""

from matplotlib.axis import XAxis, YAxis
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

_GROUPED_FROM = 10_000
_EVENLY_BELOW = 2
"""Ends that are less than so many times apart have labels at even distances."""
_EVEN_STEPS = 5
"""At most so many of these distances from end to end."""
_IN_A_DECADE = ((6, (1, 1.5, 2, 3, 5, 7)), (1000, (1, 2, 5)))
"""Labels in a decade of a logarithmic axis whose ends are less than so many times apart; else 1."""


def _grouped(value: float) -> str:
    """Format a number of an axis; large ones in groups of three digits."""
    text = f"{value:,.0f}" if abs(value) >= _GROUPED_FROM else f"{value:g}"
    return text.replace(",", "\u2009")


def plain(axis: XAxis | YAxis, factor: float = 1) -> None:
    """Label an axis with its values, times a factor."""
    axis.set_major_formatter(FuncFormatter(lambda value, _place: _grouped(value * factor)))


def decades(axis: XAxis | YAxis) -> None:
    """Label a logarithmic axis, whose limits are set."""
    # Often all values lie within one decade, which would have one label.
    low, high = axis.get_view_interval()
    if high < _EVENLY_BELOW * low:
        axis.set_major_locator(MaxNLocator(_EVEN_STEPS, steps=[1, 2, 5, 10]))
    else:
        within = next((subs for most, subs in _IN_A_DECADE if high < most * low), (1,))
        axis.set_major_locator(LogLocator(subs=within))
    axis.set_minor_formatter(NullFormatter())
    plain(axis)
