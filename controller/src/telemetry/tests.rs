// SPDX-License-Identifier: Apache-2.0

//! Tests of how samples are evaluated.

use super::*;
use crate::fabric::FULL_SIZE_BYTES;
use crate::testing::{fabric, leaf_spine};

const MS: u64 = 1_000_000;
const PAIR: LeafPair = LeafPair {
    source: 1,
    destination: 2,
};

/// The sample of a leaf for the first full-size packet on a path.
fn sample(path: u8, rtt_ns: u64) -> RttSample {
    RttSample {
        source: Ipv4Addr::new(10, 1, 1, 1),
        destination: Ipv4Addr::new(10, 2, 1, 1),
        source_port: 40_000,
        destination_port: 5_001,
        path,
        length_bytes: FULL_SIZE_BYTES,
        rtt_ns,
        smoothed_ns: rtt_ns,
        min_ns: rtt_ns,
        at_ns: 0,
    }
}

/// The same, with this queueing delay.
fn queued(fabric: &RoutedFabric, path: u8, queueing_ns: u64) -> RttSample {
    let sample = sample(path, 0);
    let base = fabric.measured_base_ns(sample.source, sample.destination, path, FULL_SIZE_BYTES);
    self::sample(path, base.unwrap() + queueing_ns)
}

#[test]
fn a_lone_packet_measures_the_configured_rtt() {
    let fabric = fabric(2, 2, 4);
    let mut telemetry = Telemetry::default();
    let sample = queued(&fabric, 1, 0);
    assert_eq!(telemetry.record_rtt(&fabric, MS, &sample), Some(PAIR));
    assert_eq!(
        telemetry.path(PAIR, 1).unwrap().smoothed_ns,
        fabric.configured_rtt_ns(PAIR, 1)
    );
}

#[test]
fn the_leaf_smooths_and_finds_the_minimum() {
    let fabric = fabric(2, 2, 4);
    let mut telemetry = Telemetry::default();
    telemetry.record_rtt(&fabric, 0, &queued(&fabric, 0, 5_000));
    let sample = RttSample {
        smoothed_ns: queued(&fabric, 0, 10_000).rtt_ns,
        min_ns: queued(&fabric, 0, 0).rtt_ns,
        ..queued(&fabric, 0, 80_000)
    };
    telemetry.record_rtt(&fabric, MS, &sample);
    let stats = telemetry.path(PAIR, 0).unwrap();
    let configured = fabric.configured_rtt_ns(PAIR, 0).unwrap();
    assert_eq!(stats.smoothed_ns, Some(configured + 10_000));
    assert_eq!(stats.min_ns, configured);
}

#[test]
fn a_delayed_ack_is_counted_and_not_used() {
    let fabric = fabric(2, 2, 4);
    let mut telemetry = Telemetry::default();
    assert_eq!(telemetry.record_rtt(&fabric, MS, &sample(0, 40 * MS)), None);
    let stats = telemetry.path(PAIR, 0).unwrap();
    assert_eq!((stats.rejected_samples, stats.samples), (1, 0));
    assert_eq!(stats.rtt_ns(MS), None);
}

#[test]
fn full_queues_are_no_delayed_ack() {
    let fabric = fabric(2, 2, 4);
    let mut telemetry = Telemetry::default();
    // Three full queues in the direction of the data.
    let sample = queued(&fabric, 0, 3 * 100 * 12_112);
    assert_eq!(telemetry.record_rtt(&fabric, MS, &sample), Some(PAIR));
}

#[test]
fn an_idle_path_falls_back_to_its_lowest_rtt() {
    let fabric = fabric(2, 2, 4);
    let mut telemetry = Telemetry::default();
    telemetry.record_rtt(&fabric, 0, &queued(&fabric, 0, 0));
    telemetry.record_rtt(&fabric, MS, &queued(&fabric, 0, 800_000));
    let stats = telemetry.path(PAIR, 0).unwrap();
    assert!(stats.rtt_ns(2 * MS) > Some(stats.min_ns));
    assert_eq!(stats.rtt_ns(MS + IDLE_NS), Some(stats.min_ns));
}

#[test]
fn a_path_has_the_mean_of_recent_nic_reports() {
    let mut topology = leaf_spine(2, 2, 4);
    for host in &mut topology.hosts {
        host.nic = Some(weft_topology::Nic {
            name: format!("nic_{}", host.name),
            device_id: 0,
            grpc: String::new(),
            rate_bps: 252_000_000_000,
            delay_ns: 5_000,
        });
    }
    let fabric = RoutedFabric::new(topology).unwrap();
    let configured = fabric.configured_rtt_ns(PAIR, 0).unwrap();
    let of_host = |host: u8, queueing_ns| RttSample {
        source: Ipv4Addr::new(10, 1, host, 1),
        ..queued(&fabric, 0, queueing_ns)
    };
    let mut telemetry = Telemetry::default();
    let mut smoothed = |now_ns, sample| {
        telemetry.record_rtt(&fabric, now_ns, &sample);
        telemetry.path(PAIR, 0).unwrap().smoothed_ns.unwrap()
    };
    assert_eq!(smoothed(0, of_host(1, 90_000)), configured + 90_000);
    assert_eq!(smoothed(MS, of_host(2, 30_000)), configured + 60_000);
    assert_eq!(smoothed(2 * MS, of_host(1, 10_000)), configured + 20_000);
    let later_ns = 2 * MS + SMOOTHED_FRESH_NS;
    assert_eq!(smoothed(later_ns, of_host(3, 40_000)), configured + 25_000);
}

/// The ports of path 0: to the destination host, then back.
const WAY: [(&str, u16); 6] = [
    ("leaf1", 5),
    ("spine1", 2),
    ("leaf2", 1),
    ("leaf2", 5),
    ("spine1", 1),
    ("leaf1", 1),
];

/// Feeds RTTs of path 0, one every 5 ms, each longer by one of `longer_ns`, after queue samples
/// from `ports`. Returns how far the lowest RTT is then above the configured one.
fn above_ns(longer_ns: &[u64], ports: &[((&str, u16), u64)]) -> u64 {
    let fabric = fabric(2, 2, 4);
    let mut telemetry = Telemetry::default();
    telemetry.record_rtt(&fabric, 0, &queued(&fabric, 0, 0));
    for &((switch, port), delay_ns) in ports {
        let sample = QueueSample {
            port,
            depth_packets: (delay_ns / 12_000) as u32,
            delay_ns,
            at_ns: 0,
            busy_period: None,
            classes: None,
        };
        telemetry.record_queue(&fabric, MS, switch, &sample);
    }
    for (turn, &longer_ns) in (1..).zip(longer_ns) {
        telemetry.record_rtt(&fabric, turn * 5 * MS, &queued(&fabric, 0, longer_ns));
    }
    telemetry.path(PAIR, 0).unwrap().min_ns - fabric.configured_rtt_ns(PAIR, 0).unwrap()
}

#[test]
fn a_path_that_became_longer_is_believed_when_all_digests_of_10_ms_say_so() {
    let empty = WAY.map(|port| (port, 0));
    // As after a burst whose queue is reported later or never.
    assert_eq!(above_ns(&[90_000, 80_000], &empty), 0);
    assert_eq!(above_ns(&[90_000, 80_000, 85_000], &empty), 80_000);
    // Packets in between were as fast as ever.
    assert_eq!(above_ns(&[90_000, 2_000, 85_000, 85_000], &empty), 0);
    assert_eq!(above_ns(&[90_000, 80_000, 85_000, 0], &empty), 0);
    // Less than a quarter is not clearly longer.
    assert_eq!(above_ns(&[25_000; 9], &empty), 0);
}

#[test]
fn a_queue_on_the_way_there_or_back_makes_no_path_longer() {
    for place in 0..WAY.len() {
        let mut ports = WAY.map(|port| (port, 0));
        ports[place].1 = 480_000;
        assert_eq!(above_ns(&[80_000; 9], &ports), 0, "{:?}", WAY[place]);
        // Nor a queue that nobody has reported.
        let (before, after) = (&ports[..place], &ports[place + 1..]);
        assert_eq!(above_ns(&[80_000; 9], &[before, after].concat()), 0);
    }
    let elsewhere = [
        WAY.map(|port| (port, 0)).to_vec(),
        vec![(("leaf1", 6), 480_000)],
    ];
    assert_eq!(above_ns(&[80_000; 9], &elsewhere.concat()), 80_000);
}

#[test]
fn a_path_that_became_slower_is_believed_after_a_while() {
    let fabric = fabric(2, 2, 4);
    let mut telemetry = Telemetry::default();
    telemetry.record_rtt(&fabric, 0, &queued(&fabric, 0, 0));
    telemetry.record_rtt(&fabric, MIN_WINDOW_NS + 1, &queued(&fabric, 0, MS));
    let configured = fabric.configured_rtt_ns(PAIR, 0).unwrap();
    let stats = telemetry.path(PAIR, 0).unwrap();
    assert_eq!(stats.min_ns, configured + MS);
    assert_eq!(stats.smoothed_ns, Some(configured + MS));
}

#[test]
fn strangers_are_counted_and_not_used() {
    let fabric = fabric(2, 2, 4);
    let mut telemetry = Telemetry::default();
    let mut stranger = sample(0, 100_000);
    stranger.source = Ipv4Addr::new(192, 0, 2, 1);
    assert_eq!(telemetry.record_rtt(&fabric, MS, &stranger), None);
    let far_path = sample(7, 100_000);
    assert_eq!(telemetry.record_rtt(&fabric, MS, &far_path), None);
    assert_eq!(telemetry.stray_samples(), 2);
}

#[test]
fn the_last_word_about_each_queue_on_the_way_is_shown_until_it_is_old() {
    let fabric = fabric(2, 2, 4);
    let mut telemetry = Telemetry::default();
    let queue = |port, depth_packets, delay_ns| QueueSample {
        port,
        depth_packets,
        delay_ns,
        at_ns: 0,
        busy_period: None,
        classes: None,
    };
    // Port 6 of leaf1 leads to spine2, port 2 of spine2 to leaf2.
    telemetry.record_queue(&fabric, MS, "leaf1", &queue(6, 10, 120_000));
    telemetry.record_queue(&fabric, MS, "spine2", &queue(2, 40, 480_000));
    let seen = telemetry.queue(&fabric, MS, PAIR, 1);
    assert_eq!((seen.depth_packets, seen.delay_ns), (40, 600_000));
    telemetry.record_queue(&fabric, 2 * MS, "spine2", &queue(2, 3, 36_000));
    let seen = telemetry.queue(&fabric, 2 * MS, PAIR, 1);
    assert_eq!((seen.depth_packets, seen.delay_ns), (10, 156_000));
    assert_eq!(telemetry.queue(&fabric, 2 * MS, PAIR, 0), Queue::default());
    assert_eq!(
        telemetry.queue(&fabric, 2 * MS + IDLE_NS, PAIR, 1),
        Queue::default()
    );
}
