# SPDX-License-Identifier: Apache-2.0
"""Which revisions of Weft run the same programs."""

import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from weft_scenarios.runs.installation import ROOT

_DIRTY = "-dirty"
"""Ends a revision that was built with changes that are not committed."""
_SOURCES = (
    *("Cargo.toml", "Cargo.lock", "controller", "host", "p4", "topology"),
    *("workloads/load", "workloads/distributions"),
    *(":(exclude,glob)**/*.md", ":(exclude,glob)**/tests/**", ":(exclude,glob)**/tests.rs"),
    *(":(exclude,glob)**/kunit/**", ":(exclude)host/kernel/Makefile"),
    *(
        f":(exclude)controller/cli/src/{query}.rs"
        for query in ("client", "classes", "explain", "query", "telemetry")
    ),
)
"""What a run depends on.

Scenarios are not among it: a page names the flags of its runs. Nor is the Makefile of the kernel
module, because a lab's modules are built from Kbuild, nor those commands of `weft` that ask the
controller of a lab and print its answer: no run asks anything.
"""


class Programs(NamedTuple):
    """The programs of a revision. The greatest are the newest."""

    committed_s: int
    """When their sources were changed last, in seconds since 1970."""
    is_clean: bool
    """Whether others can build them: of one commit, that is newer."""
    commit: str


def programs(revision: str, root: Path = ROOT) -> Programs | None:
    """Give the programs of a revision; None where `root` is no git checkout that has it."""
    commit = revision.removesuffix(_DIRTY)
    said = _last_commit(root, commit, "--", *_SOURCES)
    if said is None:
        return None
    committed_s, changed = said
    return Programs(committed_s, commit == revision, changed)


def told_apart(revisions: Iterable[str], root: Path = ROOT) -> list[str]:
    """Give one revision for all that have the same programs, the newest; the oldest comes first."""
    told: dict[Programs | str, tuple[int, str]] = {}
    for revision in revisions:
        own = _last_commit(root, revision.removesuffix(_DIRTY))
        dated = (own[0] if own else 0, revision)
        same = programs(revision, root) or revision
        told[same] = max(told.get(same, dated), dated)
    return [revision for _, revision in sorted(told.values())]


def _last_commit(root: Path, revision: str, *paths: str) -> tuple[int, str] | None:
    """Give time and hash of the last commit of a revision, that changed paths if some are given."""
    log = ["git", "-C", str(root), "log", "-1", "--format=%ct %H", "--end-of-options", revision]
    done = subprocess.run([*log, *paths], capture_output=True, text=True, check=False)
    if done.returncode or not done.stdout:
        return None
    committed_s, commit = done.stdout.split()
    return int(committed_s), commit
