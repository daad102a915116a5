# SPDX-License-Identifier: Apache-2.0
"""A scenario: the experiments of a figure, its plots, and the claims that they judge."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft_scenarios.definition.seeds import Seeds
from weft_scenarios.definition.toml_positions import Source
from weft_scenarios.definition.toml_reader import Value

Where = Mapping[str, tuple[Value, ...]]
"""A selection of points, by axis."""


@dataclass(frozen=True)
class Point:
    """A point of an axis, and its flags of `weft run`."""

    at: Value
    flags: Mapping[str, str]
    seconds: float | None = None
    """Real time of a run at this point, if it differs from the experiment's."""
    is_full: bool = False
    """Whether it runs only at the paper's scale."""


@dataclass(frozen=True)
class Axis:
    """A parameter that is varied, with its points."""

    name: str
    label: str
    points: tuple[Point, ...]

    def values(self) -> tuple[Value, ...]:
        """Give its points without their flags."""
        return tuple(point.at for point in self.points)


@dataclass(frozen=True)
class Quick:
    """What the quick set reduces an experiment to."""

    seeds: Seeds
    points: Where
    flags: Mapping[str, str]


@dataclass(frozen=True)
class Full:
    """What an experiment changes at the paper's scale."""

    seeds: Seeds
    seconds: float
    flags: Mapping[str, str]


@dataclass(frozen=True)
class Experiment:
    """Every combination of its axes' points, with `seeds` of each."""

    name: str
    flags: Mapping[str, str]
    axes: tuple[Axis, ...]
    seeds: Seeds
    seconds: float
    evidence: bool
    percentiles: str
    """Axis whose points' pooled percentiles are compared; empty if none are wanted."""
    quick: Quick | None
    full: Full | None

    def axis(self, name: str) -> Axis | None:
        """Find an axis."""
        return next((axis for axis in self.axes if axis.name == name), None)


@dataclass(frozen=True)
class PaperValue:
    """A number that the paper gives, drawn into the plot of what was measured."""

    at: Value
    """Point of the plot's x axis; in a distribution, the share in percent."""
    series: Value | None
    """Whose it is; None if it is nobody's alone."""
    value: float
    """In the unit of the plot's quantity."""


@dataclass(frozen=True)
class Plot:
    """A plot of one quantity of an experiment."""

    name: str
    title: str
    experiment: str
    kind: str
    quantity: str
    models: tuple[str, ...]
    """Quantities that are drawn beside it, as dashed lines: what a formula predicts."""
    x: str | None
    series: str
    facet: str | None
    where: Where
    log: str
    versus: Value | None
    """A point of the series: the others are drawn as ratios to it, seed by seed."""
    paper: tuple[PaperValue, ...]


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper, and the comparison that judges it.

    The metric at `which` must be `relation` `factor` times the metric at `versus` (or `limit`), at
    every combination of points of the other axes.
    """

    text: str
    source: str
    paper: str
    """The paper's number, in its words; empty if it gives none."""
    reading: str
    experiment: str
    metric: str
    which: Where
    versus: Where | None
    limit: float | None
    relation: str
    factor: float
    somewhere: bool
    grade: str
    """How faithful the setting is, A, B or C; empty for a goal of one's own."""
    differs: str
    """How the setting differs from the paper's; empty with grade A."""


@dataclass(frozen=True)
class Scenario:
    """A scenario file."""

    name: str
    title: str
    source: str
    setting: str
    note: str
    experiments: tuple[Experiment, ...]
    plots: tuple[Plot, ...]
    claims: tuple[Claim, ...]
    is_apart: bool
    """Whether `make scenarios` skips it."""
    is_figure: bool
    """Whether `make figures` runs it, at its reduced scale too."""
    source_file: Source
    """The file that it was read from."""
    content: Mapping[str, Any]
    """Its parsed TOML."""
    folder: Path
    """The folder that its paths are relative to."""

    def experiment(self, name: str) -> Experiment:
        """Give the experiment `name`, which must exist."""
        return next(e for e in self.experiments if e.name == name)
