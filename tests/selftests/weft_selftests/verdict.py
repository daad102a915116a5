# SPDX-License-Identifier: Apache-2.0
"""A scheduler's results against those of `default`, and the table of all."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from weft_selftests.differences import Difference
from weft_selftests.ktap import Result

BASELINE = "default"


@dataclass(frozen=True)
class Run:
    """One selftest under one scheduler."""

    test: str
    scheduler: str
    seed: int
    results: Mapping[str, Result]
    complaints: Sequence[str]
    """Lines of the kernel log that say that something is wrong."""
    wall_s: float
    log: str
    """File with its output and kernel log."""

    @property
    def script(self) -> str:
        """The test without arguments."""
        return self.test.partition(" ")[0]

    def count(self, result: Result) -> int:
        """Number of subtests with this result."""
        return Counter(self.results.values())[result]


@dataclass
class Verdict:
    """What a run shows."""

    regressions: list[str] = field(default_factory=list)
    """Subtests that `default` passes and this scheduler does not."""
    explained: list[str] = field(default_factory=list)
    """The same, of those in differences.toml."""


def judge(run: Run, baseline: Run, differences: Iterable[Difference]) -> Verdict:
    """Compare a run with that of `default` on the same seed."""
    verdict = Verdict()
    known = list(differences)
    for subtest, result in baseline.results.items():
        if result is not Result.PASSED or run.results.get(subtest) is Result.PASSED:
            continue
        covered = any(one.covers(run.scheduler, run.script, subtest) for one in known)
        (verdict.explained if covered else verdict.regressions).append(subtest)
    # the script ended early, and with `default` it did not
    for subtest, result in run.results.items():
        if result is Result.FAILED and subtest not in baseline.results:
            verdict.regressions.append(subtest)
    return verdict


def stale(
    runs: Sequence[Run], verdicts: Mapping[int, Verdict], differences: Iterable[Difference]
) -> list[Difference]:
    """Return the differences that were tested and did not show under any seed.

    `verdicts` are by the index of the run.
    """
    result = []
    for one in differences:
        looked = shown = False
        for index, run in enumerate(runs):
            if any(one.covers(run.scheduler, run.script, name) for name in run.results):
                looked = True
                shown |= any(
                    one.covers(run.scheduler, run.script, name)
                    for name in verdicts[index].explained
                )
        if looked and not shown:
            result.append(one)
    return result


def table(runs: Sequence[Run], verdicts: Mapping[int, Verdict]) -> str:
    """Give a row per test and scheduler; with several seeds, the sum over them."""
    rows: list[tuple[str, ...]] = [
        ("test", "scheduler", "passed", "failed", "skipped", "against default", "wall")
    ]
    for test, scheduler in dict.fromkeys((run.test, run.scheduler) for run in runs):
        chosen = [(i, r) for i, r in enumerate(runs) if (r.test, r.scheduler) == (test, scheduler)]
        counts = [
            str(sum(run.count(result) for _, run in chosen))
            for result in (Result.PASSED, Result.FAILED, Result.SKIPPED)
        ]
        wall = f"{sum(run.wall_s for _, run in chosen):.1f} s"
        rows.append((test, scheduler, *counts, against(chosen, verdicts), wall))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    right = {2, 3, 4, 6}
    return "\n".join(
        "  ".join(
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def against(chosen: Sequence[tuple[int, Run]], verdicts: Mapping[int, Verdict]) -> str:
    """Give the comparison with `default` in words."""
    parts = []
    complaints = sum(bool(run.complaints) for _, run in chosen)
    if complaints:
        parts.append("kernel complains")
    mine = [verdicts[index] for index, _ in chosen if index in verdicts]
    regressions = sum(len(verdict.regressions) for verdict in mine)
    explained = sum(len(verdict.explained) for verdict in mine)
    if regressions:
        parts.append(f"{regressions} worse")
    if explained:
        parts.append(f"{explained} differ as explained")
    if not parts:
        parts.append("same" if mine else "-")
    return ", ".join(parts)
