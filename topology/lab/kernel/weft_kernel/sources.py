# SPDX-License-Identifier: Apache-2.0
"""The Debian mirror of this machine, from its own apt configuration.

Only the URI is taken. It is that of the source which carries `main` of a Debian
suite, in either format: one line (`sources.list`) or deb822 (`*.sources`).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from weft_kernel.errors import BuildError

APT = Path("/etc/apt")

# Suites whose mirror also has the suites that we look for.
DEBIAN_SUITES = frozenset(
    ["oldstable", "stable", "testing", "unstable", "sid"]
    + ["bullseye", "bookworm", "trixie", "forky", "duke"]
)


@dataclass(frozen=True)
class Source:
    """One archive that apt downloads binary packages from."""

    uris: tuple[str, ...]
    suites: tuple[str, ...]
    components: tuple[str, ...]

    def carries_debian(self) -> bool:
        """Whether this is a mirror of Debian itself (not of its security archive)."""
        names = {re.sub(r"-(updates|backports|proposed-updates)$", "", s) for s in self.suites}
        return "main" in self.components and bool(names & DEBIAN_SUITES)


def mirror(apt: Path = APT) -> str:
    """Return the URI of the first Debian mirror in apt's configuration."""
    for source in configured(apt):
        if source.carries_debian():
            return source.uris[0]
    raise BuildError(
        f"no source of Debian's main in {apt}/sources.list*; "
        "set KERNEL_SRC to an unpacked Linux source tree"
    )


def configured(apt: Path) -> Iterator[Source]:
    """Yield the machine's sources in the order in which apt reads them."""
    files = [apt / "sources.list"]
    directory = apt / "sources.list.d"
    if directory.is_dir():
        files += sorted(directory.iterdir())
    for file in files:
        if not file.is_file():
            continue
        text = file.read_text(errors="replace")
        if file.suffix == ".list":
            yield from one_line(text)
        elif file.suffix == ".sources":
            yield from deb822(text)


def one_line(text: str) -> Iterator[Source]:
    """Yield the sources of a `sources.list`."""
    for line in text.splitlines():
        words = re.sub(r"\[[^]]*\]", " ", line.partition("#")[0]).split()
        if len(words) >= 4 and words[0] == "deb":
            yield Source((words[1],), (words[2],), tuple(words[3:]))


def deb822(text: str) -> Iterator[Source]:
    """Yield the sources of a `*.sources` file."""
    text = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    for stanza in re.split(r"\n\s*\n", text):
        fields: dict[str, list[str]] = {}
        name = ""
        for line in stanza.splitlines():
            if line[:1].isspace():
                fields.setdefault(name, []).extend(line.split())
            elif ":" in line:
                name, _, value = line.partition(":")
                name = name.strip().lower()
                fields[name] = value.split()
        enabled = (fields.get("enabled") or ["yes"])[0].lower()
        uris = fields.get("uris")
        if uris and "deb" in fields.get("types", []) and enabled not in ("no", "false", "0"):
            yield Source(
                tuple(uris), tuple(fields.get("suites", [])), tuple(fields.get("components", []))
            )
