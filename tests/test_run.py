# SPDX-License-Identifier: Apache-2.0
"""`weft run`: deterministic results, interrupts, and what it refuses."""

import contextlib
import json
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
from driver import LIMIT_S, ROOT, Weft, rows

pytestmark = pytest.mark.lab

INCAST = "--traffic incast --senders 10 --bytes 225000 --send-buffer 65536 --queue 100"


def flows(folder: Path) -> list[dict[str, Any]]:
    return rows(folder / "flows.csv")


def run(weft: Weft, out: Path, arguments: str) -> list[dict[str, Any]]:
    weft.run("run", *arguments.split(), "--out", str(out))
    return flows(out)


def test_the_same_seed_gives_the_same_bytes(weft: Weft, tmp_path: Path) -> None:
    for name in ("a", "b"):
        run(weft, tmp_path / name, "--workload websearch --load 0.3 --flows 40 --seed 7")
    for file in ("flows.csv", "patterns.csv", "queues.csv"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes(), file


def test_other_installed_python_packages_change_no_byte(
    weft: Weft, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Searching for modules leaves work to the kernel, which must not affect the run."""
    flags = "--workload websearch --load 0.5 --flows 40 --seed 7"
    run(weft, tmp_path / "here", flags)
    elsewhere = tmp_path / "root"
    (elsewhere / ".venv" / "bin").mkdir(parents=True)
    for name in ("topology", "p4", "host", "target"):
        (elsewhere / name).symlink_to(ROOT / name)
    # A lab has its own /tmp, but makes the targets of links in the checkout visible.
    (elsewhere / "environment").symlink_to(ROOT / ".venv")
    python = elsewhere / ".venv" / "bin" / "python"
    more = ":".join(f"/nowhere/{number}" for number in range(60))
    python.write_text(
        f'#!/bin/sh\nPYTHONPATH="{more}:$PYTHONPATH" exec "{ROOT}/.venv/bin/python" "$@"\n'
    )
    python.chmod(0o755)
    monkeypatch.setenv("WEFT_ROOT", str(elsewhere))
    run(weft, tmp_path / "there", flags)
    for file in ("flows.csv", "patterns.csv", "queues.csv"):
        assert (tmp_path / "here" / file).read_bytes() == (tmp_path / "there" / file).read_bytes()


def descendants(pid: int) -> list[int]:
    """Give all descendants of a process."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return found + [each for child in found for each in descendants(child)]


def command_line(pid: int) -> bytes:
    """Give the command line of a process; empty once it is dead."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def supervisors(pid: int) -> list[int]:
    """Give the lab supervisors that a process has started."""
    return [each for each in descendants(pid) if b"\0supervise\0" in command_line(each)]


@pytest.mark.parametrize("command", ["run", "compare --schedulers rb,minrtt --jobs 2"])
@pytest.mark.parametrize("later_s", [0, 3])
def test_an_interrupt_at_any_time_stops_it_and_leaves_nothing(
    weft: Weft, tmp_path: Path, command: str, later_s: float
) -> None:
    flags = [*command.split(), *"--traffic bulk --bytes 4GB --out".split(), str(tmp_path / "x")]
    child = subprocess.Popen(
        weft.command(*flags), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    labs = 2 if command != "run" else 1
    while len(supervisors(child.pid)) < labs:
        assert child.poll() is None, child.communicate()
    # As labs start to boot or, unless the machine is slow, while flows run.
    time.sleep(later_s)
    started = descendants(child.pid)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=LIMIT_S)
    assert child.returncode == 130
    assert said.splitlines()[-1] == "weft: interrupted; everything is stopped"
    assert list(tmp_path.iterdir()) == []
    end = time.monotonic() + LIMIT_S
    while any(map(command_line, started)):
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize("choice", ["scheduler", "congestion"])
def test_an_unknown_scheduler_or_congestion_control_is_refused_with_a_list_of_all(
    weft: Weft, tmp_path: Path, choice: str
) -> None:
    out = tmp_path / "x"
    done = weft.try_run("run", f"--{choice}", "nosuch", "--flows", "1", "--out", str(out))
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert '"nosuch": this kernel does not have it; it has' in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("--flows 2 --warmup 10s", "--warmup 10.0 s: the last flow arrives after"),
        ("--duration 1us --load 0.01", "give a longer --duration"),
    ],
)
def test_flags_that_do_not_fit_together_are_refused_and_leave_nothing(
    weft: Weft, tmp_path: Path, flags: str, said: str
) -> None:
    done = weft.try_run("run", *flags.split(), "--out", str(tmp_path / "x"))
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert said in line
    assert list(tmp_path.iterdir()) == []


def test_time_passes_in_a_network_without_delay(weft: Weft, tmp_path: Path) -> None:
    (flow,) = run(weft, tmp_path / "x", "--traffic bulk --bytes 200000 --hosts 2 --delay 0ns")
    assert not flow["error"]


def test_a_run_may_have_more_connections_than_processes_usually_may_open_files(
    weft: Weft, tmp_path: Path
) -> None:
    """The usual limit is 4096 files, and a connection takes two."""
    incast = "--traffic incast --senders 2100 --bytes 1000 --queue 5000 --protocol tcp"
    done = run(weft, tmp_path / "a", incast)
    assert len(done) == 2100
    assert not any(flow["error"] for flow in done)


def test_another_seed_gives_other_flows(weft: Weft, tmp_path: Path) -> None:
    sizes = [
        [f["bytes"] for f in run(weft, tmp_path / str(seed), f"--flows 10 --seed {seed}")]
        for seed in (1, 2)
    ]
    assert sizes[0] != sizes[1]


def test_a_run_records_its_parameters(weft: Weft, tmp_path: Path) -> None:
    run(weft, tmp_path / "x", "--flows 5 --scheduler minrtt --seed 3 --load 0.2")
    text = (tmp_path / "x" / "run.json").read_text()
    assert json.loads(text)
    for word in ("minrtt", "websearch", "0.2"):
        assert word in text


def test_files_of_a_workload_may_lie_in_folders_that_a_lab_has_of_its_own(
    weft: Weft, tmp_path: Path
) -> None:
    with tempfile.NamedTemporaryFile("w", dir="/tmp", suffix=".csv") as sizes:
        sizes.write("bytes,probability\n1000,0\n1000,1\n")
        sizes.flush()
        found = run(weft, tmp_path / "x", f"--workload {sizes.name} --flows 5")
    assert {int(flow["bytes"]) for flow in found} == {1000}


def test_results_are_never_overwritten(weft: Weft, tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    done = weft.try_run("run", "--flows", "1", "--out", str(tmp_path / "x"))
    assert done.returncode == 2
    assert "exists already" in done.stderr


def test_incast_is_faster_with_patterns_than_with_bursts(weft: Weft, tmp_path: Path) -> None:
    means = {}
    for scheduler in ("rb", "minrtt", "roundrobin"):
        times = []
        for seed in range(1, 6):
            out = tmp_path / f"{scheduler}{seed}"
            done = run(weft, out, f"{INCAST} --scheduler {scheduler} --seed {seed}")
            times += [int(flow["fct_ns"]) for flow in done]
        assert len(times) == 50
        means[scheduler] = mean(times)
    assert means["rb"] <= 0.8 * means["minrtt"], means
    assert means["rb"] <= 0.8 * means["roundrobin"], means


def test_compare_prints_the_schedulers_side_by_side(weft: Weft, tmp_path: Path) -> None:
    text = weft.run(
        "compare", *"--flows 10 --schedulers default,rb --out".split(), str(tmp_path / "x")
    )
    assert "default" in text
    assert "rb" in text
    sizes = [[f["bytes"] for f in flows(tmp_path / "x" / name)] for name in ("default", "rb")]
    assert sizes[0] == sizes[1]
