// SPDX-License-Identifier: Apache-2.0

//! The network's timing, with Weft's own spine in every switch.

use std::sync::Arc;

use proptest::prelude::*;
use weft_testing::packet::{address, edit_ipv4, udp_of};
pub(super) use weft_testing::topology::DELAY_NS;
use weft_testing::topology::row;
use weft_topology::Topology;

use super::*;
use crate::pipeline::{ActionCall, MatchValue, Pipeline, Program, TableEntry};

const SPINE: &[u8] = include_bytes!("../../../compiled/spine.json");
pub(super) const GBPS: u64 = 1_000_000_000;
/// The link between the two switches.
pub(super) const BETWEEN: usize = 1;
/// Largest frame of an MTU of 1500, and how long 1 Gbps takes for it.
pub(super) const FULL_BYTES: usize = 1514;
pub(super) const FULL_NS: u64 = 12_112;

/// Two spines in a row with a host at each, see [`row`].
pub(super) fn topology(rate_bps: u64, queue_packets: u32) -> Topology {
    let mut topology = row();
    for link in &mut topology.links {
        link.rate_bps = rate_bps;
        link.queue_packets = queue_packets;
    }
    topology
}

fn network(rate_bps: u64, queue_packets: u32) -> Network {
    network_of(&topology(rate_bps, queue_packets))
}

pub(super) fn network_of(topology: &Topology) -> Network {
    let mut network = Network::new(topology, TimestampUnit::Nanoseconds, 0, 1).unwrap();
    let program = Arc::new(Program::load(SPINE).unwrap());
    for (switch, ports) in [(0, [1, 2]), (1, [2, 1])] {
        let mut pipeline = Pipeline::new(program.clone(), 1);
        for (leaf, port) in [1, 2].into_iter().zip(ports) {
            route(&mut pipeline, leaf, port);
        }
        network.install(switch, pipeline);
    }
    network
}

/// Sends `10.leaf.0.0/16` to `port`.
fn route(pipeline: &mut Pipeline, leaf: u8, port: u8) {
    let table = pipeline.program().table_id("routing.ipv4_lpm").unwrap();
    let action = pipeline.program().action_id(table, "routing.to_port");
    let entry = TableEntry {
        matches: vec![MatchValue::Lpm {
            value: vec![10, leaf, 0, 0],
            prefix_bits: 16,
        }],
        priority: 0,
        action: ActionCall {
            action: action.unwrap(),
            args: vec![vec![port]],
        },
    };
    pipeline.insert(table, &entry).unwrap();
}

/// A UDP packet to `10.leaf.1.1` from the other host in a frame of `bytes`, `tag` its last byte.
pub(super) fn frame(leaf: u8, bytes: usize, tag: u8) -> Vec<u8> {
    udp_of(address(3 - leaf, 1, 1), address(leaf, 1, 1), bytes, tag)
}

/// Times and tags of the frames that leave until the network is empty.
pub(super) fn settle(network: &mut Network) -> Vec<(u64, u8)> {
    network.run(u64::MAX / 2);
    deliveries(network)
        .iter()
        .map(|delivery| (delivery.at_ns, *delivery.frame.last().unwrap()))
        .collect()
}

fn deliveries(network: &mut Network) -> Vec<Delivery> {
    let mut deliveries = Vec::new();
    network.take_deliveries(&mut deliveries);
    deliveries
}

pub(super) fn stats(network: &mut Network, switch: usize, port: u16) -> PortStats {
    let mut found = PortStats::default();
    network.take_changes(|s, p, stats| {
        if (s, p) == (switch, port) {
            found = *stats;
        }
    });
    found
}

#[test]
fn a_frame_takes_the_delay_of_each_link_and_its_length_at_each_switch() {
    let mut network = network(GBPS, 100);
    network.receive(0, 5_000, &frame(2, FULL_BYTES, 7));
    let arrival_ns = 5_000 + DELAY_NS + 2 * (FULL_NS + DELAY_NS);
    assert_eq!(settle(&mut network), [(arrival_ns, 7)]);
}

#[test]
fn a_short_frame_takes_less() {
    let mut network = network(GBPS, 100);
    network.receive(0, 0, &frame(2, 60, 7));
    assert_eq!(settle(&mut network), [(3 * DELAY_NS + 2 * 480, 7)]);
}

#[test]
fn frames_leave_in_order_and_one_serialisation_apart() {
    let mut network = network(GBPS, 100);
    for tag in 0..5 {
        network.receive(0, 0, &frame(2, FULL_BYTES, tag));
    }
    let first_ns = DELAY_NS + 2 * (FULL_NS + DELAY_NS);
    let expected: Vec<_> = (0..5)
        .map(|tag| (first_ns + u64::from(tag) * FULL_NS, tag))
        .collect();
    assert_eq!(settle(&mut network), expected);
}

#[test]
fn a_full_queue_drops_its_tail_and_the_wire_is_not_part_of_it() {
    let mut network = network(GBPS, 3);
    for tag in 0..6 {
        network.receive(0, 0, &frame(2, FULL_BYTES, tag));
    }
    let tags: Vec<_> = settle(&mut network).iter().map(|(_, tag)| *tag).collect();
    assert_eq!(tags, [0, 1, 2, 3]);
    let stats = stats(&mut network, 0, 2);
    assert_eq!(stats.dropped_packets, 2);
    assert_eq!(stats.queue_max_packets, 3);
    assert_eq!(stats.tx_packets, 4);
    assert_eq!(stats.tx_bytes, 4 * FULL_BYTES as u64);
    assert_eq!(stats.queue_packets, 0);
}

#[test]
fn a_frame_beyond_the_mtu_of_its_link_is_dropped_and_counted() {
    let mut topology = topology(GBPS, 100);
    topology.links[BETWEEN].mtu_bytes = 1588;
    let mut network = network_of(&topology);
    for (tag, mtu) in [(0, 1500), (1, 1501), (2, 1588), (3, 1589)] {
        network.receive(0, 0, &frame(2, 14 + mtu, tag));
    }
    let tags: Vec<_> = settle(&mut network).iter().map(|(_, tag)| *tag).collect();
    assert_eq!(tags, [0]);
    // Between the switches there is room for more than on the way to the host.
    let mut oversize = [0; 2];
    network.take_changes(|switch, port, stats| {
        if port != CPU_PORT && stats.tx_packets > 0 {
            oversize[switch] += stats.oversize_packets;
        }
    });
    assert_eq!(oversize, [1, 2]);
}

#[test]
fn a_queue_takes_packets_again_as_soon_as_one_has_left() {
    let mut network = network(GBPS, 1);
    for (tag, sent_ns) in [(0, 0), (1, 0), (2, FULL_NS - 1), (3, FULL_NS)] {
        network.receive(0, sent_ns, &frame(2, FULL_BYTES, tag));
    }
    let tags: Vec<_> = settle(&mut network).iter().map(|(_, tag)| *tag).collect();
    assert_eq!(tags, [0, 1, 3]);
}

#[test]
fn a_link_of_100_gbps_is_neither_faster_nor_slower() {
    let mut network = network(100 * GBPS, 1_000);
    for _ in 0..1_000 {
        network.receive(0, 0, &frame(2, FULL_BYTES, 0));
    }
    let times = settle(&mut network);
    // 121.12 ns each.
    assert_eq!(times[999].0 - times[0].0, 121_120 - 121);
}

#[test]
fn each_direction_has_a_link_of_its_own() {
    let mut network = network(GBPS, 100);
    network.receive(0, 0, &frame(2, FULL_BYTES, 1));
    network.receive(1, 0, &frame(1, FULL_BYTES, 2));
    let arrival_ns = DELAY_NS + 2 * (FULL_NS + DELAY_NS);
    let mut arrivals = settle(&mut network);
    arrivals.sort_unstable();
    assert_eq!(arrivals, [(arrival_ns, 1), (arrival_ns, 2)]);
}

#[test]
fn a_lossy_switch_loses_its_share_of_what_arrives_from_all_sides() {
    let mut topology = topology(100 * GBPS, 1_000_000);
    topology.switches[0].loss_ppm = 100_000;
    let mut network = network_of(&topology);
    for host in [0, 1] {
        for _ in 0..10_000 {
            network.receive(host, 0, &frame(2 - host as u8, 60, 0));
        }
    }
    let arrived = settle(&mut network).len() as f64;
    let mut lost = [0; 2];
    network.take_changes(|switch, port, stats| {
        assert_eq!(stats.dropped_packets, 0);
        match (switch, port) {
            (0, 1 | 2) => lost[usize::from(port) - 1] = stats.lost_packets,
            _ => assert_eq!(stats.lost_packets, 0, "only switch 0 is lossy"),
        }
    });
    assert_eq!(arrived, 20_000.0 - (lost[0] + lost[1]) as f64);
    // Five standard deviations of 10 000 draws.
    assert!(
        lost.iter().all(|lost| lost.abs_diff(1_000) < 150),
        "{lost:?}"
    );
}

#[test]
fn a_host_that_sends_faster_than_it_receives_has_two_rates() {
    let mut topology = topology(GBPS, 100);
    topology.links[0].rate_from_a_bps = Some(2 * GBPS);
    let mut network = network_of(&topology);
    assert_eq!(network.host_ports()[0].rate_bps, 2 * GBPS);
    assert_eq!(network.host_ports()[1].rate_bps, GBPS);
    // Towards the host it is the switch that sends.
    network.receive(1, 0, &frame(1, FULL_BYTES, 1));
    assert_eq!(settle(&mut network), [(3 * DELAY_NS + 2 * FULL_NS, 1)]);
}

#[test]
fn nothing_at_or_after_the_end_happens() {
    let mut network = network(GBPS, 100);
    network.receive(0, 0, &frame(2, FULL_BYTES, 1));
    network.run(DELAY_NS);
    assert_eq!(network.next_event_ns(), Some(DELAY_NS));
    network.run(DELAY_NS + 1);
    assert_eq!(network.next_event_ns(), Some(DELAY_NS + FULL_NS + DELAY_NS));
}

#[test]
fn a_late_packet_reaches_its_switch_now() {
    let mut network = network(GBPS, 100);
    network.run(1_000_000);
    network.receive(0, 0, &frame(2, FULL_BYTES, 1));
    assert_eq!(network.next_event_ns(), Some(1_000_000));
}

#[test]
fn a_switch_without_a_program_forwards_nothing() {
    let topology = topology(GBPS, 100);
    let mut network = Network::new(&topology, TimestampUnit::Nanoseconds, 0, 1).unwrap();
    network.receive(0, 0, &frame(2, 60, 1));
    assert!(settle(&mut network).is_empty());
    assert_eq!(network.discarded_packets(0), 1);
}

#[test]
fn a_route_to_a_port_that_is_none_forwards_nothing() {
    let mut network = network(GBPS, 100);
    route(network.pipeline_mut(0).unwrap(), 9, 77);
    network.receive(0, 0, &frame(2, 60, 1));
    let mut lost = frame(2, 60, 2);
    // 10.9.1.1 instead of 10.2.1.1.
    edit_ipv4(&mut lost, |header| header[17] = 9);
    network.receive(0, 0, &lost);
    assert_eq!(settle(&mut network).len(), 1);
    assert_eq!(network.discarded_packets(0), 1);
}

#[test]
fn a_new_program_loses_what_waits_and_goes_on() {
    let mut network = network(GBPS, 100);
    for tag in 0..3 {
        network.receive(0, 0, &frame(2, FULL_BYTES, tag));
    }
    network.run(DELAY_NS + 1);
    let mut pipeline = Pipeline::new(network.pipeline(0).unwrap().program().clone(), 1);
    route(&mut pipeline, 2, 2);
    network.install(0, pipeline);
    network.receive(0, DELAY_NS, &frame(2, FULL_BYTES, 9));
    let tags: Vec<_> = settle(&mut network).iter().map(|(_, tag)| *tag).collect();
    assert_eq!(tags, [0, 9]);
    assert_eq!(stats(&mut network, 0, 2).dropped_packets, 2);
}

#[test]
fn a_topology_that_cannot_work_is_refused() {
    let mut bad = topology(GBPS, 100);
    bad.switches[0].ports[0].number = CPU_PORT;
    let error = Network::new(&bad, TimestampUnit::Nanoseconds, 0, 1).unwrap_err();
    assert!(matches!(
        error,
        BuildError::PortNumber { port: CPU_PORT, .. }
    ));
    let mut bad = topology(GBPS, 100);
    bad.links[BETWEEN].rate_bps = 0;
    let error = Network::new(&bad, TimestampUnit::Nanoseconds, 0, 1).unwrap_err();
    assert!(matches!(error, BuildError::Rate { rate_bps: 0, .. }));
}

/// Packets of both hosts: when, from which host, and how long.
fn packets() -> impl Strategy<Value = Vec<(u64, usize, usize)>> {
    let packet = (0_u64..200_000, 0_usize..2, 60_usize..FULL_BYTES);
    proptest::collection::vec(packet, 1..60).prop_map(|mut packets| {
        packets.sort_by_key(|packet| packet.0);
        packets
    })
}

proptest! {
    #[test]
    fn how_wakes_are_batched_changes_nothing(
        packets in packets(),
        steps in proptest::collection::vec(1_u64..30_000, 1..100),
    ) {
        let frames: Vec<_> = packets
            .iter()
            .zip(0_u8..)
            .map(|((at_ns, host, bytes), tag)| (*at_ns, *host, frame(2 - *host as u8, *bytes, tag)))
            .collect();
        let mut whole = network(GBPS, 5);
        for (at_ns, host, frame) in &frames {
            whole.receive(*host, *at_ns, frame);
        }
        whole.run(u64::MAX / 2);
        let expected = deliveries(&mut whole);

        let mut stepped = network(GBPS, 5);
        let lookahead_ns = stepped.lookahead_ns();
        let mut now_ns = 0;
        let mut rest = frames.as_slice();
        let mut found = Vec::new();
        for step_ns in steps {
            now_ns += step_ns;
            // Whatever was sent before now is in the ring.
            let arrived = rest.partition_point(|(at_ns, ..)| *at_ns < now_ns);
            for (at_ns, host, frame) in &rest[..arrived] {
                stepped.receive(*host, *at_ns, frame);
            }
            rest = &rest[arrived..];
            stepped.run(now_ns + lookahead_ns);
            let new = deliveries(&mut stepped);
            // Waking every two delays is early enough for every delivery.
            if step_ns <= 2 * lookahead_ns {
                prop_assert!(new.iter().all(|delivery| delivery.at_ns >= now_ns));
            }
            found.extend(new);
        }
        for (at_ns, host, frame) in rest {
            stepped.receive(*host, *at_ns, frame);
        }
        stepped.run(u64::MAX / 2);
        found.extend(deliveries(&mut stepped));
        prop_assert_eq!(found, expected);
        prop_assert_eq!(stats(&mut stepped, 0, 2), stats(&mut whole, 0, 2));
    }
}

/// Priority 7 - N for packets with DSCP N.
fn prioritize(network: &mut Network, switch: usize) {
    let pipeline = network.pipeline_mut(switch).unwrap();
    let table = pipeline.program().table_id("priority.classes").unwrap();
    let action = pipeline.program().action_id(table, "priority.set_priority");
    for class in 0..8 {
        let entry = TableEntry {
            matches: vec![MatchValue::Exact(vec![class])],
            priority: 0,
            action: ActionCall {
                action: action.unwrap(),
                args: vec![vec![7 - class]],
            },
        };
        pipeline.insert(table, &entry).unwrap();
    }
}

/// A full-size frame of a class, which is also its tag.
fn of_class(class: u8) -> Vec<u8> {
    let mut frame = frame(2, FULL_BYTES, class);
    edit_ipv4(&mut frame, |header| header[1] = class << 2);
    frame
}

/// Tags of the frames that leave, in their order.
fn order(network: &mut Network) -> Vec<u8> {
    settle(network).into_iter().map(|(_, tag)| tag).collect()
}

/// Both switches serve by class. Frames that come at the same time wait at the first one.
fn with_classes(queue_packets: u32) -> Network {
    with_classes_in(&topology(GBPS, queue_packets))
}

fn with_classes_in(topology: &Topology) -> Network {
    let mut network = network_of(topology);
    for switch in [0, 1] {
        prioritize(&mut network, switch);
    }
    network
}

#[test]
fn the_most_urgent_class_is_served_first_and_each_in_its_order() {
    let mut network = with_classes(100);
    for class in [5, 5, 7, 0, 3, 0, 7] {
        network.receive(0, 0, &of_class(class));
    }
    // The first has left before the others came.
    assert_eq!(order(&mut network), [5, 0, 0, 3, 5, 7, 7]);
}

#[test]
fn the_least_urgent_class_gets_a_tenth_of_the_link() {
    let mut network = with_classes(100);
    for _ in 0..40 {
        network.receive(0, 0, &of_class(0));
    }
    for class in [6, 7, 7, 7, 7] {
        network.receive(0, 0, &of_class(class));
    }
    let order = order(&mut network);
    let places = |class| {
        let of_class = order
            .iter()
            .enumerate()
            .filter(move |(_, tag)| **tag == class);
        of_class.map(|(place, _)| place).collect::<Vec<_>>()
    };
    // The first frame has left before one of class 7 waited.
    assert_eq!(places(7), [10, 20, 30, 40]);
    assert_eq!(places(6), [44]);
}

#[test]
fn the_share_of_the_least_urgent_class_can_be_chosen() {
    for (lowest_share_ppm, expected) in [
        (0, [0, 0, 0, 0, 0, 7, 7]),
        (500_000, [0, 0, 7, 0, 7, 0, 0]),
        (1_000_000, [0, 7, 7, 0, 0, 0, 0]),
    ] {
        let mut network = with_classes_in(&Topology {
            lowest_share_ppm,
            ..topology(GBPS, 100)
        });
        for class in [0, 0, 0, 0, 0, 7, 7] {
            network.receive(0, 0, &of_class(class));
        }
        assert_eq!(order(&mut network), expected, "{lowest_share_ppm}");
    }
}

#[test]
fn without_entries_the_dscp_changes_nothing() {
    let mut network = network(GBPS, 100);
    for class in [5, 7, 0, 3] {
        network.receive(0, 0, &of_class(class));
    }
    assert_eq!(order(&mut network), [5, 7, 0, 3]);
}

#[test]
fn a_full_queue_drops_the_newest_of_the_least_urgent_class() {
    let mut network = with_classes(3);
    network.observe(0, BETWEEN as u16 + 1);
    for class in [4, 7, 6, 7, 2, 3] {
        network.receive(0, 0, &of_class(class));
    }
    // 7, 6 and 7 fill the queue; 2 and 3 take the places of both 7.
    assert_eq!(order(&mut network), [4, 2, 3, 6]);
    let mut dropped = Vec::new();
    network.take_arrivals(|arrival| dropped.push(arrival.dropped_packets));
    assert_eq!(dropped, [0, 0, 0, 0, 1, 1]);
    let mut network = with_classes(3);
    for class in [4, 2, 2, 2, 2, 3] {
        network.receive(0, 0, &of_class(class));
    }
    assert_eq!(order(&mut network), [4, 2, 2, 2]);
    assert_eq!(
        stats(&mut network, 0, BETWEEN as u16 + 1).dropped_packets,
        2
    );
}

#[test]
fn the_least_urgent_class_keeps_its_share_of_a_full_buffer() {
    let mut network = with_classes(20);
    for class in [0, 7, 7, 7].into_iter().chain([0; 40]) {
        network.receive(0, 0, &of_class(class));
    }
    let order = order(&mut network);
    assert_eq!(order.iter().filter(|class| **class == 7).count(), 2);
    assert_eq!(order.len(), 1 + 20);
}

#[test]
fn frames_of_other_lengths_find_room_in_bytes() {
    let mut topology = topology(GBPS, 100);
    for link in &mut topology.links {
        link.queue_bytes = Some(3 * FULL_BYTES as u64);
    }
    let mut network = network_of(&topology);
    for switch in [0, 1] {
        prioritize(&mut network, switch);
    }
    for class in [4, 7, 7, 7] {
        network.receive(0, 0, &of_class(class));
    }
    let mut short = frame(2, 60, 1);
    edit_ipv4(&mut short, |header| header[1] = 1 << 2);
    network.receive(0, 0, &short);
    assert_eq!(order(&mut network), [4, 1, 7, 7]);
}
