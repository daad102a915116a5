# SPDX-License-Identifier: Apache-2.0
"""A kernel source tree: unpack, patch, configure, build, strip down.

The build is in place, in a folder of ours, and everything in it is relative, so
that the folder can be renamed when it is complete. What stays is what a module
needs to be built against it, a tenth of the sources.
"""

import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from weft_kernel.errors import BuildError, run

# Patterns, relative to the tree, of what building a module needs.
KEEP = (
    ".config",
    "Kconfig",
    "Makefile",
    "Module.symvers",
    "arch/um/Makefile*",
    "arch/um/include/**",
    "arch/um/scripts/**",
    "arch/x86/Makefile*",
    "arch/x86/include/**",
    "arch/x86/um/**/*.h",
    "arch/x86/um/Makefile*",
    "include/**",
    "linux",
    "net/mptcp/*.h",
    "scripts/**",
)
# What of the sources User-Mode Linux never compiles: most of them. Kconfig and
# Makefiles stay, because they refer to each other.
SKIP = (
    "arch/[!ux]*/*.[chSd]*",
    "arch/xtensa/*.[chSd]*",
    "tools",
    "Documentation/*.[!K]*",
    "samples/*.[chS]",
    "sound/*.[chS]",
    *(
        f"drivers/{name}/*.[chS]"
        for name in (
            *("accel", "ata", "bluetooth", "clk", "comedi", "crypto", "gpu", "hwmon", "iio"),
            *("infiniband", "input", "media", "mfd", "mmc", "mtd", "net/can", "net/dsa"),
            *("net/ethernet", "net/phy", "net/usb", "net/wireless", "pci", "phy", "pinctrl"),
            *("platform", "power", "regulator", "scsi", "soc", "staging", "usb", "video"),
        )
    ),
)
# Raise it when what a build leaves behind changes: it is part of the hash.
FORMAT = "1"
REPRODUCIBLE = {
    "KBUILD_BUILD_TIMESTAMP": "1970-01-01",
    "KBUILD_BUILD_VERSION": "1",  # else one more with every time that it is interrupted
    "KBUILD_BUILD_USER": "weft",
    "KBUILD_BUILD_HOST": "lab",
}
JOBS = len(os.sched_getaffinity(0))
FILES = 1_200
"""That kbuild makes for the lab's kernel, about (7.3: 1220): for the progress that is shown."""


def unpack(package: Path, tree: Path) -> None:
    """Unpack the kernel sources in a linux-source package."""
    outer = tree.with_name("package")
    run(["dpkg-deb", "-x", package, outer])
    tarballs = list(outer.glob("usr/src/linux-source-*.tar.*"))
    if len(tarballs) != 1:
        raise BuildError(f"{package.name} has {len(tarballs)} source archives instead of one")
    tree.mkdir()
    top = tarballs[0].name.partition(".tar.")[0]
    skip = [f"--exclude={top}/{pattern}" for pattern in SKIP]
    run(["tar", "-xf", tarballs[0], "-C", tree, "--strip-components=1", "--anchored", *skip])
    shutil.rmtree(outer)


def copy(source: Path, tree: Path, log: Path) -> None:
    """Copy somebody's source tree, without its history and build products."""
    shutil.copytree(source, tree, symlinks=True, ignore=shutil.ignore_patterns(".git", "*.o"))
    make(tree, ["mrproper"], log=log)


def apply(patches: Iterable[Path], tree: Path) -> None:
    """Apply patches; one that is in already (KERNEL_SRC) is left alone."""
    for patch in patches:
        arguments: list[str | Path] = ["patch", "-p1", "-s", "-d", tree, "-i", patch]
        try:
            run([*arguments, "--dry-run", "--forward"])
        except BuildError as error:
            try:
                run([*arguments, "--dry-run", "--reverse", "--force"])
            except BuildError:
                raise BuildError(f"{patch.name} does not apply to this kernel") from error
            continue
        if hunk := ambiguous_hunk(patch.read_text(), tree):
            raise BuildError(f"{patch.name} fits at several places of this kernel: {hunk}")
        run([*arguments, "--no-backup-if-mismatch"])


def ambiguous_hunk(patch: str, tree: Path) -> str | None:
    """Return the first hunk whose context is found more than once, or None.

    patch(1) goes by the line number then, which is another kernel's, and takes the
    nearest place without a word.
    """
    target = tree
    for part in re.split(r"^(?=--- |@@ )", patch, flags=re.MULTILINE):
        if file := re.search(r"^\+\+\+ b/(\S+)", part, re.MULTILINE):
            target = tree / file[1]
        if not part.startswith("@@") or not target.is_file():
            continue
        heading, *lines = part.splitlines()
        context = "".join(f"{line[1:]}\n" for line in lines if line.startswith((" ", "-")))
        if f"\n{target.read_text()}".count(f"\n{context}") > 1:
            return f"{target.relative_to(tree)} {heading}"
    return None


def configure(tree: Path, fragment: Path, log: Path) -> None:
    """Configure with what `fragment` names and nothing else, and check the result."""
    make(tree, ["allnoconfig"], log=log, variables={"KCONFIG_ALLCONFIG": str(fragment)})
    wanted = fragment.read_text()
    got = (tree / ".config").read_text()
    unmet = [line for line in unmet_lines(wanted, got) if _is_known(tree, line)]
    if unmet:
        raise BuildError(f"{fragment.name}: this kernel does not honour {', '.join(unmet)}")


def unmet_lines(wanted: str, got: str) -> list[str]:
    """Return the lines of a configuration fragment that .config does not have."""
    lines = set(got.splitlines())
    unmet = []
    for line in wanted.splitlines():
        if not line.startswith("CONFIG_"):
            continue
        name, _, value = line.partition("=")
        off = value == "n" and not any(other.startswith(f"{name}=") for other in lines)
        if line not in lines and not off:
            unmet.append(line)
    return unmet


def _is_known(tree: Path, line: str) -> bool:
    """Whether this kernel has the option: some come and go with versions."""
    name = line.partition("=")[0].removeprefix("CONFIG_")
    definition = re.compile(rf"^\s*(menu)?config {name}$", re.MULTILINE)
    return any(
        definition.search(file.read_text(errors="replace")) for file in tree.rglob("Kconfig*")
    )


def build(tree: Path, log: Path) -> None:
    """Compile the kernel and what module builds need; `log` gets a line for each file."""
    make(tree, [f"-j{JOBS}", "linux", "modules"], log=log, quiet=False)


def build_modules(
    tree: Path, sources: Path, log: Path, variables: dict[str, str] | None = None
) -> None:
    """Compile the modules whose Kbuild is in `sources`, in place."""
    make(tree, [f"-j{JOBS}", f"M={sources}", "modules"], log=log, variables=variables)


def make(
    tree: Path,
    arguments: Iterable[str],
    *,
    log: Path,
    variables: dict[str, str] | None = None,
    quiet: bool = True,
) -> None:
    """Run make in a tree, without the caller's make and locale settings."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name in ("PATH", "HOME", "TMPDIR") or name.startswith("CCACHE_")
    }
    environment |= REPRODUCIBLE | {"LC_ALL": "C.UTF-8"} | (variables or {})
    command = ["make", *(["-s"] if quiet else []), "-C", str(tree), "ARCH=um"]
    if shutil.which("ccache"):
        command.append("CC=ccache gcc")
    run([*command, *arguments], env=environment, log=log)


def strip_down(tree: Path) -> None:
    """Delete all that building a module does not need."""
    wanted: set[Path] = set()
    for pattern in KEEP:
        wanted.update(path for path in tree.glob(pattern) if not path.is_dir())
        if pattern.endswith("/**"):
            wanted.update(path for path in tree.glob(pattern + "/*") if not path.is_dir())
    for folder, directories, files in os.walk(tree, topdown=False):
        for name in files:
            path = Path(folder, name)
            if path not in wanted or path.suffix == ".o":
                path.unlink()
        for name in directories:
            path = Path(folder, name)
            if path.is_symlink():
                continue
            if not any(path.iterdir()):
                path.rmdir()
