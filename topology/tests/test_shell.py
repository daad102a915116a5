# SPDX-License-Identifier: Apache-2.0
"""The Mininet prompt and its server, without a network."""

import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from weft_topology import shell

# Mininet's own reads an attribute that our switches lack, or finds a node without its shell.
_PROMPT = """
from weft_topology.shell import Prompt

class Node:
    waiting = False
    def sendCmd(self, command):
        assert command == "ls"

class Net(dict):
    switches = [Node()]

Prompt(Net(leaf1=Node()), daemons="the daemons", terminal=False)
print("left")
"""


def test_a_command_that_fails_is_said_and_the_prompt_goes_on() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROMPT],
        input="dpctl show\nleaf1 rm\ndaemons\nexit\n",
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    failed = [line for line in said if line.startswith("***")]
    assert failed[0].startswith("*** dpctl show: AttributeError: ")
    assert failed[1] == "*** leaf1 rm: AssertionError"
    assert (said[-2], said[-1]) == ("the daemonsmininet> exit", "left")


class _End(BaseException):
    """Ends a server, as a signal's handler does."""


def test_a_prompt_that_breaks_off_leaves_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shell, "SOCKET", tmp_path / "socket")
    causes: list[BaseException] = [RuntimeError("what it was"), _End()]
    answers = []

    def prompt(*_: Any) -> None:
        raise causes.pop(0)

    def ask() -> None:
        for _ in range(2):
            with socket.socket(socket.AF_UNIX) as client, client.makefile() as lines:
                client.connect(os.fspath(shell.SOCKET))
                client.sendall(b'{"cmd": "shell"}\n')
                answers.append(lines.readline())

    server = shell.Server(None, None)  # type: ignore[arg-type]
    monkeypatch.setattr(server, "_prompt", prompt)
    user = threading.Thread(target=ask)
    user.start()
    with pytest.raises(_End):
        server.serve_forever()
    user.join()
    assert json.loads(answers[0]) == {"error": "Mininet prompt: RuntimeError: what it was"}


_TERMINAL = """
import os
import signal
from weft_topology import shell

master, slave = os.openpty()
with shell._on_terminal(os.ttyname(slave)):
    os.kill(os.getpid(), signal.SIGQUIT)
print("alive")
"""


def test_ctrl_backslash_at_the_prompt_does_not_end_the_network() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _TERMINAL], start_new_session=True, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr
