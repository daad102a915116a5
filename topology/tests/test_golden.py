# SPDX-License-Identifier: Apache-2.0
"""The golden documents in `golden/`, which this side writes and the Rust side reads.

Rust's tests read them with `weft-topology`, and compare them with the fabrics that
`tests/support` builds. So a change of `topology.json` fails here first. After a change that is
meant, write the files anew and let Rust's tests say whether their side understands them:

    python topology/tests/test_golden.py
"""

import json
from pathlib import Path
from typing import Any

import pytest
from weft_topology import document, fabrics, topos

FOLDER = Path(__file__).parent / "golden"

FABRICS: dict[str, dict[str, Any]] = {
    "leaf-spine": {"kind": "leaf-spine", "leaves": 2, "spines": 3, "hosts": 2},
    "fat-tree": {"kind": "fat-tree", "k": 4},
    "every-field": {
        "kind": "leaf-spine",
        "leaves": 2,
        "spines": 2,
        "hosts": [1, 2],
        "rate_bps": 10**10,
        "host_rate_bps": 10**9,
        "sender_rate_bps": 2 * 10**9,
        "queue_bytes": 150_000,
        "ecn_bytes": 30_000,
        "spine_delay_ns": {"2": 40_000},
        "spine_loss_ppm": {"1": 5_000},
        "nic": "p4",
        "in_band": "md",
        "ip": 6,
        "host_jitter_ns": 500_000,
        "routing": "flowlet",
        "flowlet_timeout_ns": 200_000,
        "priorities": 8,
        "lowest_share_ppm": 0,
        "first_come": ["hosts", "spine2"],
        "clear_classes": ["h2_2"],
        "changes": [
            {"at_ns": 20_000_000, "target": "leaf1-spine2", "up": False},
            {"at_ns": 30_000_000, "target": "leaf1-spine2", "up": True},
            {
                "at_ns": 40_000_000,
                "target": "spine1",
                "rate_ppm": 500_000,
                "delay_ns": 20_000,
                "queue_packets": 50,
                "loss_ppm": 10_000,
            },
        ],
    },
    "ecn-in-packets": {"kind": "leaf-spine", "spines": 1, "hosts": 1, "ecn_packets": 20},
}


def described(name: str) -> dict[str, Any]:
    """Give the document of a fabric as this side writes it now."""
    return document.of_topo(topos.of(fabrics.of_document(FABRICS[name])))


def golden(name: str) -> Path:
    return FOLDER / f"{name}.json"


@pytest.mark.parametrize("name", FABRICS)
def test_a_golden_document_is_what_is_written_now(name: str) -> None:
    assert json.loads(golden(name).read_text()) == described(name)


def test_every_golden_document_has_its_fabric() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == FABRICS.keys()


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name in FABRICS:
        document.write(described(name), golden(name))
