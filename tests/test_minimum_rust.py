# SPDX-License-Identifier: Apache-2.0
"""Cargo.toml names the oldest Rust that Weft builds with, and everything else agrees."""

import json
import re
import subprocess
import tomllib
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
WORKSPACE = tomllib.loads((REPOSITORY / "Cargo.toml").read_text())["workspace"]
MINIMUM = WORKSPACE["package"]["rust-version"]


def numbers(version: str) -> tuple[int, ...]:
    """Parse a version, so that versions can be compared; 1.85 is 1.85.0."""
    major, minor, *patch = map(int, version.split("."))
    return (major, minor, *(patch or [0]))


def test_readme_names_the_rust_of_the_workspace() -> None:
    named = re.findall(r"(?:cargo|[Rr]ust) (\d+\.\d+)", (REPOSITORY / "README.md").read_text())
    assert named == [MINIMUM]


def test_the_installer_names_no_rust_of_its_own() -> None:
    assert MINIMUM not in (REPOSITORY / "ci" / "install").read_text()


def test_no_dependency_wants_a_newer_rust() -> None:
    # Cargo.lock also has dependencies of other systems, which are not built here.
    command = "cargo metadata --locked --format-version 1 --filter-platform".split()
    metadata = subprocess.run(
        [*command, "x86_64-unknown-linux-gnu"], cwd=REPOSITORY, capture_output=True, check=True
    )
    packages = json.loads(metadata.stdout)["packages"]
    wanted = {
        f"{package['name']} {package['version']}": package["rust_version"]
        for package in packages
        if package["rust_version"]
    }
    assert len(wanted) > 50
    newer = {name: rust for name, rust in wanted.items() if numbers(rust) > numbers(MINIMUM)}
    assert newer == {}


def test_cargo_updates_only_to_what_the_minimum_builds() -> None:
    # Resolver 3 skips versions of dependencies that need a newer Rust.
    assert int(WORKSPACE["resolver"]) >= 3
