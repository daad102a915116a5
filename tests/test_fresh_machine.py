# SPDX-License-Identifier: Apache-2.0
"""What README says is what `tests/fresh` types, and nothing is skipped where it is the point."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from driver import ROOT, processes_of
from fresh_machine import plan, readme, reasons, root

FRESH = ROOT / "tests" / "fresh"


def fresh(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run it with these variables and no others."""
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"} | variables
    return subprocess.run(
        [sys.executable, FRESH, *words], env=environment, capture_output=True, text=True
    )


def test_readme_has_the_one_line_that_a_bare_system_needs_first() -> None:
    line = readme.prepare(readme.README.read_text())
    assert line.startswith("sudo apt-get update && sudo apt-get install")


@pytest.mark.parametrize("text", ["", "    sudo apt-get install make git\n" * 2])
def test_a_readme_without_that_line_or_with_two_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not one"):
        readme.prepare(text)


def test_every_make_command_that_is_typed_stands_in_readme() -> None:
    text = readme.README.read_text()
    typed = [step.name for step in readme.steps() if step.name.startswith("make ")]
    assert "make topo" in typed
    assert [name for name in typed if name != "make and git" and name not in text] == []


def test_root_and_a_user_with_sudo_are_tried_in_a_plain_and_a_difficult_folder() -> None:
    assert {machine.user == "root" for machine in plan.MACHINES} == {True, False}
    folders = [machine.checkout for machine in plan.MACHINES]
    assert any(folder.startswith("/tmp/") for folder in folders)
    assert any(" " in folder and not folder.isascii() for folder in folders)


def test_a_bare_system_makes_no_further_one_and_says_so() -> None:
    said = fresh(**{reasons.INSIDE: "Debian 13", "CI": "true"})
    assert said.returncode == 0
    assert "SKIPPED, nothing was checked: this is a bare system itself" in said.stdout


def test_where_nothing_can_be_tried_ci_fails_and_others_get_a_message(tmp_path: Path) -> None:
    command = "import sys, runpy; from fresh_machine import reasons; " + (
        "reasons.TOOLS = ('no-such-tool',); sys.argv[0] = 'fresh'; "
        f"runpy.run_path({str(FRESH)!r}, run_name='__main__')"
    )

    def run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", command, *words],
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{ROOT}/tests"} | variables,
            capture_output=True,
            text=True,
            cwd=tmp_path,
        )

    alone, in_ci = run(), run("--if-skipped", "77", CI="true")
    assert "SKIPPED, nothing was checked: not installed: no-such-tool" in alone.stdout
    assert (alone.returncode, in_ci.returncode) == (0, 1)
    assert run("--if-skipped", "77").returncode == 77


def test_a_cache_without_a_kernel_is_one_clear_line(tmp_path: Path) -> None:
    said = fresh("--cache", str(tmp_path))
    assert said.returncode == 2
    assert said.stderr.splitlines()[-1].endswith("has no folder `kernel`; `make kernel` makes one")


def test_remains_of_a_killed_run_are_removed_and_those_of_a_running_one_are_not(
    tmp_path: Path,
) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    remains = tmp_path / f"{root.PREFIX}{dead.pid}-x"
    remains.mkdir()
    root.log(remains).touch()
    with root.folder(tmp_path) as running:
        root.log(running).touch()
        root.remove_remains(tmp_path)
        assert set(tmp_path.iterdir()) == {running, root.log(running)}
    assert list(tmp_path.iterdir()) == []


def test_interrupted_while_it_removes_a_system_it_removes_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(path: Path) -> None:
        signal.raise_signal(signal.SIGINT)
        rmtree(path)

    rmtree = shutil.rmtree
    monkeypatch.setattr(shutil, "rmtree", interrupted)
    with pytest.raises(KeyboardInterrupt), root.folder(tmp_path) as folder:
        (folder / "file").touch()
    assert list(tmp_path.iterdir()) == []


MANY = """
import sys
from driver import processes_of
from fresh_machine import walk

ready = sys.argv[1]
script = "for i in $(seq 300); do sh -c 'sleep 600; :' %s & done; touch %s; wait" % (ready, ready)
try:
    walk.in_namespaces(["sh", "-c", script])
except KeyboardInterrupt:
    print(len(processes_of(ready)) - 1)
"""
"""Counts what still runs when the namespaces should have ended; one of them is itself."""


@pytest.mark.skipif(
    reasons.why_not() is not None or os.geteuid() != 0,
    reason=str(reasons.why_not() or "needs root"),
)
def test_interrupted_with_many_processes_none_runs_afterwards(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    with subprocess.Popen(
        [sys.executable, "-c", MANY, ready],
        env=os.environ | {"PYTHONPATH": f"{ROOT}/tests:{ROOT}/topology/lab/kernel"},
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        deadline = time.monotonic() + 60
        while not ready.exists() and time.monotonic() < deadline:
            assert running.poll() is None
            time.sleep(0.01)
        running.send_signal(signal.SIGINT)
        assert running.communicate(timeout=60)[0] == "0\n"


@pytest.mark.skipif(reasons.why_not() is not None, reason=str(reasons.why_not()))
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_twice_it_leaves_no_folder_no_mount_and_no_process(
    how: signal.Signals, tmp_path: Path
) -> None:
    running = subprocess.Popen(
        [sys.executable, FRESH, "--debian", "13", "--folder", tmp_path],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("*/debootstrap")) and time.monotonic() < deadline:
        assert running.poll() is None
        time.sleep(0.05)
    running.send_signal(how)
    time.sleep(0.05)
    running.send_signal(how)
    assert running.wait(60) == 130
    assert list(tmp_path.iterdir()) == []
    assert str(tmp_path) not in Path("/proc/self/mountinfo").read_text()
    assert processes_of(str(tmp_path)) == []
