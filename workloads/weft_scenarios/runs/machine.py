# SPDX-License-Identifier: Apache-2.0
"""Describes the machine and versions, which go into the results."""

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from weft_scenarios.runs.installation import Installation

_PACKAGES = ("polars", "matplotlib", "distributed")


def machine() -> dict[str, str]:
    """Describe the machine."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "processor": _first("/proc/cpuinfo", "model name") or platform.machine(),
        "cpus": str(os.cpu_count() or 1),
        "memory_bytes": str(pages),
        "system": platform.platform(),
    }


def versions(installed: Installation) -> dict[str, str]:
    """Give the versions of what ran in the labs (one digest) and of what measured it."""
    found = {"python": sys.version.split()[0], "installation": installed.digest[:16]}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _first(file: str, key: str) -> str | None:
    for line in Path(file).read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return None
