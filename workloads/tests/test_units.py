# SPDX-License-Identifier: Apache-2.0
"""Times are shown in the unit in which they are read."""

import pytest
from weft_scenarios import units


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 s"),
        (38.4, "38 s"),
        (99.4, "99 s"),
        (99.6, "2 min"),
        (725, "12 min"),
        (3569, "59 min"),
        (3571, "1 h 00 min"),
        (7525, "2 h 05 min"),
    ],
)
def test_time_that_was_spent_is_in_seconds_minutes_or_hours(seconds: float, said: str) -> None:
    assert units.spent(seconds) == said
