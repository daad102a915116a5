# SPDX-License-Identifier: Apache-2.0
"""BMv2's queues as Thrift sets them; the switch is a small server of the test's own."""

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from weft_topology import bmv2, document, thrift, topos
from weft_topology.errors import StepError
from weft_topology.fabrics import LeafSpineSpec

# A reply to a call: version and type, name, sequence number; result 0 of type i32; the end.
REPLY = struct.Struct("!Ii")
NO_METHOD = 3


class ThriftServer:
    """Answers every call, and notes the numbers that it came with."""

    def __init__(self, kind: int = 2) -> None:
        """`kind` is that of the answers: 2 is a result."""
        self.calls: list[tuple[str, list[int]]] = []
        self._kind = kind
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._listener.getsockname()
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()

    def _serve(self) -> None:
        client, _ = self._listener.accept()
        # Who got an answer that it did not want hangs up before its end.
        with client, client.makefile("rb") as stream, suppress(ConnectionResetError):
            while header := stream.read(REPLY.size):
                version, length = REPLY.unpack(header)
                assert version == 0x80010001
                name = stream.read(length)
                sequence = stream.read(4)
                self.calls.append((name.decode(), list(numbers(stream))))
                method = name.partition(b":")[2]
                head = REPLY.pack(0x80010000 | self._kind, len(method)) + method
                client.sendall(head + sequence + struct.pack("!bhib", 8, 0, 0, 0))


def numbers(stream: Any) -> Iterator[int]:
    """Read the arguments of a call."""
    while (kind := stream.read(1)[0]) != 0:
        stream.read(2)
        form = {8: "!i", 10: "!q"}[kind]
        yield struct.unpack(form, stream.read(struct.calcsize(form)))[0]


@pytest.fixture
def server() -> Iterator[ThriftServer]:
    """Give a server that does what it is asked."""
    listening = ThriftServer()
    yield listening
    listening.close()


def test_a_call_carries_its_numbers_in_their_types(server: ThriftServer) -> None:
    with thrift.Client(server.address, 5) as client:
        assert client.call("simple_switch", "rate", thrift.I32(3), thrift.I64(10**10)) == 0
        assert client.call("simple_switch", "depth", thrift.I32(3), thrift.I32(100)) == 0
    assert server.calls == [("simple_switch:rate", [3, 10**10]), ("simple_switch:depth", [3, 100])]


def test_a_method_that_is_not_there_is_named() -> None:
    stranger = ThriftServer(NO_METHOD)
    with (
        thrift.Client(stranger.address, 5) as client,
        pytest.raises(thrift.ThriftError, match="simple_switch has no rate"),
    ):
        client.call("simple_switch", "rate", thrift.I32(3))
    stranger.close()


def fabric(**of_spines: Any) -> dict[str, Any]:
    """Give the document of a small leaf-spine."""
    spec = LeafSpineSpec(leaves=2, spines=2, hosts=1, **of_spines)
    return document.of_topo(topos.of(spec))


def switch(folder: Path, script: str, described: dict[str, Any]) -> bmv2.Bmv2Switch:
    """Give the first switch of a fabric; its program is a shell script."""
    program = folder / "simple_switch_grpc"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return bmv2.Bmv2Switch(program, described["switches"][0], described["links"], folder)


def at(described: dict[str, Any], monkeypatch: pytest.MonkeyPatch, *, port: int) -> None:
    """Have the first switch listen where the test does."""
    monkeypatch.setattr(bmv2, "thrift_port", lambda _: port)
    described["switches"][0]["grpc"] = f"127.0.0.1:{port}"


def test_a_switch_starts_with_the_rates_and_depths_of_its_ports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: ThriftServer
) -> None:
    described = fabric(host_rate_bps=10**9, spine_rate_bps={2: 10**7}, spine_queue_packets={1: 250})
    at(described, monkeypatch, port=server.address[1])
    script = 'echo "$@" >written; mv written words; exec sleep 60'
    started = switch(tmp_path, script, described)
    monkeypatch.chdir(tmp_path)
    started.start(lambda daemon, status: None)
    # The server answers at once, whatever the program has done by then.
    while not (tmp_path / "words").exists():
        time.sleep(0.01)
    started.stop()
    assert [numbers for name, numbers in server.calls if name.endswith("rate")] == [
        [1, 82563],
        [2, 82563],
        [3, 826],
    ]
    assert [numbers for name, numbers in server.calls if name.endswith("depth")] == [
        [1, 100],
        [2, 250],
        [3, 100],
    ]
    words = (tmp_path / "words").read_text()
    assert "--interface 1@leaf1-eth1 --interface 2@leaf1-eth2" in words
    assert words.strip().endswith(
        f"-- --grpc-server-addr 127.0.0.1:{server.address[1]} --cpu-port 510"
    )


def test_each_way_of_a_link_has_its_own_rate() -> None:
    link = {"a": {"node": "leaf1"}, "rate_bps": 5, "rate_from_a_bps": 3}
    assert (bmv2.rate_from(link, "leaf1"), bmv2.rate_from(link, "spine1")) == (3, 5)


def test_a_switch_without_thrift_is_refused_with_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: ThriftServer
) -> None:
    nobody = socket.create_server(("127.0.0.1", 0))
    port = nobody.getsockname()[1]
    nobody.close()
    described = fabric()
    at(described, monkeypatch, port=port)
    described["switches"][0]["grpc"] = f"127.0.0.1:{server.address[1]}"
    monkeypatch.setattr(bmv2, "THRIFT_AFTER_S", 0.05)
    with pytest.raises(StepError, match=r"leaf1: has no Thrift server, .* --with-thrift"):
        switch(tmp_path, "exec sleep 60", described).start(lambda daemon, status: None)


def test_a_switch_that_ends_is_a_failed_step_with_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody = socket.create_server(("127.0.0.1", 0))
    described = fabric()
    at(described, monkeypatch, port=nobody.getsockname()[1])
    nobody.close()
    broken = switch(tmp_path, "echo no such interface; exit 3", described)
    with pytest.raises(StepError, match="leaf1: ended with status 3") as failure:
        broken.start(lambda daemon, status: None)
    assert failure.value.report().splitlines()[-1] == "no such interface"
