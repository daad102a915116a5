// SPDX-License-Identifier: Apache-2.0

//! The RTT stage: which RTTs are measured, and which must not be.

use std::collections::BTreeMap;
use weft_testing::packet::{ACK, FIN, SYN, Tcp, address, crc32, expected_path};

use crate::bench::{Bench, PATHS, RttSample, uplink};

const HOST: u16 = 1;
const FABRIC: u16 = 3;

/// From h1_1 to h2_1.
pub fn subflow() -> Tcp {
    Tcp::subflow(address(1, 1, 1), address(2, 1, 1))
}

/// A leaf that has seen the handshake of a flow with initial sequence number `isn`.
pub fn leaf_with(flow: Tcp, isn: u32) -> Bench {
    let mut leaf = Bench::leaf(1);
    leaf.send(HOST, &flow.syn(isn).frame(), 0);
    assert_eq!(rtts(&mut leaf, flow.ack_of(isn.wrapping_add(1)), 1), [1]);
    leaf
}

/// Sends a segment of the host, which is never a sample.
pub fn send(leaf: &mut Bench, segment: Tcp, now: u64) {
    let outcome = leaf.send(HOST, &segment.frame(), now);
    assert!(outcome.sent.is_some());
    assert!(outcome.rtt.is_empty());
}

/// The samples for a packet from the network.
pub fn samples(leaf: &mut Bench, packet: Tcp, now: u64) -> Vec<RttSample> {
    let outcome = leaf.send(FABRIC, &packet.frame(), now);
    assert!(outcome.sent.is_some());
    outcome.rtt
}

/// The RTTs of these samples.
pub fn rtts(leaf: &mut Bench, packet: Tcp, now: u64) -> Vec<u64> {
    let samples = samples(leaf, packet, now);
    samples.iter().map(|sample| sample.rtt).collect()
}

#[test]
fn data_packet_and_its_ack_give_one_rtt_sample() {
    let flow = subflow();
    let mut leaf = leaf_with(flow, 0);
    let data = flow.data(1, 1448);
    send(&mut leaf, data, 5_000);
    let expected = RttSample {
        src: flow.src,
        dst: flow.dst,
        src_port: flow.src_port,
        dst_port: flow.dst_port,
        path: expected_path(flow.src, flow.dst, PATHS.into()),
        length_bytes: 1500,
        rtt: 100_000,
        smoothed: 100_000,
        minimum: 100_000,
        at: 105_000,
    };
    assert_eq!(data.total_bytes(), 1500);
    assert_eq!(samples(&mut leaf, flow.ack_of(1449), 105_000), [expected]);
    assert!(rtts(&mut leaf, flow.ack_of(1449), 106_000).is_empty());
}

#[test]
fn syn_and_synack_give_samples() {
    let (client, server) = (address(1, 1, 1), address(2, 1, 1));
    let syn = Tcp::subflow(client, server).syn(99);
    let syn_ack = Tcp {
        seq: 500,
        flags: SYN | ACK,
        ..syn.ack_of(100)
    };
    let ack = syn_ack.ack_of(501);

    let (mut near, mut far) = (Bench::leaf(1), Bench::leaf(2));
    send(&mut near, syn, 0);
    assert!(rtts(&mut far, syn, 50).is_empty());
    send(&mut far, syn_ack, 60);
    assert_eq!(rtts(&mut near, syn_ack, 110), [110]);
    send(&mut near, ack, 120);
    assert_eq!(rtts(&mut far, ack, 170), [110]);
}

#[test]
fn a_fin_takes_a_sequence_number_and_gives_a_sample() {
    let flow = subflow();
    let mut leaf = leaf_with(flow, 0);
    let mut fin = flow.data(1, 100);
    fin.flags = ACK | FIN;
    send(&mut leaf, fin, 10);
    assert!(rtts(&mut leaf, flow.ack_of(101), 20).is_empty());
    assert_eq!(rtts(&mut leaf, flow.ack_of(102), 30), [20]);
}

#[test]
fn options_do_not_count_as_payload() {
    let flow = subflow();
    let mut leaf = leaf_with(flow, 0);
    for (option_bytes, seq) in [(0, 1), (40, 1001), (20, 2001)] {
        let data = Tcp {
            option_bytes,
            ..flow.data(seq, 1000)
        };
        send(&mut leaf, data, 10);
        let sample = &samples(&mut leaf, flow.ack_of(seq + 1000), 20)[0];
        assert_eq!(usize::from(sample.length_bytes), data.total_bytes());
    }
}

#[test]
fn an_ack_that_carries_data_counts() {
    let flow = subflow();
    let mut leaf = leaf_with(flow, 0);
    send(&mut leaf, flow.data(1, 1000), 10);
    let answer = flow.ack_of(1001).data(7, 1000);
    assert_eq!(answer.ack, 1001);
    assert_eq!(rtts(&mut leaf, answer, 30), [20]);
}

#[test]
fn a_delayed_ack_measures_the_last_segment_it_covers() {
    let flow = subflow();
    let mut leaf = leaf_with(flow, 0);
    send(&mut leaf, flow.data(1, 1000), 10);
    send(&mut leaf, flow.data(1001, 1000), 20);
    assert_eq!(rtts(&mut leaf, flow.ack_of(2001), 50), [30]);
    assert!(
        rtts(&mut leaf, flow.ack_of(1001), 60).is_empty(),
        "an old ACK"
    );
}

#[test]
fn an_ack_inside_a_segment_gives_no_sample() {
    let flow = subflow();
    let mut leaf = leaf_with(flow, 0);
    send(&mut leaf, flow.data(1, 1000), 10);
    assert!(rtts(&mut leaf, flow.ack_of(501), 20).is_empty());
    assert_eq!(rtts(&mut leaf, flow.ack_of(1001), 30), [20]);
}

#[test]
fn without_the_ack_flag_the_number_means_nothing() {
    let flow = subflow();
    let mut leaf = leaf_with(flow, 0);
    send(&mut leaf, flow.data(1, 1000), 10);
    let ack = flow.ack_of(1001);
    assert!(rtts(&mut leaf, Tcp { flags: SYN, ..ack }, 20).is_empty());
    assert_eq!(rtts(&mut leaf, ack, 30), [20]);
}

#[test]
fn bare_acks_of_the_host_are_not_measured() {
    let flow = subflow();
    let mut leaf = leaf_with(flow, 0);
    send(&mut leaf, flow, 10);
    assert!(rtts(&mut leaf, flow.ack_of(1), 20).is_empty());
}

#[test]
fn a_retransmission_gives_no_sample() {
    let flow = subflow();
    let mut leaf = leaf_with(flow, 0);
    send(&mut leaf, flow.data(1, 1000), 10);
    send(&mut leaf, flow.data(1, 1000), 500);
    assert!(rtts(&mut leaf, flow.ack_of(1001), 520).is_empty());
}

#[test]
fn a_repeated_syn_gives_no_sample() {
    let flow = subflow();
    let mut leaf = Bench::leaf(1);
    send(&mut leaf, flow.syn(99), 0);
    send(&mut leaf, flow.syn(99), 1_000);
    assert!(rtts(&mut leaf, flow.ack_of(100), 1_020).is_empty());
}

#[test]
fn segments_sent_before_a_gap_was_filled_give_no_sample() {
    let flow = subflow();
    let mut leaf = leaf_with(flow, 0);
    send(&mut leaf, flow.data(1, 1000), 10); // lost
    send(&mut leaf, flow.data(1001, 1000), 20);
    send(&mut leaf, flow.data(2001, 1000), 30);
    assert!(rtts(&mut leaf, flow.ack_of(1), 40).is_empty());
    send(&mut leaf, flow.data(1, 1000), 500);
    assert!(rtts(&mut leaf, flow.ack_of(3001), 520).is_empty());
    send(&mut leaf, flow.data(3001, 1000), 530);
    assert_eq!(rtts(&mut leaf, flow.ack_of(4001), 550), [20], "new data");
}

#[test]
fn a_retransmission_that_brings_new_data_gives_no_sample() {
    let flow = subflow();
    let mut leaf = leaf_with(flow, 0);
    send(&mut leaf, flow.data(1, 1000), 10);
    send(&mut leaf, flow.data(501, 1000), 500);
    assert!(rtts(&mut leaf, flow.ack_of(1501), 520).is_empty());
    send(&mut leaf, flow.data(1001, 500), 530);
    assert!(rtts(&mut leaf, flow.ack_of(1501), 550).is_empty(), "again");
    send(&mut leaf, flow.data(1501, 1000), 560);
    assert_eq!(rtts(&mut leaf, flow.ack_of(2501), 580), [20]);
}

#[test]
fn a_new_connection_of_the_same_ports_starts_anew() {
    let flow = subflow();
    let mut leaf = leaf_with(flow, 1_000_000);
    send(&mut leaf, flow.syn(5), 10);
    assert_eq!(rtts(&mut leaf, flow.ack_of(6), 30), [20]);
    send(&mut leaf, flow.data(6, 1000), 40);
    assert_eq!(rtts(&mut leaf, flow.ack_of(1006), 60), [20]);
}

#[test]
fn a_segment_is_measured_once() {
    let flow = subflow();
    let mut leaf = leaf_with(flow, 0);
    send(&mut leaf, flow.data(1, 1000), 10);
    assert_eq!(rtts(&mut leaf, flow.ack_of(1001), 30), [20]);
    // The same sequence numbers in a later connection, in one segment of twice the size.
    send(&mut leaf, flow.data(1001, 1000), 40);
    send(&mut leaf, flow.syn(0), 5_000);
    send(&mut leaf, flow.data(1, 2000), 5_010);
    assert!(rtts(&mut leaf, flow.ack_of(1001), 5_020).is_empty());
}

#[test]
fn the_first_segment_of_an_unknown_flow_gives_no_sample() {
    let flow = subflow();
    let mut leaf = Bench::leaf(1);
    send(&mut leaf, flow.data(5_000, 1000), 10);
    assert!(rtts(&mut leaf, flow.ack_of(6_000), 30).is_empty());
    send(&mut leaf, flow.data(6_000, 1000), 40);
    assert_eq!(rtts(&mut leaf, flow.ack_of(7_000), 60), [20]);
}

#[test]
fn sequence_numbers_wrap_around() {
    let flow = subflow();
    let isn = u32::MAX - 1500;
    let mut leaf = leaf_with(flow, isn);
    let mut seq = isn + 1;
    for round in 0..4 {
        let (next, now) = (seq.wrapping_add(1000), 1000 * round);
        send(&mut leaf, flow.data(seq, 1000), now);
        assert_eq!(rtts(&mut leaf, flow.ack_of(next), now + 20), [20]);
        send(&mut leaf, flow.data(seq, 1000), now + 30);
        assert!(rtts(&mut leaf, flow.ack_of(next), now + 50).is_empty());
        seq = next;
    }
    assert!(seq < isn, "it has wrapped");
}

#[test]
fn the_clock_wraps_around() {
    let flow = subflow();
    let mut leaf = leaf_with(flow, 0);
    send(&mut leaf, flow.data(1, 1000), (1 << 48) - 5);
    assert_eq!(rtts(&mut leaf, flow.ack_of(1001), (1 << 48) + 15), [20]);
}

/// Two values of `key` whose bytes have the same hash index.
fn colliding<const N: usize>(key: impl Fn(u32) -> [u8; N]) -> (u32, u32) {
    let mut seen = BTreeMap::new();
    for value in 1.. {
        if let Some(other) = seen.insert(crc32(&key(value)) as u16, value) {
            return (other, value);
        }
    }
    unreachable!("65536 places are not enough for all values");
}

fn flow_key(flow: Tcp) -> [u8; 12] {
    let mut key = [0; 12];
    key[0..4].copy_from_slice(&flow.src.octets());
    key[4..8].copy_from_slice(&flow.dst.octets());
    key[8..10].copy_from_slice(&flow.src_port.to_be_bytes());
    key[10..12].copy_from_slice(&flow.dst_port.to_be_bytes());
    key
}

fn entry_key(flow: Tcp, ack: u32) -> [u8; 16] {
    let mut key = [0; 16];
    key[..12].copy_from_slice(&flow_key(flow));
    key[12..].copy_from_slice(&ack.to_be_bytes());
    key
}

#[test]
fn of_colliding_flows_the_last_is_measured_and_the_other_is_not_mistaken() {
    let flow = |value: u32| Tcp {
        dst: address(2, 1, 1 + (value >> 14) as u8),
        src_port: 30_000 + (value & 0x3fff) as u16,
        ..subflow()
    };
    let (one, other) = colliding(|value| flow_key(flow(value)));
    let (one, other) = (flow(one), flow(other));
    let mut leaf = leaf_with(one, 0);
    send(&mut leaf, one.data(1, 1000), 10);
    send(&mut leaf, other.syn(50_000), 20);
    assert!(rtts(&mut leaf, one.ack_of(1001), 30).is_empty());
    assert_eq!(rtts(&mut leaf, other.ack_of(50_001), 40), [20]);
    send(&mut leaf, one.data(1, 1000), 500);
    assert!(rtts(&mut leaf, one.ack_of(1001), 520).is_empty(), "repeat");
    send(&mut leaf, one.data(1001, 1000), 530);
    assert_eq!(rtts(&mut leaf, one.ack_of(2001), 550), [20], "known again");
}

#[test]
fn of_colliding_segments_the_last_is_measured_and_the_other_is_not_mistaken() {
    let flow = subflow();
    let (first, second) = colliding(|ack| entry_key(flow, 1 + ack));
    let mut leaf = leaf_with(flow, 0);
    let mut highest = 1;
    for end in [1 + first, 1 + second] {
        // Up to 64 KB each, so that their ends collide.
        while end - highest > 60_000 {
            send(&mut leaf, flow.data(highest, 60_000), 10);
            highest += 60_000;
        }
        send(&mut leaf, flow.data(highest, (end - highest) as usize), 10);
        highest = end;
    }
    assert!(rtts(&mut leaf, flow.ack_of(1 + first), 30).is_empty());
    assert_eq!(rtts(&mut leaf, flow.ack_of(1 + second), 40), [30]);
}

#[test]
fn the_ack_of_another_flow_gives_no_sample() {
    let flow = subflow();
    let mut leaf = leaf_with(flow, 0);
    send(&mut leaf, flow.data(1, 1000), 10);
    let stranger = Tcp {
        src_port: flow.src_port + 1,
        ..flow
    };
    assert!(rtts(&mut leaf, stranger.ack_of(1001), 20).is_empty());
    assert_eq!(rtts(&mut leaf, flow.ack_of(1001), 30), [20]);
}

#[test]
fn traffic_inside_the_rack_is_not_measured() {
    let flow = Tcp::subflow(address(1, 1, 1), address(1, 2, 1));
    let mut leaf = Bench::leaf(1);
    send(&mut leaf, flow.syn(0), 0);
    let outcome = leaf.send(2, &flow.ack_of(1).frame(), 20);
    assert_eq!(outcome.port(), Some(1));
    assert!(outcome.rtt.is_empty());
}

#[test]
fn the_sample_names_the_path_of_the_segment_also_with_ecmp() {
    let mut leaf = Bench::leaf(1);
    leaf.path_policy("routing.ecmp_paths");
    for src_port in 40_000..40_016 {
        let flow = Tcp {
            src_port,
            ..subflow()
        };
        let port = leaf.send(HOST, &flow.syn(0).frame(), 0).port();
        let sample = &samples(&mut leaf, flow.ack_of(1), 20)[0];
        assert_eq!(port, Some(uplink(sample.path)));
    }
}

#[test]
fn who_wants_no_samples_gets_none() {
    let flow = subflow();
    let mut leaf = Bench::leaf(1);
    leaf.sample_nothing();
    send(&mut leaf, flow.syn(0), 0);
    assert!(rtts(&mut leaf, flow.ack_of(1), 20).is_empty());
}
