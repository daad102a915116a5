# SPDX-License-Identifier: Apache-2.0
"""The page of a scenario, results/NAME.md: its claims, plots, setting, and what was run."""

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from weft_scenarios import units
from weft_scenarios.definition.quantities import METRICS
from weft_scenarios.definition.scenario import Claim, Scenario
from weft_scenarios.errors import ScenarioError
from weft_scenarios.report import plot, tables
from weft_scenarios.results.claims import OUTCOMES, Judged, Verdict, judge
from weft_scenarios.results.results import Results
from weft_scenarios.results.revisions import told_apart

FULL = "-full"
"""Ends the name of a page about the set at the paper's scale."""

_COLUMNS = ["Claim", "Source", "Paper", "Ours", "Seeds", "Grade", "Verdict"]
_GRADE, _RUNS, _REPRODUCED = "*Grade.*", "*Runs.*", "*Reproduced.*"
"""Begin paragraphs: how faithful the setting is, what was run, what of it was reproduced."""


class Ran(NamedTuple):
    """What a page says that has run."""

    kernels: Set[str] = frozenset()
    revisions: Set[str] = frozenset()
    """Of Weft."""


@dataclass(frozen=True)
class Page:
    """What was measured of a scenario, judged."""

    name: str
    claims: list[list[str]]
    """Rows of the table of claims."""
    body: str
    """All below that table."""

    def revisions(self) -> Set[str]:
        """Give the revisions of Weft that were measured."""
        return self._ran(_RUNS).revisions

    def reproduced_by(self) -> str | None:
        """Give the revision of Weft that gave the same flows as those of `revisions` last."""
        return next(iter(self._ran(_REPRODUCED).revisions), None)

    def last_by(self) -> Ran:
        """Give what was measured, or has reproduced that last."""
        return self._ran(_REPRODUCED if self.reproduced_by() else _RUNS)

    def _ran(self, paragraph: str) -> Ran:
        line = rf"^{re.escape(paragraph)} .*? on (.+?), Weft ([\w-]+(?: and [\w-]+)*)"
        found = re.search(line, self.body, re.M)
        return Ran(*(set(names.split(" and ")) for names in found.groups())) if found else Ran()

    def reproduced(self, runs: int, kernel: str, revision: str) -> "Page":
        """Give the page that says of so many of its runs that they gave the same flows again."""
        return self._reproduced(
            f"{_REPRODUCED} {runs} of these runs gave the same flows on {kernel}, Weft {revision}."
        )

    def reproduced_as(self, earlier: "Page") -> "Page":
        """Give the page that says of its runs what an earlier page of the same runs does."""
        said = [p for p in earlier.body.split("\n\n") if p.startswith(_REPRODUCED)]
        return self._reproduced(said[0]) if said else self

    def _reproduced(self, said: str) -> "Page":
        paragraphs = [p for p in self.body.split("\n\n") if not p.startswith(_REPRODUCED)]
        ran = next(i for i, p in enumerate(paragraphs) if p.startswith(_RUNS))
        paragraphs.insert(ran + 1, said)
        return replace(self, body="\n\n".join(paragraphs))


def text(page: Page, scenario: Scenario) -> str:
    """Write a page, with what the scenario file says of its claims now.

    Claims that the file has lost stay as they were judged, until it is measured again.
    """
    now = {claim.text: claim for claim in scenario.claims}
    rows = [_said_now(row, now.get(row[0])) for row in page.claims]
    paragraphs = [p for p in page.body.split("\n\n") if not p.startswith(_GRADE)]
    if said := _fidelity(scenario):
        runs = next(i for i, p in enumerate(paragraphs) if p.startswith(_RUNS))
        paragraphs.insert(runs, said)
    full = ", at the paper's scale" if page.name.endswith(FULL) else ""
    command = "make figures FULL=1" if full else f"make scenario SCENARIO={scenario.name}"
    seeds = max((int(row[4]) for row in page.claims), default=0)
    if not full and seeds > max(e.seeds.at_most for e in scenario.experiments):
        command += f" SEEDS={seeds}"
    parts = [
        f"# {scenario.title}{full}",
        f"Source: {scenario.source}. `{command}` measures it. [All results](../RESULTS.md)",
        tables.markdown([_COLUMNS, *rows]).rstrip(),
        *paragraphs,
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _said_now(row: list[str], claim: Claim | None) -> list[str]:
    if claim is None:
        return row
    text, _, _, ours, seeds, _, verdict = row
    return [text, claim.source, claim.paper, ours, seeds, claim.grade, verdict]


def read(file: Path) -> Page | None:
    """Read a page again, if there is one."""
    try:
        return parse(file.stem, file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ScenarioError(f"{file}: no page of results: {error.strerror}") from None


def parse(name: str, written: str) -> Page:
    """Read a page again."""
    lines = written.splitlines()
    table = [number for number, line in enumerate(lines) if line.startswith("| ")]
    first = table[0] if table else 0
    end = next((n for n in range(first, len(lines)) if not lines[n]), len(lines))
    rows = [_cells(line) for line in lines[first + 2 : end]]
    return Page(name, rows, "\n".join(lines[end:]).strip())


def is_current(page: Page, scenario: Scenario) -> bool:
    """Whether a page judges the claims that the scenario file has now, as it reads them now."""
    said = [_quote(claim) for claim in scenario.claims]
    return len(said) == len(page.claims) and all(quote in page.body for quote in said)


def _cells(line: str) -> list[str]:
    cells = line.removeprefix("| ").removesuffix(" |").split(" | ")
    return [cell.replace("\\|", "|").strip() for cell in cells]


def of(name: str, scenario: Scenario, measured: Results, pictures: Path) -> Page:
    """Judge what was measured, draw its plots into a folder, and describe it."""
    verdicts = judge(scenario, measured)
    rows = [
        [
            v.claim.text,
            v.claim.source,
            v.claim.paper,
            _ours(v),
            str(_seeds(v)),
            v.claim.grade,
            f"**{v.word}**",
        ]
        for v in verdicts
    ]
    return Page(name, rows, _body(name, scenario, measured, verdicts, pictures))


def _fidelity(scenario: Scenario) -> str:
    """Say how the settings of the claims differ from the papers'."""
    found = dict.fromkeys((c.grade, _flat(c.differs)) for c in scenario.claims if c.grade)
    said = " ".join(f"{grade}: {differs or 'as in the paper.'}" for grade, differs in found)
    return f"{_GRADE} {said}" if said else ""


def _body(
    name: str,
    scenario: Scenario,
    measured: Results,
    verdicts: Sequence[Verdict],
    pictures: Path,
) -> str:
    is_full = measured.about.full
    parts = [f"*Setting.* {_flat(scenario.setting)}"]
    if is_full:
        parts = [f"*Setting.* The full set, which [{scenario.name}]({scenario.name}.md) says too."]
    parts.append(_effort(measured))
    for verdict in verdicts:
        parts.append(_verdict(verdict))
    if scenario.note and not is_full:
        parts.append(f"*Why.* {_flat(scenario.note)}")
    for picture in scenario.plots:
        file = pictures / f"{name}-{picture.name}.svg"
        if plot.draw(scenario, picture, measured, file):
            parts.append(f"![{picture.title}]({file.name})")
            table = tables.of_plot(scenario, picture, measured)
            if table.rows:
                parts.append(_folded(f"{picture.title}: {table.label}", table.rows))
    for experiment in scenario.experiments:
        if percentiles := tables.of_percentiles(experiment, measured):
            title = (
                f"{experiment.name}: percentiles of the flows of all seeds together, with 95% "
                "confidence intervals over seeds"
            )
            parts.append(_folded(title, percentiles))
    if measured.about.failed:
        failed = "\n".join(f"- {line}" for line in measured.about.failed)
        parts.append(f"Runs that gave nothing:\n\n{failed}")
    return "\n\n".join(parts)


def _folded(title: str, rows: Sequence[tables.Row]) -> str:
    table = tables.markdown(rows)
    return f"<details><summary>{title}</summary>\n\n{table}\n\n</details>"


def _effort(measured: Results) -> str:
    """Describe the runs, and their cost if it is known; older runs did not record it."""
    about = measured.about
    spent = units.spent(about.wall_s or 0)
    took = f", {spent} of real time one after the other" if about.wall_s else ""
    ran = f"{' and '.join(about.kernels)}, Weft {' and '.join(told_apart(about.revisions))}"
    is_part = about.planned is not None and about.runs < about.planned
    planned = f" of {about.planned}" if is_part else ""
    return f"{_RUNS} {about.runs}{planned} on {ran}{took}."


def _ours(verdict: Verdict) -> str:
    """Give the measured ratio, or its range over the points."""
    ratios = sorted(point.ratio for point in verdict.points if point.ratio is not None)
    if not ratios:
        return ""
    said = f"{_range(ratios[0], ratios[-1])} times"
    ends = [end for point in verdict.points for end in point.ratio_interval or ()]
    is_known = len(ends) == 2 * len(ratios)
    return f"{said} [{_range(min(ends), max(ends))}]" if is_known else said


def _range(low: float, high: float) -> str:
    return " to ".join(dict.fromkeys(tables.number(end) for end in (low, high)))


def _seeds(verdict: Verdict) -> int:
    return max((point.which.count for point in verdict.points), default=0)


def _flat(text: str) -> str:
    """Join the lines of each paragraph."""
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def _quote(claim: Claim) -> str:
    """Quote a claim, and say how it is read."""
    reading = f"\n\n*Read as:* {_flat(claim.reading)}" if claim.reading else ""
    return f"> {_flat(claim.text)} ({claim.source}){reading}"


def _verdict(verdict: Verdict) -> str:
    word = verdict.word.capitalize()
    return f"{_quote(verdict.claim)}\n\n**{word}.** Measured: {summary(verdict)}."


def summary(verdict: Verdict) -> str:
    """Say at how many points a claim holds, and which agree with it most and least."""
    total = len(verdict.points)
    if not total:
        return "none of its runs gave results"
    ranked = sorted(verdict.points, key=lambda point: _rank(verdict.claim, point))
    if total == 1 and not verdict.missing:
        return _numbers(verdict, ranked[0])
    counts = [f"{outcome} at {n}" for outcome in OUTCOMES if (n := verdict.count(outcome))]
    said = [f"{', '.join(counts)} of {total} points"]
    if verdict.missing:
        said.append(f"{verdict.missing} more have no results")
    said.append(f"at best {_numbers(verdict, ranked[0])}")
    if total > 1:
        said.append(f"at worst {_numbers(verdict, ranked[-1])}")
    return "; ".join(said)


def _rank(claim: Claim, point: Judged) -> float:
    """Order points from the one that agrees most with the claim."""
    sign = 1 if claim.relation == "<=" else -1
    if point.ratio is not None:
        return sign * point.ratio
    base = 0.0 if point.versus is None else point.versus.mean
    return sign * (point.which.mean - claim.factor * base)


def _numbers(verdict: Verdict, point: Judged) -> str:
    unit = METRICS[verdict.claim.metric].unit
    its = float(verdict.claim.limit or 0) if point.versus is None else point.versus
    place = ", ".join(f"{axis} {value}" for axis, value in point.place.items())
    pair = tables.pair(point.which, its, unit)
    times = "" if point.ratio is None else f", {tables.number(point.ratio, 2)} times"
    if point.ratio_interval:
        low, high = (tables.number(end, 2) for end in point.ratio_interval)
        times += f" [{low} to {high}]"
    return f"{pair}{times} ({place})"
