# SPDX-License-Identifier: Apache-2.0
"""Classes of what is left to send: who gains, and that nobody else loses."""

from pathlib import Path
from statistics import mean

import pytest
from driver import Weft, rows

pytestmark = pytest.mark.lab

SEEDS = (101, 102)
DCTCP = "--congestion dctcp --ecn 20 --rto-min 5ms"
WEBSEARCH = f"--workload websearch --load 0.7 --flows 100 {DCTCP}"
SHORT_BYTES = 100_000


def fcts_ms(weft: Weft, out: Path, flags: str) -> list[tuple[int, float]]:
    """Size and FCT of every flow of all seeds; all have arrived."""
    flows = []
    for seed in SEEDS:
        folder = out / str(seed)
        weft.run("run", *flags.split(), "--seed", str(seed), "--out", str(folder))
        flows += rows(folder / "flows.csv")
    assert {flow["error"] for flow in flows} == {""}
    return [(int(flow["bytes"]), int(flow["fct_ns"]) / 1e6) for flow in flows]


@pytest.mark.parametrize(
    "transport",
    ["--scheduler weft", "--scheduler minrtt", "--protocol tcp --routing spray"],
)
def test_with_classes_flows_end_sooner_and_short_ones_most(
    weft: Weft, tmp_path: Path, transport: str
) -> None:
    flags = f"{WEBSEARCH} {transport}"
    without = fcts_ms(weft, tmp_path / "without", flags)
    classes = fcts_ms(weft, tmp_path / "classes", f"{flags} --priorities 8")

    def ratio(is_meant: int) -> float:
        """Mean FCT of flows up to a size, with classes by without."""
        of = [mean(f for b, f in flows if b <= is_meant) for flows in (classes, without)]
        return of[0] / of[1]

    assert ratio(SHORT_BYTES) < 0.7
    assert ratio(10**12) < 0.9


def test_long_flows_and_tcp_beside_them_get_what_they_get_without_classes(
    weft: Weft, tmp_path: Path
) -> None:
    flags = (
        "--traffic bulk --duration 1s --hosts 4 --rate 500mbit --flows 2 --background-tcp 2 "
        "--scheduler weft --congestion dctcp --ecn 20"
    )

    def delivered(given: str) -> tuple[int, int]:
        """Bytes of the long flows, and of TCP in the background, of all seeds."""
        totals = [0, 0]
        for seed in SEEDS:
            out = tmp_path / (given.strip("-") or "without") / str(seed)
            weft.run("run", *flags.split(), *given.split(), "--seed", str(seed), "--out", str(out))
            for place, file in enumerate(("flows.csv", "background.csv")):
                totals[place] += sum(int(row["bytes"]) for row in rows(out / file))
        return totals[0], totals[1]

    own, others = delivered("--priorities 8")
    own_without, others_without = delivered("")
    assert own >= 0.9 * own_without
    assert others >= 0.9 * others_without


def test_classes_that_cannot_be_are_one_clear_line(weft: Weft) -> None:
    for given in ("1", "9"):
        done = weft.try_run("run", "--priorities", given)
        assert done.returncode == 2
        assert "--priorities" in done.stderr
        assert "2..=8" in done.stderr


def test_sizes_can_be_told_of_where_there_are_classes_only(weft: Weft, tmp_path: Path) -> None:
    told = ["run", "--flows", "20", "--tell-sizes"]
    for number, given in enumerate(("", "--protocol tcp --ip 6")):
        flags = ["--priorities", "8", *given.split(), "--out", str(tmp_path / str(number))]
        weft.run(*told, *flags)
    for given, said in (
        ("", "there are no classes to tell of; give --priorities too"),
        ("--priorities 8 --ip 6", "leave out --ip 6"),
    ):
        done = weft.try_run(*told, *given.split(), "--out", str(tmp_path / "x"))
        assert done.returncode == 1
        assert "--tell-sizes: " in done.stderr
        assert said in done.stderr


@pytest.mark.parametrize(
    ("flags", "who"),
    [
        ("--scheduler default", "the scheduler default"),
        ("--protocol tcp", ""),
        ("--scheduler weft", ""),
    ],
)
def test_who_writes_no_classes_is_said(weft: Weft, tmp_path: Path, flags: str, who: str) -> None:
    said = weft.run(
        "run", "--priorities", "8", "--flows", "2", *flags.split(), "--out", str(tmp_path / "x")
    )
    assert said.startswith(who)
    assert ("writes no classes" in said) == bool(who)
