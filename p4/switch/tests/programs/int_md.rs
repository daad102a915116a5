// SPDX-License-Identifier: Apache-2.0

//! In-band telemetry: packets that carry the queues they met from leaf to leaf.

use weft_testing::packet::{Tcp, address, checksum_is_right};

use crate::bench::{Bench, Hop, uplink};
use crate::in_band_path::{InBandPath, LEAF, MS, SPINE, segment};

/// UDP, shim and MD header.
const HEADERS_BYTES: usize = 8 + 4 + 12;
const HOP_BYTES: usize = 16;
const ETHERNET_BYTES: usize = 14;
const IPV4_BYTES: usize = 20;

#[test]
fn a_packet_reports_every_queue_that_it_met() {
    let mut path = InBandPath::new();
    let outcome = path.carry(&segment().frame(), 5 * MS);
    let up = path
        .first
        .send(1, &segment().frame(), 5 * MS)
        .port()
        .unwrap();
    let spine = Hop {
        switch: SPINE,
        port: 2,
        depth_packets: 99,
        delay: 1_200_000,
    };
    let first = Hop {
        switch: LEAF,
        port: up,
        depth_packets: 2,
        delay: 24_000,
    };
    assert_eq!(outcome.collected, [[spine, first]]);
}

#[test]
fn hosts_see_nothing_of_it() {
    let mut with = InBandPath::new();
    let mut without = InBandPath {
        first: Bench::leaf(1),
        spine: Bench::spine(),
        last: Bench::leaf(2),
    };
    let frame = segment().frame();
    let sent = with.carry(&frame, 5 * MS).sent;
    assert_eq!(sent, without.carry(&frame, 5 * MS).sent);
    assert!(checksum_is_right(&sent.unwrap().1));
}

#[test]
fn the_headers_are_those_of_int_2_1() {
    let mut path = InBandPath::new();
    let sent = segment().frame();
    let frames = path.up(&sent, 5 * MS);
    for (hops, frame) in [(1, &frames[0]), (2, &frames[1])] {
        let added = HEADERS_BYTES + hops * HOP_BYTES;
        assert_eq!(frame.len(), sent.len() + added);
        assert!(checksum_is_right(frame));
        let ip = &frame[ETHERNET_BYTES..];
        let total_bytes = segment().total_bytes() + added;
        assert_eq!(ip[2..4], (total_bytes as u16).to_be_bytes());
        assert_eq!(ip[9], 17, "UDP");
        let udp = &ip[IPV4_BYTES..];
        assert_eq!(udp[2..4], 54_321_u16.to_be_bytes());
        assert_eq!(udp[4..6], ((total_bytes - IPV4_BYTES) as u16).to_be_bytes());
        // INT-MD in front of an IP protocol, 3 words and 4 for each hop, TCP.
        let length = (3 + 4 * hops) as u8;
        assert_eq!(udp[8..12], [0x18, length, 0, 6]);
        // Version 2, 4 words a hop, so many hops of 4 left; four instructions.
        let left = (4 - hops) as u8;
        assert_eq!(udp[12..24], [0x20, 0, 4, left, 0xf0, 0, 0, 0, 0, 0, 0, 0]);
        // TCP and everything after it is unchanged.
        assert_eq!(
            frame[frame.len() - 1052 + 20..],
            sent[sent.len() - 1052 + 20..]
        );
    }
}

#[test]
fn an_ack_that_carries_it_tells_all_its_waits() {
    const SHIFT: u64 = 10;
    let told = |path: &mut InBandPath| {
        path.first.tell_waits(&[1], SHIFT);
        path.spine.tell_waits(&[], SHIFT);
        path.last.tell_waits(&[], SHIFT);
        let ack = Tcp::subflow(address(1, 1, 1), address(2, 1, 1)).frame();
        let outcome = path.carry(&ack, 5 * MS);
        let (_, sent) = outcome.sent.unwrap();
        let identification = &sent[ETHERNET_BYTES + 4..][..2];
        let wait = u16::from_be_bytes(identification.try_into().unwrap());
        (outcome.collected.len(), u64::from(wait))
    };
    let waits = (24_000 >> SHIFT) + (1_200_000 >> SHIFT);
    assert_eq!(told(&mut InBandPath::new()), (1, waits));
    let mut without = InBandPath::new();
    without.first = Bench::leaf(1);
    assert_eq!(told(&mut without), (0, waits));
}

#[test]
fn packets_with_and_without_it_go_up_the_same_way() {
    for number in 0..16 {
        let segment = Tcp {
            src_port: 40_000 + number,
            ..segment()
        };
        let [first, _] = InBandPath::new().up(&segment.frame(), 5 * MS);
        let mut aggregation = Bench::aggregation();
        aggregation.path_policy("routing.ecmp_paths");
        let port = aggregation.send(1, &segment.frame(), 0).port();
        assert_eq!(aggregation.send(1, &first, 0).port(), port);
    }
}

#[test]
fn of_every_path_one_packet_in_an_interval_carries_it() {
    let mut path = InBandPath::new();
    let frame = segment().frame();
    let collected = |path: &mut InBandPath, now| path.carry(&frame, now).collected.len();
    assert_eq!(collected(&mut path, 5 * MS), 1);
    assert_eq!(collected(&mut path, 5 * MS + 1), 0);
    assert_eq!(collected(&mut path, 6 * MS), 1);
    let other = Tcp::subflow(address(1, 1, 2), address(2, 1, 1)).data(1, 1000);
    assert_eq!(path.carry(&other.frame(), 6 * MS).collected.len(), 1);
}

#[test]
fn without_a_wish_nobody_carries_it() {
    let mut path = InBandPath::new();
    path.first = Bench::leaf(1);
    let frame = segment().frame();
    let [first, _] = path.up(&frame, 5 * MS);
    assert_eq!(first.len(), frame.len());
}

#[test]
fn no_more_hops_are_added_than_there_is_room_for() {
    let mut path = InBandPath::new();
    let [_, mut frame] = path.up(&segment().frame(), 5 * MS);
    for hops in 3..=6 {
        frame = path.spine.send(1, &frame, 5 * MS).sent.unwrap().1;
        let fitting = hops.min(4);
        let added = HEADERS_BYTES + fitting * HOP_BYTES;
        assert_eq!(frame.len(), segment().frame().len() + added);
        let exceeded = frame[ETHERNET_BYTES + IPV4_BYTES + 12] & 4 != 0;
        assert_eq!(exceeded, hops > 4);
    }
    let collected = path.last.send(uplink(0), &frame, 5 * MS).collected;
    assert_eq!(collected[0].len(), 4);
}

#[test]
fn a_report_goes_first_and_the_rtt_of_its_packet_counts_with_the_next() {
    let mut path = InBandPath::new();
    let flow = Tcp::subflow(address(1, 1, 1), address(2, 1, 1));
    let mut back = Bench::leaf(2);
    back.collect_as(2);
    back.start_collecting_every(MS);
    let mut acknowledged = |segment: Tcp, at: u64| {
        path.up(&segment.frame(), at);
        let ack = flow.ack_of(segment.seq + 1).frame();
        let ack = back.send(1, &ack, at).sent.unwrap().1;
        path.first.send(uplink(0), &ack, at + 70_000)
    };
    let syn = acknowledged(flow.syn(0), 5 * MS);
    assert_eq!((syn.collected.len(), syn.rtt.len()), (1, 0));
    let next = acknowledged(flow.data(1, 1), 5 * MS + 1_000);
    assert_eq!((next.collected.len(), next.rtt.len()), (0, 1));
    let sample = &next.rtt[0];
    assert_eq!((sample.rtt, sample.length_bytes), (70_000, 53));
    assert_eq!(sample.minimum, 70_000);
}
