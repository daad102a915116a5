# SPDX-License-Identifier: Apache-2.0
"""The cache: complete builds, and which of them is current.

    kernel/
      apt/                      private apt state
      source/*.deb              package of the last build, for the next one
      <version>-<hash>/         one build: patches and configuration are the hash
        tree/                   what modules are built against; tree/linux is the kernel
        modules-<hash>/*.ko     one build of the modules: their sources are the hash
      .partial-<hash>/          a build that was interrupted while it compiled
      current.json              kernel and modules of the last run
      lock                      one builder at a time

A build is made in `.partial-*` or `.build-*` and renamed when it is complete, so that
there are no half ones; one that is not needed any more is renamed before it is deleted.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from weft_kernel.errors import BuildError

KEPT_BUILDS = 3


def default_folder() -> Path:
    """Return the cache's folder as the environment has it."""
    cache = os.environ.get("WEFT_CACHE")
    # Programs that run elsewhere are given paths in it.
    return (Path(cache).resolve() if cache else Path.home() / ".cache" / "weft") / "kernel"


def digest(files: Iterable[Path], salt: str = "") -> str:
    """Return a short hash over names and contents."""
    total = hashlib.sha256(salt.encode())
    for file in sorted(files):
        content = file.read_bytes()
        total.update(f"{file.name}\0{len(content)}\0".encode())
        total.update(content)
    return total.hexdigest()[:12]


def fingerprint(tree: Path) -> str:
    """Return a short hash over names, sizes and times of a source tree's files."""
    total = hashlib.sha256()
    for folder, directories, files in os.walk(tree):
        directories[:] = sorted(name for name in directories if name != ".git")
        for name in sorted(files):
            if not name.endswith((".o", ".cmd")):
                status = os.lstat(os.path.join(folder, name))
                total.update(f"{folder}/{name}\0{status.st_size}\0{status.st_mtime_ns}".encode())
    return total.hexdigest()[:12]


class Store:
    """The cache folder; `with` holds its lock."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = contextlib.ExitStack()

    def __enter__(self) -> "Store":
        self.folder.mkdir(parents=True, exist_ok=True)
        stream = self._lock.enter_context((self.folder / "lock").open("w"))
        # What compiles when we are killed goes on for a while, and must not meet the next.
        os.set_inheritable(stream.fileno(), True)
        fcntl.flock(stream, fcntl.LOCK_EX)
        for pattern in (".build-*", "*/.build-*"):
            for remains in self.folder.glob(pattern):
                shutil.rmtree(remains, ignore_errors=True)
        for half_written in self.folder.glob(".*.json.*"):
            half_written.unlink()
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.close()

    def find(self, key: str) -> Path | None:
        """Return the newest complete build of a hash."""
        builds = [path for path in self.folder.glob(f"*-{key}") if (path / "build.json").is_file()]
        return max(builds, key=lambda path: path.stat().st_mtime, default=None)

    @contextlib.contextmanager
    def new(self, parent: Path | None = None) -> Iterator[Path]:
        """Make a folder for a build; what is not renamed by the end is deleted."""
        path = Path(tempfile.mkdtemp(prefix=".build-", dir=parent or self.folder))
        path.chmod(0o755)
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    @contextlib.contextmanager
    def partial(self, key: str) -> Iterator[Path]:
        """Make or find the folder of a build that goes on where it was interrupted.

        A build that fails is deleted: it would fail again.
        """
        path = self.folder / f".partial-{key}"
        for other in self.folder.glob(".partial-*"):
            if other != path:
                shutil.rmtree(other, ignore_errors=True)
        path.mkdir(exist_ok=True)
        try:
            yield path
        except (BuildError, OSError):
            shutil.rmtree(path, ignore_errors=True)
            raise

    def keep(self, build: Path, name: str, about: dict[str, str]) -> Path:
        """Make a finished build permanent, and drop the oldest ones."""
        write_json(build / "build.json", about)
        target = self.folder / name
        if target.exists():
            shutil.rmtree(target)
        build.rename(target)
        builds = sorted(self.folder.glob("*/build.json"), key=lambda file: file.stat().st_mtime)
        for old in builds[:-KEPT_BUILDS]:
            with self.new() as remains:
                old.parent.rename(remains / "old")
        return target


def write_json(file: Path, content: Mapping[str, object]) -> None:
    """Write a file whole or not at all."""
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    partial.write_text(json.dumps(content, indent=2) + "\n")
    partial.rename(file)
