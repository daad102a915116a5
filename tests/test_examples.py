# SPDX-License-Identifier: Apache-2.0
"""Every example of `examples/` runs with the command that its header gives."""

import json
import re
from pathlib import Path

import pytest
from driver import EXAMPLES, Labs, Weft, python, rows

SHORT = "--workload websearch --scale 0.1 --flows 40 --load 0.4".split()


def test_a_topology_of_ones_own_can_be_drawn_with_nothing_built() -> None:
    drawn = python("topology/run.py", "--show", "examples/topology/mixed_racks.py")
    assert "mixed-racks: 3 leaves, 2 spines, 6 hosts" in drawn
    assert re.search(r"2  leaf - spine  500mbit .*\n +4  leaf - spine  1gbit ", drawn)


@pytest.mark.lab
def test_flows_in_a_topology_of_ones_own_are_limited_by_its_links_and_repeat(
    tmp_path: Path,
) -> None:
    def run(name: str) -> Path:
        out = tmp_path / name
        own = ["examples/topology/mixed_racks.py", "--out", str(out)]
        said = python("topology/run.py", *own, *SHORT, "--scheduler", "rb")
        assert "slowdown mean" in said
        return out

    first = run("first")
    flows = rows(first / "flows.csv")
    assert len(flows) == 40
    assert {flow["error"] for flow in flows} == {""}
    assert {flow["src"].split("_")[0] for flow in flows} == {"h1", "h2", "h3"}
    # The controller knows the fabric too: patterns of all pairs of racks, over both spines.
    pairs = {
        (row["source_leaf"], row["destination_leaf"], row["via"])
        for row in rows(first / "patterns.csv")
    }
    leaves = ("1", "2", "3")
    assert pairs == {
        (a, b, via) for a in leaves for b in leaves if a != b for via in ("spine1", "spine2")
    }
    assert (run("second") / "flows.csv").read_bytes() == (first / "flows.csv").read_bytes()


@pytest.mark.lab
def test_an_experiment_of_ones_own_judges_its_claim_with_its_own_flow_sizes(
    weft: Weft, tmp_path: Path
) -> None:
    store = ["--store", str(tmp_path / "store")]
    out = ["--out", str(tmp_path / "out")]
    file = str(EXAMPLES / "workload" / "rpc.toml")
    said = weft.run("experiment", "--quick", "--jobs", "1", *store, *out, file)
    assert re.search(r"NOT DECIDED.*: weft completes short responses no later", said)
    results = rows(tmp_path / "out" / "results.csv")
    assert {row["scheduler"] for row in results} == {"default", "weft"}
    folders = [
        folder for folder in (tmp_path / "store").glob("*") if (folder / "flows.csv").exists()
    ]
    assert len(folders) == len(results) == 2
    for folder in folders:
        sizes = [int(flow["bytes"]) for flow in rows(folder / "flows.csv")]
        assert len(sizes) == 100
        # rpc.csv has sizes from 200 B to 4 MB, and none between 256 kB and 1 MB.
        assert all(200 <= size <= 256_000 or 1_000_000 <= size <= 4_000_000 for size in sizes)


@pytest.mark.lab
def test_a_p4runtime_client_prints_the_entries_and_counts_of_a_leaf(labs: Labs) -> None:
    lab = labs.up("--hosts", "2")
    lab.shell("h1_1 ping -c 3 -i 0.01 h2_1")
    said = python("p4runtime/read_tables.py", "leaf1", "--name", lab.name)
    assert "table routing.ipv4_lpm: 4 of 1024 entries" in said
    to_host = r"10\.1\.1\.0/24 +routing\.to_host port=1 dst_mac=02:00:00:00:01:01 +(\d+) +(\d+)"
    (counted,) = re.findall(to_host, said)
    assert int(counted[0]) >= 3
    assert int(counted[1]) >= 3 * 98
    assert re.search(r"^counter routing\.drops: \d of \d cells", said, re.MULTILINE)
    only = python("p4runtime/read_tables.py", "spine2", "--table", "loss.links", "--name", lab.name)
    assert only.startswith("spine2: device 258 at 127.0.0.1:")
    assert len(re.findall("^table ", only, re.MULTILINE)) == 1


@pytest.mark.lab
def test_a_p4_stage_of_ones_own_counts_packets_by_dscp_in_spines(labs: Labs) -> None:
    lab = labs.up("--hosts", "2", "--programs", str(EXAMPLES / "p4-stage" / "compiled"))
    # Expedited forwarding (DSCP 46) is the value 184 of the whole field.
    lab.shell("h1_1 ping -c 5 -i 0.01 -Q 184 h2_1")
    counted = 0
    for spine in ("spine1", "spine2"):
        said = python("p4runtime/read_tables.py", spine, "--name", lab.name)
        cell = re.search(r"^counter dscp\.packets: .*?^ +46 +(\d+)", said, re.M | re.S)
        counted += int(cell[1]) if cell else 0
    # Requests and replies, by one way or the other.
    assert counted == 10


@pytest.mark.lab
def test_the_notebook_draws_two_runs_of_the_same_flows(weft: Weft, tmp_path: Path) -> None:
    runs = tmp_path / "two"
    weft.run("compare", "--schedulers", "default,weft", *SHORT, "--out", str(runs))
    said = python("notebook/execute.py", runs)
    assert "40 flows under default and weft" in said
    assert re.search(r"geometric mean \d\.\d{3}", said)
    figure = (runs / "fct-by-size.svg").read_text()
    assert "FCT by flow size" in figure
    # Each flow is a point, drawn as a `use` of a marker.
    assert figure.count("<use ") >= 2 * 40


def test_the_notebook_is_committed_without_outputs() -> None:
    cells = json.loads((EXAMPLES / "notebook" / "fct_by_size.ipynb").read_text())["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert len(code) >= 4
    for cell in code:
        assert cell["outputs"] == []
        assert cell["execution_count"] is None


def test_every_example_stands_in_the_table_with_a_command() -> None:
    table = (EXAMPLES / "README.md").read_text()
    folders = sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir())
    assert len(folders) >= 4
    for folder in folders:
        assert re.search(rf"^\|.*\({folder}/.*\|.*`.*`.*\|", table, re.MULTILINE), folder
