# SPDX-License-Identifier: Apache-2.0
"""Writes RESULTS.md: every claim, its measurement, and its verdict."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from weft_scenarios import plot, results, tables
from weft_scenarios.claims import OUTCOMES, Judged, Verdict, judge
from weft_scenarios.errors import ScenarioError
from weft_scenarios.files import write_whole
from weft_scenarios.quantities import CURVES, METRICS
from weft_scenarios.results import Results
from weft_scenarios.scenario import Claim, Scenario

_HEAD = """\
# Results

The scenario `weft-baselines` compares `weft` with what data centers run: DCTCP, small timeouts, one
path by a hash, flowlets and spraying. In `weft` and `weft-means` all transports run over CUBIC,
drop-tail queues and a minimum RTO of 200 ms; beside DCTCP most of those margins are gone.

What the papers claim, what this repository measures, and whether the claim holds on today's
kernel. `make results` writes this file from the last runs of `make scenarios`, and leaves what
it says of scenarios that were not run here; nothing in it is written by hand except the
paragraphs headed *Setting*, *Grade* and *Why*, which stand in `scenarios/*.toml` together with
every parameter.

**How to read it.** Every point was run with several seeds, which change start times, pairs of
hosts, ports and random loss, and which all schedulers share. Numbers are means over seeds ±
half of their 95% confidence interval (Student's t); no ± means one seed. A claim is a
comparison at several points. With the difference of the two sides taken seed by seed, it
*holds* at a point where the interval of the mean difference lies on the claimed side, *fails*
where it lies on the other, and is *open* where the interval contains 0. With fewer than five
different runs it is *not decided*, and where both sides are 0 there is *nothing to compare*.
A claim about every point *does not hold* if it fails at one. That many points and many claims
are tested is taken into account (Bonferroni within a claim, Holm within a scenario). *Ours* is
what the claim compares, divided by what it is compared with, over all its points. Brackets
after such a ratio are its 95% confidence interval, by the bootstrap over pairs of runs.

*Grade* says how faithful the setting of a paper's claim is: A is the paper's, B differs in a way
that the scenario's section says, and C cannot be compared with it. Everywhere today's kernel
stands for the papers' (MPTCP 0.9x or a simulator), and a lab in virtual time for testbeds.
"""


_COLUMNS = ["Scenario", "Claim", "Source", "Ours", "Seeds", "Grade", "Verdict"]
"""Columns of the table of all claims."""


_GRADE = "*Grade.*"
"""Begins the paragraph on how faithful a setting is."""


@dataclass(frozen=True)
class Entry:
    """The part of RESULTS.md about a scenario."""

    claims: list[str]
    """Its lines in the table of all claims."""
    section: str


@dataclass(frozen=True)
class Written:
    """Names of scenarios that were not measured here."""

    kept: list[str]
    """RESULTS.md keeps its earlier text about them."""
    missing: list[str]
    """RESULTS.md has nothing about them."""


def write(scenarios: Sequence[Scenario], runs: Path, target: Path) -> Written:
    """Write RESULTS.md and its plots."""
    before = entries(target.read_text(encoding="utf-8")) if target.exists() else {}
    said: dict[str, Entry] = {}
    kept, missing = [], []
    for scenario in scenarios:
        full = f"{scenario.name}-full"
        for name, folder in ((scenario.name, runs), (full, runs / "full")):
            try:
                measured = results.read(scenario, folder / scenario.name)
            except ScenarioError:
                if name in before:
                    said[name] = _graded(before[name], scenario)
                    kept.append(name)
                elif name != full:
                    missing.append(name)
            else:
                said[name] = _entry(name, scenario, measured, target.parent / "results")
    table = [
        tables.markdown([_COLUMNS]),
        *(line for entry in said.values() for line in entry.claims),
    ]
    parts = [_HEAD, "\n".join(table), *(entry.section for entry in said.values())]
    if missing:
        parts.insert(1, f"Not run yet: {', '.join(missing)}.")
    write_whole(target, "\n\n".join(part.strip() for part in parts) + "\n")
    return Written(kept, missing)


def entries(text: str) -> dict[str, Entry]:
    """Split a RESULTS.md by scenario."""
    head, *sections = re.split(r"^## ", text, flags=re.MULTILINE)
    found = {}
    for section in sections:
        name = section.partition("\n")[0]
        link = f"| {_link(name)} |"
        claims = [line for line in head.splitlines() if line.startswith(link)]
        found[name] = Entry(claims, f"## {section}")
    return found


def _entry(name: str, scenario: Scenario, measured: Results, pictures: Path) -> Entry:
    verdicts = judge(scenario, measured)
    rows = [
        [
            _link(name),
            v.claim.text,
            v.claim.source,
            _ours(v),
            str(_seeds(v)),
            v.claim.grade,
            f"**{v.word}**",
        ]
        for v in verdicts
    ]
    claims = tables.markdown([_COLUMNS, *rows]).splitlines()[2:]
    section = _section(name, scenario, measured, verdicts, pictures)
    return _graded(Entry(claims, section), scenario)


def _graded(entry: Entry, scenario: Scenario) -> Entry:
    """Give grades as the scenario file has them now, also to what was measured earlier."""
    grades = {claim.text: claim.grade for claim in scenario.claims}
    lines = []
    for line in entry.claims:
        link, text, *middle, verdict = line.removeprefix("| ").removesuffix(" |").split(" | ")
        grade = grades.get(text.replace("\\|", "|"), "")
        lines.append(f"| {' | '.join([link, text, *middle[:3], grade, verdict])} |")
    paragraphs = [p for p in entry.section.split("\n\n") if not p.startswith(_GRADE)]
    if said := _fidelity(scenario):
        setting = next(i for i, p in enumerate(paragraphs) if p.startswith("*Runs.*"))
        paragraphs.insert(setting, said)
    return Entry(lines, "\n\n".join(paragraphs))


def _fidelity(scenario: Scenario) -> str:
    """Say how the settings of the claims differ from the papers'."""
    found = dict.fromkeys((c.grade, _flat(c.differs)) for c in scenario.claims if c.grade)
    said = " ".join(f"{grade}: {differs or 'as in the paper.'}" for grade, differs in found)
    return f"{_GRADE} {said}" if said else ""


def _link(name: str) -> str:
    return f"[{name}](#{name})"


def _section(
    name: str,
    scenario: Scenario,
    measured: Results,
    verdicts: Sequence[Verdict],
    pictures: Path,
) -> str:
    is_full = measured.about.full
    parts = [f"## {name}", f"{scenario.title}. Source: {scenario.source}."]
    if is_full:
        parts.append(f"*Setting.* The full set, which {_link(scenario.name)} says too.")
    else:
        parts.append(f"*Setting.* {_flat(scenario.setting)}")
    parts.append(_effort(measured))
    for verdict in verdicts:
        parts.append(_verdict(verdict))
    if scenario.note and not is_full:
        parts.append(f"*Why.* {_flat(scenario.note)}")
    for picture in scenario.plots:
        file = pictures / f"{name}-{picture.name}.svg"
        if plot.draw(scenario, picture, measured, file):
            parts.append(f"![{picture.title}]({pictures.name}/{file.name})")
            rows = tables.of_plot(scenario, picture, measured)
            if rows:
                quantity = (METRICS | CURVES)[picture.quantity]
                title = f"{picture.title}: {quantity.axis_label()}"
                table = tables.markdown(rows)
                parts.append(f"<details><summary>{title}</summary>\n\n{table}\n\n</details>")
    if measured.about.failed:
        failed = "\n".join(f"- {line}" for line in measured.about.failed)
        parts.append(f"Runs that gave nothing:\n\n{failed}")
    return "\n\n".join(parts)


def _effort(measured: Results) -> str:
    """Describe the runs, and their cost if it is known; older runs did not record it."""
    about = measured.about
    took = f", {about.wall_s / 60:.0f} min of real time one after the other" if about.wall_s else ""
    ran = f"{' and '.join(about.kernels)}, Weft {' and '.join(about.revisions)}"
    is_part = about.planned is not None and about.runs < about.planned
    planned = f" of {about.planned}" if is_part else ""
    return f"*Runs.* {about.runs}{planned} on {ran}{took}."


def _ours(verdict: Verdict) -> str:
    """Give the measured ratio, or its range over the points."""
    ratios = sorted(point.ratio for point in verdict.points if point.ratio is not None)
    if not ratios:
        return ""
    ends = [tables.number(ratio) for ratio in (ratios[0], ratios[-1])]
    return f"{' to '.join(dict.fromkeys(ends))} times"


def _seeds(verdict: Verdict) -> int:
    return max((point.which.count for point in verdict.points), default=0)


def _flat(text: str) -> str:
    """Join the lines of each paragraph."""
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def _verdict(verdict: Verdict) -> str:
    claim = verdict.claim
    reading = f" Read as: {_flat(claim.reading)}" if claim.reading else ""
    quote = f"> {_flat(claim.text)} ({claim.source})"
    word = verdict.word.capitalize()
    return f"{quote}\n\n**{word}.**{reading} Measured: {summary(verdict)}."


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
    limit = tables.number(verdict.claim.limit or 0.0)
    its = limit if point.versus is None else tables.with_spread(point.versus)
    place = ", ".join(f"{axis} {value}" for axis, value in point.place.items())
    pair = f"{tables.with_spread(point.which)} against {its} {unit}".strip()
    times = "" if point.ratio is None else f", {tables.number(point.ratio, 2)} times"
    if point.ratio_interval:
        low, high = (tables.number(end, 2) for end in point.ratio_interval)
        times += f" [{low} to {high}]"
    return f"{pair}{times} ({place})"
