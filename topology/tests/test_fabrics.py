# SPDX-License-Identifier: Apache-2.0
"""Kinds of fabrics, beyond what a plain leaf-spine shows."""

from collections import Counter
from typing import Any

import pytest
from weft_topology import document, fabrics, topos
from weft_topology.errors import UsageError


def described(kind: str, **fields: Any) -> dict[str, Any]:
    return document.of_topo(topos.of(fabrics.of_document({"kind": kind} | fields)))


def neighbours(fabric: dict[str, Any]) -> dict[str, list[str]]:
    """Give the far ends of each node's links, in the order of its ports."""
    ends: dict[str, dict[int, str]] = {}
    for link in fabric["links"]:
        a, b = link["a"], link["b"]
        ends.setdefault(a["node"], {})[a["port"]] = b["node"]
        ends.setdefault(b["node"], {})[b["port"]] = a["node"]
    return {node: [ports[port] for port in sorted(ports)] for node, ports in ends.items()}


@pytest.mark.parametrize("k", [4, 6, 8, 16])
def test_a_fat_tree_has_the_size_that_k_says(k: int) -> None:
    fabric = described("fat-tree", k=k)
    roles = Counter(switch["role"] for switch in fabric["switches"])
    assert roles == {"leaf": k * k // 2, "aggregation": k * k // 2, "core": k * k // 4}
    assert len(fabric["hosts"]) == k**3 // 4
    assert len(fabric["links"]) == 3 * k**3 // 4
    assert {len(switch["ports"]) for switch in fabric["switches"]} == {k}
    assert fabric["paths"] == min(k * k // 4, 8)
    ids = {switch["device_id"] for switch in fabric["switches"]}
    assert len(ids) == len(fabric["switches"])


def test_a_fat_tree_is_cabled_pod_by_pod() -> None:
    cables = neighbours(described("fat-tree", k=4))
    assert cables["edge3"] == ["h3_1", "h3_2", "agg2_1", "agg2_2"]
    assert cables["agg2_1"] == ["edge3", "edge4", "core1", "core2"]
    assert cables["agg2_2"] == ["edge3", "edge4", "core3", "core4"]
    assert cables["core3"] == ["agg1_2", "agg2_2", "agg3_2", "agg4_2"]


def test_leaves_may_differ_in_hosts() -> None:
    cables = neighbours(described("leaf-spine", leaves=2, hosts=[1, 3]))
    assert cables["leaf1"] == ["h1_1", "spine1", "spine2"]
    assert cables["leaf2"] == ["h2_1", "h2_2", "h2_3", "spine1", "spine2"]


def test_hosts_have_addresses_for_eight_of_many_spines() -> None:
    fabric = described("leaf-spine", spines=20, hosts=1)
    assert fabric["paths"] == 8
    assert {len(host["addresses"]) for host in fabric["hosts"]} == {8}
    assert len(neighbours(fabric)["leaf1"]) == 21


def test_connections_may_have_fewer_subflows_than_there_are_paths() -> None:
    for kind, options in (
        ("leaf-spine", {"spines": 20}),
        ("fat-tree", {"k": 6}),
        ("many-to-one", {"links": 4}),
        ("dumbbell", {"profiles": ["wlan", "3g", "lte"]}),
    ):
        fabric = described(kind, subflows=2, **options)
        assert fabric["paths"] == 2
        assert {len(host["addresses"]) for host in fabric["hosts"]} == {2}
    assert described("leaf-spine", spines=2, subflows=8)["paths"] == 2
    with pytest.raises(UsageError, match="subflows 9 is out of range"):
        described("leaf-spine", subflows=9)


def test_a_queue_may_have_bytes() -> None:
    for kind in ("leaf-spine", "fat-tree"):
        links = described(kind, queue_bytes=150_000)["links"]
        assert {link["queue_bytes"] for link in links} == {150_000}
    mixed = described("leaf-spine", queue_bytes=150_000, spine_queue_packets={"2": 7})["links"]
    assert {link.get("queue_bytes") for link in mixed if link["queue_packets"] == 7} == {None}


def test_all_queues_may_mark_packets_above_a_threshold() -> None:
    for kind in ("leaf-spine", "fat-tree", "many-to-one", "dumbbell"):
        links = described(kind, ecn_packets=20)["links"]
        assert {link["ecn_packets"] for link in links} == {20}
    links = described("leaf-spine", ecn_bytes=30_000)["links"]
    assert {(link["ecn_bytes"], "ecn_packets" in link) for link in links} == {(30_000, False)}
    assert "ecn_packets" not in described("leaf-spine")["links"][0]


def test_hosts_of_a_many_to_one_send_on_each_link_and_the_switch_answers_at_its_rate() -> None:
    fabric = described("many-to-one", hosts=3, rate_bps=2_500_000_000, host_rate_bps=10**10)
    assert (fabric["name"], fabric["paths"], len(fabric["hosts"])) == ("many-to-one", 2, 3)
    assert len(fabric["links"]) == 3 + 3 * 2
    for link in fabric["links"]:
        if link["a"]["node"].startswith("h"):
            # All that both cards can do.
            assert link["rate_bps"] == 2 * 10**10
        else:
            assert (link["rate_bps"], link["rate_from_a_bps"]) == (2_500_000_000, 10**10)


def test_paths_of_a_testbed_are_what_its_paper_says() -> None:
    fabric = described("two-path", profiles=["wlan", "3g"])
    links = {(link["a"]["node"], link["b"]["node"]): link for link in fabric["links"]}
    for leaf in ("leaf1", "leaf2"):
        wlan, mobile = links[leaf, "spine1"], links[leaf, "spine2"]
        # Four links there and back.
        assert (wlan["rate_bps"], 4 * wlan["delay_ns"]) == (25_000_000, 25_000_000)
        assert (mobile["rate_bps"], 4 * mobile["delay_ns"]) == (5_000_000, 65_000_000)
        assert (wlan["queue_packets"], mobile["queue_packets"]) == (100, 3750)
    losses = {switch["name"]: switch.get("loss_ppm") for switch in fabric["switches"]}
    assert losses == {"leaf1": None, "leaf2": None, "spine1": 10_000, "spine2": None}


def test_a_dumbbell_has_hosts_at_both_ends_and_any_paths() -> None:
    fabric = described("dumbbell", hosts=3, profiles=["20mbit/50ms", "lte", "1gbit/1ms/9/1%"])
    assert (fabric["name"], fabric["paths"], len(fabric["hosts"])) == ("dumbbell", 3, 6)
    assert fabric["switches"][-1]["loss_ppm"] == 10_000


def changed(target: str, **properties: Any) -> list[dict[str, Any]]:
    change = {"at_ns": 5, "target": target} | properties
    fabric = described("leaf-spine", spine_rate_bps={"2": 10**8}, changes=[change])
    changes = fabric["schedule"]["changes"]
    assert changes
    for one in changes:
        assert one.pop("at_ns") == 5
        if "link" in one:
            link = fabric["links"][one["link"]]
            one["link"] = f"{link['a']['node']}-{link['b']['node']}"
    return list(changes)


def test_a_switch_or_a_link_changes_by_name() -> None:
    assert changed("spine1", up=False) == [{"switch": "spine1", "up": False}]
    assert changed("leaf2-spine1", delay_ns=7, loss_ppm=1) == [
        {"link": "leaf2-spine1", "delay_ns": 7, "loss_ppm": 1}
    ]
    assert changed("h1_1-leaf1", up=True) == [{"link": "h1_1-leaf1", "up": True}]


def test_a_share_of_a_rate_is_of_each_links_own() -> None:
    assert changed("leaf1-spine2", rate_ppm=500_000) == [
        {"link": "leaf1-spine2", "rate_bps": 50_000_000}
    ]
    assert changed("leaf1", rate_ppm=500_000, loss_ppm=9) == [
        {"switch": "leaf1", "loss_ppm": 9},
        {"link": "leaf1-spine1", "rate_bps": 500_000_000},
        {"link": "leaf1-spine2", "rate_bps": 50_000_000},
    ]


@pytest.mark.parametrize(
    ("kind", "fields", "said"),
    [
        ("fat-tree", {"k": 5}, "k 5 is odd"),
        ("fat-tree", {"k": 18}, "k 18 is out of range 4..16"),
        ("fat-tree", {"leaves": 2}, "'leaves' is unknown"),
        ("leaf-spine", {"hosts": [1, 2, 3]}, "3 numbers for 2 leaves"),
        ("leaf-spine", {"hosts": [1, 0]}, "hosts 0 is out of range"),
        ("leaf-spine", {"hosts": ["1", 2]}, "hosts: not a whole number"),
        ("leaf-spine", {"queue_bytes": 10}, "queue_bytes 10 is out of range"),
        ("leaf-spine", {"ecn_packets": 0}, "ecn_packets 0 is out of range"),
        ("leaf-spine", {"ecn_packets": 9, "ecn_bytes": 9000}, "give one of them"),
        ("leaf-spine", {"ecn_packets": 100}, "ecn: give less than the queue"),
        ("many-to-one", {"hosts": 1}, "hosts 1 is out of range 2"),
        ("many-to-one", {"links": 9}, "links 9 is out of range 1..8"),
        ("two-path", {"profiles": ["wlna", "3g"]}, "'wlna' is none of wlan, 3g, wifi, lte"),
        ("two-path", {"profiles": ["20mbit/50", "3g"]}, "write it like 10us"),
        ("two-path", {"profiles": "wlan"}, "profiles: not a list"),
        ("two-path", {"profiles": []}, "number of paths 0 is out of range"),
        ("leaf-spine", {"changes": [{"at_ns": 1, "target": "spine3"}]}, "spine3, which is no"),
        ("leaf-spine", {"changes": [{"at_ns": 1, "target": "spine1-leaf1"}]}, "leaf1-spine1"),
        (
            "leaf-spine",
            {"changes": [{"at_ns": 1, "target": "h1_1-leaf1", "rate_bps": 10**9}]},
            "a link to a host has loss_ppm and up",
        ),
    ],
)
def test_what_cannot_be_built_is_refused_by_name(
    kind: str, fields: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        described(kind, **fields)
