# SPDX-License-Identifier: Apache-2.0
"""Waiting for files without looking again and again.

A process that polls costs time twice in the lab: wake-ups are what a run's wall time
goes into, and its timer keeps virtual time from jumping ahead.
"""

import ctypes
import os
import select
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_IN_CLOEXEC, _IN_CREATE, _IN_MOVED_TO = 0x80000, 0x100, 0x80

_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def watching(folder: Path) -> Iterator[int]:
    """Give a descriptor that becomes readable when a file appears in `folder`."""
    descriptor = _libc.inotify_init1(_IN_CLOEXEC)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), "inotify")
    try:
        events = _IN_CREATE | _IN_MOVED_TO
        if _libc.inotify_add_watch(descriptor, os.fsencode(folder), events) < 0:
            raise OSError(ctypes.get_errno(), f"inotify of {folder}")
        yield descriptor
    finally:
        os.close(descriptor)


def wait_for(path: Path, watch: int, pid: int, timeout_s: float) -> bool:
    """Wait until `path` is there; False when process `pid` ended or the time is over first.

    `watch` has been watching its folder since before it could appear.
    """
    ended = os.pidfd_open(pid)
    try:
        poller = select.poll()
        poller.register(watch, select.POLLIN)
        poller.register(ended, select.POLLIN)
        while not path.exists():
            ready = dict(poller.poll(timeout_s * 1000))
            if not ready:
                return False
            if watch in ready:
                os.read(watch, 4096)
            elif ended in ready:
                return path.exists()
    finally:
        os.close(ended)
    return True
