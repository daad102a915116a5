# SPDX-License-Identifier: Apache-2.0
"""Result files of a scenario, from which tables, plots and verdicts are made.

| file              | what                                                                  |
|-------------------|-----------------------------------------------------------------------|
| `flows.parquet`   | a row per flow; see `flows.py`                                        |
| `results.csv`     | a row per run: experiment, axes, seed, every metric; empty = no value |
| `percentiles.csv` | a row per point and size class, if asked for; see `pooled.py`         |
| `curves.csv`      | a row per point of a curve: experiment, axes, seed, curve, x, y       |
| `runs.csv`        | digests of what each run gave; see `fingerprints.py`                  |
| `about.json`      | versions, machine, progress, failed runs; see `About`                 |
| `scenario.toml`   | a copy of the scenario file: every parameter                          |
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import polars as pl

from weft_scenarios.definition.quantities import METRICS
from weft_scenarios.definition.scenario import Experiment, Scenario, Where
from weft_scenarios.definition.toml_reader import Value
from weft_scenarios.errors import ScenarioError
from weft_scenarios.files import write_whole
from weft_scenarios.measures.metrics import Measured
from weft_scenarios.runs.run import Run


@dataclass(frozen=True)
class About:
    """The origin of results."""

    quick: bool
    kernels: list[str]
    revisions: list[str]
    runs: int
    failed: list[str]
    """One line each: which run, and why."""
    failed_at: list[dict[str, str]] = field(default_factory=list)
    """Experiment and point of each of them, in the same order."""
    logs: dict[str, str] = field(default_factory=dict)
    """The log file of each failed run."""
    full: bool = False
    """At the paper's scale."""
    state: str = "complete"
    """`complete`, `running`, or the reason why it stopped."""
    planned: int | None = None
    """Runs of the whole scenario."""
    wall_s: float | None = None
    """Sum of the real time of all runs."""
    machine: dict[str, str] = field(default_factory=dict)
    """The machine."""
    versions: dict[str, str] = field(default_factory=dict)
    """Versions of what ran and what measured."""


@dataclass(frozen=True)
class Results:
    """The results of a scenario."""

    runs: pl.DataFrame
    curves: pl.DataFrame
    about: About
    percentiles: pl.DataFrame = field(default_factory=pl.DataFrame)
    """Of the flows of all seeds together; see `pooled.py`."""

    def of(self, experiment: str, where: Where | None = None) -> pl.DataFrame:
        """Give the runs of an experiment at the selected points."""
        return chosen(self.runs.filter(pl.col("experiment") == experiment), where or {})

    def has_failed(self, experiment: str, *points: Mapping[str, str]) -> bool:
        """Whether a run at one of these points failed."""
        return any(
            at["experiment"] == experiment and all(at.get(a) == p for a, p in point.items())
            for at in self.about.failed_at
            for point in points
        )


def chosen(frame: pl.DataFrame, where: Where) -> pl.DataFrame:
    """Keep the rows at the selected points."""
    for axis, points in where.items():
        frame = frame.filter(pl.col(axis).is_in([point_text(point) for point in points]))
    return frame


def points_of(experiment: Experiment, axis_name: str, frame: pl.DataFrame) -> list[str]:
    """Give the points of an axis that are in a frame, in the file's order.

    Of a column that is no axis, they are in the frame's order.
    """
    axis = experiment.axis(axis_name)
    if axis is None:
        return frame[axis_name].unique(maintain_order=True).to_list() if axis_name in frame else []
    there = set(frame[axis_name].to_list())
    return [text for value in axis.values() if (text := point_text(value)) in there]


def point_text(value: Value) -> str:
    """Format a point of an axis as in the tables."""
    return f"{value:g}" if isinstance(value, float) else str(value)


_POINTS: dict[str, type[pl.DataType]] = {"curve": pl.String, "x": pl.Float64, "y": pl.Float64}
"""Columns of the table of curves, after those that identify the run."""


PERCENTILES = "percentiles.csv"


def collect(
    scenario: Scenario,
    done: Iterable[tuple[Run, Measured]],
    failed: Iterable[tuple[Run, str]],
    quick: bool,
    full: bool = False,
) -> Results:
    """Collect the runs of a scenario; `failed` are failed runs, each with the reason."""
    axes = {axis.name: None for e in scenario.experiments for axis in e.axes}
    rows: list[dict[str, object]] = []
    curves: list[pl.DataFrame] = []
    schema: dict[str, type[pl.DataType]] = dict.fromkeys(("experiment", *axes), pl.String)
    schema["seed"] = pl.Int64
    measured_all = []
    for run, measured in done:
        at: dict[str, object] = {"experiment": run.experiment, **axes, "seed": run.seed}
        at |= {name: point_text(value) for name, value in run.at.items()}
        rows.append(at | measured.numbers())
        measured_all.append(measured)
        for name, (x, y) in measured.curves.items():
            points = pl.DataFrame({"x": x, "y": y}, schema={"x": pl.Float64, "y": pl.Float64})
            labels = [pl.lit(value, schema[key]).alias(key) for key, value in at.items()]
            curves.append(points.select(*labels, pl.lit(name).alias("curve"), "x", "y"))
    failed = list(failed)
    about = About(
        quick=quick,
        full=full,
        kernels=sorted({m.kernel for m in measured_all}),
        revisions=sorted({m.revision for m in measured_all}),
        runs=len(rows) + len(failed),
        failed=[f"{run}: {why}" for run, why in failed],
        failed_at=[
            {"experiment": run.experiment} | {name: point_text(at) for name, at in run.at.items()}
            for run, _ in failed
        ],
        wall_s=sum(m.wall_s or 0.0 for m in measured_all) or None,
    )
    numbers: dict[str, type[pl.DataType]] = dict.fromkeys(METRICS, pl.Float64)
    empty = pl.DataFrame(schema=schema | _POINTS)
    return Results(
        pl.DataFrame(rows, schema=schema | numbers),
        pl.concat([empty, *curves]),
        about,
    )


def write(folder: Path, results: Results) -> None:
    """Write the files into `folder`; replaces older ones."""
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "results.csv", results.runs.write_csv(float_precision=6))
    write_whole(folder / "curves.csv", results.curves.write_csv(float_precision=6))
    if results.percentiles.is_empty():
        (folder / PERCENTILES).unlink(missing_ok=True)
    else:
        write_whole(folder / PERCENTILES, results.percentiles.write_csv(float_precision=6))
    write_whole(folder / "about.json", json.dumps(asdict(results.about), indent=1) + "\n")


def read(scenario: Scenario, folder: Path) -> Results:
    """Read what `write` wrote."""
    axes = {axis.name: pl.String for e in scenario.experiments for axis in e.axes}
    schema: dict[str, type[pl.DataType]] = {"experiment": pl.String, **axes}
    numbers: dict[str, type[pl.DataType]] = dict.fromkeys(METRICS, pl.Float64)
    try:
        about = About(**json.loads((folder / "about.json").read_text()))
        runs = pl.read_csv(folder / "results.csv", schema_overrides=schema | numbers)
        curves = pl.read_csv(folder / "curves.csv", schema_overrides=schema | _POINTS)
        missing = [name for name in schema if name not in runs.columns]
        file = folder / PERCENTILES
        pooled = pl.read_csv(file, schema_overrides=axes) if file.exists() else pl.DataFrame()
        # Older results lack newer metrics.
        newer = [name for name in METRICS if name not in runs.columns]
        runs = runs.with_columns(pl.lit(None, pl.Float64).alias(name) for name in newer)
    except (OSError, ValueError, TypeError, pl.exceptions.PolarsError):
        missing = ["results"]
    if missing:
        raise ScenarioError(
            f"{folder}: no results of {scenario.name} as it is now: run `make scenario "
            f"SCENARIO={scenario.name}` first"
        )
    return Results(runs, curves, about, pooled)
