# SPDX-License-Identifier: Apache-2.0
"""Why this machine cannot make bare systems."""

import os
import shutil
import subprocess

INSIDE = "WEFT_FRESH_MACHINE"
"""Set in a bare system, whose own `make test` makes no further one."""

TOOLS = ("debootstrap", "unshare", "chroot", "mount", "git")


def is_inside() -> bool:
    """Whether this is such a system."""
    return INSIDE in os.environ


def why_not() -> str | None:
    """Return why nothing can be tried here, and what to do; None where it can."""
    if is_inside():
        return "this is a bare system itself"
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    missing = [tool for tool in TOOLS if not shutil.which(tool, path=path)]
    if missing:
        return f"not installed: {', '.join(missing)}; install debootstrap, mount and git"
    privileged = [] if os.geteuid() == 0 else ["sudo", "-n"]
    attempt = [*privileged, "unshare", "--mount", "--pid", "--fork", "chroot", "/", "true"]
    try:
        done = subprocess.run(attempt, capture_output=True, text=True)
    except FileNotFoundError:
        return "making a system needs root, and there is no sudo; run it as root"
    if done.returncode:
        said = done.stderr.strip().splitlines()
        return (
            "making a system needs root (or sudo without a password) and new mount and process "
            f"namespaces: {said[-1] if said else 'refused'}"
        )
    return None
