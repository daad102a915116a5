"""Files of one's own that runs read: a distribution of flow sizes, a list of flows.

An experiment file names them from its own folder. A run is known by what they say, not by
where they are.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path

_FLAGS = ("workload", "flow-list")
"""Flags of `weft run` that can name a file."""


def absolute(flags: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Name files that are there by their whole path; `weft run` knows what else is meant."""
    found = {flag: folder / flags[flag] for flag in _FLAGS if flag in flags}
    return {**flags, **{flag: str(path) for flag, path in found.items() if path.is_file()}}


def digests(flags: Mapping[str, str]) -> dict[str, str]:
    """Tell what files say, by the flags that name them."""
    found = {flag: Path(flags[flag]) for flag in _FLAGS if flag in flags}
    return {flag: _digest(path) for flag, path in found.items() if path.is_absolute()}


def _digest(path: Path) -> str:
    try:
        return f"sha256 {hashlib.sha256(path.read_bytes()).hexdigest()}"
    except OSError as error:
        return f"{path}: {error.strerror}"  # No run is known by this: it cannot be done either.
