"""Files that are written whole or not at all, so that a full disk spoils none."""

import errno
import os
from pathlib import Path


def write_whole(path: Path, content: bytes | str) -> None:
    """Write the file; after an error the old one is there as it was."""
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
    """Whether there was no room."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)
