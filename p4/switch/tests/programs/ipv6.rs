// SPDX-License-Identifier: Apache-2.0

//! IPv6: a packet over IPv6 is treated like the same packet over IPv4.

use weft_switch::pipeline::QueueMetadata;
use weft_testing::packet::{
    GATEWAY_MAC, SYN, Tcp, address, expected_path, over_ipv6, ping, ping_with_ttl, udp,
};

use crate::bench::{Bench, PATHS, RttSample, drops, mac_of};

const HOST: u16 = 1;
const FABRIC: u16 = 3;
/// Where the first byte of version and traffic class, and where the hop limit is.
const CLASS: usize = 14;
const HOP_LIMIT: usize = 14 + 7;
/// How much longer an IPv6 header is than one of IPv4.
const MORE_BYTES: usize = 20;

fn subflow() -> Tcp {
    Tcp::subflow(address(1, 1, 1), address(2, 1, 1))
}

#[test]
fn it_takes_the_path_of_its_twin_and_loses_a_hop() {
    for mut switch in [Bench::leaf(1), Bench::spine(), Bench::aggregation()] {
        for path in 1..=PATHS as u8 {
            let (src, dst) = (address(1, 1, path), address(2, 1, 1));
            for frame in [Tcp::subflow(src, dst).frame(), udp(src, dst, 7)] {
                let twin = over_ipv6(&frame);
                let (port, sent) = switch.send(HOST, &twin, 0).sent.unwrap();
                assert_eq!(Some(port), switch.send(HOST, &frame, 0).port());
                assert_eq!(sent[HOP_LIMIT], twin[HOP_LIMIT] - 1);
                assert_eq!(sent[14..HOP_LIMIT], twin[14..HOP_LIMIT]);
                assert_eq!(sent[HOP_LIMIT + 1..], twin[HOP_LIMIT + 1..]);
            }
        }
    }
}

#[test]
fn a_host_of_the_leaf_gets_it() {
    let frame = over_ipv6(&ping(address(2, 1, 1), address(1, 2, 3)));
    let (port, sent) = Bench::leaf(1).send(FABRIC, &frame, 0).sent.unwrap();
    assert_eq!(port, 2);
    assert_eq!(sent[..6], mac_of(1, 2));
    assert_eq!(sent[6..12], GATEWAY_MAC);
}

#[test]
fn what_does_not_go_from_host_to_host_is_dropped_and_counted() {
    let whole = over_ipv6(&ping(address(1, 1, 1), address(2, 1, 1)));
    for mut switch in [Bench::leaf(1), Bench::spine()] {
        // A multicast listener's report, and a source that is link-local.
        for (at, byte) in [(14 + 24, 0xff), (14 + 8, 0xfe)] {
            let mut frame = whole.clone();
            frame[at] = byte;
            assert!(switch.send(1, &frame, 0).sent.is_none());
        }
        assert_eq!(switch.dropped(drops::NO_ROUTE), 2);
        let late = over_ipv6(&ping_with_ttl(address(1, 1, 1), address(2, 1, 1), 1));
        assert!(switch.send(1, &late, 0).sent.is_none());
        assert_eq!(switch.dropped(drops::TTL_EXPIRED), 1);
        let mut other_version = whole.clone();
        other_version[CLASS] = 0x45;
        let segment = over_ipv6(&subflow().frame());
        for frame in [&other_version[..], &segment[..14 + 40 + 19]] {
            assert!(switch.send(1, frame, 0).sent.is_none());
        }
        assert_eq!(switch.dropped(drops::BAD_HEADER), 2);
    }
}

/// The RTT samples of a leaf for a segment over IPv6 and its ACK.
fn sample(length_bytes: usize, rtt: u64, at: u64) -> RttSample {
    let flow = subflow();
    RttSample {
        src: flow.src,
        dst: flow.dst,
        src_port: flow.src_port,
        dst_port: flow.dst_port,
        path: expected_path(flow.src, flow.dst, PATHS.into()),
        length_bytes: length_bytes as u16,
        rtt,
        smoothed: rtt,
        minimum: rtt,
        at,
    }
}

#[test]
fn handshake_data_and_fin_give_rtts() {
    let flow = subflow();
    let mut leaf = Bench::leaf(1);
    let mut measured = |segment: Tcp, ack: u32, now: u64| {
        let out = leaf.send(HOST, &over_ipv6(&segment.frame()), now);
        assert!(out.sent.is_some());
        let ack = over_ipv6(&flow.ack_of(ack).frame());
        let expected = sample(segment.total_bytes() + MORE_BYTES, 100, now + 100);
        assert_eq!(leaf.send(FABRIC, &ack, now + 100).rtt, [expected]);
        // A second one measures nothing.
        assert!(leaf.send(FABRIC, &ack, now + 200).rtt.is_empty());
    };
    measured(flow.syn(0), 1, 10);
    measured(flow.data(1, 1428), 1429, 1_000);
    let mut fin = flow.data(1429, 0);
    fin.flags |= 1;
    measured(fin, 1430, 2_000);
}

#[test]
fn a_retransmission_gives_none() {
    let flow = subflow();
    let mut leaf = Bench::leaf(1);
    for (segment, now) in [
        (flow.syn(0), 0),
        (flow.data(1, 500), 10),
        (flow.data(1, 500), 20),
    ] {
        leaf.send(HOST, &over_ipv6(&segment.frame()), now);
    }
    let ack = over_ipv6(&flow.ack_of(501).frame());
    assert!(leaf.send(FABRIC, &ack, 30).rtt.is_empty());
}

#[test]
fn a_subflow_is_not_taken_for_its_namesake_over_ipv4() {
    let flow = subflow();
    for is_ipv6 in [false, true] {
        let as_sent = |segment: Tcp, is_ipv6: bool| match is_ipv6 {
            true => over_ipv6(&segment.frame()),
            false => segment.frame(),
        };
        let mut leaf = Bench::leaf(1);
        leaf.send(HOST, &as_sent(flow.syn(0), is_ipv6), 0);
        let ack = flow.ack_of(1);
        let other = leaf.send(FABRIC, &as_sent(ack, !is_ipv6), 10);
        assert!(other.rtt.is_empty());
        assert_eq!(leaf.send(FABRIC, &as_sent(ack, is_ipv6), 20).rtt.len(), 1);
    }
}

#[test]
fn nics_measure_it() {
    let (mut near, mut leaf, mut far) = (Bench::nic(1), Bench::leaf(1), Bench::nic(2));
    let flow = subflow();
    let frame = over_ipv6(&flow.syn(0).frame());
    let (_, stamped) = near.send(1, &frame, 100).sent.unwrap();
    let (_, routed) = leaf.send(1, &stamped, 100).sent.unwrap();
    let (_, arrived) = far.send(2, &routed, 150).sent.unwrap();
    assert_eq!(arrived.len(), frame.len());
    let answer = Tcp {
        flags: SYN,
        ..flow.ack_of(1)
    };
    let (_, answer) = far.send(1, &over_ipv6(&answer.frame()), 900).sent.unwrap();
    let expected = sample(flow.syn(0).total_bytes() + MORE_BYTES, 80, 930);
    assert_eq!(near.send(2, &answer, 930).rtt, [expected]);
}

#[test]
fn congestion_is_marked_in_the_traffic_class() {
    let mut spine = Bench::spine();
    spine.mark_above(2, "ecn.above_packets", 20);
    let long = QueueMetadata {
        enq_qdepth: 21,
        ..QueueMetadata::default()
    };
    let mut frame = over_ipv6(&ping(address(1, 1, 1), address(2, 1, 1)));
    for (ecn, left_with) in [(0, 0), (1, 3), (2, 3), (3, 3)] {
        frame[CLASS + 1] = ecn << 4;
        let (_, sent) = spine.send_through(1, &frame, 0, long).sent.unwrap();
        assert_eq!(sent[CLASS + 1], left_with << 4);
    }
}

#[test]
fn it_carries_no_telemetry_and_is_not_counted_for_losses() {
    let mut leaf = Bench::leaf(1);
    leaf.collect_as(1);
    leaf.start_collecting_every(0);
    let frame = over_ipv6(&subflow().data(1, 1000).frame());
    for now in 0..300 {
        let (_, sent) = leaf.send(HOST, &frame, now).sent.unwrap();
        assert_eq!(sent[14..HOP_LIMIT], frame[14..HOP_LIMIT]);
        assert_eq!(sent.len(), frame.len());
    }
    // The block of the link starts with what comes after them.
    let (_, sent) = leaf.send(HOST, &subflow().frame(), 300).sent.unwrap();
    assert_eq!(sent[20] & 0x80, 0);
}
