// SPDX-License-Identifier: Apache-2.0

//! `topology.json` as Python writes it and as Rust reads it.

#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use serde_json::Value;
use weft_testing::topology::{fat_tree, leaf_spine};
use weft_topology::Topology;

/// The file that `topology/tests/test_golden.py` compares with what Python writes.
fn golden(name: &str) -> PathBuf {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../topology/tests/golden");
    PathBuf::from(folder).join(format!("{name}.json"))
}

#[test]
fn the_fabrics_of_tests_are_those_that_python_describes() {
    assert_eq!(
        leaf_spine(2, 3, 2),
        Topology::read(&golden("leaf-spine")).unwrap()
    );
    assert_eq!(fat_tree(4), Topology::read(&golden("fat-tree")).unwrap());
}

#[test]
fn every_field_that_python_writes_is_read_and_written_again() {
    for name in ["leaf-spine", "fat-tree", "every-field", "ecn-in-packets"] {
        let path = golden(name);
        let text = std::fs::read_to_string(&path).unwrap();
        let mut written: Value = serde_json::from_str(&text).unwrap();
        with_default_mtu(&mut written);
        let read = Topology::read(&path).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), written, "{name}");
    }
}

/// Adds to each link what Rust writes and Python leaves out: the MTU where it is the usual one.
fn with_default_mtu(document: &mut Value) {
    let links = document["links"].as_array_mut().unwrap();
    assert!(!links.is_empty());
    for link in links {
        let link = link.as_object_mut().unwrap();
        link.entry("mtu_bytes")
            .or_insert(weft_topology::USUAL_MTU_BYTES.into());
    }
}

#[test]
fn the_golden_document_with_every_field_has_every_optional_one() {
    let topology = Topology::read(&golden("every-field")).unwrap();
    assert!(topology.int_md && topology.ipv6);
    assert!(topology.flowlet_timeout_ns.is_some());
    assert!(topology.priorities.is_some());
    assert!(topology.hosts.iter().all(|host| host.nic.is_some()));
    assert!(topology.hosts.iter().all(|host| host.jitter_ns > 0));
    assert!(topology.switches.iter().any(|switch| switch.loss_ppm > 0));
    assert!(topology.links.iter().all(|link| link.queue_bytes.is_some()));
    assert!(topology.links.iter().all(|link| link.ecn_bytes.is_some()));
    let rates = topology
        .links
        .iter()
        .filter_map(|link| link.rate_from_a_bps);
    assert_eq!(rates.count(), topology.hosts.len());
    let changes = topology.schedule.unwrap().changes;
    assert!(changes.iter().any(|change| change.up.is_some()));
    assert!(changes.iter().any(|change| change.rate_bps.is_some()));
    assert!(changes.iter().any(|change| change.delay_ns.is_some()));
    assert!(changes.iter().any(|change| change.queue_packets.is_some()));
    assert!(changes.iter().any(|change| change.loss_ppm.is_some()));
}
