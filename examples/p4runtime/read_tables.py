# SPDX-License-Identifier: Apache-2.0
"""A P4Runtime client: print the tables and counters of a switch of a running lab.

    make topo
    .venv/bin/python examples/p4runtime/read_tables.py leaf1
    .venv/bin/python examples/p4runtime/read_tables.py leaf1 --table routing.ipv4_lpm

It asks the switch for its P4Info, and so works with any P4 program: a table of your own stage
appears with the names that the program gives it. Reading needs no election id, so it does not
disturb the controller, which stays primary.

The P4Runtime servers listen inside the lab. Started outside, the script starts itself inside with
`weft-lab exec`; only what follows `class Switch` is P4Runtime. To make it yours: `Switch.read`
takes any `Entity`, so meters, registers or multicast groups are a few more lines. To write, first
open a `StreamChannel` and become primary with a `MasterArbitrationUpdate`: the controller then
steps back until you hang up.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

# The stubs in the package p4runtime are older than the C++ implementation of protobuf accepts.
os.environ.setdefault("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", "python")

import grpc
from p4.v1 import p4runtime_pb2, p4runtime_pb2_grpc

WEFT_LAB = Path(__file__).resolve().parents[2] / "target" / "release" / "weft-lab"
TOPOLOGY = Path("/run/weft/topology.json")
"""Inside a lab; it says where the server of each switch listens."""
TIMEOUT_S = 10.0


def main() -> int:
    """Print what the command line asks for; the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("switch", help="its name: leaf1, spine2, ...")
    parser.add_argument("--table", metavar="NAME", help="only this table, and no counters")
    parser.add_argument("--name", default="lab", help="of the lab [lab]")
    options = parser.parse_args()
    if not TOPOLOGY.exists():
        command = [WEFT_LAB, "exec", "--name", options.name, "--", sys.executable]
        return subprocess.run([*command, Path(__file__).resolve(), *sys.argv[1:]]).returncode
    known = {switch["name"]: switch for switch in json.loads(TOPOLOGY.read_text())["switches"]}
    if options.switch not in known:
        parser.error(f"no switch {options.switch}; there are {', '.join(known)}")
    found = known[options.switch]
    with grpc.insecure_channel(found["grpc"]) as channel:
        switch = Switch(channel, found["device_id"])
        print(f"{found['name']}: device {found['device_id']} at {found['grpc']}")
        tables = [t for t in switch.info.tables if options.table in (None, t.preamble.name)]
        if not tables:
            names = ", ".join(table.preamble.name for table in switch.info.tables)
            parser.error(f"no table {options.table}; there are {names}")
        for table in tables:
            print_table(switch, table)
        for counter in switch.info.counters if options.table is None else ():
            print_counter(switch, counter)
    return 0


class Switch:
    """A connection to the P4Runtime server of one switch."""

    def __init__(self, channel: grpc.Channel, device_id: int) -> None:
        """Ask for the program's P4Info, which has the names of all ids."""
        self._stub = p4runtime_pb2_grpc.P4RuntimeStub(channel)
        self._device_id = device_id
        request = p4runtime_pb2.GetForwardingPipelineConfigRequest(device_id=device_id)
        answer = self._stub.GetForwardingPipelineConfig(request, timeout=TIMEOUT_S)
        self.info = answer.config.p4info
        self.actions = {action.preamble.id: action for action in self.info.actions}

    def read(self, **entity: Any) -> Iterator[Any]:
        """Give all entities that match; an id of 0 and an absent index match everything."""
        request = p4runtime_pb2.ReadRequest(device_id=self._device_id)
        request.entities.add(**entity)
        for answer in self._stub.Read(request, timeout=TIMEOUT_S):
            yield from answer.entities

    def entries(self, table_id: int) -> Iterator[Any]:
        """Give the entries of a table, with their counters where it has any; then its default."""
        for is_default in (False, True):
            wanted = p4runtime_pb2.TableEntry(table_id=table_id, is_default_action=is_default)
            wanted.counter_data.SetInParent()
            for entity in self.read(table_entry=wanted):
                yield entity.table_entry


def print_table(switch: Switch, table: Any) -> None:
    """Print the entries of a table."""
    rows, default = [], []
    for entry in switch.entries(table.preamble.id):
        matches = {match.field_id: match for match in entry.match}
        keys = [match_text(field, matches.get(field.id)) for field in table.match_fields]
        action = action_text(switch, entry.action.action)
        if entry.is_default_action:
            default.append([*("default" for _ in keys), action, "", ""])
        elif entry.HasField("counter_data"):
            counts = entry.counter_data
            rows.append([*keys, action, str(counts.packet_count), str(counts.byte_count)])
        else:
            rows.append([*keys, action, "", ""])
    names = [field.name for field in table.match_fields]
    print(f"\ntable {table.preamble.name}: {len(rows)} of {table.size} entries, and the default")
    print_columns([[*names, "action", "packets", "bytes"], *rows, *default])


def print_counter(switch: Switch, counter: Any) -> None:
    """Print those cells of a counter that have counted something."""
    wanted = p4runtime_pb2.CounterEntry(counter_id=counter.preamble.id)
    cells = [entity.counter_entry for entity in switch.read(counter_entry=wanted)]
    rows = [
        [str(cell.index.index), str(cell.data.packet_count), str(cell.data.byte_count)]
        for cell in cells
        if cell.data.packet_count or cell.data.byte_count
    ]
    print(f"\ncounter {counter.preamble.name}: {len(rows)} of {len(cells)} cells not 0")
    print_columns([["index", "packets", "bytes"], *rows])


def match_text(field: Any, match: Any) -> str:
    """Show the value that an entry has for a field of the key."""
    if match is None:
        return "*"  # a ternary, range or longest-prefix match on everything
    kind = match.WhichOneof("field_match_type")
    if kind == "exact":
        return value_text(field, match.exact.value)
    if kind == "lpm":
        return f"{value_text(field, match.lpm.value)}/{match.lpm.prefix_len}"
    if kind == "ternary":
        values = (match.ternary.value, match.ternary.mask)
        return " & ".join(value_text(field, value) for value in values)
    return " ".join(str(match).split())


def action_text(switch: Switch, action: Any) -> str:
    """Show an action with its arguments."""
    known = switch.actions[action.action_id]
    values = {given.param_id: given.value for given in action.params}
    words = [f"{param.name}={value_text(param, values[param.id])}" for param in known.params]
    return " ".join([known.preamble.name, *words])


def value_text(field: Any, value: bytes) -> str:
    """Show a number as what its name and width say that it is."""
    number = int.from_bytes(value, "big")
    if field.bitwidth == 32 and field.name.endswith("addr"):
        return str(IPv4Address(number))
    if field.bitwidth == 48 and field.name.endswith("mac"):
        return number.to_bytes(6, "big").hex(":")
    return str(number)


def print_columns(rows: Sequence[Sequence[str]]) -> None:
    """Print rows with aligned columns; one that is empty in all rows but the first is left out."""
    used = [any(cells) for cells in zip(*rows[1:], strict=True)] or [True] * len(rows[0])
    shown = [[cell for cell, is_used in zip(row, used, strict=True) if is_used] for row in rows]
    widths = [max(map(len, cells)) for cells in zip(*shown, strict=True)]
    for row in shown:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print(f"  {line}".rstrip())


if __name__ == "__main__":
    sys.exit(main())
