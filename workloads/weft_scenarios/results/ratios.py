# SPDX-License-Identifier: Apache-2.0
"""What a plot shows of a point: the mean over seeds, or its ratio to the mean of another series.

The ratio is of pairs: both series have sent the same flows with the same seed. So its interval
leaves out how much one seed's flows differ from another's, which is most of the interval of a mean.
"""

import polars as pl

from weft_scenarios.definition.scenario import Experiment, Plot
from weft_scenarios.results.results import point_text
from weft_scenarios.stats import Ratio, Spread, ratio, spread

_VERSUS = "versus"
"""The column with what the other series has, of the same point and seed."""


def paired(plot: Plot, experiment: Experiment, frame: pl.DataFrame) -> pl.DataFrame:
    """Give each row of a plot that shows ratios the value that it is divided by.

    Rows without one, and the other series itself, are left out.
    """
    if plot.versus is None:
        return frame
    others = [axis.name for axis in experiment.axes if axis.name != plot.series]
    other = pl.col(plot.series) == point_text(plot.versus)
    values = frame.filter(other).select(*others, "seed", pl.col(plot.quantity).alias(_VERSUS))
    return frame.filter(~other).join(values, on=[*others, "seed"], maintain_order="left")


def estimate(plot: Plot, rows: pl.DataFrame) -> Spread | Ratio:
    """Give what a plot shows of the rows of a point, of which there is at least one."""
    values = rows[plot.quantity].to_list()
    return spread(values) if plot.versus is None else ratio(values, rows[_VERSUS].to_list())
