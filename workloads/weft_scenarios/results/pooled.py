# SPDX-License-Identifier: Apache-2.0
"""Percentiles over all flows of a point together, with intervals over seeds.

A percentile of each seed's flows, averaged over seeds, is biased where a seed has few flows: the
99th percentile of 200 flows is one of the two slowest. So the flows of all seeds are taken
together. Flows of a seed met the same queues and are not independent; what is resampled for the
95% confidence interval are therefore seeds and not flows (cluster bootstrap: Davison and Hinkley,
Bootstrap Methods and their Application, section 3.8).

`percentiles.csv` has a row per point, size class and quantity:

| column                   | unit     | what                                                      |
|--------------------------|----------|-----------------------------------------------------------|
| `experiment`             |          | its name in the file                                      |
| one per axis             |          | the point                                                 |
| `sizes`                  |          | size class: `all`, `below 100 kB`, `from 1 MB`, `tenth N` |
| `from_bytes`, `to_bytes` | B        | smallest and largest flow in it                           |
| `quantity`               |          | `fct_ms`; `slowdown`: FCT by that on an idle fabric;      |
|                          |          | `slowdown_shortest`: that of shortest flows first, fluid  |
| `flow_count`, `seed_count` |        | how many flows, of how many seeds                         |
| `p50`, ..., `p999`       | the same | percentiles; p95 from 20 flows, p99 from 100, p999 (99.9%) |
|                          |          | from 10 000                                               |
| `p50_low`, `p50_high`, . | the same | ends of their intervals; empty with fewer than 5 seeds    |

A `tenth` holds a tenth of the flows of a point of the other axes, by size: the first the smallest.
Where many flows have one size, it holds those of several tenths, which are left out.
"""

from collections.abc import Collection, Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

from weft_scenarios.definition.quantities import POOLED, SHORTEST
from weft_scenarios.definition.scenario import Experiment, Scenario
from weft_scenarios.measures.metrics import LONG_BYTES, SHORT_BYTES
from weft_scenarios.results import bounds
from weft_scenarios.results.flows import as_text
from weft_scenarios.stats import LEVEL, SEEDS_MIN

PERCENTILES = {"p50": (0.5, 1), "p95": (0.95, 20), "p99": (0.99, 100), "p999": (0.999, 10_000)}
"""Share of flows below, and the number of flows from which on it is given."""
TENTHS = 10
_MOST_BYTES = 1 << 62
_CLASSES = {
    "all": (0, _MOST_BYTES),
    "below 100 kB": (0, SHORT_BYTES),
    "from 1 MB": (LONG_BYTES, _MOST_BYTES),
}
_RESAMPLES = 2_000
_CELLS_AT_ONCE = 4_000_000
"""Bounds the memory that resampling takes."""

Numbers = NDArray[np.float64]


def collect(scenario: Scenario, flows: pl.DataFrame, least: pl.DataFrame) -> pl.DataFrame:
    """Compute the table for the experiments that ask for it.

    `flows` is the table of flows.parquet, and `least` that of `bounds.collect`.
    """
    flows = flows.join(least, on=["run", "flow"], how="left")
    parts = [
        table(flows, experiment) for experiment in scenario.experiments if experiment.percentiles
    ]
    return pl.concat(parts, how="diagonal") if parts else pl.DataFrame()


def table(flows: pl.DataFrame, experiment: Experiment) -> pl.DataFrame:
    """Compute the rows of one experiment.

    Tenths are the same for all points of the axis that it compares.
    """
    axes = [axis.name for axis in experiment.axes]
    done = flows.filter(
        (pl.col("experiment") == experiment.name) & pl.col("fct_ns").is_not_null()
    ).with_columns(
        (pl.col("fct_ns") / 1e6).alias("fct_ms"),
        (pl.col(bounds.COLUMN) / pl.col("ideal_fct_ns")).alias(SHORTEST),
        *(as_text(axis, flows).alias(axis.name) for axis in experiment.axes),
    )
    if done.is_empty():
        return pl.DataFrame()
    rows = []
    cells = [axis for axis in axes if axis != experiment.percentiles]
    for cell in done.partition_by(cells, maintain_order=True) if cells else [done]:
        classes = _CLASSES | _tenths(cell["bytes"])
        for point in cell.partition_by(axes, maintain_order=True):
            at = {"experiment": experiment.name} | {axis: point[axis][0] for axis in axes}
            rows += [at | row for row in _of_point(point, classes)]
    return pl.DataFrame(rows, infer_schema_length=None)


def _tenths(sizes: pl.Series) -> dict[str, tuple[int, int]]:
    """Give the bounds of ten classes with as many flows each.

    Where many flows have one size, a class has those of its neighbours too, which are left out; if
    all have one size, there are none.
    """
    bounds = np.quantile(sizes.to_numpy(), np.linspace(0, 1, TENTHS + 1)).astype(int)
    if bounds[0] == bounds[-1]:
        return {}
    bounds[-1] += 1
    return {
        f"tenth {number + 1}": (int(bounds[number]), int(bounds[number + 1]))
        for number in range(TENTHS)
        if bounds[number] < bounds[number + 1]
    }


def _of_point(
    point: pl.DataFrame, classes: dict[str, tuple[int, int]]
) -> Iterator[dict[str, object]]:
    for name, (low, high) in classes.items():
        some = point.filter((pl.col("bytes") >= low) & (pl.col("bytes") < high))
        if some.is_empty():
            continue
        about: dict[str, object] = {
            "sizes": name,
            "from_bytes": some["bytes"].min(),
            "to_bytes": some["bytes"].max(),
            "flow_count": len(some),
            "seed_count": some["seed"].n_unique(),
        }
        for quantity in POOLED:
            known = some.filter(pl.col(quantity).is_not_null())
            if len(known):
                yield about | {"quantity": quantity} | percentiles(known, quantity)


def percentiles(flows: pl.DataFrame, quantity: str) -> dict[str, float | None]:
    """Compute the percentiles of a column of flows, and their intervals over seeds."""
    ordered = flows.select("seed", quantity).sort(quantity)
    values = ordered[quantity].to_numpy()
    seeds, of_seed = np.unique(ordered["seed"].to_numpy(), return_inverse=True)
    draws, counts = np.ones((1, len(seeds))), np.zeros(1, dtype=int)
    if len(seeds) >= SEEDS_MIN:
        resampled, how_often = _resampled(len(seeds))
        draws, counts = np.vstack([draws, resampled]), np.append(counts, how_often)
    known = {name: share for name, (share, least) in PERCENTILES.items() if len(values) >= least}
    found: dict[str, float | None] = {}
    for name in PERCENTILES:
        found |= dict.fromkeys((name, f"{name}_low", f"{name}_high"))
    measured = _quantiles(values, of_seed, draws, known.values())
    for name, of_draws in zip(known, measured, strict=True):
        # The first draw has every seed once; it is what was measured.
        found[name] = float(of_draws[0])
        if len(draws) > 1:
            ends = np.quantile(np.repeat(of_draws, counts), [LEVEL / 2, 1 - LEVEL / 2])
            found[f"{name}_low"], found[f"{name}_high"] = map(float, ends)
    return found


def _resampled(count: int) -> tuple[Numbers, NDArray[np.intp]]:
    """Draw seeds with replacement: how often each is in a draw, and how often that draw came."""
    rng = np.random.default_rng(0)
    drawn = rng.multinomial(count, [1 / count] * count, _RESAMPLES)
    draws, counts = np.unique(drawn, axis=0, return_counts=True)
    return draws.astype(float), counts


def _quantiles(
    ordered: Numbers, of_seed: NDArray[np.intp], draws: Numbers, shares: Collection[float]
) -> list[Numbers]:
    """Give, for each share and draw, the smallest value that this share does not exceed."""
    step = max(_CELLS_AT_ONCE // len(ordered), 1)
    parts: list[list[Numbers]] = []
    for first in range(0, len(draws), step):
        sums = np.cumsum(draws[first : first + step, of_seed], axis=1)
        below = [(sums < share * sums[:, -1:] - 1e-9).sum(axis=1) for share in shares]
        parts.append([ordered[np.minimum(number, len(ordered) - 1)] for number in below])
    return [np.concatenate(of_share) for of_share in zip(*parts, strict=True)]
