"""RESULTS.md: every claim, what was measured, and whether it holds."""

from collections.abc import Sequence
from pathlib import Path

from weft_scenarios import plot, results, tables
from weft_scenarios.claims import OUTCOMES, Judged, Verdict, judge
from weft_scenarios.errors import ScenarioError
from weft_scenarios.quantities import CURVES, METRICS
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
where it lies on the other, and is *open* where the interval contains 0. *Ours* is what the
claim compares, divided by what it is compared with, over all its points.
"""


def write(scenarios: Sequence[Scenario], runs: Path, target: Path) -> list[str]:
    """Write RESULTS.md and its plots; gives the names of scenarios that have no results."""
    parts, rows, missing = [], [["Scenario", "Claim", "Source", "Ours", "Seeds", "Verdict"]], []
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
        rows += [
            [link, v.claim.text, v.claim.source, _ours(v), str(_seeds(v)), f"**{v.word()}**"]
            for v in verdicts
        ]
        parts.append(_section(scenario, measured, verdicts, pictures))
    head = [_HEAD, _origin(found, missing), tables.markdown(rows)]
    text = "\n\n".join(part.strip() for part in [*head, *parts]) + "\n"
    partial = target.with_suffix(".partial")
    partial.write_text(text, encoding="utf-8")
    partial.rename(target)
    return missing


def _origin(found: Sequence[Results], missing: Sequence[str]) -> str:
    kernels = sorted({kernel for r in found for kernel in r.about.kernels})
    count = sum(r.about.runs for r in found)
    without = f" Not run yet: {', '.join(missing)}." if missing else ""
    return f"{count} runs on {' and '.join(kernels) or 'no kernel'}.{without}"


def _section(
    scenario: Scenario, measured: Results, verdicts: Sequence[Verdict], pictures: Path
) -> str:
    parts = [f"## {scenario.name}", f"{scenario.title}. Source: {scenario.source}."]
    parts.append(f"*Setting.* {_flat(scenario.setting)}")
    parts.append(_effort(measured))
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
                quantity = (METRICS | CURVES)[picture.quantity]
                title = f"{picture.title}: {quantity.axis_label()}"
                table = tables.markdown(rows)
                parts.append(f"<details><summary>{title}</summary>\n\n{table}\n\n</details>")
    if measured.about.failed:
        failed = "\n".join(f"- {line}" for line in measured.about.failed)
        parts.append(f"Runs that gave nothing:\n\n{failed}")
    return "\n\n".join(parts)


def _effort(measured: Results) -> str:
    """Say what the runs cost, as far as it is known: older runs did not write it down."""
    about = measured.about
    took = f", {about.wall_s / 60:.0f} min of real time one after the other" if about.wall_s else ""
    return f"*Runs.* {about.runs}{took}."


def _ours(verdict: Verdict) -> str:
    """Say in a word or two what was measured: the ratio, or its range over the points."""
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
    word = verdict.word().capitalize()
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
    return f"{pair}{times} ({place})"
