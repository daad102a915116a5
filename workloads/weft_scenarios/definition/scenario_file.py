# SPDX-License-Identifier: Apache-2.0
"""Reads scenario files.

workloads/scenarios/README.md explains their keys.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from weft_scenarios.definition.quantities import METRICS, POOLED, POOLED_COLUMNS, Quantity, shown_by
from weft_scenarios.definition.scenario import (
    Axis,
    Claim,
    Experiment,
    Full,
    PaperValue,
    Plot,
    Point,
    Quick,
    Scenario,
    Where,
)
from weft_scenarios.definition.seeds import AT_LEAST, AT_MOST, OF, Seeds
from weft_scenarios.definition.toml_positions import Source
from weft_scenarios.definition.toml_reader import Table, Value
from weft_scenarios.errors import ScenarioError

FOLDER = Path(__file__).resolve().parents[2] / "scenarios"
"""Folder of the scenario files."""

_TAKEN = {"experiment", "seed", "curve", "x", "y", *METRICS, *POOLED, *POOLED_COLUMNS}
"""Columns of the result tables, besides those of axes."""
RELATIONS = ("<=", ">=")
GRADES = ("A", "B", "C")
"""How faithful the setting of a claim is: the paper's, one that differs, not comparable."""
OWN = "goal"
"""Source of a claim that is no paper's."""
KINDS = ("line", "bars", "rows", "cdf", "course", "sizes")


def names(folder: Path = FOLDER) -> list[str]:
    """List all scenarios."""
    return sorted(path.stem for path in folder.glob("*.toml"))


def read(name: str, folder: Path = FOLDER) -> Scenario:
    """Read the scenario `name`, or raise ScenarioError."""
    path = folder / f"{name}.toml"
    if not path.exists():
        known = ", ".join(names(folder))
        raise ScenarioError(f"no scenario {name!r}; there are {known}")
    return read_file(path)


def read_file(path: Path) -> Scenario:
    """Read a scenario file, or raise ScenarioError."""
    shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    try:
        source = Source(str(shown), path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ScenarioError(f"{shown}: no such file; give a scenario file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{shown}: not a scenario file: {error}") from None
    return parse(path.stem, source, path.absolute().parent)


def parse(name: str, source: Source, folder: Path) -> Scenario:
    """Parse a scenario whose file is in `folder`, or raise ScenarioError."""
    try:
        content = tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(_not_toml(source, error)) from None
    table = Table(content, source)
    flags = table.flags("flags")
    fidelity = _fidelity(table, ("", ""))
    shared = [_axis(row) for row in table.tables("axis")]
    _distinct([axis.name for axis in shared], table, "axis")
    experiments = tuple(_experiment(row, flags, shared) for row in table.tables("experiment"))
    if not experiments:
        raise table.fail("no [[experiment]]; give at least one")
    _distinct([e.name for e in experiments], table, "experiment")
    for index, axis in enumerate(shared):
        if not any(axis in experiment.axes for experiment in experiments):
            place = source.at(("axis", index))
            raise ScenarioError(f"{place}: axis {axis.name}: no experiment names it; remove it")
    plots = tuple(_plot(row, experiments) for row in table.tables("plot"))
    _distinct([plot.name for plot in plots], table, "plot")
    apart = table.take("apart", _apart, 'true, false or "figures"', False)
    scenario = Scenario(
        name=name,
        title=table.text("title"),
        source=table.text("source"),
        setting=table.text("setting"),
        note=table.text("note", ""),
        experiments=experiments,
        plots=plots,
        claims=tuple(_claim(row, experiments, fidelity) for row in table.tables("claim")),
        is_apart=apart is not False,
        is_figure=apart is False or apart == "figures",
        source_file=source,
        content=content,
        folder=folder,
    )
    table.end()
    return scenario


def _apart(value: Any) -> Any:
    return value if isinstance(value, bool) or value == "figures" else None


def _not_toml(source: Source, error: tomllib.TOMLDecodeError) -> str:
    """Move the line number of tomllib's message to the front, where editors look for it."""
    said, place = str(error), re.search(r" \(at line (\d+), column \d+\)$", str(error))
    if place is None:
        return f"{source.name}: not valid TOML: {said}"
    return f"{source.name}:{place[1]}: not valid TOML: {said[: place.start()]}"


def _experiment(table: Table, flags: Mapping[str, str], shared: list[Axis]) -> Experiment:
    axes = [_own_or_shared(row, shared) for row in table.tables("axis")]
    for flag, label in (("scheduler", "Scheduler"), ("congestion", "Congestion control")):
        values = table.names(flag, [])
        if values:
            axes.append(Axis(flag, label, tuple(Point(v, _flag(flag, v)) for v in values)))
    _distinct([axis.name for axis in axes], table, "axis")
    experiment = Experiment(
        name=table.text("name"),
        flags={**flags, **table.flags("flags")},
        axes=tuple(axes),
        seeds=_seeds(table),
        seconds=table.number("seconds"),
        evidence=table.switch("evidence", False),
        percentiles=table.choice("percentiles", [axis.name for axis in axes], ""),
        quick=_quick(table.table("quick"), axes),
        full=_full(table.table("full")),
    )
    table.end()
    return experiment


def _seeds(table: Table, default: int | None = None) -> Seeds:
    """Read `seeds = 5`, `{ first = 301, count = 5 }`, or `{ until = "5%", at_most = 20 }`."""
    given = table.count_or_table("seeds", default)
    if isinstance(given, int):
        return Seeds.fixed(given)
    first = given.count("first", 1)
    if count := given.count("count", 0):
        given.end()
        return Seeds.fixed(count, first)
    if "until" not in given.content():
        raise given.fail('give count, such as count = 5, or until, such as until = "5%"')
    seeds = Seeds(
        first=first,
        at_least=given.count("at_least", AT_LEAST),
        at_most=given.count("at_most", AT_MOST),
        percent=given.percent("until"),
        of=given.choice("of", METRICS, OF),
    )
    given.end()
    if not 2 <= seeds.at_least < seeds.at_most:
        range_text = f"at_least = {seeds.at_least} and at_most = {seeds.at_most}"
        raise given.fail(f"{range_text}: at_least must be 2 or more, and at_most larger")
    return seeds


def _flag(flag: str, value: str) -> dict[str, str]:
    # Plain TCP is listed with the schedulers, as the baseline of a single path.
    return {"protocol": "tcp"} if (flag, value) == ("scheduler", "tcp") else {flag: value}


def is_shared(axis: Mapping[str, Any]) -> bool:
    """Whether an axis of an experiment, as the file has it, is the file's axis of that name."""
    return set(axis) == {"name"}


def _own_or_shared(table: Table, shared: list[Axis]) -> Axis:
    """Read an axis of an experiment."""
    if not is_shared(table.content()):
        return _axis(table)
    name = table.text("name")
    for axis in shared:
        if axis.name == name:
            return axis
    raise table.fail("label is missing, and the file has no [[axis]] of this name; give either")


def _axis(table: Table) -> Axis:
    name = table.text("name")
    if name in _TAKEN:
        wrong = f"name = {name!r} is a column of the result tables; choose another name"
        raise table.fail(wrong, "name")
    label = table.text("label")
    flag = table.text("flag", "")
    values = table.values("values", [])
    rows = table.tables("points")
    table.end()
    if bool(flag) != bool(values) or bool(values) == bool(rows):
        raise table.fail("give either flag and values, or points = [{ at = ..., flags = {...} }]")
    points = [Point(value, {flag: str(value)}) for value in values] or [_point(r) for r in rows]
    if all(point.is_full for point in points):
        raise table.fail("every point has full = true; remove it from those of the usual set")
    axis = Axis(name, label, tuple(points))
    _distinct([str(value) for value in axis.values()], table, "point")
    return axis


def _point(table: Table) -> Point:
    right = "the point's number or name"
    at = table.value("at", right)
    flags, seconds = table.flags("flags"), table.number("seconds", None)
    point = Point(at, flags, seconds, table.switch("full", False))
    table.end()
    return point


def _quick(table: Table | None, axes: list[Axis]) -> Quick | None:
    if table is None:
        return None
    seeds = _seeds(table, 1)
    flags = table.flags("flags")
    points = {axis.name: tuple(table.values(axis.name, list(axis.values()))) for axis in axes}
    table.end()
    _check_points(points, axes, table)
    return Quick(seeds, points, flags)


def _full(table: Table | None) -> Full | None:
    if table is None:
        return None
    full = Full(_seeds(table), table.number("seconds"), table.flags("flags"))
    table.end()
    return full


def _plot(table: Table, experiments: tuple[Experiment, ...]) -> Plot:
    experiment = _named_experiment(table, experiments)
    kind = table.choice("kind", KINDS, "line")
    names = [axis.name for axis in experiment.axes]
    quantities = shown_by(kind)
    plot = Plot(
        name=table.text("name"),
        title=table.text("title"),
        experiment=experiment.name,
        kind=kind,
        quantity=table.choice("quantity", quantities),
        models=_models(table, POOLED if kind == "sizes" else METRICS),
        x=(x := table.choice("x", names) if quantities is METRICS else None),
        series=table.choice("series", names, x if x and kind == "rows" else "scheduler"),
        facet=table.choice("facet", names, None),
        where=_where(table, "where", experiment) or {},
        log=table.choice("log", ["", "x", "y", "xy"], ""),
        versus=table.value("versus", "a point of the plot's series", None),
        paper=(),
    )
    paper = tuple(_paper_value(row, experiment, plot) for row in table.tables("paper"))
    plot = replace(plot, paper=paper)
    if kind == "sizes" and plot.series != experiment.percentiles:
        right = f"percentiles = {plot.series!r} in the experiment"
        raise table.fail(f"flows by size are compared along the series: give {right}", "series")
    _require_series(table, plot, experiment)
    x_axis = experiment.axis(plot.x or "")
    is_scale = x_axis and all(not isinstance(value, str) for value in x_axis.values())
    if plot.models and not (kind == "sizes" or (kind == "line" and is_scale)):
        right = 'give kind = "line", and an axis of numbers, or kind = "sizes"'
        raise table.fail(f"models are lines: {right}", "models")
    table.end()
    return plot


def _require_series(table: Table, plot: Plot, experiment: Experiment) -> None:
    """Refuse ratios to what is no series of a plot of means."""
    if plot.versus is None:
        return
    is_its_own = plot.x == plot.series and plot.kind != "rows"
    if plot.x is None or plot.models or plot.paper or is_its_own:
        raise table.fail(
            "versus: ratios are of means along x, and have no models and no numbers of a paper",
            "versus",
        )
    _require_point(table, "versus", plot.versus, experiment, plot.series)


def _require_point(table: Table, key: str, point: Value, experiment: Experiment, name: str) -> None:
    """Refuse what is no point of an axis."""
    axis = experiment.axis(name)
    if axis is None or point not in axis.values():
        raise table.fail(f"{key} = {point!r} is no point of {experiment.name}'s {name}", key)


def _paper_value(table: Table, experiment: Experiment, plot: Plot) -> PaperValue:
    if plot.kind in ("rows", "course", "sizes"):
        raise table.fail(
            f"kind = {plot.kind!r} shows no numbers of a paper; draw lines, bars or a cdf"
        )
    right = "the share in percent" if plot.kind == "cdf" else "a point of the plot's x axis"
    made = PaperValue(
        table.value("at", right),
        table.value("series", "a point of the plot's series", None),
        table.number("value"),
    )
    if plot.kind == "cdf" and not (isinstance(made.at, int | float) and 0 <= made.at <= 100):
        raise table.fail(f"at = {made.at}: the share in percent is from 0 to 100", "at")
    for key, point, name in (("at", made.at, plot.x), ("series", made.series, plot.series)):
        if name and point is not None:
            _require_point(table, key, point, experiment, name)
    table.end()
    return made


def _models(table: Table, quantities: Mapping[str, Quantity]) -> tuple[str, ...]:
    models = tuple(table.names("models", []))
    exact = [name for name, quantity in quantities.items() if quantity.is_exact]
    for name in models:
        if name not in exact:
            raise table.fail(f"models: {name!r} is not one of {', '.join(exact)}", "models")
    return models


def _fidelity(table: Table, default: tuple[str, str]) -> tuple[str, str]:
    """Read how faithful a setting is, and how it differs."""
    grade: str | None = table.choice("grade", GRADES, None)
    differs: str | None = table.text("differs", None)
    if grade is None and differs is None:
        return default
    if grade is None:
        raise table.fail(f"differs needs a grade: {', '.join(GRADES)}", "differs")
    if (grade == "A") == (differs is not None):
        right = "A is the paper's setting" if differs else "say what differs from the paper"
        raise table.fail(f"grade {grade}: {right}", "grade")
    return grade, differs or ""


def _claim(table: Table, experiments: tuple[Experiment, ...], fidelity: tuple[str, str]) -> Claim:
    source = table.text("source")
    own = source == OWN or source.startswith(f"{OWN},")
    grade, differs = _fidelity(table, ("", "") if own else fidelity)
    if own and grade:
        raise table.fail("a goal of one's own has no grade; remove grade and differs", "grade")
    experiment = _named_experiment(table, experiments)
    which = _where(table, "which", experiment)
    versus = _where(table, "versus", experiment)
    limit: float | None = table.number("limit", None)
    if (versus is None) == (limit is None):
        raise table.fail("give either versus = {...} or limit = NUMBER")
    claim = Claim(
        text=table.text("text"),
        source=source,
        paper=table.text("paper", ""),
        reading=table.text("reading", ""),
        experiment=experiment.name,
        metric=table.choice("metric", METRICS),
        which=which or {},
        versus=versus,
        limit=limit,
        relation=table.choice("relation", RELATIONS),
        factor=table.number("factor", 1.0),
        somewhere=table.choice("at", ["every point", "some point"], "every point") == "some point",
        grade=grade,
        differs=differs,
    )
    table.end()
    return claim


def _named_experiment(table: Table, experiments: tuple[Experiment, ...]) -> Experiment:
    name = table.choice("experiment", [e.name for e in experiments], experiments[0].name)
    return next(e for e in experiments if e.name == name)


def _where(table: Table, key: str, experiment: Experiment) -> dict[str, tuple[Value, ...]] | None:
    inner = table.table(key)
    if inner is None:
        return None
    points = {name: _points(value) for name, value in inner.content().items()}
    _check_points(points, list(experiment.axes), inner)
    return points


def _points(value: Any) -> tuple[Value, ...]:
    return tuple(value) if isinstance(value, list) else (value,)


def _check_points(points: Where, axes: list[Axis], table: Table) -> None:
    for name, chosen in points.items():
        axis = next((axis for axis in axes if axis.name == name), None)
        if axis is None:
            known = ", ".join(axis.name for axis in axes)
            raise table.fail(f"{name} is not an axis of the experiment; there are {known}", name)
        for value in chosen:
            if value not in axis.values():
                known = ", ".join(map(str, axis.values()))
                wrong = f"{name} = {value!r} is not a point of the axis; there are {known}"
                raise table.fail(wrong, name)


def _distinct(found: list[str], table: Table, what: str) -> None:
    for name in found:
        if found.count(name) > 1:
            raise table.fail(f"{what} {name} appears twice; choose another name")
