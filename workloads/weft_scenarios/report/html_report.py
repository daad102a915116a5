# SPDX-License-Identifier: Apache-2.0
"""`weft report`: one page about an experiment, from its folder of results alone.

    report.html    everything, in one file with all figures inside
    report.pdf     the verdicts, and the same figures, one per page
    report/*.png   the same figures, for slides

The scenario file is the copy in that folder, `scenario.toml`.
"""

import base64
import html
import io
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib.style
from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure

from weft_scenarios import units
from weft_scenarios.definition import scenario_file
from weft_scenarios.definition.scenario import Plot, Scenario
from weft_scenarios.definition.seeds import Seeds
from weft_scenarios.errors import ScenarioError
from weft_scenarios.files import write_whole
from weft_scenarios.report import charts, panels, plot, results_page, style, tables
from weft_scenarios.results import flows, results
from weft_scenarios.results.claims import Verdict, judge
from weft_scenarios.results.results import About, Results
from weft_scenarios.runs import matrix

FILE = "report.html"
_SIGNS = {"holds": "✔", "open": "?", "does not hold": "✘"}
_MEANING = """\
Every point was run with several seeds, and all schedulers got the same ones. Numbers are means over
seeds ± half of their 95% confidence interval (Student's t). A claim is compared seed by seed. At a
point it holds if the interval of the mean difference lies on the claimed side, fails if it lies on
the other side, and is open if it contains 0; with fewer than five seeds it is not decided. A claim
about every point does not hold if it fails at one. That many points and claims are tested is taken
into account (Bonferroni, Holm)."""


@dataclass(frozen=True)
class _Picture:
    name: str
    title: str
    caption: str
    figure: Figure
    verdicts: tuple[Verdict, ...] = ()
    rows: tuple[tables.Row, ...] = ()


def write(folder: Path) -> Path:
    """Write the report of the results in `folder`; gives its path."""
    one = _scenario(folder)
    found = results.read(one, folder)
    verdicts = judge(one, found)
    pictures = list(_pictures(one, found, folder, verdicts))
    try:
        for picture in pictures:
            path = folder / "report" / f"{picture.name}.png"
            path.parent.mkdir(exist_ok=True)
            write_whole(path, panels.rendered(picture.figure, "png"))
        write_whole(folder / "report.pdf", _pdf(one, verdicts, pictures))
        write_whole(folder / FILE, _page(one, found, folder, verdicts, pictures))
    except OSError as error:
        raise ScenarioError(f"{folder}: no report written: {error.strerror}") from None
    return folder / FILE


def _scenario(folder: Path) -> Scenario:
    file = folder / "scenario.toml"
    if not file.exists():
        raise ScenarioError(
            f"{folder}: no results of an experiment (no scenario.toml); give the folder that "
            "`weft experiment` named, such as runs/scenarios/rb-fig13"
        )
    return scenario_file.read_file(file)


def _pictures(
    one: Scenario, found: Results, folder: Path, verdicts: Sequence[Verdict]
) -> Iterator[_Picture]:
    for picture in one.plots:
        figure = plot.figure(one, picture, found)
        if figure is not None:
            table = tables.of_plot(one, picture, found)
            about = tuple(v for v in verdicts if _concerns(v, picture))
            caption = f"{table.label}."
            yield _Picture(picture.name, picture.title, caption, figure, about, tuple(table.rows))
    for chart in charts.of(one, found, flows.read(folder)):
        with matplotlib.style.context(style.SHEET):
            yield _Picture(chart.name, chart.title, chart.caption, chart.draw())


def _concerns(verdict: Verdict, picture: Plot) -> bool:
    """Whether a claim concerns a plot: the same experiment, the same kind of quantity."""
    claim = verdict.claim
    same = claim.metric.split("_")[:1] == picture.quantity.split("_")[:1]
    return claim.experiment == picture.experiment and same


def _pdf(one: Scenario, verdicts: Sequence[Verdict], pictures: Sequence[_Picture]) -> bytes:
    buffer = io.BytesIO()
    undated = {"CreationDate": None}
    with matplotlib.style.context(style.SHEET), PdfPages(buffer, metadata=undated) as pages:
        lines = [f"{one.title} ({one.source})", ""]
        for verdict in verdicts:
            lines += textwrap.wrap(f"{verdict.word.upper()}: {verdict.claim.text}", 100)
            measured = f"{results_page.summary(verdict)} [{verdict.claim.source}]"
            lines += textwrap.wrap(measured, 100, initial_indent="    ", subsequent_indent="    ")
        for start in range(0, len(lines), _PDF_LINES):
            cover = Figure(figsize=(8.3, 11.7))
            text = "\n".join(lines[start : start + _PDF_LINES])
            cover.text(0.07, 0.95, text, va="top", parse_math=False)
            pages.savefig(cover)
        for picture in pictures:
            pages.savefig(picture.figure)
    return buffer.getvalue()


_PDF_LINES = 75


def _page(
    one: Scenario,
    found: Results,
    folder: Path,
    verdicts: Sequence[Verdict],
    pictures: Sequence[_Picture],
) -> str:
    body = [
        f"<h1>{_text(one.title)}</h1>",
        f"<p class=source>{_text(one.source)}</p>",
        _state(found.about),
        *(f"<p>{_text(part)}</p>" for part in one.setting.split("\n\n")),
        _verdicts(verdicts),
        "<h2 id=figures>Figures</h2>",
        *(_figure(number, picture) for number, picture in enumerate(pictures, 1)),
        f"<h2 id=why>Why</h2><p>{_text(one.note)}</p>" if one.note else "",
        _parameters(one, found),
        _data(folder),
        _failures(found.about),
    ]
    return _HEAD.format(title=_text(one.title), style=_STYLE) + "\n".join(body) + "\n</html>\n"


def _text(text: str) -> str:
    return html.escape(" ".join(text.split()))


def _state(about: About) -> str:
    planned = about.planned or about.runs
    done = about.runs - len(about.failed)
    parts = [f"{done} of {planned} runs"]
    if about.wall_s:
        parts.append(f"{units.spent(about.wall_s)} of real time")
    parts += about.kernels
    if about.quick:
        parts.append("the quick subset: fewer points, fewer seeds")
    if about.full:
        parts.append("the full set: at the scale of the paper")
    text = f"<p>{_text('; '.join(parts))}.</p>"
    if about.state != "complete":
        text += f"<p class=warning>Not complete: {_text(about.state)}.</p>"
    return text


def _verdicts(verdicts: Sequence[Verdict]) -> str:
    if not verdicts:
        return ""
    rows = [
        f"<tr><td>{_text(v.claim.text)} <span class=source>({_text(v.claim.source)})</span>"
        f"{_reading(v)}<td>{_badge(v)}<td>{_text(results_page.summary(v))}"
        for v in verdicts
    ]
    head = "<tr><th>Claim<th>Verdict<th>Measured"
    table = f"<table>{head}{''.join(rows)}</table>"
    return f"<h2 id=claims>Claims</h2><p>{_text(_MEANING)}</p>{table}"


def _reading(verdict: Verdict) -> str:
    reading = verdict.claim.reading
    return f"<br><span class=source>Read as: {_text(reading)}</span>" if reading else ""


def _badge(verdict: Verdict) -> str:
    word = verdict.word
    kind = word.replace(" ", "-")
    return f"<span class='badge {kind}'>{_SIGNS.get(word, '-')} {_text(word)}</span>"


def _figure(number: int, picture: _Picture) -> str:
    image = base64.b64encode(panels.rendered(picture.figure, "svg")).decode()
    width = picture.figure.get_figwidth() * 96
    claims = "".join(
        f"<li>{_badge(v)} {_text(v.claim.text)} <span class=source>({_text(v.claim.source)})</span>"
        for v in picture.verdicts
    )
    rows = ""
    if picture.rows:
        rows = f"<details><summary>Numbers</summary>{_table(picture.rows)}</details>"
    return (
        f"<figure id='{html.escape(picture.name)}'>"
        f"<img width={width:.0f} alt='{html.escape(picture.title, quote=True)}' "
        f"src='data:image/svg+xml;base64,{image}'>"
        f"<figcaption><b>{number}. {_text(picture.title)}.</b> {_text(picture.caption)}"
        f"</figcaption>{f'<ul>{claims}</ul>' if claims else ''}"
        f"{rows}</figure>"
    )


def _table(rows: Iterable[tables.Row]) -> str:
    head, *rest = rows
    lines = ["<tr>" + "".join(f"<th>{_text(cell)}" for cell in head)]
    lines += ["<tr>" + "".join(f"<td>{_text(cell)}" for cell in row) for row in rest]
    return f"<table>{''.join(lines)}</table>"


def _parameters(one: Scenario, found: Results) -> str:
    about = found.about
    rows: list[tables.Row] = [("Parameter", "Value")]
    for experiment in one.experiments:
        name = experiment.name
        if about.quick and not experiment.quick:
            continue
        extent = matrix.subset(experiment, about.quick, about.full)
        flags = {**experiment.flags, **(extent.flags if extent else {})}
        rows += [(f"{name}: --{flag}", value) for flag, value in flags.items()]
        for axis in matrix.axes(experiment, about.quick, about.full):
            points = ", ".join(str(value) for value in axis.values())
            rows.append((f"{name}: {axis.label}", points))
        # The command line may have asked for more seeds than the file.
        seeds = extent.seeds if extent else experiment.seeds
        if seeds.is_fixed():
            seeds = Seeds.fixed(found.of(name)["seed"].n_unique(), seeds.first)
        rows.append((f"{name}: seeds", str(seeds)))
    versions: list[tables.Row] = [("What", "Version")]
    versions += [("kernel", kernel) for kernel in about.kernels]
    versions += [("revision", revision) for revision in about.revisions]
    versions += list(about.versions.items())
    versions += list(about.machine.items())
    return (
        f"<h2 id=parameters>Parameters</h2>{_table(rows)}"
        f"<h2 id=versions>Versions and machine</h2>{_table(versions)}"
    )


def _data(folder: Path) -> str:
    files = {
        flows.FILE: "one row per flow",
        "results.csv": "one row per run",
        results.PERCENTILES: "percentiles of the flows of all seeds together",
        "curves.csv": "distributions and time series of every run",
        "about.json": "versions, machine, failed runs",
        "scenario.toml": "the experiment",
        "report.pdf": "the figures, for print",
    }
    items = "".join(
        f"<li><a href='{name}'>{name}</a>: {what}"
        for name, what in files.items()
        if (folder / name).exists()
    )
    return f"<h2 id=data>Data</h2><p>Beside this page:</p><ul>{items}</ul>"


def _failures(about: About) -> str:
    if not about.failed:
        return ""
    logs = {f"{run}: ": f" (log: {log})" for run, log in about.logs.items()}
    items = "".join(
        f"<li>{_text(line)}{_text(next((g for r, g in logs.items() if line.startswith(r)), ''))}"
        for line in about.failed
    )
    return f"<h2 id=failed>Failed runs</h2><ul>{items}</ul>"


_HEAD = """\
<!doctype html>
<html lang=en>
<meta charset=utf-8>
<meta name=viewport content="width=device-width">
<title>{title}</title>
<style>{style}</style>
"""
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 66rem; margin: 2rem auto; padding: 0 1rem;
       color: #1a1a1a; background: #fff }
h1 { margin-bottom: 0 } h2 { margin-top: 2.5rem; border-bottom: 1px solid #ccc }
.source { color: #595959 } .warning { border-left: 4px solid #d55e00; padding-left: .6rem }
table { border-collapse: collapse; font-size: 13px }
th, td { text-align: left; vertical-align: top; padding: .25rem .6rem }
tr { border-bottom: 1px solid #ddd }
figure { margin: 2rem 0; break-inside: avoid } img { max-width: 100%; height: auto }
figcaption { max-width: 48rem } figure ul { padding-left: 1.2rem; font-size: 13px }
.badge { white-space: nowrap; font-weight: 600; padding: 0 .4rem; border: 1px solid }
.holds { color: #00563f } .holds-in-part { color: #5c4300 } .does-not-hold { color: #8a3c00 }
.open, .not-measured { color: #595959 }
@media print { body { max-width: none; font-size: 11px } details { display: none } }
"""
