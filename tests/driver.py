# SPDX-License-Identifier: Apache-2.0
"""Drives `weft` as a user does."""

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
LIMIT_S = 300
"""Real time limit of one command, because a hang is a failure."""
SCHEDULERS = sorted(
    name[1]
    for file in (ROOT / "host" / "kernel").glob("*.c")
    if (name := re.search(r"struct mptcp_sched_ops .*\.name\t*= \"(\w+)\"", file.read_text(), re.S))
)
"""The schedulers of the module, each in a file of its own."""


def python(file: str, *arguments: str | Path) -> str:
    """Run a script of the examples; must succeed. Gives its output."""
    command = [sys.executable, EXAMPLES / file, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=LIMIT_S)
    assert done.returncode == 0, f"{command}: {done.stdout}\n{done.stderr}"
    return done.stdout


def rows(file: Path) -> list[dict[str, str]]:
    """Read a CSV file of a run."""
    with file.open() as table:
        return list(csv.DictReader(table))


def sent_bytes(out: Path, switch: str) -> dict[str, int]:
    """Give the bytes that a switch sent to each of its peers."""
    return {
        row["peer"]: int(row["tx_bytes"])
        for row in rows(out / "queues.csv")
        if row["switch"] == switch
    }


def processes_of(name: str) -> list[str]:
    """Give the command lines of processes with `name` in an argument."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = file.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if any(name in word for word in words):
            found.append(" ".join(words))
    return found


class Weft:
    """The command line `weft`, started in a folder of the test's own."""

    def __init__(self, folder: Path) -> None:
        """`folder` gets results without --out."""
        self.program = ROOT / "target" / "release" / "weft"
        self.folder = folder

    def command(self, *arguments: str) -> list[str]:
        """Give the command line."""
        return [str(self.program), *arguments]

    def try_run(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run to the end, and return also if it fails."""
        return subprocess.run(
            self.command(*arguments),
            input=stdin,
            capture_output=True,
            text=True,
            cwd=self.folder,
            timeout=LIMIT_S,
        )

    def run(self, *arguments: str, stdin: str = "") -> str:
        """Run; it must succeed. Gives its output."""
        done = self.try_run(*arguments, stdin=stdin)
        assert done.returncode == 0, f"{arguments}: {done.stdout}\n{done.stderr}"
        return done.stdout

    def json(self, *arguments: str) -> Any:
        """Run with `--json`; gives the parsed output."""
        return json.loads(self.run(*arguments, "--json"))


class Lab:
    """A running lab with a unique name."""

    def __init__(self, weft: Weft, name: str, said: str) -> None:
        """The lab `name` is up; `said` is the output of its start."""
        self.weft = weft
        self.name = name
        self.said = said

    def run(self, *arguments: str) -> str:
        """Run a command of `weft` with this lab."""
        return self.weft.run(*arguments, "--name", self.name)

    def json(self, *arguments: str) -> Any:
        """Run a query with this lab."""
        return self.weft.json(*arguments, "--name", self.name)

    def shell(self, *lines: str) -> str:
        """Type lines at the Mininet prompt; gives the whole output."""
        text = "".join(f"{line}\n" for line in (*lines, "exit"))
        return self.weft.run("shell", "--name", self.name, stdin=text)

    def try_clock(self, policy: str) -> subprocess.CompletedProcess[str]:
        """Ask for another clock, with whatever result."""
        program = str(self.weft.program.with_name("weft-lab"))
        command = [program, "clock", "--name", self.name, policy]
        return subprocess.run(command, capture_output=True, text=True)

    def patterns(self) -> dict[tuple[int, int], dict[str, Any]]:
        """Give the pattern of each pair of leaves."""
        return {(p["source_leaf"], p["destination_leaf"]): p for p in self.json("patterns")}


class Labs:
    """Starts labs, and stops them at the end."""

    def __init__(self, weft: Weft) -> None:
        """`down` stops the labs."""
        self._weft = weft
        self._names: list[str] = []

    def up(self, *arguments: str) -> Lab:
        """Start a lab with these flags."""
        name = f"test{os.getpid()}-{len(self._names)}"
        self._names.append(name)
        said = self._weft.run("topo", "up", "--name", name, *arguments)
        return Lab(self._weft, name, said)

    def down(self) -> None:
        """Stop them all."""
        for name in self._names:
            self._weft.try_run("topo", "down", "--name", name)
