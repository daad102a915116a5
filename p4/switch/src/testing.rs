//! What tests of logs and captures share.

use serde_json::json;
use weft_topology::Topology;

use crate::network::TimestampUnit;
use crate::pipeline::{ActionCall, Pipeline, Program};
use crate::server::World;

/// A switch that sends everything back to its only host.
pub(crate) fn echo() -> (Topology, World) {
    let topology: Topology = serde_json::from_value(json!({
        "version": 1, "name": "echo", "paths": 1, "routing": "weft",
        "hosts": [{
            "name": "h1_1", "leaf": 1, "index": 1, "netns": "", "interface": "", "mac": "",
            "addresses": ["10.1.1.1"], "prefix_len": 24,
        }],
        "switches": [{
            "name": "leaf1", "role": "leaf", "index": 1, "device_id": 1, "grpc": "",
            "ports": [{"number": 1, "interface": "", "link": 0}],
        }],
        "links": [{
            "a": {"node": "h1_1", "port": 0}, "b": {"node": "leaf1", "port": 1},
            "rate_bps": 1_000_000_000, "delay_ns": 1_000, "queue_packets": 10,
        }],
    }))
    .unwrap();
    let mut world = World::new(&topology, TimestampUnit::Nanoseconds, 0, 1).unwrap();
    let program = include_bytes!("../../compiled/spine.json");
    let mut pipeline = Pipeline::new(Program::load(program).unwrap().into(), 1);
    let table = pipeline.program().table_id("routing.ipv4_lpm").unwrap();
    let action = pipeline.program().action_id(table, "routing.to_port");
    let entry = crate::pipeline::TableEntry {
        matches: vec![crate::pipeline::MatchValue::Lpm {
            value: vec![10, 0, 0, 0],
            prefix_bits: 8,
        }],
        priority: 0,
        action: ActionCall {
            action: action.unwrap(),
            args: vec![vec![1]],
        },
    };
    pipeline.insert(table, &entry).unwrap();
    world.network.install(0, pipeline);
    (topology, world)
}

/// A UDP packet of 60 bytes from 10.1.1.1 to 10.2.1.1.
pub(crate) fn frame() -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    frame.extend([0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0x64, 0xbb]);
    frame.extend([10, 1, 1, 1, 10, 2, 1, 1]);
    frame.resize(60, 0);
    frame
}
