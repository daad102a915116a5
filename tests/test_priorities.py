# SPDX-License-Identifier: Apache-2.0
"""Classes of what is left to send: who gains, and that nobody else loses."""

from pathlib import Path
from statistics import mean

import pytest
from class_runs import (
    DCTCP,
    SEEDS,
    SHORT_BYTES,
    WEBSEARCH,
    flows,
    in_kernel,
    in_leaf,
    load,
    mean_fct_ms,
    of_kernel,
)
from driver import Labs, Weft, rows

pytestmark = pytest.mark.lab

MANY = 200
"""Retransmissions, of which a ratio says something."""


@pytest.mark.parametrize(
    "transport",
    ["--scheduler weft", "--scheduler minrtt", "--protocol tcp --routing spray"],
)
def test_with_classes_flows_end_sooner_and_short_ones_most(
    weft: Weft, tmp_path: Path, transport: str
) -> None:
    flags = f"{WEBSEARCH} {transport}"
    without = flows(weft, tmp_path / "without", flags)
    classes = flows(weft, tmp_path / "classes", f"{flags} --priorities 8")
    assert mean_fct_ms(classes, SHORT_BYTES) < 0.7 * mean_fct_ms(without, SHORT_BYTES)
    assert mean_fct_ms(classes) < 0.9 * mean_fct_ms(without)


def test_data_that_change_their_class_are_not_sent_again(weft: Weft, tmp_path: Path) -> None:
    flags = f"--workload webserver --load 0.7 --flows 200 {DCTCP} --scheduler weft --priorities 8"

    def sent_again(name: str, option: str = "") -> int:
        return sum(
            int(flow["retransmissions"]) for flow in flows(weft, tmp_path / name, flags + option)
        )

    overtaken = sent_again("overtaken", " --scheduler-options weft_drain=0")
    assert overtaken > MANY
    assert sent_again("waiting") < 0.4 * overtaken


@pytest.mark.parametrize(
    "place",
    [
        "--hosts 4 --rate 500mbit --flows 2 --background-tcp 2 --duration 1s",
        # Their flows stay in classes that come before the last for as long as this takes.
        "--hosts 4,1 --flows 16 --background-tcp 8 --duration 500ms",
    ],
    ids=["uplinks", "receiver"],
)
def test_long_flows_and_tcp_beside_them_get_what_they_get_without_classes(
    weft: Weft, tmp_path: Path, place: str
) -> None:
    flags = f"--traffic bulk {place} --scheduler weft --congestion dctcp --ecn 20"

    def delivered(given: str) -> tuple[int, int]:
        """Bytes of the long flows, and of TCP in the background, of all seeds."""
        totals = [0, 0]
        for seed in SEEDS:
            out = tmp_path / (given.strip("-") or "without") / str(seed)
            weft.run("run", *flags.split(), *given.split(), "--seed", str(seed), "--out", str(out))
            for whose, file in enumerate(("flows.csv", "background.csv")):
                same_way = [row for row in rows(out / file) if row["src"].startswith("h1_")]
                totals[whose] += sum(int(row["bytes"]) for row in same_way)
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
        assert done.returncode == 2
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


def test_thresholds_follow_the_sizes_of_flows_and_outlive_no_controller(
    labs: Labs, tmp_path: Path
) -> None:
    lab = labs.up("--priorities", "8", "--ecn", "20")
    before = lab.json("classes")
    assert (before["version"], before["history"]) == (None, [])
    assert in_kernel(lab, "h1_1") == {"most_bytes": [], "live": False}
    assert in_leaf(lab, "leaf1") == {(130_000, 5_000_000)}
    # Flows that mostly end above the built-in thresholds.
    flags = "--workload websearch --scale 10 --load 0.6 --flows 40"
    load(lab, tmp_path / "flows", *flags.split())
    classes = lab.json("classes")
    most_bytes = [one["most_bytes"] for one in classes["classes"][1:-1]]
    assert most_bytes == sorted(most_bytes)
    assert most_bytes[-1] > before["classes"][-2]["most_bytes"]
    assert len(classes["acknowledged_by"]) == 8
    assert classes["history"][-1]["most_bytes"] == most_bytes
    assert classes["history"][-1]["waiting_ppm"] < 800_000
    for host in ("h1_1", "h2_4"):
        assert in_kernel(lab, host) == {"most_bytes": most_bytes, "live": True}
    for leaf in ("leaf1", "leaf2"):
        assert in_leaf(lab, leaf) == {(most_bytes[0], most_bytes[-2])}
    assert "by the sizes of flows" in lab.run("patterns")
    assert "waiting should fall to" in lab.run("explain", "h1_1", "h2_1")
    # Built-in ones hold when the controller is gone.
    lab.shell("daemon kill weft-controller", "h1_1 sleep 0.5")
    assert in_kernel(lab, "h1_1") == {"most_bytes": most_bytes, "live": False}


def test_thresholds_follow_short_flows_although_these_change_queues_all_the_time(
    labs: Labs, tmp_path: Path
) -> None:
    slow = ("--rate", "100mbit", "--host-rate", "100mbit")
    lab = labs.up("--priorities", "8", "--ecn", "20", *slow)
    # 200 MB of flows that are almost all in class 1 by the built-in thresholds.
    flags = "--workload websearch --scale 0.01 --load 0.7 --flows 12000"
    load(lab, tmp_path / "flows", *flags.split())
    classes = lab.json("classes")
    assert classes["history"][-1]["waiting_ppm"] < 700_000
    assert classes["classes"][1]["most_bytes"] < 20_000
    assert classes["classes"][1]["rate_ppm"] is not None


def test_a_host_that_claims_to_be_urgent_with_everything_gets_nothing_by_it(
    labs: Labs, tmp_path: Path
) -> None:
    lab = labs.up("--priorities", "8", "--ecn", "20")

    def share_of_liar(what: str, *seeds: str) -> float:
        """Its bytes, by the mean of the others, over seeds: a lab that is up gives other bytes."""
        lab.shell(f"h1_1 {of_kernel('lie')}")
        shares = []
        for seed in seeds:
            bulk = f"--traffic bulk --flows 4 --duration 200ms --seed {seed}"
            sent_by = load(lab, tmp_path / what / seed, *bulk.split())
            sent = {flow["src"]: int(flow["bytes"]) for flow in sent_by}
            shares.append(sent.pop("h1_1") / mean(sent.values()))
        return mean(shares)

    # As long as the controller does not know what hosts send, they may claim what they want. From
    # a few runs it would learn what hosts send in these.
    assert share_of_liar("unknown", "1") > 1.5
    load(lab, tmp_path / "honest", *"--workload websearch --load 0.5 --flows 400".split())
    rates = [one["rate_ppm"] for one in lab.json("classes")["classes"]]
    assert None not in rates[:-1]
    assert rates[-1] is None
    assert share_of_liar("known", "1", "2", "3", "4") < 1.1


def test_flags_of_classes_need_classes_and_sense(weft: Weft) -> None:
    done = weft.try_run("run", "--class-thresholds", "built-in")
    assert done.returncode == 2
    assert "--class-thresholds: there are no classes; give --priorities too" in done.stderr
    done = weft.try_run("run", "--lowest-share", "10%")
    assert done.returncode == 2
    assert "--lowest-share: there are no classes; give --priorities too" in done.stderr
    done = weft.try_run("run", "--priorities", "8", "--lowest-share", "101%")
    assert done.returncode == 2
    assert '"101%" is no share' in done.stderr
    done = weft.try_run("run", "--priorities", "8", "--class-thresholds", "guessed")
    assert done.returncode == 2
    assert "is not one of seen and built-in" in done.stderr
