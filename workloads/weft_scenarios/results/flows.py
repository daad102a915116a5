# SPDX-License-Identifier: Apache-2.0
"""The table of all flows of an experiment: a row per flow, with the point of its run.

Flows that arrived during a run's warm-up are left out.

| column                | unit | what                                                            |
|-----------------------|------|-----------------------------------------------------------------|
| `experiment`, `seed`  |      | name of the experiment in the file, and seed                    |
| one per axis          |      | the point, a number or a name; `at_NAME` where NAME is a column |
| `run`                 |      | the run's folder in the store                                   |
| `flow`, `src`, `dst`  |      | number in the run, sending host, receiving host                 |
| `bytes`               | B    | size                                                            |
| `start_ns`, `fct_ns`  | ns   | start in the run; flow completion time (FCT), null if it failed |
| `ideal_fct_ns`        | ns   | FCT of the same flow on an idle fabric                          |
| `slowdown`            |      | `fct_ns / ideal_fct_ns`                                         |
| `subflows`            |      | number of subflows at its end                                   |
| `retransmissions`     |      | packets retransmitted on their subflow                          |
| `timeouts`            |      | retransmission timeouts                                         |
| `reinjected_bytes`    | B    | data sent again on another subflow                              |
| `error`               |      | why it failed, else null                                        |
"""

import io
import json
from collections.abc import Iterable
from pathlib import Path

import polars as pl

from weft_scenarios.definition.scenario import Axis, Scenario
from weft_scenarios.errors import ScenarioError
from weft_scenarios.files import write_whole
from weft_scenarios.measures import warmup
from weft_scenarios.results.results import point_text
from weft_scenarios.runs.run import Run

FILE = "flows.parquet"

_Schema = dict[str, type[pl.DataType]]

_COLUMNS: _Schema = {
    "flow": pl.Int64,
    "src": pl.String,
    "dst": pl.String,
    "bytes": pl.Int64,
    "start_ns": pl.Int64,
    "fct_ns": pl.Int64,
    "ideal_fct_ns": pl.Int64,
    "subflows": pl.Int64,
    "retransmissions": pl.Int64,
    "timeouts": pl.Int64,
    "reinjected_bytes": pl.Int64,
    "error": pl.String,
}


def collect(scenario: Scenario, done: Iterable[tuple[Run, Path]]) -> pl.DataFrame:
    """Collect the flows of finished runs, each with its folder, into one table."""
    axes = _axes(scenario)
    named: _Schema = {column(name): kind for name, kind in axes.items()}
    schema: _Schema = {"experiment": pl.String, **named, "seed": pl.Int64, "run": pl.String}
    parts = [pl.DataFrame(schema=schema | _COLUMNS)]
    for run, folder in done:
        at: dict[str, object] = {"experiment": run.experiment, "seed": run.seed}
        at |= {"run": folder.name} | dict.fromkeys(named)
        for name, value in run.at.items():
            is_number = axes[name] == pl.Float64
            at[column(name)] = float(value) if is_number else point_text(value)
        flows = pl.read_csv(folder / "flows.csv", schema_overrides=_COLUMNS)
        info = json.loads((folder / "run.json").read_text())
        flows = warmup.measured(flows, info)
        absent = [pl.lit(None, kind).alias(n) for n, kind in _COLUMNS.items() if n not in flows]
        labels = [pl.lit(at[name], kind).alias(name) for name, kind in schema.items()]
        parts.append(flows.with_columns(absent).select(*labels, *_COLUMNS))
    table = pl.concat(parts)
    return table.with_columns((pl.col("fct_ns") / pl.col("ideal_fct_ns")).alias("slowdown"))


def column(axis: str) -> str:
    """Name the column of an axis."""
    taken = {*_COLUMNS, "run", "slowdown"}
    return f"at_{axis}" if axis in taken else axis


def as_text(axis: Axis, table: pl.DataFrame) -> pl.Expr:
    """Give the column of an axis as text, as the other tables have it."""
    source = pl.col(column(axis.name))
    if table.schema[column(axis.name)] != pl.Float64:
        return source
    texts = {float(v): point_text(v) for v in axis.values() if not isinstance(v, str)}
    return source.replace_strict(texts, return_dtype=pl.String)


def _axes(scenario: Scenario) -> _Schema:
    """Give the type of each axis. Experiments share the column of an axis."""
    kinds: _Schema = {}
    for experiment in scenario.experiments:
        for axis in experiment.axes:
            is_number = all(isinstance(value, int | float) for value in axis.values())
            if not is_number or kinds.get(axis.name) == pl.String:
                kinds[axis.name] = pl.String
            else:
                kinds[axis.name] = pl.Float64
    return kinds


def write(folder: Path, table: pl.DataFrame) -> None:
    """Write the table into a folder of results; replaces an older one."""
    buffer = io.BytesIO()
    table.write_parquet(buffer, compression="zstd")
    write_whole(folder / FILE, buffer.getvalue())


def read(folder: Path) -> pl.DataFrame:
    """Read what `write` wrote."""
    try:
        return pl.read_parquet(folder / FILE)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise ScenarioError(f"{folder / FILE}: no table of flows: {error}") from None
