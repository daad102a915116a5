# SPDX-License-Identifier: Apache-2.0
"""The Mininet prompt on somebody else's terminal, and other requests from outside.

Who wants something connects to a Unix socket and writes one line of JSON; one line comes
back when it is done, `{"done": true}` or `{"error": "what was wrong"}`:

    {"cmd": "shell", "tty": "/dev/pts/3", "terminal": true}
    {"cmd": "daemon", "action": "restart", "name": "weft-controller"}

A shell is a prompt on that terminal, until it ends. `terminal` is false when at its far
end is no person but a file or a pipe: its lines are commands then, and never input of the
command that runs.
"""

import fcntl
import json
import os
import queue
import select
import signal
import socket
import sys
import termios
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from mininet.cli import CLI
from mininet.log import output
from mininet.util import quietRun

from weft_topology.daemons import Daemon
from weft_topology.emulation import WeftNet
from weft_topology.errors import StepError, UsageError

SOCKET = Path("/run/weft-topology.sock")
_REQUEST_LIMIT_BYTES = 4096

ACTIONS = ("start", "stop", "kill", "restart", "pause", "resume")


class _Hangup(BaseException):
    """The terminal is gone."""


class _CommandError(Exception):
    """A command of the prompt failed in a way that Mininet did not think of."""


class Daemons:
    """The lab's daemons as a user handles them, one request at a time."""

    def __init__(self, daemons: list[Daemon], on_exit: Any) -> None:
        """`on_exit` is what `Daemon.start` takes."""
        self._daemons = {daemon.name: daemon for daemon in daemons}
        self._on_exit = on_exit
        self._lock = threading.Lock()

    def names(self) -> list[str]:
        """Give their names in the order of their start."""
        return list(self._daemons)

    def act(self, action: str, name: str) -> None:
        """Carry out one of `ACTIONS`."""
        if action not in ACTIONS:
            raise UsageError(f"{action!r} is none of {', '.join(ACTIONS)}")
        daemon = self._daemons.get(name)
        if daemon is None:
            raise UsageError(f"{name!r} is none of {', '.join(self._daemons)}")
        with self._lock:
            if action in ("stop", "restart"):
                daemon.stop()
            if action == "kill":
                daemon.stop(signal.SIGKILL)
            if action == "pause":
                daemon.send(signal.SIGSTOP)
            if action == "resume":
                daemon.send(signal.SIGCONT)
            if action in ("start", "restart"):
                daemon.start(self._on_exit)

    def stop(self) -> None:
        """Stop all, those last that the others need."""
        for name in reversed(self._daemons):
            self.act("stop", name)

    def __str__(self) -> str:
        """List them with their process ids."""
        rows = (
            (d.name, f"pid {d.pid}" if d.pid else "not running") for d in self._daemons.values()
        )
        return "".join(f"{name:16} {state}\n" for name, state in rows)


class Prompt(CLI):  # type: ignore[misc]
    """Mininet's own prompt, with two commands more."""

    def __init__(self, net: WeftNet, daemons: Daemons, terminal: bool) -> None:
        """Run until the user leaves. `terminal`: whether there is a person at it."""
        self._daemons = daemons
        self._terminal = terminal
        self.use_rawinput = terminal  # that is, readline
        super().__init__(net, stdin=sys.stdin)

    def isatty(self) -> bool:
        """Whether there is a person who sees what they type."""
        return self._terminal

    def run(self) -> None:
        """Read commands until the end; one that fails is not the end.

        Mininet's own frees the nodes that a command has left busy whenever it begins.
        """
        while True:
            try:
                super().run()
            except _CommandError as error:
                self.stdout.write(f"*** {error}\n")
            else:
                return

    def onecmd(self, line: str) -> bool | None:
        """Run one command."""
        try:
            end: bool | None = super().onecmd(line)
        except _CommandError:  # of a file that this command reads
            raise
        except Exception as error:
            raise _CommandError(f"{line.strip()}: {_in_words(error)}") from error
        return end

    def precmd(self, line: str) -> str:
        """Show the line as if it had been typed."""
        if not self._terminal:
            self.stdout.write("\n" if line == "EOF" else f"{line}\n")
        return str(super().precmd(line))

    def waitForNode(self, node: Any) -> None:  # noqa: N802
        """Show a command's output, and let a person type to it.

        Mininet's own goes round and round when the terminal hangs up, and forever when the
        command was the end of the node's shell.
        """
        if self._terminal:
            quietRun("stty -icanon min 1")
        ended = os.pidfd_open(node.pid)
        poller = select.poll()
        poller.register(node.stdout, select.POLLIN)
        poller.register(ended, select.POLLIN)
        if self._terminal:
            poller.register(self.stdin, select.POLLIN)
        try:
            while node.waiting:
                try:
                    self._step(node, ended, {fd for fd, _ in poller.poll()})
                except KeyboardInterrupt:
                    node.sendInt()
        finally:
            os.close(ended)

    def _step(self, node: Any, ended: int, ready: set[int]) -> None:
        """Handle what is readable."""
        if node.stdout.fileno() in ready:
            output(node.monitor())
        elif ended in ready:
            node.forget_shell()
            self.stdout.write(f"*** the shell of {node} ended; the next command gets a new one\n")
        if self._terminal and self.stdin.fileno() in ready:
            typed = os.read(self.stdin.fileno(), 1024)
            if not typed:
                raise _Hangup
            os.write(node.stdin.fileno(), typed)

    def do_daemons(self, _line: str) -> None:
        """List the processes that run the network."""
        self.stdout.write(str(self._daemons))

    def do_daemon(self, line: str) -> None:
        """Control one of them: daemon start|stop|kill|restart|pause|resume NAME."""
        action, _, name = line.partition(" ")
        try:
            self._daemons.act(action, name.strip())
        except (UsageError, StepError) as error:
            self.stdout.write(f"*** {error}\n")


class Server:
    """Takes requests; the main thread runs the prompt, since it owns the terminal."""

    def __init__(self, net: WeftNet, daemons: Daemons) -> None:
        """Listen from now on."""
        self._net = net
        self._daemons = daemons
        self._shells: queue.SimpleQueue[tuple[dict[str, Any], socket.socket]] = queue.SimpleQueue()
        self._shell_busy = threading.Lock()
        SOCKET.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(os.fspath(SOCKET))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def serve_forever(self) -> None:
        """Run prompts in this thread; returns only by an exception, of a signal's handler."""
        try:
            while True:
                request, client = self._shells.get()
                answer: dict[str, Any] = {"done": True}
                with client:
                    try:
                        self._prompt(str(request.get("tty")), bool(request.get("terminal", True)))
                    except Exception as error:
                        # Whatever it is, the network goes on without the prompt.
                        answer = {"error": f"Mininet prompt: {_in_words(error)}"}
                    finally:
                        # Who hears of the end may want the next one at once.
                        self._shell_busy.release()
                    _reply(client, answer)
        finally:
            self._listener.close()
            SOCKET.unlink(missing_ok=True)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(client,), daemon=True).start()

    def _answer(self, client: socket.socket) -> None:
        """Answer one request, or leave it to the main thread."""
        try:
            request = _read(client)
            if request.get("cmd") == "shell":
                if not self._shell_busy.acquire(blocking=False):
                    raise UsageError("somebody else has the Mininet prompt; only one can")
                self._shells.put((request, client))
                return
            if request.get("cmd") != "daemon":
                raise UsageError(f"cmd {request.get('cmd')!r} is none of shell, daemon")
            self._daemons.act(str(request.get("action")), str(request.get("name")))
            _reply(client, {"done": True})
        except (UsageError, StepError, OSError) as error:
            _reply(client, {"error": str(error)})
        client.close()

    def _prompt(self, path: str, terminal: bool) -> None:
        # `py exit()` is an end of the prompt only.
        with suppress(_Hangup, KeyboardInterrupt, SystemExit), _on_terminal(path):
            Prompt(self._net, self._daemons, terminal)


@contextmanager
def _on_terminal(path: str) -> Iterator[None]:
    """Make a terminal this process's standard streams and its source of Ctrl-C."""
    terminal = os.open(path, os.O_RDWR | os.O_NOCTTY)
    saved = [os.dup(fd) for fd in range(3)]
    stdin = sys.stdin
    # What the terminal sends while it is taken and left must not end the network. Leaving one
    # hangs up its processes, that is, us.
    with (
        _handling(signal.SIGHUP, _ignore),
        _handling(signal.SIGINT, _ignore),
        _handling(signal.SIGQUIT, _ignore),
    ):
        try:
            for fd in range(3):
                os.dup2(terminal, fd)
            # Nothing of what an earlier one has read ahead is for this one, and `py exit()`
            # closes it.
            sys.stdin = open(0, closefd=False)  # noqa: SIM115
            fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
            _line_buffered()
            with (
                _handling(signal.SIGHUP, _hang_up),
                _handling(signal.SIGINT, signal.default_int_handler),
            ):
                yield
        finally:
            _flush()
            with suppress(OSError):
                fcntl.ioctl(terminal, termios.TIOCNOTTY)
            sys.stdin = stdin
            for fd, original in enumerate(saved):
                os.dup2(original, fd)
                os.close(original)
            os.close(terminal)


@contextmanager
def _handling(number: signal.Signals, handler: Any) -> Iterator[None]:
    """Handle a signal in another way for a while."""
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


def _hang_up(*_: object) -> None:
    raise _Hangup


def _ignore(*_: object) -> None:
    """Do nothing; unlike `SIG_IGN`, that is not inherited by programs that start meanwhile."""


def _in_words(error: Exception) -> str:
    """Give an exception as one line; many have no text of their own."""
    return " ".join("".join(traceback.format_exception_only(error)).split())


def _line_buffered() -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()


def _read(client: socket.socket) -> dict[str, Any]:
    """Give the request on a connection."""
    with client.makefile("rb") as lines:
        line = lines.readline(_REQUEST_LIMIT_BYTES)
    try:
        request = json.loads(line)
    except ValueError:
        request = None
    if not isinstance(request, dict):
        raise UsageError("a request is one line with a JSON object")
    return request


def _reply(client: socket.socket, answer: dict[str, Any]) -> None:
    # Who asked may be gone.
    with suppress(OSError):
        client.sendall(json.dumps(answer).encode() + b"\n")
