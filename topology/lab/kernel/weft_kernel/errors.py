# SPDX-License-Identifier: Apache-2.0
"""The one exception of this package, and how programs are run."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


class BuildError(Exception):
    """A step failed; the text says what, where, and what would be right."""


def run(
    command: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    log: Path | None = None,
) -> str:
    """Run a program to its end and return what it printed.

    With `log`, output is appended there as it comes, nothing is returned, and the
    program runs at a lower priority, holding the cache's lock: one that outlives us
    still writes.
    """
    words = [str(word) for word in command]
    try:
        if log is None:
            done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True)
        else:
            with log.open("a") as stream:
                # what takes minutes leaves the machine to its user
                done = subprocess.run(
                    ["nice", "-n", "5", *words],
                    cwd=cwd,
                    env=env,
                    close_fds=False,
                    stdin=subprocess.DEVNULL,
                    stdout=stream,
                    stderr=subprocess.STDOUT,
                    text=True,
                )
    except FileNotFoundError as error:
        raise BuildError(f"{words[0]} is not installed") from error
    if done.returncode:
        where = f"see {log}" if log else last_line(done.stderr or done.stdout)
        raise BuildError(f"{Path(words[0]).name} failed: {where}")
    return done.stdout or ""


def last_line(text: str) -> str:
    """Return the last line that says something."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it printed nothing"
