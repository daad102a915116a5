// SPDX-License-Identifier: Apache-2.0

//! The time that an ACK waits in queues is written into it, from leaf to leaf.

use weft_switch::pipeline::QueueMetadata;
use weft_testing::packet::{ACK, SYN, Tcp, address, checksum_is_right, edit_ipv4, over_ipv6, udp};

use crate::bench::{Bench, HOSTS};

const HOST: u16 = 1;
const FABRIC: u16 = HOSTS + 1;
const IDENTIFICATION: usize = 14 + 4;
const FLOW_LABEL: usize = 14 + 1;

/// Clock units in one unit of a wait.
const UNIT: u64 = 1 << 10;

/// An ACK of h1_1 to h2_1.
fn ack() -> Tcp {
    Tcp::subflow(address(1, 1, 1), address(2, 1, 1))
}

fn wait(units: u64) -> QueueMetadata {
    QueueMetadata {
        deq_timedelta: units * UNIT,
        ..QueueMetadata::default()
    }
}

/// The wait in an IPv4 packet that waited in this switch.
fn told(switch: &mut Bench, port: u16, frame: &[u8], units: u64) -> u16 {
    let outcome = switch.send_through(port, frame, 10, wait(units));
    let (_, sent) = outcome.sent.unwrap();
    assert!(checksum_is_right(&sent));
    u16::from_be_bytes(sent[IDENTIFICATION..][..2].try_into().unwrap())
}

/// The packet as the previous switch sent it.
fn after(so_far: u16, packet: Tcp) -> Vec<u8> {
    let mut frame = packet.frame();
    edit_ipv4(&mut frame, |header| {
        header[4..6].copy_from_slice(&so_far.to_be_bytes());
    });
    frame
}

fn leaf() -> Bench {
    let mut leaf = Bench::leaf(1);
    leaf.tell_waits(&[HOST], 10);
    leaf
}

fn spine() -> Bench {
    let mut spine = Bench::spine();
    spine.tell_waits(&[], 10);
    spine
}

#[test]
fn a_leaf_begins_with_its_own_queue_and_others_add_theirs() {
    let from_host = after(0xbeef, ack());
    assert_eq!(told(&mut leaf(), HOST, &from_host, 7), 7);
    assert_eq!(told(&mut spine(), 1, &after(7, ack()), 30), 37);
    let to_host = Tcp::subflow(address(2, 1, 1), address(1, 1, 1));
    assert_eq!(told(&mut leaf(), FABRIC, &after(37, to_host), 5), 42);
}

#[test]
fn a_wait_that_does_not_fit_is_the_longest_that_does() {
    assert_eq!(told(&mut spine(), 1, &after(0xfff0, ack()), 16), 0xffff);
    assert_eq!(told(&mut leaf(), HOST, &after(0, ack()), 0x1_0000), 0xffff);
}

#[test]
fn only_acks_without_data_that_are_never_fragmented_are_written_to() {
    let mut fragile = after(9, ack());
    edit_ipv4(&mut fragile, |header| header[6] = 0);
    let mut datagram = udp(address(1, 1, 1), address(2, 1, 1), 7);
    edit_ipv4(&mut datagram, |header| header[5] = 9);
    let packets = [
        after(9, ack().data(1, 1)),
        after(9, ack().syn(1)),
        fragile,
        datagram,
    ];
    for packet in packets {
        assert_eq!(told(&mut leaf(), HOST, &packet, 7), 9);
        assert_eq!(told(&mut spine(), 1, &packet, 7), 9);
    }
    let syn_ack = Tcp {
        flags: SYN | ACK,
        ..ack()
    };
    assert_eq!(told(&mut leaf(), HOST, &after(9, syn_ack), 7), 7);
}

#[test]
fn a_switch_that_was_not_told_to_leaves_acks_alone() {
    assert_eq!(told(&mut Bench::leaf(1), HOST, &after(9, ack()), 7), 9);
    assert_eq!(told(&mut Bench::spine(), 1, &after(9, ack()), 7), 9);
}

#[test]
fn over_ipv6_the_flow_label_tells() {
    let mut frame = over_ipv6(&ack().frame());
    frame[FLOW_LABEL..FLOW_LABEL + 3].copy_from_slice(&[0x2f, 0xff, 0xff]);
    let outcome = leaf().send_through(HOST, &frame, 10, wait(0x1234));
    let (_, mut sent) = outcome.sent.unwrap();
    assert_eq!(sent[FLOW_LABEL..FLOW_LABEL + 3], [0x20, 0x12, 0x34]);
    let (_, again) = spine().send_through(1, &sent, 10, wait(6)).sent.unwrap();
    assert_eq!(again[FLOW_LABEL..FLOW_LABEL + 3], [0x20, 0x12, 0x3a]);
    sent[FLOW_LABEL..FLOW_LABEL + 3].copy_from_slice(&[0x2f, 0xff, 0xff]);
    let (_, full) = spine().send_through(1, &sent, 10, wait(6)).sent.unwrap();
    assert_eq!(full[FLOW_LABEL..FLOW_LABEL + 3], [0x2f, 0xff, 0xff]);
}
