// SPDX-License-Identifier: Apache-2.0

//! Helpers for the tests of logs and captures.

use weft_testing::packet::{address, udp_of};
use weft_testing::topology::star;
use weft_topology::Topology;

use crate::network::TimestampUnit;
use crate::pipeline::{ActionCall, Pipeline, Program};
use crate::server::World;

/// A switch that sends everything back to its only host.
pub(crate) fn echo() -> (Topology, World) {
    let mut topology = star(1);
    for link in &mut topology.links {
        link.delay_ns = 1_000;
        link.queue_packets = 10;
    }
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
    udp_of(address(1, 1, 1), address(2, 1, 1), 60, 0)
}
