// SPDX-License-Identifier: Apache-2.0

//! The ECN stage: packets that meet a long queue are marked.

use weft_switch::pipeline::QueueMetadata;
use weft_testing::packet::{address, checksum_is_right, edit_ipv4, ping};

use crate::bench::Bench;

/// The field's values (RFC 3168).
const NOT_CAPABLE: u8 = 0;
const ECT_1: u8 = 1;
const ECT_0: u8 = 2;
const CONGESTED: u8 = 3;

/// From h1_1 to h3_1: out of a spine by port 3, out of leaf 1 by an uplink.
fn frame(ecn: u8) -> Vec<u8> {
    let mut frame = ping(address(1, 1, 1), address(3, 1, 1));
    edit_ipv4(&mut frame, |header| header[1] = 0xb8 | ecn);
    frame
}

/// The metadata of a packet that waited in a queue.
fn queue(enq_qdepth: u32, deq_timedelta: u64) -> QueueMetadata {
    QueueMetadata {
        enq_qdepth,
        deq_timedelta,
        ..QueueMetadata::default()
    }
}

/// The ECN field of a packet that came with `ecn` and met `queue`.
fn left_with(spine: &mut Bench, ecn: u8, queue: QueueMetadata) -> u8 {
    let outcome = spine.send_through(1, &frame(ecn), 10, queue);
    let (_, frame) = outcome.sent.unwrap();
    assert!(checksum_is_right(&frame));
    assert_eq!(frame[15] & !3, 0xb8, "DSCP stays");
    frame[15] & 3
}

fn spine(action: &str, threshold: u64) -> Bench {
    let mut spine = Bench::spine();
    spine.mark_above(3, action, threshold);
    spine
}

#[test]
fn a_packet_that_joins_a_queue_above_the_threshold_is_marked() {
    let mut spine = spine("ecn.above_packets", 20);
    assert_eq!(left_with(&mut spine, ECT_0, queue(20, 9_999)), ECT_0);
    assert_eq!(left_with(&mut spine, ECT_0, queue(21, 0)), CONGESTED);
    assert_eq!(left_with(&mut spine, ECT_1, queue(21, 0)), CONGESTED);
    assert_eq!(left_with(&mut spine, CONGESTED, queue(1, 0)), CONGESTED);
}

#[test]
fn a_packet_that_waited_longer_than_the_threshold_is_marked() {
    let mut spine = spine("ecn.above_delay", 240_000);
    assert_eq!(left_with(&mut spine, ECT_0, queue(99, 240_000)), ECT_0);
    assert_eq!(left_with(&mut spine, ECT_0, queue(1, 240_001)), CONGESTED);
}

#[test]
fn who_cannot_be_told_of_congestion_is_not_marked() {
    let mut spine = spine("ecn.above_packets", 20);
    let met = queue(99, 1_000_000);
    assert_eq!(left_with(&mut spine, NOT_CAPABLE, met), NOT_CAPABLE);
}

#[test]
fn a_port_without_a_threshold_marks_nothing() {
    let mut spine = Bench::spine();
    spine.mark_above(2, "ecn.above_packets", 20);
    let met = queue(99, 1_000_000);
    assert_eq!(left_with(&mut spine, ECT_0, met), ECT_0);
}

#[test]
fn leaves_mark_too_and_count() {
    let mut leaf = Bench::leaf(1);
    for port in 1..=6 {
        leaf.mark_above(port, "ecn.above_packets", 20);
    }
    let (port, marked) = leaf
        .send_through(1, &frame(ECT_0), 10, queue(21, 0))
        .sent
        .unwrap();
    assert_eq!(marked[15] & 3, CONGESTED);
    assert_eq!(leaf.marked(port), 1);
}
