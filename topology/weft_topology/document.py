# SPDX-License-Identifier: Apache-2.0
"""`topology.json`: the one description of a fabric that everybody else reads.

The crate `weft-topology` is its reader and says what each field means.
"""

import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

from mininet.topo import Topo

from weft_topology import naming
from weft_topology.netlink import MTU_BYTES

VERSION = 1
IN_BAND_BYTES = 24 + 4 * 16
"""INT-MD's headers, and what four hops add (`p4/src/stages/int_md.p4`)."""


def of_topo(topo: Topo) -> dict[str, Any]:
    """Document of a described topology."""
    links = [info for _, _, info in topo.links(sort=False, withInfo=True)]
    ports: dict[str, dict[int, int]] = defaultdict(dict)
    for link, info in enumerate(links):
        ports[info["node1"]][info["port1"]] = link
        ports[info["node2"]][info["port2"]] = link
    document = {
        "version": VERSION,
        "name": topo.name,
        "paths": topo.paths,
        "routing": topo.routing,
        **_if_any("flowlet_timeout_ns", topo.flowlet_timeout_ns),
        **_if_any("priorities", topo.priorities),
        **_if_given("lowest_share_ppm", topo.lowest_share_ppm),
        "hosts": [_host(name, topo.nodeInfo(name)) for name in topo.hosts(sort=False)],
        "switches": [
            _switch(name, topo.nodeInfo(name), ports[name]) for name in topo.switches(sort=False)
        ],
        "links": [_link(info) | _if_any("mtu_bytes", _raised_mtu(topo, info)) for info in links],
    }
    if topo.int_md:
        document["int_md"] = True
    if topo.ipv6:
        document["ipv6"] = True
    if topo.changes:
        document["schedule"] = {"socket": naming.SCHEDULE_SOCKET, "changes": topo.changes}
    return document


def write(document: dict[str, Any], path: Path) -> None:
    """Write the document whole or not at all."""
    write_whole(path, json.dumps(document, indent=1) + "\n")


def write_whole(path: Path, text: str) -> None:
    """Write a file that nobody ever sees half of."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text)
    os.replace(partial, path)


def _host(name: str, info: dict[str, Any]) -> dict[str, Any]:
    nic = {"nic": info["nic"]} if info["nic"] else {}
    return (
        {
            "name": name,
            "leaf": info["leaf"],
            "index": info["index"],
            "netns": naming.netns(name),
            "interface": naming.interface(name, 0),
            "mac": info["mac"],
            "addresses": info["addresses"],
            "prefix_len": naming.PREFIX_LEN,
        }
        | _if_any("jitter_ns", info["jitter_ns"])
        | nic
        | _if_any("classes_cleared", info["classes_cleared"])
    )


def _switch(name: str, info: dict[str, Any], ports: dict[int, int]) -> dict[str, Any]:
    return (
        {
            "name": name,
            "role": info["role"],
            "index": info["index"],
            "device_id": info["device_id"],
            "grpc": info["grpc"],
            "ports": [
                {"number": port, "interface": naming.interface(name, port), "link": ports[port]}
                for port in sorted(ports)
            ],
        }
        | _if_any("loss_ppm", info["loss_ppm"])
        | _if_any("first_come", info["first_come"])
    )


def _link(info: dict[str, Any]) -> dict[str, Any]:
    from_a = info.get("rate_from_a_bps", info["rate_bps"])
    return {
        "a": {"node": info["node1"], "port": info["port1"]},
        "b": {"node": info["node2"], "port": info["port2"]},
        "rate_bps": info["rate_bps"],
        "delay_ns": info["delay_ns"],
        "queue_packets": info["queue_packets"],
        **_if_any("queue_bytes", info["queue_bytes"]),
        **_if_any("ecn_packets", info["ecn_packets"]),
        **_if_any("ecn_bytes", info["ecn_bytes"]),
        **_if_any("rate_from_a_bps", 0 if from_a == info["rate_bps"] else from_a),
    }


def _raised_mtu(topo: Topo, info: dict[str, Any]) -> int | None:
    """Give links room for what cards, and between switches packets' telemetry, add."""
    has_cards = any(topo.nodeInfo(host)["nic"] for host in topo.hosts(sort=False))
    between = topo.isSwitch(info["node1"]) and topo.isSwitch(info["node2"])
    more = naming.NIC_HEADER_BYTES * has_cards + IN_BAND_BYTES * (topo.int_md and between)
    return MTU_BYTES + more if more else None


def _if_given(key: str, number: int | None) -> dict[str, int]:
    """Give what the document leaves out unless it was given: there, 0 is a number as others."""
    return {} if number is None else {key: number}


def _if_any(key: str, number: int | None) -> dict[str, int]:
    """Give what the document leaves out where there is none."""
    return {key: number} if number else {}
