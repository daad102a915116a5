# SPDX-License-Identifier: Apache-2.0
"""Fingerprints of runs: whoever repeats one of a page's runs sees whether the flows are the same.

The same flags, programs and kernel give the same bytes in `flows.csv`. So a page has a table of
the digests of these files beside it, `results/NAME.runs.csv`, with a row for each point:

| column       | what                                                                        |
|--------------|-----------------------------------------------------------------------------|
| `experiment` | name of the experiment in the scenario file                                 |
| `point`      | the point of each axis: `cell=incast of 32, without=its window`             |
| `flows`      | for each seed, SEED:DIGEST; the first 8 hexadecimal digits of SHA-256       |
"""

import csv
import hashlib
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from weft_scenarios.errors import ScenarioError
from weft_scenarios.files import write_whole
from weft_scenarios.results.results import point_text
from weft_scenarios.runs.run import Run

FILE = "runs.csv"
"""The table of a folder of results. Beside the page NAME.md it is NAME.runs.csv."""
_COLUMNS = ["experiment", "point", "flows"]
_DIGITS = 8


class Place(NamedTuple):
    """Which run of a scenario it is."""

    experiment: str
    point: str
    seed: int


def place(run: Run) -> Place:
    """Give the place of a run."""
    point = ", ".join(f"{axis}={point_text(value)}" for axis, value in run.at.items())
    return Place(run.experiment, point, run.seed)


def beside(page: Path) -> Path:
    """Give the file of the table that belongs to a page."""
    return page.with_suffix(f".{FILE}")


def of_run(folder: Path) -> str:
    """Give the digest of a run's flows, from its folder."""
    return hashlib.sha256((folder / "flows.csv").read_bytes()).hexdigest()[:_DIGITS]


def write(file: Path, known: Mapping[Place, str]) -> None:
    """Write the table; replaces an older one, and removes it if nothing is known."""
    if not known:
        file.unlink(missing_ok=True)
        return
    rows: dict[tuple[str, str], list[str]] = {}
    for (experiment, point, seed), digest in known.items():
        rows.setdefault((experiment, point), []).append(f"{seed}:{digest}")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerows([*key, " ".join(digests)] for key, digests in rows.items())
    write_whole(file, text.getvalue())


def read(file: Path) -> dict[Place, str]:
    """Read what `write` wrote; nothing if there is no such file."""
    try:
        with file.open(encoding="utf-8", newline="") as text:
            return dict(_of_rows(csv.DictReader(text)))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise ScenarioError(f"{file}: no table of fingerprints: {error}") from None


def _of_rows(rows: Iterable[Mapping[str, str]]) -> Iterable[tuple[Place, str]]:
    for row in rows:
        for of_seed in row["flows"].split():
            seed, digest = of_seed.split(":")
            yield Place(row["experiment"], row["point"], int(seed)), digest
