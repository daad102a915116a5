# SPDX-License-Identifier: Apache-2.0
"""A private apt state: finds and downloads Debian's kernel sources.

It runs as an ordinary user and touches nothing of the system's: its lists, cache,
status and sources are in a folder of its own. From the system it takes the mirror
and the `Acquire` settings (proxy, certificates). Debian's archive key signs what
it accepts; apt checks that.
"""

import functools
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from weft_kernel.errors import BuildError, run

# Where to look, best first: the newest kernel there is (from 6.16 on User-Mode
# Linux has a seccomp mode, twice as fast), else stable's.
NEWEST = "trixie-backports"
STABLE = ("trixie", "bookworm-backports")
STABLE_PACKAGE = "linux-source-6.12"

KEYRINGS = tuple(
    Path("/usr/share/keyrings") / name
    for name in ("debian-archive-keyring.pgp", "debian-archive-keyring.gpg")
)


@dataclass(frozen=True)
class Package:
    """A version of a package in a suite."""

    name: str
    version: str
    suite: str


class Archive:
    """A mirror, seen through an apt state in `folder`."""

    def __init__(self, mirror: str, folder: Path) -> None:
        keyring = next((path for path in KEYRINGS if path.exists()), None)
        if keyring is None:
            raise BuildError("no Debian archive key; install debian-archive-keyring")
        for directory in ("lists/partial", "cache/archives/partial"):
            (folder / directory).mkdir(parents=True, exist_ok=True)
        (folder / "status").touch()
        (folder / "sources.list").write_text(
            "".join(
                f"deb [signed-by={keyring}] {mirror} {suite} main\n" for suite in (NEWEST, *STABLE)
            )
        )
        self.mirror = mirror
        configuration = folder / "apt.conf"
        configuration.write_text(_settings(folder))
        self._environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}
        self._environment["APT_CONFIG"] = str(configuration)

    def update(self) -> None:
        """Fetch the lists. A suite that cannot be had is left out, with a message."""
        said = run(["apt-get", "-q", "-o", "Acquire::Retries=1", "update"], env=self._environment)
        # It succeeds also when it has reached nobody.
        if not re.search(r"^(Hit|Get):", said, re.MULTILINE):
            raise BuildError(
                f"no network: apt-get did not reach {self.mirror} (a proxy is apt's "
                "Acquire::http::Proxy); connect this machine and run again"
            )

    def packages(self) -> list[Package]:
        """Return what to try to build, best first."""
        names = run(
            ["apt-cache", "search", "--names-only", r"^linux-source-[0-9.]+$"],
            env=self._environment,
        )
        found: list[Package] = []
        for line in names.splitlines():
            name = line.split()[0]
            found += parse_madison(run(["apt-cache", "madison", name], env=self._environment))
        return preferred(found)

    def download(self, package: Package, folder: Path) -> Path:
        """Download a package, verified, into `folder`; return the file."""
        run(
            ["apt-get", "-q", "download", f"{package.name}={package.version}"],
            cwd=folder,
            env=self._environment,
        )
        version = package.version.replace(":", "%3a")
        files = list(folder.glob(f"{package.name}_{version}_*.deb"))
        if not files:
            raise BuildError(f"apt-get download left no {package.name} in {folder}")
        return files[0]


def _settings(folder: Path) -> str:
    """Return an apt.conf: the machine's way to the network, our folders."""
    machine = run(["apt-config", "dump"])
    acquire = [line for line in machine.splitlines() if re.match(r"Acquire::.+ \".+\";$", line)]
    ours = {
        "Dir::Etc::main": "/dev/null",
        "Dir::Etc::parts": "/dev/null",
        "Dir::Etc::sourcelist": folder / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::Etc::preferences": "/dev/null",
        "Dir::Etc::preferencesparts": "/dev/null",
        "Dir::State": folder,
        "Dir::State::lists": folder / "lists",
        "Dir::State::status": folder / "status",
        "Dir::Cache": folder / "cache",
        # small rather than fast: this runs once
        "Dir::Cache::pkgcache": "",
        "Dir::Cache::srcpkgcache": "",
        "Acquire::GzipIndexes": "true",
        "Acquire::Languages": "none",
        # root's apt would change to a user who cannot write here
        "APT::Sandbox::User": "root",
        "APT::Get::List-Cleanup": "true",
    }
    return "\n".join(acquire + [f'{key} "{value}";' for key, value in ours.items()]) + "\n"


def parse_madison(text: str) -> list[Package]:
    """Read `apt-cache madison`: name | version | uri suite/component arch Packages."""
    found = []
    for line in text.splitlines():
        columns = [column.strip() for column in line.split("|")]
        if len(columns) == 3 and columns[2].endswith("Packages"):
            suite = columns[2].split()[1].partition("/")[0]
            found.append(Package(columns[0], columns[1], suite))
    return found


def preferred(found: Iterable[Package]) -> list[Package]:
    """Return the newest of backports, then stable's, each suite's newest only."""
    found = list(found)
    order = []
    for suite in (NEWEST, *STABLE):
        candidates = [
            package
            for package in found
            if package.suite == suite and (suite == NEWEST or package.name == STABLE_PACKAGE)
        ]
        if candidates:
            order.append(max(candidates, key=functools.cmp_to_key(_compare)))
    return order


def _compare(left: Package, right: Package) -> int:
    if left.version == right.version:
        return 0
    command = ["dpkg", "--compare-versions", left.version, "gt", right.version]
    return 1 if subprocess.run(command).returncode == 0 else -1
