// SPDX-License-Identifier: Apache-2.0

//! Fabrics, samples and programs for tests.

use std::net::Ipv4Addr;
use std::path::Path;

pub(crate) use weft_testing::topology::{fat_tree, leaf_spine, links_of};
use weft_topology::Role;

use crate::fabric::RoutedFabric;
use crate::p4::program::Program;
use crate::telemetry::RttSample;

pub(crate) fn fabric(leaves: u8, spines: u8, hosts: u8) -> RoutedFabric {
    RoutedFabric::new(leaf_spine(leaves, spines, hosts)).unwrap()
}

/// The sample of leaf `leaf` for a full-size packet from its first host to h2_1 over `path`,
/// with this queueing delay.
pub(crate) fn rtt_sample(fabric: &RoutedFabric, leaf: u8, path: u8, queueing_ns: u64) -> RttSample {
    let source = Ipv4Addr::new(10, leaf, 1, 1);
    let destination = Ipv4Addr::new(10, 2, 1, 1);
    let base = fabric.measured_base_ns(source, destination, path, 1500);
    let rtt_ns = base.unwrap() + queueing_ns;
    RttSample {
        source,
        destination,
        source_port: 1,
        destination_port: 2,
        path,
        length_bytes: 1500,
        rtt_ns,
        smoothed_ns: rtt_ns,
        min_ns: rtt_ns,
        at_ns: 0,
    }
}

/// The compiled program of switches with this role.
pub(crate) fn program(role: Role) -> Program {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../p4/compiled");
    Program::read(&[folder], role).unwrap()
}
