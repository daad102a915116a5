# SPDX-License-Identifier: Apache-2.0
"""The selftests: taken from the kernel's source package, built, and kept in the cache.

    kernel/selftests-<hash>/tests/net/mptcp   scripts and helpers
    kernel/selftests-<hash>/headers           what the helpers are built with

Nothing of them is in this repository. The hash is that of the package (or of the
tree that KERNEL_SRC names) and of this file.
"""

import os
import shutil
from pathlib import Path

from weft_kernel import sources as mirror
from weft_kernel import store
from weft_kernel.archive import Archive
from weft_kernel.errors import BuildError, run

SELFTESTS = "tools/testing/selftests/net"
WANTED = (
    f"{SELFTESTS}/mptcp",
    f"{SELFTESTS}/lib.sh",
    f"{SELFTESTS}/lib",
    "tools/include",
    "include/uapi",
    "scripts/headers_install.sh",
    "scripts/unifdef.c",
)
"""What of the kernel's sources is needed."""
HEADER_FOLDERS = ("linux", "asm-generic")
"""What of include/uapi the helpers include, directly or not."""


def prepare(version: str) -> Path:
    """Return the folder of scripts and built helpers for a kernel; build it if it is missing."""
    folder = store.default_folder()
    tree = os.environ.get("KERNEL_SRC")
    origin = store.fingerprint(Path(tree)) if tree else version
    target = folder / f"selftests-{store.digest([Path(__file__)], origin)}"
    with store.Store(folder) as cache:
        if not target.is_dir():
            with cache.new() as build:
                if tree:
                    copy(Path(tree), build)
                else:
                    unpack(package(folder, version), build)
                install_headers(build)
                compile_helpers(build)
                keep(build, target)
            for old in folder.glob("selftests-*"):
                if old != target:
                    shutil.rmtree(old)
    return target / "tests" / "net" / "mptcp"


def package(folder: Path, version: str) -> Path:
    """Return the linux-source package of a version, from the cache or the mirror."""
    found = list((folder / "source").glob(f"*_{version.replace(':', '%3a')}_all.deb"))
    if found:
        return found[0]
    archive = Archive(mirror.mirror(), folder / "apt")
    archive.update()
    for candidate in archive.packages():
        if candidate.version == version:
            (folder / "source").mkdir(exist_ok=True)
            return archive.download(candidate, folder / "source")
    raise BuildError(
        f"the mirror has no linux-source package of {version} any more; build the kernel again"
    )


def copy(tree: Path, build: Path) -> None:
    """Take what is needed from a source tree."""
    for name in WANTED:
        source, target = tree / name, build / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True)
        else:
            shutil.copy(source, target)


def unpack(package: Path, build: Path) -> None:
    """Take what is needed from a source package."""
    outer = build / "package"
    run(["dpkg-deb", "-x", package, outer])
    (tarball,) = outer.glob("usr/src/linux-source-*.tar.*")
    top = tarball.name.partition(".tar.")[0]
    members = [f"{top}/{name}" for name in WANTED]
    run(["tar", "-xf", tarball, "-C", build, "--strip-components=1", *members])
    shutil.rmtree(outer)


def install_headers(build: Path) -> None:
    """Make the headers that user space sees, as `make headers_install` would."""
    scripts = build / "scripts"
    run(["gcc", "-O1", "-o", scripts / "unifdef", scripts / "unifdef.c"])
    uapi = build / "include" / "uapi"
    for folder in HEADER_FOLDERS:
        for source in sorted((uapi / folder).rglob("*.h")):
            target = build / "headers" / source.relative_to(uapi)
            target.parent.mkdir(parents=True, exist_ok=True)
            run(["sh", "scripts/headers_install.sh", source, target], cwd=build)


def compile_helpers(build: Path) -> None:
    """Build every C program of the MPTCP selftests."""
    for source in sorted((build / SELFTESTS / "mptcp").glob("*.c")):
        try:
            run(compile_command(build, source))
        except BuildError as error:
            raise BuildError(f"{source.name} of the selftests: {error}") from error


def compile_command(build: Path, source: Path) -> list[str | Path]:
    """Return how a helper is compiled; its warnings are for its authors."""
    headers = [build / "headers", build / "tools" / "include"]
    includes = [f"-I{path}" for path in headers]
    return ["gcc", "-O2", "-w", *includes, "-o", source.with_suffix(""), source]


def keep(build: Path, target: Path) -> None:
    """Keep what runs."""
    shutil.rmtree(target, ignore_errors=True)
    ready = build / "ready"
    ready.mkdir()
    (build / "tools" / "testing" / "selftests").rename(ready / "tests")
    ready.rename(target)


def scripts(folder: Path) -> list[str]:
    """Name the tests: every script that is not a library."""
    names = {path.stem for path in folder.glob("*.sh") if os.access(path, os.X_OK)}
    return sorted(names - {"mptcp_lib"})
