"""Wrong input gets one line that says what is wrong and what would be right, and status 2."""

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
def test_without_a_lab_one_is_told_how_to_start_it(weft: Weft, command: str) -> None:
    done = weft.try_run(command, "--name", "nosuchlab")
    assert done.returncode == 1
    assert "weft topo up" in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr


def test_every_command_has_help(weft: Weft) -> None:
    for command in ("", "topo", "topo up", "patterns", "paths", "workload", "run", "compare"):
        assert "Usage" in weft.run(*command.split(), "--help")
