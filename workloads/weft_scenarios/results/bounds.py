# SPDX-License-Identifier: Apache-2.0
"""What no system can beat, flow by flow: FCTs of the fluid model with the shortest flows first.

Runs that have the same flows over the same fabric, as those of a seed under several transports,
have the same, which is computed once.
"""

import json
import pickle
from collections.abc import Iterable
from pathlib import Path

import polars as pl

from weft_scenarios.definition.quantities import SHORTEST
from weft_scenarios.definition.scenario import Scenario
from weft_scenarios.measures import fluid
from weft_scenarios.runs.run import Run

COLUMN = "shortest_fct_ns"
_SCHEMA = {"run": pl.String, "flow": pl.Int64, COLUMN: pl.Float64}
_READ = {"flow": pl.Int64, "error": pl.String}


def collect(scenario: Scenario, done: Iterable[tuple[Run, Path]]) -> pl.DataFrame:
    """Compute the FCTs for the plots that show them, of finished runs, each with its folder.

    Gives a row per flow: `run`, the folder's name; `flow`, its number; `shortest_fct_ns`.
    """
    shown = {plot.experiment for plot in scenario.plots if SHORTEST in plot.models}
    known: dict[bytes, pl.Series] = {}
    parts = [pl.DataFrame(schema=_SCHEMA)]
    for run, folder in done:
        if run.experiment not in shown:
            continue
        info = json.loads((folder / "run.json").read_text())
        flows = pl.read_csv(folder / "flows.csv", schema_overrides=_READ)
        arrived = flows.filter(pl.col("fct_ns").is_not_null())
        flowing = fluid.covered(info, arrived)
        if flowing is None:
            continue
        same = pickle.dumps(flowing)
        if same not in known:
            known[same] = pl.Series(flowing.fct_s(fluid.shortest_first) * 1e9)
        name, fct_ns = pl.lit(folder.name).alias("run"), known[same].alias(COLUMN)
        parts.append(arrived.select(name, "flow", fct_ns))
    return pl.concat(parts)
