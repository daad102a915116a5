# SPDX-License-Identifier: Apache-2.0
"""Invalid input gets one line with the error and a valid choice, and exit status 2."""

import re

import pytest
from driver import Weft

pytestmark = pytest.mark.lab


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("run --load 1.5", "load"),
        ("run --rate fast", "1gbit"),
        ("run --leaves 0", "leaves"),
        ("run --workload nosuch", "websearch"),
        ("run --spine-delay 3=1ms", "spine"),
        ("run --flows many", "flows"),
        ("run --no-such-flag", "--no-such-flag"),
        ("run --leaves 1", "lea"),
        ("run --switch bmv2 --capture all", "--capture"),
        ("run --switch bmv2 --priorities 8", "take --switch weft"),
        ("run --priorities 8 --lowest-share 120%", "up to 100%"),
        ("topo up --clock wild", "paced"),
        ("nothing", "nothing"),
    ],
)
def test_wrong_input_is_refused_with_one_line(weft: Weft, command: str, said: str) -> None:
    done = weft.try_run(*command.split())
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert said in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr


@pytest.mark.parametrize("command", ["patterns", "paths", "shell", "workload", "flows"])
def test_without_a_lab_the_error_says_how_to_start_one(weft: Weft, command: str) -> None:
    done = weft.try_run(command, "--name", "nosuchlab")
    assert done.returncode == 1
    assert "weft topo up" in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr


def helps(weft: Weft, command: str = "weft") -> dict[str, str]:
    """Give the help of a command and of all commands below it, by their names."""
    text = weft.run(*command.split()[1:], "--help")
    listed = text.partition("\nCommands:\n")[2].partition("\n\n")[0]
    below = [line.split()[0] for line in listed.splitlines() if not line.startswith("   ")]
    found = {command: text}
    for name in below:
        if name != "help":
            found |= helps(weft, f"{command} {name}")
    return found


def test_every_command_has_help_with_a_description_and_its_usage(weft: Weft) -> None:
    found = helps(weft)
    # The commands of the first page, and those of `topo`.
    assert {"weft run", "weft topo up", "weft experiment", "weft report"} <= set(found)
    assert len(found) >= 15
    for command, text in found.items():
        assert re.match(r"[A-Z][^\n]{10,}", text), command
        assert f"\nUsage: {command} " in text, command
