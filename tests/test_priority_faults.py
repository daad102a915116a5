# SPDX-License-Identifier: Apache-2.0
"""Classes of what is left to send when something is wrong: nobody loses more than the gain."""

from pathlib import Path
from statistics import mean

import pytest
from class_runs import (
    DCTCP,
    SHORT_BYTES,
    WEBSEARCH,
    Flow,
    flows,
    in_kernel,
    load,
    mean_fct_ms,
    of_kernel,
)
from driver import Labs, Weft, rows
from kernel_tests.thresholds import PATIENT, URGENT

pytestmark = pytest.mark.lab

ALL_HOSTS = tuple(f"h{leaf}_{host}" for leaf in (1, 2) for host in range(1, 5))


@pytest.fixture(scope="module")
def without(weft: Weft, tmp_path_factory: pytest.TempPathFactory) -> list[Flow]:
    """Flows without classes."""
    return flows(weft, tmp_path_factory.mktemp("without"), WEBSEARCH)


def test_a_switch_without_priorities_on_the_way_leaves_most_of_the_gain(
    weft: Weft, tmp_path: Path, without: list[Flow]
) -> None:
    classes = flows(weft, tmp_path / "x", f"{WEBSEARCH} --priorities 8 --first-come spine1")
    assert mean_fct_ms(classes, SHORT_BYTES) < 0.7 * mean_fct_ms(without, SHORT_BYTES)
    assert mean_fct_ms(classes) < mean_fct_ms(without)


def test_where_a_middlebox_clears_all_classes_flows_take_what_they_take_without(
    weft: Weft, tmp_path: Path, without: list[Flow]
) -> None:
    flags = f"{WEBSEARCH} --priorities 8 --clear-classes {','.join(ALL_HOSTS)}"
    assert mean_fct_ms(flows(weft, tmp_path / "x", flags)) < 1.1 * mean_fct_ms(without)


def test_a_host_whose_classes_are_cleared_goes_on_and_the_others_gain(
    weft: Weft, tmp_path: Path, without: list[Flow]
) -> None:
    flags = f"{WEBSEARCH} --priorities 8 --clear-classes h1_1"
    cleared = flows(weft, tmp_path / "x", flags)

    def ratio(is_cleared: bool) -> float:
        """Mean FCT of the flows of the cleared host, or of the others, by that without classes."""
        of = [
            mean_fct_ms([flow for flow in given if (flow["src"] == "h1_1") == is_cleared])
            for given in (cleared, without)
        ]
        return of[0] / of[1]

    assert ratio(is_cleared=False) < 1.0
    assert ratio(is_cleared=True) < 1.6


def test_thresholds_that_change_all_the_time_lose_no_flow_and_little_of_its_time(
    labs: Labs, tmp_path: Path
) -> None:
    means: dict[str, list[float]] = {"--priorities 8": [], "": []}
    for seed in ("101", "102"):
        for classes, of_seeds in means.items():
            lab = labs.up(*classes.split(), *"--ecn 20 --rto-min 5ms".split())
            if classes:
                lab.shell(*(f"{host} {of_kernel('churn')} &" for host in ALL_HOSTS))
            websearch = f"--workload websearch --load 0.5 --flows 60 --seed {seed}"
            done = load(lab, tmp_path / f"{seed}{classes}", *websearch.split())
            assert {flow["error"] for flow in done} == {""}
            of_seeds.append(mean_fct_ms(done))
            if classes:
                held = in_kernel(lab, "h1_1")["most_bytes"]
                assert held in (list(URGENT), list(PATIENT))
            lab.run("topo", "down")
    assert mean(means["--priorities 8"]) < 1.2 * mean(means[""])


def test_ten_thousand_flows_at_once_all_arrive(weft: Weft, tmp_path: Path) -> None:
    incast = f"--traffic incast --senders 10000 --hosts 8 --bytes 3KB {DCTCP} --priorities 8"
    weft.run("run", *incast.split(), "--out", str(tmp_path / "x"))
    done = rows(tmp_path / "x" / "flows.csv")
    assert len(done) == 10_000
    assert {flow["error"] for flow in done} == {""}


def test_a_flow_that_is_never_done_keeps_the_lowest_share(weft: Weft, tmp_path: Path) -> None:
    """TCP that claims nothing beside flows that mostly come before it, also in its own host."""
    duration_s = 0.2
    traffic = "--workload cachefollower --load 0.9 --hosts 2 --background-tcp 2"
    traffic += f" --duration {duration_s}s"

    def delivered(share: str) -> float:
        """Bytes of the background, on average over seeds and flows."""
        found: list[int] = []
        for seed in ("101", "102", "103"):
            out = tmp_path / share / seed
            flags = f"{traffic} {DCTCP} --priorities 8 --lowest-share {share} --seed {seed}"
            weft.run("run", *flags.split(), "--out", str(out))
            found += [int(row["bytes"]) for row in rows(out / "background.csv")]
        return mean(found)

    strict, tenth, third = (delivered(share) for share in ("0%", "10%", "30%"))
    assert strict < tenth < third
    # Of 1 Gbit/s while flows arrive.
    assert tenth > 0.1 * 125e6 * duration_s
