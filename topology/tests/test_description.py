# SPDX-License-Identifier: Apache-2.0
"""What a topology.json says of a fabric."""

import json
from pathlib import Path
from typing import Any

import pytest
from weft_topology import document, netlink, spec, units
from weft_topology.__main__ import main
from weft_topology.errors import UsageError
from weft_topology.fabrics import LeafSpineSpec
from weft_topology.leaf_spine import LeafSpine


def described(**parameters: Any) -> dict[str, Any]:
    return document.of_topo(LeafSpine(LeafSpineSpec(**parameters)))


def test_hosts_and_switches_are_named_and_numbered_as_documented() -> None:
    fabric = described(leaves=2, spines=3, hosts=4)
    assert [h["name"] for h in fabric["hosts"][:5]] == ["h1_1", "h1_2", "h1_3", "h1_4", "h2_1"]
    host = fabric["hosts"][5]
    assert host == {
        "name": "h2_2",
        "leaf": 2,
        "index": 2,
        "netns": "/run/netns/h2_2",
        "interface": "h2_2-eth0",
        "mac": "02:00:00:00:02:02",
        "addresses": ["10.2.2.1", "10.2.2.2", "10.2.2.3"],
        "prefix_len": 24,
    }
    switches = [(s["name"], s["device_id"], s["grpc"]) for s in fabric["switches"]]
    assert switches[0] == ("leaf1", 1, "127.0.0.1:9559")
    assert switches[2] == ("spine1", 257, "127.0.0.1:9561")
    assert fabric["paths"] == 3


def test_hosts_of_a_noisy_hypervisor_say_so() -> None:
    fabric = described(host_jitter_ns=500_000)
    assert {host["jitter_ns"] for host in fabric["hosts"]} == {500_000}


def test_cards_that_run_programs_belong_to_hosts_and_share_the_delay_of_their_links() -> None:
    assert "nic" not in described()["hosts"][0]
    fabric = described(leaves=2, spines=2, hosts=2, delay_ns=10_001, nic="p4")
    assert fabric["hosts"][3]["nic"] == {
        "name": "nic2_2",
        "device_id": 1514,
        "grpc": "127.0.0.1:9566",
        "rate_bps": 252 * 10**9,
        "delay_ns": 5_000,
    }
    devices = fabric["switches"] + [host["nic"] for host in fabric["hosts"]]
    for key in ("name", "device_id", "grpc"):
        assert len({device[key] for device in devices}) == len(devices)


def test_telemetry_in_band_is_a_property_of_the_fabric() -> None:
    assert "int_md" not in described()
    assert described(in_band="md")["int_md"] is True


def test_links_have_room_for_what_the_network_adds_to_packets() -> None:
    def mtus(**fields: Any) -> set[tuple[bool, int | None]]:
        links = described(**fields)["links"]
        return {(link["a"]["node"].startswith("h"), link.get("mtu_bytes")) for link in links}

    assert mtus() == {(True, None), (False, None)}
    assert mtus(in_band="md") == {(True, None), (False, 1588)}
    assert mtus(nic="p4") == {(True, 1518), (False, 1518)}
    assert mtus(nic="p4", in_band="md") == {(True, 1518), (False, 1606)}


@pytest.mark.parametrize(("leaves", "spines", "hosts"), [(1, 1, 1), (2, 2, 4), (11, 3, 12)])
def test_every_port_is_the_end_of_its_link(leaves: int, spines: int, hosts: int) -> None:
    fabric = described(leaves=leaves, spines=spines, hosts=hosts)
    assert len(fabric["links"]) == leaves * (hosts + spines)
    ends = set()
    for switch in fabric["switches"]:
        numbers = [port["number"] for port in switch["ports"]]
        assert numbers == list(range(1, len(numbers) + 1))
        for port in switch["ports"]:
            link = fabric["links"][port["link"]]
            end = {"node": switch["name"], "port": port["number"]}
            assert end in (link["a"], link["b"])
            ends.add((switch["name"], port["number"]))
    assert len(ends) == leaves * (hosts + 2 * spines)


def test_leaf_ports_lead_to_hosts_first_then_to_spines() -> None:
    fabric = described(leaves=2, spines=2, hosts=3)
    leaf2 = fabric["switches"][1]
    far_ends = [fabric["links"][port["link"]] for port in leaf2["ports"]]
    assert [link["a"]["node"] for link in far_ends[:3]] == ["h2_1", "h2_2", "h2_3"]
    assert [link["b"] for link in far_ends[3:]] == [
        {"node": "spine1", "port": 2},
        {"node": "spine2", "port": 2},
    ]


def test_a_slow_spine_is_slow_on_all_its_links_and_no_other() -> None:
    fabric = described(delay_ns=10_000, spine_delay_ns={2: 40_000})
    slow = {
        (link["a"]["node"], link["b"]["node"])
        for link in fabric["links"]
        if link["delay_ns"] == 40_000
    }
    assert slow == {("leaf1", "spine2"), ("leaf2", "spine2")}


def test_a_spine_may_have_rate_queue_and_loss_of_its_own() -> None:
    fabric = described(
        spine_rate_bps={2: 5_000_000}, spine_queue_packets={1: 3750}, spine_loss_ppm={1: 10_000}
    )
    links = {(link["a"]["node"], link["b"]["node"]): link for link in fabric["links"]}
    for leaf in ("leaf1", "leaf2"):
        assert links[leaf, "spine1"]["rate_bps"] == 10**9
        assert links[leaf, "spine2"]["rate_bps"] == 5_000_000
        assert links[leaf, "spine1"]["queue_packets"] == 3750
        assert links[leaf, "spine2"]["queue_packets"] == 100
    losses = {switch["name"]: switch.get("loss_ppm") for switch in fabric["switches"]}
    assert losses == {"leaf1": None, "leaf2": None, "spine1": 10_000, "spine2": None}


def test_hosts_may_send_at_another_rate_than_they_receive() -> None:
    links = described(host_rate_bps=10**9, sender_rate_bps=2 * 10**9)["links"]
    assert len(links) == 8 + 4
    for link in links:
        to_host = link["a"]["node"].startswith("h")
        assert link.get("rate_from_a_bps") == (2 * 10**9 if to_host else None)
        assert link["rate_bps"] == 10**9


def test_host_links_have_the_host_rate() -> None:
    links = described(rate_bps=10**10, host_rate_bps=10**9)["links"]
    assert len(links) == 8 + 4
    for link in links:
        assert link["rate_bps"] == (10**9 if link["a"]["node"].startswith("h") else 10**10)


def test_a_file_is_whole_or_not_there(tmp_path: Path) -> None:
    target = tmp_path / "topology.json"
    document.write(described(), target)
    assert json.loads(target.read_text()) == described()
    assert list(tmp_path.iterdir()) == [target]


def drawn(folder: Path, fabric: dict[str, Any]) -> int:
    """Run `python -m weft_topology draw --json` on a document; its exit status."""
    file = folder / "fabric.json"
    file.write_text(json.dumps({"kind": "leaf-spine"} | fabric))
    return main(["draw", "--json", str(file)])


def test_draw_describes_the_fabric_of_a_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {"leaves": 3, "hosts": 1, "delay_ns": 2500, "spine_loss_ppm": {"2": 5000}}
    assert drawn(tmp_path, given) == 0
    expected = described(leaves=3, hosts=1, delay_ns=2500, spine_loss_ppm={2: 5000})
    assert json.loads(capsys.readouterr().out) == expected


@pytest.mark.parametrize(
    ("fabric", "said"),
    [
        ({"leaves": 0}, "leaves 0 is out of range 1..250"),
        ({"hosts": 250, "spines": 251}, "out of range 1..250"),
        ({"rate_bps": "fast"}, "rate_bps: not a whole number"),
        ({"routing": "best"}, "none of subflow, ecmp, flowlet, spray"),
        ({"routing": "spray", "flowlet_timeout_ns": 10**5}, "only with the routing flowlet"),
        ({"priorities": 9}, "9 is out of range 2..8"),
        ({"first_come": ["hosts"]}, "first_come and clear_classes: only with priorities"),
        ({"priorities": 8, "first_come": ["spine9"]}, "first_come names spine9; there are hosts"),
        ({"priorities": 8, "clear_classes": ["h9_1"]}, "clear_classes names h9_1; there are h1_1"),
        ({"routing": "flowlet", "flowlet_timeout_ns": 10}, "10 is out of range 1000..10"),
        ({"spine_delay_ns": {"3": 10**6}}, "there are 1..2"),
        ({"spine_delay_ns": {"two": 1}}, 'write it like {"2": 40000}'),
        ({"spine_rate_bps": {"1": 1000}}, "spine_rate_bps of spine 1 1000 is out of range"),
        ({"spine_loss_ppm": {"1": 1_010_000}}, "out of range 0..1000000"),
        ({"sender_rate_bps": 1000}, "sender_rate_bps 1000 is out of range"),
        ({"route_metrics": {"initial_window": 0}}, "initial_window 0 is out of range 1..1000"),
        ({"route_metrics": {"initial_widow": 2}}, "'initial_widow' is unknown; there are initial_"),
        ({"route_metrics": {"initial_window": "2"}}, "not a whole number"),
        ({"speed": 1}, "'speed' is unknown"),
    ],
)
def test_a_document_that_describes_no_fabric_is_one_clear_line(
    fabric: dict[str, Any], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert drawn(tmp_path, fabric) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err
    assert captured.err.count("\n") == 1


TOPOLOGY = {"kind": "leaf-spine", "leaves": 2, "spine_delay_ns": {"2": 40000}}
LAB = {
    "topology": TOPOLOGY,
    "pattern_ttl_ns": 200_000_000,
    "seed": 7,
    "paths": {"repo": "/r", "bin": "/b", "programs": ["/p"], "python": "/y"},
    "clock": "paced",
}


def test_a_lab_document_is_read() -> None:
    lab = spec.lab_of(LAB)
    assert lab.topology == LeafSpineSpec(spine_delay_ns={2: 40000})
    assert lab.paths.bin == Path("/b")
    assert (lab.pattern_ttl_ns, lab.seed) == (200_000_000, 7)
    assert (lab.path_manager, lab.pattern_input, lab.control_delay_ns) == ("kernel", "rtt", 0)
    assert (lab.gray_loss_ppm, lab.class_thresholds) == (5_000, "seen")
    loop = spec.lab_of(
        LAB | {"pattern_input": "rtt+queue", "control_delay_ns": 20_000, "gray_loss_ppm": 7}
    )
    assert (loop.pattern_input, loop.control_delay_ns) == ("rtt+queue", 20_000)
    assert loop.gray_loss_ppm == 7
    assert spec.lab_of(LAB | {"class_thresholds": "built-in"}).class_thresholds == "built-in"
    assert spec.lab_of(LAB | {"path_manager": "fixed:2"}).path_manager == "fixed:2"


@pytest.mark.parametrize("clock", ["free", "paced", "paused", "real", "native"])
def test_timers_are_late_only_in_real_time(clock: str) -> None:
    slack_ns = spec.lab_of(LAB | {"clock": clock}).timer_slack_ns
    assert (slack_ns > netlink.TIMER_SLACK_NS) == (clock in ("real", "native"))


def test_a_lab_document_says_what_to_capture() -> None:
    assert spec.lab_of(LAB).capture is None
    capture = {"hosts": ["h1_1", "h2_1"], "arrivals": "all"}
    lab = spec.lab_of(LAB | {"capture": capture})
    assert lab.capture == spec.CaptureSpec(("h1_1", "h2_1"), "all")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"topology": TOPOLOGY | {"kind": "ring"}},
            "'ring' is unknown; there is leaf-spine, fat-tree",
        ),
        ({"topology": TOPOLOGY | {"leafs": 2}}, "'leafs' is unknown"),
        ({"topology": TOPOLOGY | {"leaves": "2"}}, "leaves: not a whole number: '2'"),
        ({"topology": TOPOLOGY | {"spine_delay_ns": [1]}}, "spine_delay_ns"),
        ({"topology": 7}, "topology: not an object"),
        ({"topology": TOPOLOGY | {"nic": "p5"}}, "nic 'p5' is none of plain, p4"),
        ({"topology": TOPOLOGY | {"in_band": 1}}, "in_band: not a string: 1"),
        ({"topology": TOPOLOGY | {"in_band": "mx"}}, "in_band 'mx' is none of off, md"),
        ({"paths": {"repo": "/r"}}, "bin is missing"),
        (
            {"paths": {"repo": "/r", "bin": "/b", "programs": "/p"}},
            "programs: not a list of folders: '/p'",
        ),
        ({"path_manager": 2}, "path_manager: not a string"),
        ({"pattern_input": 2}, "pattern_input: not a string"),
        ({"class_thresholds": 2}, "class_thresholds: not a string"),
        ({"control_delay_ns": "20us"}, "control_delay_ns: not a whole number"),
        ({"capture": {"hosts": "h1_1", "arrivals": "all"}}, "hosts: not a list of names: 'h1_1'"),
        ({"capture": {"hosts": [], "arrivals": "all"}}, "hosts: name at least one, or all"),
        ({"capture": {"hosts": ["all"], "arrivals": "x"}}, "'x' is none of hosts, all"),
        ({"pattern_ttl_ns": None}, "pattern_ttl_ns: not a whole number"),
    ],
)
def test_a_bad_lab_document_is_refused_by_name(change: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        spec.lab_of(LAB | change)


@pytest.mark.parametrize("text", ["[]", "{", '"x"', "{}"])
def test_what_is_no_lab_document_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "lab.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"lab\.json"):
        spec.read_lab(path)


def test_durations_are_written_in_the_largest_whole_unit() -> None:
    assert units.duration(200_000_000) == "200ms"
    assert units.duration(1_500_000) == "1500us"
    assert units.duration(7) == "7ns"
