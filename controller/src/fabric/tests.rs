// SPDX-License-Identifier: Apache-2.0

//! Tests of what follows from a topology.

use std::collections::BTreeSet;

use super::*;
use crate::testing::{fabric, fat_tree, leaf_spine, links_of};

const H1_1: Ipv4Addr = Ipv4Addr::new(10, 1, 1, 1);
const H2_1: Ipv4Addr = Ipv4Addr::new(10, 2, 1, 1);

#[test]
fn crc16_is_the_one_that_bmv2_calls_crc16() {
    // The check value of CRC-16/ARC.
    assert_eq!(CRC16.checksum(b"123456789"), 0xbb3d);
}

#[test]
fn data_and_acks_of_a_subflow_share_a_path() {
    let fabric = fabric(2, 3, 4);
    for local in 1..=3 {
        let source = Ipv4Addr::new(10, 1, 2, local);
        assert_eq!(fabric.path_of(source, H2_1), fabric.path_of(H2_1, source));
    }
}

#[test]
fn the_subflows_of_a_connection_take_every_path_once() {
    let fabric = fabric(2, 4, 2);
    let topology = fabric.topology();
    let (host, peer) = (&topology.hosts[0], &topology.hosts[3]);
    let mut locals: Vec<_> = (0..4)
        .map(|path| fabric.local_address(host, peer, path).unwrap())
        .collect();
    locals.sort();
    assert_eq!(locals, host.addresses);
}

#[test]
fn a_default_path_takes_eighty_microseconds_of_propagation_and_its_serialisation() {
    let fabric = fabric(2, 2, 4);
    let pair = fabric.pair_of(H1_1, H2_1).unwrap();
    // Three full-size frames of 12.112 us, two ACKs of 0.624 us at 1 Gbps.
    assert_eq!(
        fabric.configured_rtt_ns(pair, 0),
        Some(80_000 + 3 * 12_112 + 2 * 624)
    );
}

#[test]
fn a_slow_spine_slows_its_path_only() {
    let mut topology = leaf_spine(2, 2, 1);
    for link in links_of(&mut topology, "spine2") {
        link.delay_ns = 40_000;
    }
    let fabric = RoutedFabric::new(topology).unwrap();
    let pair = fabric.pair_of(H1_1, H2_1).unwrap();
    let rtt = |path| fabric.configured_rtt_ns(pair, path).unwrap();
    assert_eq!(rtt(1) - rtt(0), 4 * 30_000);
}

#[test]
fn paths_of_a_fat_tree_cross_one_core_each_and_five_queues() {
    let fabric = RoutedFabric::new(fat_tree(4)).unwrap();
    let far = LeafPair {
        source: 1,
        destination: 8,
    };
    let via = [0, 1, 2, 3].map(|path| fabric.via(far, path));
    assert_eq!(
        via,
        [
            "agg1_1-core1-agg4_1",
            "agg1_2-core3-agg4_2",
            "agg1_1-core2-agg4_1",
            "agg1_2-core4-agg4_2"
        ]
    );
    // Ahead: six links of 10 us and five frames of 12.112 us; back: as many links
    // and four ACKs of 0.624 us.
    let rtt_ns = fabric.configured_rtt_ns(far, 3);
    assert_eq!(rtt_ns, Some(120_000 + 5 * 12_112 + 4 * 624));
    let (source, destination) = (H1_1, Ipv4Addr::new(10, 8, 1, 1));
    let queues_ns = fabric.queues_ns(source, destination, 3);
    assert_eq!(queues_ns, Some(5 * 2 * 100 * 12_112));
    assert_eq!(fabric.configured_rtt_ns(far, 4), None);
}

#[test]
fn the_last_link_to_a_leaf_carries_what_is_for_it_and_one_from_a_core_what_is_for_a_pod() {
    let fabric = RoutedFabric::new(fat_tree(4)).unwrap();
    let through = |switch, port| fabric.pairs_through(fabric.port(switch, port).unwrap());
    let destinations = |pairs: &[LeafPair]| -> Vec<u8> {
        let all: BTreeSet<u8> = pairs.iter().map(|pair| pair.destination).collect();
        all.into_iter().collect()
    };
    // Ports of an aggregation switch: two edge switches, two cores.
    assert_eq!(destinations(through("agg2_1", 1)), [3]);
    assert_eq!(destinations(through("core1", 2)), [3, 4]);
    assert_eq!(destinations(through("agg2_1", 3)), [1, 2, 5, 6, 7, 8]);
    assert_eq!(through("edge3", 1), []);
    // One of four paths of all pairs of different pods.
    assert_eq!(through("core1", 2).len(), 2 * 6);
}

#[test]
fn hosts_of_one_leaf_are_no_pair() {
    let fabric = fabric(2, 2, 2);
    assert_eq!(fabric.pair_of(H1_1, Ipv4Addr::new(10, 1, 2, 1)), None);
    assert_eq!(fabric.pair_of(H1_1, Ipv4Addr::new(10, 9, 1, 1)), None);
    assert_eq!(fabric.pairs().count(), 2);
}

#[test]
fn a_topology_whose_leaves_differ_in_uplinks_is_refused_by_name() {
    let mut topology = leaf_spine(2, 2, 1);
    topology.switches[1].ports.retain(|port| port.number != 3);
    assert_eq!(
        RoutedFabric::new(topology).unwrap_err().to_string(),
        "leaf1 has 2 uplinks, leaf2 has 1; switches of a tier must have equal numbers"
    );
}
