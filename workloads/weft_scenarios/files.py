# SPDX-License-Identifier: Apache-2.0
"""Writes files atomically: whole or not at all, also on a full disk."""

import errno
import os
from pathlib import Path


def write_whole(path: Path, content: bytes | str) -> None:
    """Write the file atomically; after an error the old one is unchanged."""
    data = content.encode() if isinstance(content, str) else content
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("wb") as file:
            file.write(data)
        os.replace(partial, path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise


def is_disk_full(error: OSError) -> bool:
    """Whether the disk, or the quota, is full."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)
