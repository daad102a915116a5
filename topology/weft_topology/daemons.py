# SPDX-License-Identifier: Apache-2.0
"""Processes that make the network run: how they start, are watched and end."""

import signal
import subprocess
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from weft_topology import files
from weft_topology.errors import StepError, UsageError

READY_TIMEOUT_S = 60.0
"""Of virtual time, in which a start takes milliseconds."""

LOG_TAIL_LINES = 20


class Daemon(ABC):
    """A process that logs to a file; a subclass knows when it is ready."""

    def __init__(self, name: str, argv: list[str], rundir: Path) -> None:
        """Takes the command line."""
        self.name = name
        self.log = rundir / "log" / f"{name}.log"
        self._argv = argv
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        running = self._process is not None and self._process.poll() is None
        return self._process.pid if running and self._process else None

    def start(self, on_exit: Callable[["Daemon", int], None]) -> None:
        """Start and return when it is ready.

        `on_exit` hears of an end that nobody asked for, in another thread.
        """
        if self.pid is not None:
            raise UsageError(f"{self.name} is running already (pid {self.pid})")
        self.log.parent.mkdir(exist_ok=True)
        with self._readiness() as wait:
            process = self._spawn()
            self._process = process
            try:
                is_ready = wait(process.pid)
            except BaseException:
                self.stop()
                raise
            if not is_ready:
                status = process.poll()
                self.stop()
                reason = (
                    f"not ready within {READY_TIMEOUT_S:.0f} s"
                    if status is None
                    else f"ended with {_status(status)} before it was ready"
                )
                raise StepError(self.name, reason, self._log_tail())
        threading.Thread(target=self._attend, args=(process, on_exit), daemon=True).start()

    @abstractmethod
    def _readiness(self) -> AbstractContextManager[Callable[[int], bool]]:
        """Give, before the process starts, what waits until it is ready.

        That takes its process id, and gives False when it ended or took too long.
        """

    def send(self, what: signal.Signals) -> None:
        """Send it a signal that does not end it."""
        if self._process is None or self.pid is None:
            raise UsageError(f"{self.name} is not running")
        self._process.send_signal(what)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End it and wait for that; does nothing when it does not run."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        # One that is paused would not hear of it.
        process.send_signal(signal.SIGCONT)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _spawn(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            try:
                return subprocess.Popen(
                    self._argv,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    # Ctrl-C at the Mininet prompt is not meant for it.
                    start_new_session=True,
                )
            except OSError as error:
                reason = f"{self._argv[0]}: {error.strerror}; build it with `make build`"
                raise StepError(self.name, reason) from error

    def _attend(
        self, process: subprocess.Popen[bytes], on_exit: Callable[["Daemon", int], None]
    ) -> None:
        status = process.wait()
        if self._process is process:
            on_exit(self, status)

    def _log_tail(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join(lines[-LOG_TAIL_LINES:])

    def explain(self, status: int) -> StepError:
        """Say that it ended, with the end of its log."""
        return StepError(self.name, f"ended with {_status(status)}", self._log_tail())


class FileDaemon(Daemon):
    """One of ours: it says when it is ready by making a file.

    The file stays. In a lab it is the machine's (hostfs), where opening it could fail if it
    were removed as soon as it is seen.
    """

    def __init__(self, name: str, argv: list[str], rundir: Path) -> None:
        """Takes the command line without `--ready-file`."""
        self._ready = rundir / f"{name}.ready"
        super().__init__(name, [*argv, "--ready-file", str(self._ready)], rundir)

    @contextmanager
    def _readiness(self) -> Iterator[Callable[[int], bool]]:
        self._ready.unlink(missing_ok=True)
        with files.watching(self._ready.parent) as watch:
            yield lambda pid: files.wait_for(self._ready, watch, pid, READY_TIMEOUT_S)


def _status(status: int) -> str:
    if status < 0:
        return signal.Signals(-status).name
    return f"status {status}"
