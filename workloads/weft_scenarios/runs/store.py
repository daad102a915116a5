# SPDX-License-Identifier: Apache-2.0
"""The store: folders of finished runs, and logs of failed ones.

| in the store          | what                                                             |
|-----------------------|------------------------------------------------------------------|
| `KEY/`                | a finished run: what `weft run` wrote, and `measured.json`        |
| `KEY.partial/`        | a run in progress, or one that was killed; never read             |
| `failed/KEY/`         | of a run that failed: `run.log` and what the lab had written      |
| `.lock`               | held by the experiment that is running                            |

A run is finished when its folder has its final name; renaming is the last step.
"""

import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from weft_scenarios.measures import evidence
from weft_scenarios.errors import ScenarioError
from weft_scenarios.files import write_whole
from weft_scenarios.measures.metrics import Measured, code, measure

_MEASURED = "measured.json"
_LOG = "run.log"
_LOCK_PATIENCE_S = 20.0
"""Time that the labs of a killed experiment may take to stop."""


class Store:
    """The folders of finished runs."""

    def __init__(self, folder: Path) -> None:
        """Create `folder` if it does not exist."""
        self.folder = folder
        self._code = code()
        self._lock: int | None = None
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ScenarioError(f"{folder}: no folder for runs: {error.strerror}") from None

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the store, because two experiments would write the same folders.

        Labs inherit the lock. So it lasts until the last lab has stopped, even if this process is
        killed.
        """
        self._lock = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            self._wait_for(self._lock)
            yield
        finally:
            os.close(self._lock)
            self._lock = None

    def inherited(self) -> tuple[int, ...]:
        """Give the file descriptors that labs must inherit."""
        return () if self._lock is None else (self._lock,)

    def _wait_for(self, lock: int) -> None:
        end = time.monotonic() + _LOCK_PATIENCE_S
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > end:
                    raise ScenarioError(
                        f"{self.folder}: another experiment is running with these runs; wait "
                        "for it, or give --store another folder"
                    ) from None
                time.sleep(0.5)

    def find(self, key: str) -> Measured | None:
        """Give the measurements of a finished run, computed again if the code has changed."""
        folder = self.folder / key
        try:
            measured = Measured.from_json((folder / _MEASURED).read_text())
            if measured.by != self._code:
                measured = measure(folder).at_the_cost_of(measured)
                write_whole(folder / _MEASURED, measured.to_json())
        except (FileNotFoundError, ValueError, TypeError, ScenarioError):
            return None
        except OSError as error:
            raise ScenarioError(f"{folder}: not read or measured again: {error.strerror}") from None
        return measured

    def begin(self, key: str) -> Path:
        """Give the path that the run `key` may write; nothing exists there."""
        shutil.rmtree(self.folder / key, ignore_errors=True)
        working = self.folder / f"{key}.partial"
        self.abandon(working)
        return working

    def finish(self, key: str, working: Path, measured: Measured) -> None:
        """Give the folder of the run `key` its final name."""
        write_whole(working / _MEASURED, measured.to_json())
        working.rename(self.folder / key)
        shutil.rmtree(self._failed(key), ignore_errors=True)

    def keep_failed(self, key: str, working: Path, said: str) -> None:
        """Keep the output and files of a failed run, except captured packets."""
        kept = self._failed(key)
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir(parents=True)
        for part in filter(Path.is_dir, self._parts(working)):
            shutil.rmtree(part / evidence.CAPTURE, ignore_errors=True)
            part.rename(kept / ("results" if part == working else "lab"))
        write_whole(kept / _LOG, said)

    def log(self, key: str) -> Path | None:
        """Give the log of a failed run, if there is one."""
        log = self._failed(key) / _LOG
        return log if log.exists() else None

    def abandon(self, working: Path) -> None:
        """Remove the files of an unfinished run."""
        for path in self._parts(working):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)

    def _parts(self, working: Path) -> list[Path]:
        """Give the folder of the run, and that of its lab."""
        return list(self.folder.glob(f"*{working.name}*"))

    def _failed(self, key: str) -> Path:
        return self.folder / "failed" / key
