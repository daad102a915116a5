# SPDX-License-Identifier: Apache-2.0
"""What no system can beat, flow by flow: FCTs of the fluid model with the shortest flows first.

A seed's flows are the same under all that an experiment compares, so they are computed once.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import polars as pl

from weft_scenarios.definition.quantities import SHORTEST
from weft_scenarios.definition.scenario import Scenario
from weft_scenarios.measures import fluid
from weft_scenarios.runs.run import Run

COLUMN = "shortest_fct_ns"
_SCHEMA = {"run": pl.String, "flow": pl.Int64, COLUMN: pl.Float64}


def collect(scenario: Scenario, done: Iterable[tuple[Run, Path]]) -> pl.DataFrame:
    """Compute the FCTs for the plots that show them, of finished runs, each with its folder.

    Gives a row per flow: `run`, the folder's name; `flow`, its number; `shortest_fct_ns`.
    """
    shown = {plot.experiment for plot in scenario.plots if SHORTEST in plot.models}
    compared = {one.name: one.percentiles for one in scenario.experiments if one.name in shown}
    known: dict[object, pl.DataFrame | None] = {}
    parts = [pl.DataFrame(schema=_SCHEMA)]
    for run, folder in done:
        if run.experiment not in compared:
            continue
        same = _without(run.at, compared[run.experiment])
        key = (run.experiment, run.seed, same)
        if key not in known:
            known[key] = _of_run(folder)
        found = known[key]
        if found is not None:
            name = pl.lit(folder.name).alias("run")
            parts.append(found.select(name, "flow", COLUMN))
    return pl.concat(parts)


def _without(at: Mapping[str, object], axis: str) -> frozenset[tuple[str, object]]:
    return frozenset((name, value) for name, value in at.items() if name != axis)


def _of_run(folder: Path) -> pl.DataFrame | None:
    info = json.loads((folder / "run.json").read_text())
    flows = pl.read_csv(folder / "flows.csv", schema_overrides={"error": pl.String})
    arrived = flows.filter(pl.col("fct_ns").is_not_null())
    fct_ns = fluid.shortest_first_fct_ns(info, arrived)
    if fct_ns is None:
        return None
    return arrived.select(pl.col("flow").cast(pl.Int64), fct_ns.alias(COLUMN))
