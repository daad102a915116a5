# SPDX-License-Identifier: Apache-2.0
"""Writes RESULTS.md: a row for each figure, and a page for each in the folder `results`."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from weft_scenarios.definition.scenario import Scenario
from weft_scenarios.errors import ScenarioError
from weft_scenarios.files import write_whole
from weft_scenarios.report import results_page, tables
from weft_scenarios.report.results_page import FULL, Page
from weft_scenarios.results import fingerprints, results
from weft_scenarios.results.claims import VERDICTS
from weft_scenarios.results.fingerprints import Place
from weft_scenarios.results.revisions import programs

_HEAD = """\
# Results

What the papers claim, what this repository measures, and whether the claim holds on today's kernel.
A row is a figure with its first claim; its page has the plots, all claims, the setting and what
differs from the paper's, the command, the kernel and the revision. *Stale* are results of older
programs than the newest of their table, unless some of their runs were repeated with newer ones
and gave the same flows, or of claims that were read in another way.
[How to read it](#how-to-read-it) says what grades and verdicts mean.
`make results` writes all this from the last runs, and keeps what it says of scenarios that were
not run here; only the paragraphs headed *Setting*, *Grade* and *Why* are written by hand, in
`scenarios/*.toml`.
"""

_OWN_HEAD = """\
## Weft's own scheduler

`weft-goals` compares `weft`, with classes and without, with the best of what data centers run, and
with the goals that were set before it was built. `weft-baselines` is the screening among all of
these: DCTCP, small timeouts, one path by a hash, flowlets and spraying. The three of `weft-steady`
take ten seconds and more after a warm-up, and `weft-sharing` has plain TCP beside it.
`weft-ablations` and `weft-classes` say what does the work.
"""

_HOW = """\
## How to read it

Every point was run with several seeds, which change start times, pairs of
hosts, ports and random loss, and which all schedulers share. Numbers are means over seeds ±
half of their 95% confidence interval (Student's t); no ± means one seed. A claim is a
comparison at several points. With the difference of the two sides taken seed by seed, it
*holds* at a point where the interval of the mean difference lies on the claimed side, *fails*
where it lies on the other, and is *open* where the interval contains 0. With fewer than five
different runs it is *not decided*, and where both sides are 0 there is *nothing to compare*.
A claim about every point *does not hold* if it fails at one. That many points and many claims
are tested is taken into account (Bonferroni within a claim, Holm within a scenario). *Ours* is
what the claim compares, divided by what it is compared with, over all its points. Brackets
after such a ratio are its 95% confidence interval, by the bootstrap over pairs of runs; after
several, from the lowest of their intervals to the highest. *Paper* is the number that the paper
gives.

*Grade* says how faithful the setting of a paper's claim is: A is the paper's, B differs in a way
that the scenario's section says, and C cannot be compared with it. Everywhere today's kernel
stands for the papers' (MPTCP 0.9x or a simulator), and a lab in virtual time for testbeds.
"""

_COLUMNS = [
    "Figure",
    "First claim",
    "Paper",
    "Ours",
    "Seeds",
    "Grade",
    "Verdict",
    "All claims",
    "Weft",
]
_OWN = "this repository"
"""Source of scenarios that are no paper's."""
_PICTURE = re.compile(r"^!\[.*\]\(([^/()]+\.svg)\)$", re.MULTILINE)
"""A page's reference to one of its pictures."""


@dataclass(frozen=True)
class Written:
    """Names of scenarios that were not measured here."""

    kept: list[str]
    """Their earlier pages stay."""
    missing: list[str]
    """There is nothing about them."""


def write(scenarios: Sequence[Scenario], runs: Path, target: Path) -> Written:
    """Write RESULTS.md, and pages and plots beside it."""
    folder = target.parent / "results"
    folder.mkdir(exist_ok=True)
    pages: dict[str, tuple[Page, Scenario]] = {}
    kept, missing = [], []
    for scenario in scenarios:
        full = f"{scenario.name}{FULL}"
        for name, measured in ((scenario.name, runs), (full, runs / "full")):
            file = folder / f"{name}.md"
            earlier = results_page.read(file)
            try:
                found = results.read(scenario, measured / scenario.name)
            except ScenarioError:
                if earlier:
                    pages[name] = earlier, scenario
                    kept.append(name)
                elif name != full:
                    missing.append(name)
            else:
                made = fingerprints.read(measured / scenario.name / fingerprints.FILE)
                page = results_page.of(name, scenario, found, folder)
                pages[name] = _with_note(page, earlier, made, file), scenario
                fingerprints.write(fingerprints.beside(file), made)
    for name, (page, scenario) in pages.items():
        written = results_page.text(page, scenario)
        write_whole(folder / f"{name}.md", written)
        pages[name] = results_page.parse(name, written), scenario
    _remove_unused_pictures(folder)
    write_whole(target, _index(pages, missing))
    return Written(kept, missing)


def _with_note(page: Page, earlier: Page | None, made: Mapping[Place, str], file: Path) -> Page:
    """Keep the note that newer programs gave the same flows, if these are the runs it is about."""
    if earlier is None or not made or page.revisions() != earlier.revisions():
        return page
    is_same = made == fingerprints.read(fingerprints.beside(file))
    return page.reproduced_as(earlier) if is_same else page


def _remove_unused_pictures(folder: Path) -> None:
    """Remove the pictures of plots that the scenario files no longer have."""
    shown = {
        name
        for page in folder.glob("*.md")
        for name in _PICTURE.findall(page.read_text(encoding="utf-8"))
    }
    for picture in folder.glob("*.svg"):
        if picture.name not in shown:
            picture.unlink()


def _index(pages: Mapping[str, tuple[Page, Scenario]], missing: Sequence[str]) -> str:
    own = [both for both in pages.values() if both[1].source == _OWN]
    others = [both for both in pages.values() if both[1].source != _OWN]
    parts = [_HEAD, _table(others)]
    if own:
        parts += [_OWN_HEAD, _table(own)]
    if missing:
        parts.append(f"Not run yet: {', '.join(missing)}.")
    return "\n\n".join(part.strip() for part in (*parts, _HOW)) + "\n"


def _table(pages: Sequence[tuple[Page, Scenario]]) -> str:
    both = (page.revisions() | page.last_by().revisions for page, _ in pages)
    all_revisions = {revision for revisions in both for revision in revisions}
    known = {revision: programs(revision) for revision in all_revisions}
    newest = max((found for found in known.values() if found is not None), default=None)
    old = {revision for revision, found in known.items() if found != newest}
    return tables.markdown([_COLUMNS, *(_row(*both, old) for both in pages)])


def _row(page: Page, scenario: Scenario, old: Set[str]) -> list[str]:
    words = Counter(row[-1].strip("*") for row in page.claims)
    revisions = sorted(page.revisions())
    reproduced_by = page.reproduced_by()
    is_old = not old.isdisjoint(page.last_by().revisions)
    is_stale = is_old or not results_page.is_current(page, scenario)
    first = page.claims[0] if page.claims else [""] * 7
    figure = scenario.title if scenario.source == _OWN else scenario.source
    full = ", at the paper's scale" if page.name.endswith(FULL) else ""
    return [
        f"[{figure}{full}](results/{page.name}.md)",
        first[0],
        *first[2:],
        ", ".join(f"{word}: {words[word]}" for word in VERDICTS if words[word]),
        ", ".join(revisions)
        + (f", reproduced by {reproduced_by}" if reproduced_by else "")
        + (" *stale*" if is_stale else ""),
    ]
