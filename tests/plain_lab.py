# SPDX-License-Identifier: Apache-2.0
"""Labs that run one command, for tests of the kernel: plain ones, or with a network."""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / "target" / "release"
KERNEL = ROOT / "topology" / "lab" / "kernel"

PATTERN_TTL_NS = 200_000_000

COMPLAINT = re.compile(
    r"BUG\b|WARNING:|Oops|Call Trace|Kernel panic|KASAN|UBSAN|general protection"
    r"|INFO: task|self-detected stall|refcount_t|list_(add|del) corruption"
    r"|unregister_netdevice: waiting|sleeping function called|Segfault with no mm"
)
"""Signs of a bug in the kernel log."""


class LabError(Exception):
    """The lab could not run a command; the text says why."""


@dataclass(frozen=True)
class Kernel:
    """The lab's kernel and Weft's modules for it."""

    version: str
    image: Path
    modules: tuple[Path, ...]

    @property
    def tree(self) -> Path:
        """The kernel tree that modules are built against."""
        return self.image.parent

    def module(self, name: str) -> Path:
        """Find a built module, loaded or not."""
        return self.modules[0].with_name(f"{name}.ko")


@dataclass(frozen=True)
class Outcome:
    """The outcome of a command in a lab."""

    exit_code: int
    """Exit status; 128 + signal if a signal killed it."""
    output: str
    """Its standard output and error."""
    console: str
    """The kernel log."""

    def complaints(self) -> list[str]:
        """Give the lines of the kernel log that report a bug."""
        return [line for line in self.console.splitlines() if COMPLAINT.search(line)]


def kernel() -> Kernel:
    """Build the lab's kernel and modules, unless they are built."""
    done = subprocess.run(
        [sys.executable, KERNEL / "build.py", "--json"], stdout=subprocess.PIPE, text=True
    )
    if done.returncode:
        raise LabError("the lab's kernel could not be built (see above)")
    paths = json.loads(done.stdout)
    modules = tuple(Path(module) for module in paths["modules"])
    return Kernel(paths["version"], Path(paths["kernel"]), modules)


def run(
    kernel: Kernel,
    argv: Sequence[str | Path],
    *,
    needs: Sequence[Path] = (),
    seed: int = 1,
    arguments: Sequence[str] = (),
    topology: dict[str, object] | None = None,
) -> Outcome:
    """Run a command in a lab of its own, on virtual time; the same `seed` gives the same run.

    `needs` are folders outside the repository that it reads, `arguments` go to the kernel's command
    line, and `topology` is the TopologySpec of a fabric.
    """
    with tempfile.TemporaryDirectory(prefix="weft-") as name:
        folder = Path(name)
        spec = folder / "spec.json"
        spec.write_text(json.dumps(description(kernel, argv, needs, seed, arguments, topology)))
        done = subprocess.run(
            [BIN / "weft-lab", "batch", spec, "--out", folder / "out"],
            capture_output=True,
            text=True,
            env=os.environ | {"WEFT_CACHE": str(folder / "cache")},
        )
        logs = folder / "out" / "log"
        if not (logs / "batch.log").exists():
            raise LabError(f"{done.stderr.strip()}\n{tail_of_logs(folder)}")
        return Outcome(done.returncode, text(logs / "batch.log"), text(logs / "console.log"))


@contextmanager
def pool(jobs: int) -> Iterator[ThreadPoolExecutor]:
    """Give threads for several labs in parallel; after an interrupt no further one starts.

    The running labs get the terminal's interrupt too, and stop.
    """
    executor = ThreadPoolExecutor(jobs)
    try:
        yield executor
    finally:
        executor.shutdown(cancel_futures=True)


def run_program(
    kernel: Kernel,
    program: str,
    *arguments: str,
    seed: int = 1,
    kernel_arguments: Sequence[str] = ("slab_debug=FZPU",),
) -> list[str]:
    """Run a program of kernel_tests; give its failed claims, and bugs in the kernel log.

    By default the kernel checks every slab object on allocation and free.
    """
    outcome = run(
        kernel,
        ["/usr/bin/env", f"PYTHONPATH={ROOT / 'tests'}", sys.executable]
        + ["-m", f"kernel_tests.{program}", *arguments],
        seed=seed,
        arguments=kernel_arguments,
    )
    return wrong(outcome)


def wrong(outcome: Outcome) -> list[str]:
    """Give the failures of a program that prints TAP."""
    found = [f"kernel: {line}" for line in outcome.complaints()]
    lines = outcome.output.splitlines()
    for line, after in zip(lines, [*lines[1:], ""], strict=False):
        if line.startswith("not ok"):
            found.append(f"{line} {after}" if after.startswith("#") else line)
    claims = sum(line.startswith(("ok ", "not ok ")) for line in lines)
    if f"1..{claims}" not in lines or claims == 0:
        found.append(f"broke off: {' | '.join(lines[-3:])}")
    elif outcome.exit_code and not found:
        found.append(f"exit status {outcome.exit_code}")
    return found


def description(
    kernel: Kernel,
    argv: Sequence[str | Path],
    needs: Sequence[Path],
    seed: int,
    arguments: Sequence[str],
    topology: dict[str, object] | None,
) -> dict[str, object]:
    """Give the LabSpec (topology/lab/src/spec/mod.rs) of a lab."""
    return {
        "topology": topology,
        "pattern_ttl_ns": PATTERN_TTL_NS,
        "seed": seed,
        "clock": "free",
        "paths": {
            "repo": str(ROOT),
            "bin": str(BIN),
            "python": sys.executable,
            "kernel": str(kernel.image),
            "modules": [str(module) for module in kernel.modules],
            "programs": [str(ROOT / "p4" / "compiled")],
        },
        "batch": {"argv": [str(word) for word in argv], "needs": [str(path) for path in needs]},
        "kernel_arguments": list(arguments),
    }


def tail_of_logs(folder: Path) -> str:
    """Give the last lines of all logs of a failed lab."""
    parts = []
    for log in sorted(folder.rglob("*.log")):
        lines = text(log).splitlines()[-30:]
        parts.append("\n".join([f"--- {log.name}", *lines]))
    return "\n".join(parts)


def text(file: Path) -> str:
    """Read a file as text, with invalid bytes replaced."""
    return file.read_text(errors="replace")
