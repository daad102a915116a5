# SPDX-License-Identifier: Apache-2.0
"""The version numbers of a release agree."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_the_version_is_the_same_in_every_file() -> None:
    """Programs, Python packages and the citation are released together."""
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
    python = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    citation = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert citation is not None
    version = cargo["workspace"]["package"]["version"]
    assert python["project"]["version"] == version
    assert citation[1] == version
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## {re.escape(version)} \(", changelog, re.MULTILINE)
