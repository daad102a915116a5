"""The processes that make the network run: switch, controller, agent."""

import os
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

from weft_topology import files, units
from weft_topology.errors import StepError, UsageError
from weft_topology.spec import LabSpec

READY_TIMEOUT_S = 60.0
"""Of virtual time, in which a start takes milliseconds."""

LOG_TAIL_LINES = 20


class Daemon:
    """A process that says when it is ready by making a file, and logs to another one."""

    def __init__(self, name: str, argv: list[str], rundir: Path) -> None:
        """Takes the command line without `--ready-file`."""
        self.name = name
        self.log = rundir / "log" / f"{name}.log"
        self._ready = rundir / f"{name}.ready"
        self._argv = [*argv, "--ready-file", str(self._ready)]
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
        self._ready.unlink(missing_ok=True)
        self.log.parent.mkdir(exist_ok=True)
        with files.watching(self._ready.parent) as watch:
            process = self._spawn()
            self._process = process
            if not files.wait_for(self._ready, watch, process.pid, READY_TIMEOUT_S):
                status = process.poll()
                self.stop()
                reason = (
                    f"not ready within {READY_TIMEOUT_S:.0f} s"
                    if status is None
                    else f"ended with {_status(status)} before it was ready"
                )
                raise StepError(self.name, reason, self._log_tail())
        self._ready.unlink(missing_ok=True)
        threading.Thread(target=self._attend, args=(process, on_exit), daemon=True).start()

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


CONTROLLER_PORT = 9339
"""Of the first controller's weft.v1 server; the others follow it."""


def of_lab(spec: LabSpec, rundir: Path, topology: Path) -> list[Daemon]:
    """Give the daemons of a lab in the order of their start.

    The controller that starts last outbids the others: the first, which users ask.
    """
    controllers = {_controller_name(n): CONTROLLER_PORT + n for n in range(spec.controllers)}
    common = ["--topology", str(topology)]
    stats = ["--stats-dir", str(rundir)]
    switch = ["--timestamps", "ns", "--seed", str(spec.seed), *_capture(spec)]
    patterns = ["--pattern-ttl", units.duration(spec.pattern_ttl_ns)]
    patterns += ["--pattern-input", spec.pattern_input]
    pipelines = ["--pipelines", str(spec.paths.pipelines)]
    urls = [f"http://127.0.0.1:{port}" for port in controllers.values()]
    agent = [word for url in urls for word in ("--controller", url)]

    def daemon(name: str, program: str, *words: str) -> Daemon:
        return Daemon(name, [os.fspath(spec.paths.bin / program), *common, *words], rundir)

    return [
        daemon("weft-switch", "weft-switch", *stats, *switch),
        *(
            daemon(
                name,
                "weft-controller",
                *stats,
                *pipelines,
                "--listen",
                f"127.0.0.1:{port}",
                *patterns,
            )
            for name, port in reversed(controllers.items())
        ),
        daemon("weft-agent", "weft-agent", *agent, "--path-manager", spec.path_manager),
    ]


def _controller_name(number: int) -> str:
    return f"weft-controller-{number + 1}" if number else "weft-controller"


def _capture(spec: LabSpec) -> list[str]:
    if spec.capture is None:
        return []
    return ["--capture", ",".join(spec.capture.hosts), "--arrivals", spec.capture.arrivals]


def _status(status: int) -> str:
    if status < 0:
        return signal.Signals(-status).name
    return f"status {status}"
