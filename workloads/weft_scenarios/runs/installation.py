# SPDX-License-Identifier: Apache-2.0
"""The programs that make a run, and their digest.

A run is deterministic: the same flags, programs and kernel give the same bytes. So a finished run
is never repeated, and an interrupted experiment continues where it stopped.
"""

import hashlib
import json
import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from weft_scenarios.errors import ScenarioError
from weft_scenarios.runs.run import Run

ROOT = Path(__file__).resolve().parents[3]
WEFT = ROOT / "target" / "release" / "weft"

_PROGRAMS = ("weft", "weft-lab", "weft-switch", "weft-controller", "weft-agent", "weft-load")
"""The programs of a lab, and `weft`, which has the defaults of flags and computes evidence."""


@dataclass(frozen=True)
class Installation:
    """A built checkout."""

    weft: Path
    digest: str
    """Digest of everything that a lab runs: programs, pipelines, topologies, kernel, modules."""

    def key(self, run: Run) -> str:
        """Give the key of a run: the same for runs that give the same results."""
        flags = sorted({**run.all_flags(), **run.inputs}.items())
        text = json.dumps([self.digest, flags])
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    def flags(self) -> set[str]:
        """List the flags of `weft run`, without their dashes."""
        done = subprocess.run([self.weft, "run", "--help"], capture_output=True, text=True)
        words = done.stdout.replace(",", " ").split()
        return {word[2:] for word in words if word.startswith("--")}


def find(environment: Mapping[str, str] = os.environ) -> Installation:
    """Find the built programs, or raise an error that says what to build."""
    if not WEFT.exists():
        raise ScenarioError(f"no {WEFT.relative_to(ROOT)} yet: run `make build` first")
    digest = hashlib.sha256()
    for path in (*_inside(), *_kernel(environment)):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return Installation(WEFT, digest.hexdigest())


def _inside() -> Iterator[Path]:
    for name in _PROGRAMS:
        program = WEFT.with_name(name)
        if not program.exists():
            raise ScenarioError(f"no {program.relative_to(ROOT)} yet: run `make build` first")
        yield program
    yield from _sources(ROOT / "topology" / "weft_topology", ["py"])
    yield from _sources(ROOT / "p4" / "compiled", ["json", "txtpb"])


def _sources(folder: Path, endings: Iterable[str]) -> list[Path]:
    return sorted(path for ending in endings for path in folder.rglob(f"*.{ending}"))


def _kernel(environment: Mapping[str, str]) -> list[Path]:
    cache = environment.get("WEFT_CACHE") or Path.home() / ".cache" / "weft"
    current = Path(cache) / "kernel" / "current.json"
    try:
        found = json.loads(current.read_text())
    except FileNotFoundError:
        raise ScenarioError(f"no {current} yet: run `make kernel` first") from None
    return [Path(found["kernel"]), *map(Path, found["modules"])]
