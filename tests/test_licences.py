# SPDX-License-Identifier: Apache-2.0
"""Every file says its licence, and the text of every licence is there."""

import re
import subprocess
import tomllib
from pathlib import Path

from driver import ROOT

# REUSE-IgnoreStart
IDENTIFIER = re.compile(r"SPDX-License-Identifier: (.+?)(?: \*/| -->)?\n")
# REUSE-IgnoreEnd
FIRST_BYTES = 400


def pattern(glob: str) -> re.Pattern[str]:
    """Give what REUSE.toml's `*` (in one folder) and `**` (in any) mean."""
    parts = re.split(r"(\*\*|\*)", glob)
    meanings = {"**": ".*", "*": "[^/]*"}
    return re.compile("".join(meanings.get(part, re.escape(part)) for part in parts))


def tracked() -> list[str]:
    """Give all files of the repository but the licences."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return [name for name in listed if not name.startswith("LICENSES/") and name != "LICENSE"]


def licence_of(name: str, others: list[tuple[re.Pattern[str], str]]) -> str | None:
    """Give the licence that a file names, or REUSE.toml for it."""
    text = (ROOT / name).read_bytes()[:FIRST_BYTES].decode(errors="replace")
    if named := IDENTIFIER.search(text):
        return named[1].strip()
    return next((licence for glob, licence in reversed(others) if glob.fullmatch(name)), None)


def annotations() -> list[tuple[re.Pattern[str], str]]:
    """Read which files without a line of their own have which licence."""
    document = tomllib.loads((ROOT / "REUSE.toml").read_text())
    found = []
    for entry in document["annotations"]:
        globs = entry["path"] if isinstance(entry["path"], list) else [entry["path"]]
        if "SPDX-License-Identifier" in entry:
            found += [(pattern(glob), entry["SPDX-License-Identifier"]) for glob in globs]
    return found


def test_every_file_names_a_licence_whose_text_is_in_licenses() -> None:
    others = annotations()
    files = tracked()
    licences = {name: licence_of(name, others) for name in files}
    assert len(licences) > 500
    assert [name for name, licence in licences.items() if licence is None] == []
    texts = {path.stem for path in Path(ROOT / "LICENSES").iterdir()}
    words = {
        word
        for licence in licences.values()
        for word in re.findall(r"[\w.-]+", licence or "")
        if word not in ("OR", "AND", "WITH")
    }
    assert words == texts


def test_kernel_code_and_patches_are_under_the_kernels_licence() -> None:
    others = annotations()
    files = [
        name
        for name in tracked()
        if name.endswith(".patch")
        or (name.startswith("host/kernel/") and name.endswith((".c", ".h")))
    ]
    assert len(files) > 20
    assert {licence_of(name, others) for name in files} == {
        "GPL-2.0-only",
        "GPL-2.0-only WITH Linux-syscall-note",
    }
