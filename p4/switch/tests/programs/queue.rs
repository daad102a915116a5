// SPDX-License-Identifier: Apache-2.0

//! The queue stage: ingress sends what egress has seen.

use weft_switch::pipeline::QueueMetadata;
use weft_testing::packet::{Tcp, address, edit_ipv4, ping};

use crate::bench::{Bench, Intervals, QueueSample};

/// From h1_1 to h1_2, on a leaf: out by port 2.
fn to_neighbour() -> Vec<u8> {
    ping(address(1, 1, 1), address(1, 2, 1))
}

/// From h1_2 to h1_1, out by port 1.
fn back() -> Vec<u8> {
    ping(address(1, 2, 1), address(1, 1, 1))
}

fn queue(deq_qdepth: u32, deq_timedelta: u64) -> QueueMetadata {
    QueueMetadata {
        deq_qdepth,
        deq_timedelta,
        ..QueueMetadata::default()
    }
}

/// A leaf that sends only changes of queues, and at once.
fn leaf() -> Bench {
    let mut leaf = Bench::leaf(1);
    leaf.sample_every(Intervals::CHANGES);
    leaf
}

/// The depths and delays in the samples for a packet to port 2.
fn told(leaf: &mut Bench, now: u64, left: QueueMetadata) -> Vec<(u32, u64)> {
    let outcome = leaf.send_through(1, &to_neighbour(), now, left);
    let told = outcome.queues.iter();
    told.map(|sample| (sample.depth_packets, sample.delay))
        .collect()
}

#[test]
fn a_sample_tells_what_the_last_packet_of_the_port_left_behind() {
    let mut leaf = leaf();
    leaf.send_through(1, &to_neighbour(), 10, queue(50, 9_000));
    leaf.send_through(2, &back(), 30, queue(1, 1));
    leaf.send_through(1, &to_neighbour(), 40, queue(27, 84_000));
    let expected = QueueSample {
        port: 2,
        depth_packets: 27,
        delay: 84_000,
        at: 50,
        busy_since: 0,
        sent_bytes: 2 * to_neighbour().len() as u32,
        depths: [27, 0, 0, 0, 0, 0, 0, 0],
        delays: [84_000, 0, 0, 0, 0, 0, 0, 0],
    };
    assert_eq!(leaf.send(1, &to_neighbour(), 50).queues, [expected]);
}

#[test]
fn a_wait_or_queue_that_does_not_fit_is_told_as_the_longest_that_does() {
    let mut leaf = leaf();
    leaf.send_through(1, &to_neighbour(), 10, queue(u32::MAX, 4_400_000_000));
    let told = told(&mut leaf, 20, queue(0, 0));
    assert_eq!(told, [(0x7_ffff, 0xffff_ffff)]);
}

#[test]
fn a_spine_samples_its_queues() {
    let mut spine = Bench::spine();
    let frame = ping(address(1, 1, 1), address(3, 1, 1));
    spine.send_through(1, &frame, 10, queue(99, 1_188_000));
    let expected = QueueSample {
        port: 3,
        depth_packets: 99,
        delay: 1_188_000,
        at: 20,
        busy_since: 0,
        sent_bytes: frame.len() as u32,
        depths: [99, 0, 0, 0, 0, 0, 0, 0],
        delays: [1_188_000, 0, 0, 0, 0, 0, 0, 0],
    };
    assert_eq!(spine.send(2, &frame, 20).queues, [expected]);
}

#[test]
fn packets_that_joined_since_the_last_one_left_count() {
    let mut leaf = leaf();
    leaf.send_through(1, &to_neighbour(), 10, queue(0, 0));
    let mut joined = |now| leaf.join(1, &to_neighbour(), now).queues;
    assert!((1..=8).all(|packet| joined(10 + packet).is_empty()));
    let sample = joined(20).remove(0);
    assert_eq!((sample.depth_packets, sample.delay), (8, 0));
}

/// The leaf, and a packet to port 2 that has its greatest priority.
fn leaf_and_urgent() -> (Bench, Vec<u8>) {
    let mut leaf = leaf();
    leaf.prioritize(1, 7);
    let mut urgent = to_neighbour();
    edit_ipv4(&mut urgent, |header| header[1] = 1 << 2);
    (leaf, urgent)
}

#[test]
fn the_depth_of_a_port_is_that_of_all_its_priorities() {
    let (mut leaf, urgent) = leaf_and_urgent();
    leaf.send_through(1, &to_neighbour(), 10, queue(0, 0));
    for now in 11..15 {
        assert!(leaf.join(1, &to_neighbour(), now).queues.is_empty());
    }
    for now in 15..17 {
        assert!(leaf.join(1, &urgent, now).queues.is_empty());
    }
    // Of three urgent ones, one is left.
    leaf.send_through(1, &urgent, 17, queue(1, 5));
    for now in 18..21 {
        assert!(leaf.join(1, &to_neighbour(), now).queues.is_empty());
    }
    let sample = leaf.join(1, &to_neighbour(), 21).queues.remove(0);
    assert_eq!(sample.depth_packets, 4 + 1 + 3);
    assert_eq!(sample.depths, [4 + 3, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(sample.delays, [0, 0, 0, 0, 0, 0, 0, 5]);
}

#[test]
fn a_priority_in_which_nobody_waits_has_no_delay() {
    let (mut leaf, urgent) = leaf_and_urgent();
    leaf.send_through(1, &urgent, 10, queue(0, 70_000));
    leaf.send_through(1, &to_neighbour(), 20, queue(30, 400_000));
    let sample = leaf.send(1, &to_neighbour(), 30).queues.remove(0);
    assert_eq!(sample.depths, [30, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(sample.delays, [400_000, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn a_sample_tells_what_the_link_has_sent_since_it_was_idle() {
    let mut leaf = leaf();
    let frame = to_neighbour();
    let length = frame.len() as u32;
    leaf.send_through(1, &frame, 10, queue(0, 0));
    leaf.send_through(1, &frame, 20, queue(0, 5));
    // The packet before it has left, so a new busy period begins.
    leaf.send_through(1, &frame, 1_000, queue(0, 0));
    leaf.send_through(1, &frame, 1_010, queue(30, 7));
    let sample = leaf.send(1, &frame, 1_020).queues.remove(0);
    assert_eq!((sample.busy_since, sample.sent_bytes), (1_000, 2 * length));
}

#[test]
fn small_changes_of_a_queue_are_not_told() {
    let mut leaf = leaf();
    for now in 0..1_000 {
        let depth = [0, 3, 1, 7][now as usize % 4];
        assert!(told(&mut leaf, now, queue(depth, 12_000)).is_empty());
    }
}

#[test]
fn a_queue_that_grows_is_told_step_by_step() {
    let mut leaf = leaf();
    let mut depths = Vec::new();
    for depth in 0..=40 {
        let left = queue(depth, u64::from(depth) * 12_000);
        depths.extend(told(&mut leaf, depth.into(), left));
    }
    let steps = [8, 16, 24, 32].map(|depth| (depth, u64::from(depth) * 12_000));
    assert_eq!(depths, steps);
}

#[test]
fn a_queue_that_has_drained_is_told_although_nobody_joins_it() {
    let mut leaf = leaf();
    told(&mut leaf, 10, queue(20, 240_000));
    assert_eq!(told(&mut leaf, 20, queue(0, 12_000)), [(20, 240_000)]);
    // The host there answers. Its packet leaves by another port.
    let drained = QueueSample {
        port: 2,
        depth_packets: 0,
        delay: 0,
        at: 30,
        busy_since: 0,
        sent_bytes: 2 * to_neighbour().len() as u32,
        depths: [0; 8],
        delays: [0; 8],
    };
    assert_eq!(leaf.send(2, &back(), 30).queues, [drained]);
    assert!(leaf.send(2, &back(), 40).queues.is_empty(), "told once");
}

#[test]
fn changes_of_a_port_are_told_at_most_once_in_an_interval() {
    let mut leaf = leaf();
    leaf.sample_every(Intervals {
        queue: 1_000,
        ..Intervals::CHANGES
    });
    let elsewhere = ping(address(1, 1, 1), address(2, 1, 1));
    told(&mut leaf, 4_000, queue(20, 0));
    leaf.send_through(1, &elsewhere, 4_100, queue(30, 0));
    assert_eq!(told(&mut leaf, 5_000, queue(40, 0)).len(), 1);
    assert_eq!(told(&mut leaf, 5_999, queue(40, 0)).len(), 0);
    let other = leaf.send(1, &elsewhere, 5_999).queues;
    assert_eq!(other.len(), 1, "of another port");
    assert_eq!(told(&mut leaf, 6_000, queue(60, 0)), [(40, 0)]);
    assert_eq!(told(&mut leaf, 6_500, queue(80, 0)).len(), 0);
}

#[test]
fn without_a_change_a_port_is_told_after_the_longest_interval() {
    let mut leaf = leaf();
    leaf.sample_every(Intervals {
        longest: 10_000,
        ..Intervals::CHANGES
    });
    let times: Vec<u64> = (0..100)
        .map(|round| round * 1_000)
        .filter(|now| {
            let outcome = leaf.send_through(1, &to_neighbour(), *now, queue(3, 36_000));
            outcome.queues.iter().any(|sample| sample.port == 2)
        })
        .collect();
    assert_eq!(times, (1..10).map(|n| n * 10_000).collect::<Vec<_>>());
}

#[test]
fn what_confirms_old_news_leaves_room_for_changes() {
    let mut leaf = leaf();
    leaf.sample_every(Intervals {
        longest: 1,
        digest_bytes: 0x10000,
        ..Intervals::CHANGES
    });
    let idle: usize = (1..100)
        .map(|now| told(&mut leaf, now, queue(0, 0)).len())
        .sum();
    assert_eq!(idle, 8);
    leaf.sample_every(Intervals {
        digest_bytes: 0x10000,
        ..Intervals::CHANGES
    });
    let changes: usize = (100..200)
        .map(|now| told(&mut leaf, now, queue((now % 2) as u32 * 50, 0)).len())
        .sum();
    assert_eq!(changes, 8);
}

#[test]
fn a_packet_that_is_dropped_samples_nothing() {
    let mut leaf = Bench::leaf(1);
    let outcome = leaf.send(1, &ping(address(1, 1, 1), address(9, 1, 1)), 10);
    assert!(outcome.queues.is_empty());
}

#[test]
fn who_wants_no_samples_gets_none() {
    let mut leaf = Bench::leaf(1);
    leaf.sample_nothing();
    assert!(leaf.send(1, &to_neighbour(), 10).queues.is_empty());
}

#[test]
fn a_packet_sends_one_digest_and_the_queue_waits_for_the_next() {
    let flow = Tcp::subflow(address(1, 1, 1), address(2, 1, 1));
    let mut leaf = leaf();
    let full = queue(20, 0);
    leaf.send(1, &flow.syn(0).frame(), 5_000);
    leaf.send_through(3, &flow.ack_of(0).frame(), 5_010, full);
    let ack = leaf.send_through(3, &flow.ack_of(1).frame(), 5_020, full);
    assert_eq!((ack.rtt.len(), ack.queues.len()), (1, 0));
    let next = leaf.send(3, &flow.ack_of(1).frame(), 5_030);
    assert_eq!((next.rtt.len(), next.queues.len()), (0, 1));
}
