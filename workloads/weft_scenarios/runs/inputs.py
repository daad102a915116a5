# SPDX-License-Identifier: Apache-2.0
"""Input files of runs: distributions of flow sizes, and lists of flows.

Paths in a scenario file are relative to its folder. The content of these files, not their path,
identifies a run.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path

_FLAGS = ("workload", "flow-list")
"""Flags of `weft run` that can name a file."""


def absolute(flags: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Make paths of existing files absolute; `weft run` interprets anything else."""
    found = {flag: folder / flags[flag] for flag in _FLAGS if flag in flags}
    return {**flags, **{flag: str(path) for flag, path in found.items() if path.is_file()}}


def digests(flags: Mapping[str, str]) -> dict[str, str]:
    """Give the digest of each input file, by the flag that names it."""
    found = {flag: Path(flags[flag]) for flag in _FLAGS if flag in flags}
    return {flag: _digest(path) for flag, path in found.items() if path.is_absolute()}


def _digest(path: Path) -> str:
    try:
        return f"sha256 {hashlib.sha256(path.read_bytes()).hexdigest()}"
    except OSError as error:
        return f"{path}: {error.strerror}"  # Identifies no finished run, since such a run fails.
