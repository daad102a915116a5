# SPDX-License-Identifier: Apache-2.0
"""The folder of a bare system: made by debootstrap, set up, removed.

Of this machine it gets what a machine on this network is given by whoever runs the
network: name servers, certificates, and the settings of apt, pip and cargo. It gets
nothing that Weft needs.
"""

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from weft_kernel import sources

from fresh_machine.plan import Machine
from fresh_machine.readme import BUNDLE, REPOSITORY

CLONE_NEWNS = 0x20000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
MNT_DETACH = 2
SYS_PIVOT_ROOT = 155
"""Numbers of x86-64 Linux, the only machine that a lab runs on."""

INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

PREFIX = "weft-fresh-"

CONFIGURATION = (
    "etc/hosts",
    "etc/resolv.conf",
    "etc/pip.conf",
    "usr/local/share/ca-certificates",
)
USER_CONFIGURATION = (".config/pip/pip.conf", ".cargo/config.toml")

PASSED_ON = ("PIP_", "CARGO_HTTP_", "CARGO_NET_", "CARGO_REGISTR", "CARGO_SOURCE_")
PASSED_ON_EXACTLY = frozenset(
    ["http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"]
    + ["SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE"]
)


@contextlib.contextmanager
def folder(parent: Path) -> Iterator[Path]:
    """Make a folder that is gone afterwards; its name says whose it is."""
    path = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=parent))
    # Ordinary users of the system are in it too.
    path.chmod(0o755)
    try:
        yield path
    finally:
        # An interruption comes when everything is removed, and is not lost.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTIONS)
        try:
            remove(path)
            log(path).unlink(missing_ok=True)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def log(path: Path) -> Path:
    """Return the file with the output of a system's last step."""
    return path.with_name(f"{path.name}.log")


def remove_remains(parent: Path) -> None:
    """Remove folders and logs of those that were killed."""
    for path in parent.glob(f"{PREFIX}*"):
        owner = path.name.removeprefix(PREFIX).partition("-")[0]
        if Path("/proc", owner).exists():
            continue
        if path.is_dir():
            remove(path)
        else:
            path.unlink()


def remove(path: Path) -> None:
    """Remove a system's folder, unless something is still mounted in it.

    Raises:
        RuntimeError: something is; removing would reach outside the folder.
    """
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    if any(Path(line.split()[1]).is_relative_to(path) for line in mounts):
        raise RuntimeError(f"{path} is not removed: something is mounted in it")
    shutil.rmtree(path)


def make(path: Path, machine: Machine) -> str:
    """Fill the folder with a minimal system; return the command's output."""
    words = ["debootstrap", "--variant=minbase"]
    words += [] if machine.user == "root" else ["--include=sudo"]
    return run([*words, machine.suite, str(path), sources.mirror()])


def set_up(path: Path, machine: Machine, cache: Path | None) -> None:
    """Give it the network's settings, the user, the bundle and the cache."""
    for name in CONFIGURATION:
        copy(Path("/", name), path / name)
    for name in USER_CONFIGURATION:
        copy(Path.home() / name, path / machine.home.lstrip("/") / name)
    settings = run(["apt-config", "dump", "Acquire"])
    (path / "etc/apt/apt.conf.d/90network").write_text(settings)
    run(["git", "-C", str(REPOSITORY), "bundle", "create", "-q", str(path / BUNDLE), "HEAD"])
    if machine.user != "root":
        run(["chroot", str(path), "useradd", "--create-home", "--shell", "/bin/bash", machine.user])
        rule = path / "etc/sudoers.d/weft"
        rule.write_text(f"{machine.user} ALL=(ALL) NOPASSWD: ALL\n")
        rule.chmod(0o440)
    inner = path / machine.home.lstrip("/")
    if cache:
        copy(cache / "kernel", inner / ".cache/weft/kernel")
    (path / machine.checkout.lstrip("/")).mkdir(parents=True)
    for name in dict.fromkeys([machine.home, machine.checkout, str(Path(machine.checkout).parent)]):
        if name != "/tmp":
            run(["chroot", str(path), "chown", "-R", f"{machine.user}:", name])


def mount(path: Path) -> None:
    """Mount what a running system has, in this process's own mount namespace."""
    # Only a mount can become the root of a process.
    run(["mount", "--bind", str(path), str(path)])
    for name in ("dev", "sys"):
        run(["mount", "--rbind", f"/{name}", str(path / name)])
    run(["mount", "-t", "proc", "proc", str(path / "proc")])
    # Its own: what a lab keeps there must not depend on this machine's.
    run(["mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", str(path / "dev/shm")])


def entrance(path: Path, machine: Machine, place: str) -> Callable[[], None]:
    """Return what makes a new process one of the machine's user in the system.

    The system becomes its root by pivot_root(2): in a chroot(2) nobody may make user
    namespaces, as users of a real machine do.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    passwd = (path / "etc/passwd").read_text().splitlines()
    entry = next(line for line in passwd if line.startswith(f"{machine.user}:"))
    uid, gid = (int(number) for number in entry.split(":")[2:4])

    def check(result: int) -> None:
        if result:
            raise OSError(ctypes.get_errno(), f"enter {path}")

    def enter() -> None:
        check(libc.unshare(CLONE_NEWNS))
        check(libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None))
        os.chdir(path)
        # The old root is then mounted on the new one, as the manual of pivot_root(2) has it.
        check(libc.syscall(SYS_PIVOT_ROOT, b".", b"."))
        check(libc.umount2(b".", MNT_DETACH))
        os.setgroups([gid])
        os.setgid(gid)
        os.setuid(uid)
        os.chdir(place)

    return enter


def environment(machine: Machine) -> dict[str, str]:
    """Return the variables of a login, and those that lead to the registries."""
    passed = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(PASSED_ON) or name in PASSED_ON_EXACTLY
    }
    return passed | {
        "HOME": machine.home,
        "USER": machine.user,
        "LOGNAME": machine.user,
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "PATH": "/usr/local/bin:/usr/bin:/bin"
        + ("" if machine.user != "root" else ":/usr/local/sbin:/usr/sbin:/sbin"),
    }


def copy(source: Path, target: Path) -> None:
    """Copy a file or a folder, if it is there."""
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
    elif source.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def run(words: list[str]) -> str:
    """Run a program to its end; return what it printed.

    Raises:
        subprocess.CalledProcessError: it failed; its output is the exception's.
    """
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    return subprocess.run(
        words,
        env=os.environ | {"PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    ).stdout
