# SPDX-License-Identifier: Apache-2.0
"""What `build.py` does: find or make the kernel, find or make the modules."""

import argparse
import contextlib
import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from weft_kernel import progress, sources, store, tree
from weft_kernel.archive import Archive, Package
from weft_kernel.errors import BuildError

HERE = Path(__file__).resolve().parents[1]
REPOSITORY = HERE.parents[2]
MODULES = REPOSITORY / "host" / "kernel"
LOADED = ("weft", "weft_coupled")
"""Modules that a lab loads, in this order; others are built and stay beside them."""
SYMBOLS = "Module.symvers"
"""What Weft's modules export, for modules that use it."""
FRAGMENT = HERE / "um.config"
PREPARED = "prepared.json"
"""In a build's folder: the tree is patched and configured, and says what it is."""
TOOLS = ("gcc", "make", "flex", "bison", "bc", "patch", "tar", "xz", "dpkg-deb")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(
        description="Build the lab's User-Mode Linux and Weft's modules for it, or reuse the last "
        "build. KERNEL_SRC=dir takes another source tree, KERNEL_CONFIG=file adds to um.config, "
        "WEFT_CACHE=dir is another cache.",
    )
    parser.add_argument("--json", action="store_true", help="print the paths as JSON")
    parser.add_argument(
        "--module",
        type=Path,
        metavar="FOLDER",
        help="build a module from each FOLDER/*.c too, such as a scheduler; it is FOLDER/*.ko",
    )
    options = parser.parse_args(arguments)
    try:
        result = build(store.default_folder(), os.environ.get("KERNEL_SRC"), options.module)
    except (BuildError, OSError) as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        say("interrupted; the next run goes on from here")
        return 130
    if options.json:
        print(json.dumps(result))
    else:
        print(f"lab kernel {result['version']}: {result['kernel']} {' '.join(result['modules'])}")
        for module in result.get("own_modules", []):
            print(f"module: {module}")
    return 0


def build(folder: Path, source: str | None, own: Path | None = None) -> dict[str, Any]:
    """Return paths and version of kernel and modules, built if need be; `own` are somebody's."""
    if platform.machine() != "x86_64":
        raise BuildError(f"User-Mode Linux runs on x86_64, not on {platform.machine()}")
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        raise BuildError(f"not installed: {', '.join(missing)}; run `make deps`")

    with store.Store(folder) as cache:
        kernel = kernel_from_tree(cache, source) if source else kernel_from_debian(cache)
        about = json.loads((kernel / "build.json").read_text())
        result = {
            "version": about["version"],
            "kernel": str(kernel / "tree" / "linux"),
            "modules": [str(module) for module in modules_for(cache, kernel)],
        }
        store.write_json(folder / "current.json", result)
        if own:
            modules = own_modules(cache, kernel, own.resolve())
            result["own_modules"] = [str(module) for module in modules]
    return result


def patches() -> list[Path]:
    """Return the patches in their order: those for everybody, then the lab's."""
    return sorted((MODULES / "patches").glob("*.patch")) + sorted(
        (HERE / "patches").glob("*.patch")
    )


def fragments() -> list[Path]:
    """Return the parts of the configuration; a later one adds to those before."""
    extra = os.environ.get("KERNEL_CONFIG")
    if not extra:
        return [FRAGMENT]
    if not Path(extra).is_file():
        raise BuildError(f"KERNEL_CONFIG={extra}: no such file")
    return [FRAGMENT, Path(extra).resolve()]


def kernel_key() -> str:
    """Return the hash of all that decides about a kernel besides its sources."""
    return store.digest([*patches(), *fragments()], tree.FORMAT)


def kernel_from_tree(cache: store.Store, source: str) -> Path:
    """Find or make the kernel of somebody's source tree."""
    path = Path(source).resolve()
    if not (path / "Kbuild").is_file() or not (path / "net" / "mptcp").is_dir():
        raise BuildError(f"KERNEL_SRC={source} is not a Linux source tree")
    key = f"{kernel_key()}-{store.fingerprint(path)}"
    found = cache.find(key)
    if found:
        return found
    if interrupted := resumed(cache, key):
        return interrupted
    say(f"building the kernel in {path}")
    with cache.partial(key) as build_folder:
        tree.copy(path, empty(build_folder), fresh_log(cache, "kernel.log"))
        return make_kernel(cache, build_folder, key, {"version": path.name, "origin": str(path)})


def kernel_from_debian(cache: store.Store) -> Path:
    """Find or make the newest of Debian's kernels that can be made."""
    key = kernel_key()
    found = cache.find(key)
    if found:
        return found
    if interrupted := resumed(cache, key):
        return interrupted

    archive = Archive(sources.mirror(), cache.folder / "apt")
    outdated: BuildError | None = None
    try:
        archive.update()
    except BuildError as error:
        outdated = error
    candidates = archive.packages()
    if outdated and not candidates:
        raise outdated
    if outdated:
        say(f"the package lists are not up to date: {outdated}")
    if not candidates:
        raise BuildError(
            "the mirror has no linux-source package; "
            "set KERNEL_SRC to an unpacked Linux source tree"
        )
    reason: BuildError | None = None
    for package in candidates:
        # One that cannot be had today can be tomorrow, and what is built now stays.
        file = package_file(cache, archive, package)
        try:
            say(
                f"building Linux {package.version}, once: about 4 minutes on 2 idle cores, "
                f"here with {tree.JOBS} jobs"
            )
            with cache.partial(key) as build_folder:
                tree.unpack(file, empty(build_folder))
                about = {"version": package.version, "origin": package.suite}
                return make_kernel(cache, build_folder, key, about)
        except BuildError as error:
            reason = error
            say(f"{package.name} {package.version} of {package.suite} is no use: {error}")
    raise BuildError(f"no kernel could be built; the last reason: {reason}")


def package_file(cache: store.Store, archive: Archive, package: Package) -> Path:
    """Find or download a package; it becomes the only one that is kept."""
    folder = cache.folder / "source"
    folder.mkdir(exist_ok=True)
    file = folder / f"{package.name}_{package.version.replace(':', '%3a')}_all.deb"
    if not file.exists():
        what = f"{package.name} {package.version} of {package.suite}"
        say(f"downloading {what}")
        with cache.new() as partial:
            try:
                archive.download(package, partial).rename(file)
            except BuildError as error:
                raise BuildError(f"download of {what}: {error}") from error
    for other in folder.glob("*.deb"):
        if other != file:
            other.unlink()
    return file


def empty(build_folder: Path) -> Path:
    """Clear a build's folder; return where its tree is to be."""
    for remains in build_folder.iterdir():
        shutil.rmtree(remains) if remains.is_dir() else remains.unlink()
    return build_folder / "tree"


def resumed(cache: store.Store, key: str) -> Path | None:
    """Finish a build that was interrupted while it compiled, if there is one."""
    with contextlib.suppress(BuildError), cache.partial(key) as build_folder:
        prepared = build_folder / PREPARED
        if prepared.is_file():
            about = json.loads(prepared.read_text())
            say(f"going on with Linux {about['version']}, which was interrupted")
            return compile_kernel(cache, build_folder, key, about)
    return None


def make_kernel(cache: store.Store, build_folder: Path, key: str, about: dict[str, str]) -> Path:
    """Patch, configure and compile `build_folder`/tree, and keep it."""
    kernel_tree = build_folder / "tree"
    log = fresh_log(cache, "kernel.log")
    tree.apply(patches(), kernel_tree)
    fragment = build_folder / "fragment.config"
    fragment.write_text("\n".join(file.read_text() for file in fragments()))
    tree.configure(kernel_tree, fragment, log)
    if not key.startswith(kernel_key()):
        raise BuildError("patches or configuration changed meanwhile; run this again")
    store.write_json(build_folder / PREPARED, about)
    return compile_kernel(cache, build_folder, key, about)


def compile_kernel(cache: store.Store, build_folder: Path, key: str, about: dict[str, str]) -> Path:
    """Compile a configured `build_folder`/tree, as far as that is not done, and keep it."""
    begin = time.monotonic()
    kernel_tree = build_folder / "tree"
    compiled = build_folder / "compiled"
    if not compiled.exists():
        log = cache.folder / "kernel.log"
        # What an interrupted build has made is not made again, and counts already.
        made = sum(1 for _ in kernel_tree.rglob("*.o"))
        with progress.watched(log, max(tree.FILES - made, 1), say):
            tree.build(kernel_tree, log)
        compiled.touch()
    tree.strip_down(kernel_tree)
    say(f"kernel built in {time.monotonic() - begin:.0f} s")
    return cache.keep(build_folder, f"{about['version']}-{key}", about)


def module_sources() -> list[Path]:
    """Return the files of host/kernel that the modules are made of."""
    return sorted(
        path
        for pattern in ("Kbuild", "*.c", "*.h")
        for path in MODULES.rglob(pattern)
        if not path.name.endswith(".mod.c") and not path.is_relative_to(MODULES / "tests")
    )


def modules_for(cache: store.Store, kernel: Path) -> list[Path]:
    """Find or make the modules for a kernel; return those that a lab loads."""
    target = modules_folder(kernel)
    if not target.is_dir():
        log = fresh_log(cache, "modules.log")
        with cache.new(kernel) as build_folder:
            copy_files(module_sources(), MODULES, build_folder)
            tree.build_modules(kernel / "tree", build_folder, log)
            keep_modules(build_folder, target)
    return [target / f"{name}.ko" for name in LOADED]


def modules_folder(kernel: Path) -> Path:
    """Return where the modules of the present sources are, or are to be."""
    return kernel / f"modules-{store.digest(module_sources(), SYMBOLS)}"


def copy_files(files: Iterable[Path], top: Path, target: Path) -> None:
    """Copy files of the folder `top` to the same places below `target`."""
    for file in files:
        copy = target / file.relative_to(top)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)


def own_modules(cache: store.Store, kernel: Path, folder: Path) -> list[Path]:
    """Build a module from each C file of somebody's folder, beside it; return the modules.

    It is built in a copy, so that nothing else appears in the folder.
    """
    sources = sorted(folder.glob("*.c"))
    if not sources:
        raise BuildError(f"{folder} has no C file to build a module from")
    log = fresh_log(cache, "own-modules.log")
    with cache.new(kernel) as build_folder:
        copy_files([*sources, *folder.glob("*.h")], folder, build_folder)
        headers = [file for file in module_sources() if file.suffix == ".h"]
        copy_files(headers, MODULES, build_folder / "weft")
        (build_folder / "Kbuild").write_text(own_kbuild(sources))
        symbols = {"KBUILD_EXTRA_SYMBOLS": str(modules_folder(kernel) / SYMBOLS)}
        try:
            tree.build_modules(kernel / "tree", build_folder, log, symbols)
        except BuildError as error:
            # What the compiler says is about somebody's own source.
            said = log.read_text().replace(f"{build_folder}/", "")
            raise BuildError(f"{folder}: no module could be built\n{said}") from error
        modules = [folder / f"{source.stem}.ko" for source in sources]
        for module in modules:
            shutil.copyfile(build_folder / module.name, module)
    return modules


def own_kbuild(sources: Iterable[Path]) -> str:
    """Return the Kbuild of modules of one file each that include Weft's headers."""
    objects = " ".join(f"{source.stem}.o" for source in sources)
    return f"obj-m := {objects}\nccflags-y := -I$(srctree)/net/mptcp -I$(src)/weft -Werror\n"


def keep_modules(build_folder: Path, target: Path) -> None:
    """Make every module of a build permanent, all of them or none."""
    ready = build_folder / "ready"
    ready.mkdir()
    for module in build_folder.glob("*.ko"):
        module.rename(ready / module.name)
    missing = [name for name in LOADED if not (ready / f"{name}.ko").is_file()]
    if missing:
        raise BuildError(f"the Kbuild of {MODULES} makes no module {', '.join(missing)}")
    (build_folder / SYMBOLS).rename(ready / SYMBOLS)
    ready.rename(target)


def fresh_log(cache: store.Store, name: str) -> Path:
    """Return the path of an empty log."""
    log = cache.folder / name
    log.write_text("")
    return log


def say(text: str) -> None:
    """Tell the user what goes on."""
    print(f"lab kernel: {text}", file=sys.stderr, flush=True)
