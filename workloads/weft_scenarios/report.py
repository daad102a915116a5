"""RESULTS.md: every claim, what was measured, and whether it holds."""

from collections.abc import Sequence
from pathlib import Path

from weft_scenarios import plot, results, tables
from weft_scenarios.claims import FAILS, HOLDS, OPEN, Judged, Verdict, judge
from weft_scenarios.errors import ScenarioError
from weft_scenarios.quantities import METRICS
from weft_scenarios.results import Results
from weft_scenarios.scenario import Claim, Scenario

_HEAD = """\
# Results

What the papers claim, what this repository measures, and whether the claim holds on today's
kernel. `make results` writes this file from the last runs of `make scenarios`; nothing in it
is written by hand except the paragraphs headed *Setting* and *Why*, which stand in
`scenarios/*.toml` together with every parameter.

**How to read it.** Every point was run with several seeds, which change start times, pairs of
hosts, ports and random loss, and which all schedulers share. Numbers are means over seeds ±
half of their 95% confidence interval (Student's t); no ± means one seed. A claim is a
comparison at several points. With the difference of the two sides taken seed by seed, it
*holds* at a point where the interval of the mean difference lies on the claimed side, *fails*
where it lies on the other, and is *open* where the interval contains 0.
"""


def write(scenarios: Sequence[Scenario], runs: Path, target: Path) -> list[str]:
    """Write RESULTS.md and its plots; gives the names of scenarios that have no results."""
    parts, rows, missing = [], [["Scenario", "Claim", "Source", "Verdict"]], []
    found: list[Results] = []
    pictures = target.parent / "results"
    for scenario in scenarios:
        try:
            measured = results.read(scenario, runs / scenario.name)
        except ScenarioError:
            missing.append(scenario.name)
            continue
        found.append(measured)
        verdicts = [judge(scenario, claim, measured) for claim in scenario.claims]
        link = f"[{scenario.name}](#{scenario.name})"
        rows += [[link, v.claim.text, v.claim.source, f"**{v.word()}**"] for v in verdicts]
        parts.append(_section(scenario, measured, verdicts, pictures))
    head = [_HEAD, _origin(found), tables.markdown(rows)]
    text = "\n\n".join(part.strip() for part in [*head, *parts]) + "\n"
    partial = target.with_suffix(".partial")
    partial.write_text(text, encoding="utf-8")
    partial.rename(target)
    return missing


def _origin(found: Sequence[Results]) -> str:
    kernels = sorted({kernel for r in found for kernel in r.about.kernels})
    count = sum(r.about.runs for r in found)
    return f"{count} runs on {' and '.join(kernels) or 'no kernel'}."


def _section(
    scenario: Scenario, measured: Results, verdicts: Sequence[Verdict], pictures: Path
) -> str:
    parts = [f"## {scenario.name}", f"{scenario.title}. Source: {scenario.source}."]
    parts.append(f"*Setting.* {_flat(scenario.setting)}")
    for verdict in verdicts:
        parts.append(_verdict(verdict))
    if scenario.note:
        parts.append(f"*Why.* {_flat(scenario.note)}")
    for picture in scenario.plots:
        file = pictures / f"{scenario.name}-{picture.name}.svg"
        if plot.draw(scenario, picture, measured, file):
            parts.append(f"![{picture.title}]({pictures.name}/{file.name})")
            rows = tables.of_plot(scenario, picture, measured)
            if rows:
                title = f"{picture.title}: {METRICS[picture.quantity].axis_label()}"
                table = tables.markdown(rows)
                parts.append(f"<details><summary>{title}</summary>\n\n{table}\n\n</details>")
    if measured.about.failed:
        failed = "\n".join(f"- {line}" for line in measured.about.failed)
        parts.append(f"Runs that gave nothing:\n\n{failed}")
    return "\n\n".join(parts)


def _flat(text: str) -> str:
    """Join the lines of each paragraph."""
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def _verdict(verdict: Verdict) -> str:
    claim = verdict.claim
    reading = f" Read as: {_flat(claim.reading)}" if claim.reading else ""
    lines = [f"> {_flat(claim.text)} ({claim.source})", ""]
    lines.append(f"**{verdict.word().capitalize()}**, {summary(verdict)}.{reading}")
    return "\n".join(lines)


def summary(verdict: Verdict) -> str:
    """Say at how many points a claim holds, and the clearest and the worst of them."""
    total = len(verdict.points)
    if not total:
        return "none of its runs gave results"
    counts = [(HOLDS, "holds"), (FAILS, "fails"), (OPEN, "is open")]
    said = [f"{word} at {n} of {total} points" for o, word in counts if (n := verdict.count(o))]
    if verdict.missing:
        said.append(f"{verdict.missing} points have no results")
    ranked = sorted(verdict.points, key=lambda point: _rank(verdict.claim, point))
    shown = [f"best {_numbers(verdict, ranked[0])}"]
    if total > 1:
        shown.append(f"worst {_numbers(verdict, ranked[-1])}")
    return f"{', '.join(said)}; {'; '.join(shown)}"


def _rank(claim: Claim, point: Judged) -> float:
    """Order points from the one that agrees most with the claim."""
    sign = 1 if claim.relation == "<=" else -1
    if point.ratio is not None:
        return sign * point.ratio
    base = 0.0 if point.versus is None else point.versus.mean
    return sign * (point.which.mean - claim.factor * base)


def _numbers(verdict: Verdict, point: Judged) -> str:
    unit = METRICS[verdict.claim.metric].unit
    its = (
        f"{tables.number(verdict.claim.limit or 0.0)}"
        if point.versus is None
        else tables.with_spread(point.versus)
    )
    times = "" if point.ratio is None else f", {tables.number(point.ratio, 2)} times"
    place = ", ".join(f"{axis} {value}" for axis, value in point.place.items())
    return f"{tables.with_spread(point.which)} against {its} {unit}{times} ({place})"
