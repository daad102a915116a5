# SPDX-License-Identifier: Apache-2.0
"""Network namespaces of this process's making, without a process in them.

Each is a bind mount under `naming.NETNS_DIR`, as `ip netns add` makes them.
"""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from weft_topology import naming

_CLONE_NEWNET = 0x4000_0000
_MS_BIND, _MS_REC, _MS_SHARED = 0x1000, 0x4000, 0x10_0000
_MNT_DETACH = 2
_SELF = "/proc/thread-self/ns/net"

_libc = ctypes.CDLL(None, use_errno=True)


def prepare() -> None:
    """Make the folder of namespaces; their mounts spread to other mount namespaces."""
    folder = Path(naming.NETNS_DIR)
    folder.mkdir(parents=True, exist_ok=True)
    shared = (None, os.fsencode(folder), None, _MS_SHARED | _MS_REC, None)
    if _libc.mount(*shared) != 0:
        _mount(naming.NETNS_DIR, naming.NETNS_DIR, _MS_BIND | _MS_REC)
        _check(_libc.mount(*shared), naming.NETNS_DIR)


def create(name: str) -> None:
    """Make an empty network namespace that goes by `name`."""
    path = naming.netns(name)
    os.close(os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL, 0o444))
    try:
        with _elsewhere():
            _check(_libc.unshare(_CLONE_NEWNET), "a new network namespace")
            _mount(_SELF, path, _MS_BIND)
    except OSError:
        Path(path).unlink()
        raise


def delete(name: str) -> None:
    """Forget a namespace; it ends with its last process. No error if there is none."""
    path = naming.netns(name)
    _libc.umount2(os.fsencode(path), _MNT_DETACH)
    with suppress(FileNotFoundError):
        Path(path).unlink()


@contextmanager
def opened(name: str) -> Iterator[int]:
    """Give a descriptor of a namespace."""
    descriptor = os.open(naming.netns(name), os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def inside(descriptor: int) -> Iterator[None]:
    """Have the thread in a namespace; sockets opened there stay there."""
    with _elsewhere():
        _enter(descriptor)
        yield


@contextmanager
def _elsewhere() -> Iterator[None]:
    """Bring the thread back to the namespace it is in now."""
    home = os.open(_SELF, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield
    finally:
        try:
            _enter(home)
        finally:
            os.close(home)


def _enter(descriptor: int) -> None:
    _check(_libc.setns(descriptor, _CLONE_NEWNET), "a network namespace")


def _mount(source: str, target: str, flags: int) -> None:
    _check(
        _libc.mount(os.fsencode(source), os.fsencode(target), b"none", flags, None),
        f"mount {source} on {target}",
    )


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
