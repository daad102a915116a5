# SPDX-License-Identifier: Apache-2.0
"""Fabrics as text and as pictures."""

import io
import json
from typing import Any
from xml.etree import ElementTree

import pytest
from weft_topology import document, drawing, fabrics, svg, topos
from weft_topology.__main__ import main


def described(kind: str, **fields: Any) -> dict[str, Any]:
    return document.of_topo(topos.of(fabrics.of_document({"kind": kind} | fields)))


def test_a_leaf_spine_is_drawn_tier_by_tier() -> None:
    assert drawing.text(described("leaf-spine", spine_delay_ns={"2": 40_000})) == (
        """\
leaf-spine: 2 leaves, 2 spines, 8 hosts; 2 paths for a connection, routing subflow

   spine1       spine2
     │            │
     ├────────────┤
     │            │
   leaf1        leaf2
     │            │
 h1_1..h1_4   h2_1..h2_4

links                rate   delay  queue
    8  host - leaf   1gbit  10us   100 packets
    2  leaf - spine  1gbit  10us   100 packets
    2  leaf - spine  1gbit  40us   100 packets
"""
    )


@pytest.mark.parametrize("k", [4, 8, 16])
def test_a_line_leads_from_each_group_of_cores_to_one_switch_of_each_pod(k: int) -> None:
    lines = drawing.text(described("fat-tree", k=k)).splitlines()[2:]
    row = next(place for place, line in enumerate(lines) if "agg1_1" in line)
    places = [lines[row].index(name) + len(name) // 2 for name in ("agg1_1", f"agg{k}_{k // 2}")]
    # The first pod's first switch hangs on the first line, the last one's last on the last.
    for place, line in zip(places, (lines[0], lines[row - 2]), strict=True):
        assert any(character in "┬┐" for character in line[place - 1 : place + 2])
    assert max(map(len, lines)) <= 132


def test_a_drawing_ends_with_what_changes() -> None:
    changes = [
        {"at_ns": 20_000_000, "target": "leaf1-spine2", "up": False},
        {"at_ns": 10**9, "target": "spine1", "rate_bps": 10**7, "loss_ppm": 5000},
    ]
    text = drawing.text(described("leaf-spine", changes=changes))
    assert text.endswith(
        "\n\nat 20ms link leaf1-spine2 down\nat 1s switch spine1 rate 10mbit loss 0.5%\n"
    )


@pytest.mark.parametrize("kind", fabrics.KINDS)
def test_a_picture_has_every_node_and_every_link(kind: str) -> None:
    fabric = described(kind)
    root = ElementTree.fromstring(svg.picture(fabric))
    names = {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}
    assert names >= {node["name"] for node in fabric["hosts"] + fabric["switches"]}
    lines = list(root.iter("{http://www.w3.org/2000/svg}line"))
    assert len(lines) == len(fabric["links"])


@pytest.mark.parametrize(
    ("given", "status", "said"),
    [
        (json.dumps({"kind": "fat-tree", "k": 4}), 0, ""),
        (json.dumps(described("two-path")), 0, ""),
        (json.dumps({"kind": "fat-tree", "k": 5}), 2, "k 5 is odd"),
        ("{", 2, "-: Expecting property name"),
        ("{}", 2, "-: no topology.json"),
        ("7", 2, "-: no topology.json"),
    ],
)
def test_a_file_is_drawn_or_refused_in_one_line(
    given: str,
    status: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(given))
    assert main(["draw", "-"]) == status
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.err.count("\n") == (1 if status else 0)
    assert bool(captured.out) == (status == 0)
