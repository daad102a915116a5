// SPDX-License-Identifier: Apache-2.0

//! What leaves do with flows whose hosts claim no class.

use std::net::Ipv4Addr;

use weft_testing::packet::{Tcp, address, edit_ipv4, over_ipv6};

use crate::bench::{Bench, BySent};

const HOST: u16 = 1;
const UPLINK: u16 = 3;
/// DSCPs of class 1, of one that is late, and of none.
const EARLY: u8 = 27;
const LATE: u8 = 7;
const NONE: u8 = 0;
const IDLE: u64 = 10_000_000;

/// A leaf with a host whose flows are early for two frames, and late for two more.
fn leaf() -> Bench {
    let mut leaf = Bench::leaf(1);
    leaf.classify_by_sent(
        HOST,
        &BySent {
            short: (2 * frame_bytes(), EARLY.into()),
            long: (4 * frame_bytes(), LATE.into()),
            idle: IDLE,
        },
    );
    leaf.prioritize(EARLY.into(), 6);
    leaf.prioritize(LATE.into(), 1);
    leaf
}

fn flow_to(destination: Ipv4Addr) -> Tcp {
    Tcp::subflow(address(1, 1, 1), destination)
}

fn data() -> Vec<u8> {
    flow_to(address(2, 1, 1)).data(1, 1000).frame()
}

fn frame_bytes() -> u64 {
    data().len() as u64
}

fn with_dscp(mut frame: Vec<u8>, dscp: u8) -> Vec<u8> {
    // Both ECN bits, which are no part of the DSCP.
    edit_ipv4(&mut frame, |header| header[1] = dscp << 2 | 3);
    frame
}

/// DSCP and ECN of a frame over IPv4 or IPv6.
fn dscp_ecn(frame: &[u8]) -> (u8, u8) {
    let class = match frame[14] >> 4 {
        4 => frame[15],
        _ => frame[14] << 4 | frame[15] >> 4,
    };
    (class >> 2, class & 3)
}

/// The DSCPs with which frames leave.
fn sent<const N: usize>(leaf: &mut Bench, frame: &[u8], at: [u64; N]) -> [u8; N] {
    at.map(|now| dscp_ecn(&leaf.send(HOST, frame, now).sent.unwrap().1).0)
}

const EACH: [u64; 5] = [IDLE, IDLE + 1, IDLE + 2, IDLE + 3, IDLE + 4];

#[test]
fn the_more_a_flow_has_sent_the_later_its_class() {
    let mut leaf = leaf();
    let outcomes = EACH.map(|now| leaf.send(HOST, &data(), now));
    let priorities = outcomes.map(|outcome| outcome.priority);
    assert_eq!(priorities, [6, 6, 1, 1, 0]);
    let again = sent(&mut leaf, &data(), [IDLE + 5]);
    assert_eq!(again, [NONE]);
}

#[test]
fn it_begins_again_after_a_pause() {
    let mut leaf = leaf();
    let before = sent(&mut leaf, &data(), EACH);
    assert_eq!(before, [EARLY, EARLY, LATE, LATE, NONE]);
    let after = sent(&mut leaf, &data(), [2 * IDLE + 3, 3 * IDLE + 3]);
    assert_eq!(after, [NONE, EARLY]);
}

#[test]
fn each_flow_counts_for_itself() {
    let mut leaf = leaf();
    sent(&mut leaf, &data(), EACH);
    let flow = flow_to(address(2, 1, 1));
    let other = Tcp {
        src_port: flow.src_port + 1,
        ..flow
    };
    let other = other.data(1, 1000).frame();
    assert_eq!(sent(&mut leaf, &other, [IDLE + 5]), [EARLY]);
}

#[test]
fn ecn_stays_as_it_is_over_either_version_of_ip() {
    for frame in [with_dscp(data(), NONE), over_ipv6(&with_dscp(data(), NONE))] {
        let ecn = dscp_ecn(&frame).1;
        let outcome = leaf().send(HOST, &frame, IDLE);
        assert_eq!(dscp_ecn(&outcome.sent.unwrap().1), (EARLY, ecn));
    }
}

#[test]
fn segments_without_data_another_dscp_and_other_ports_stay_as_they_are() {
    let mut leaf = leaf();
    let ack = flow_to(address(2, 1, 1)).ack_of(1).frame();
    assert_eq!(sent(&mut leaf, &ack, [IDLE]), [NONE]);
    // Expedited forwarding (RFC 3246) means something to others.
    assert_eq!(sent(&mut leaf, &with_dscp(data(), 46), [IDLE]), [46]);
    let from_fabric = Tcp::subflow(address(2, 1, 1), address(1, 1, 1)).data(1, 1000);
    let outcome = leaf.send(UPLINK, &from_fabric.frame(), IDLE);
    assert_eq!(dscp_ecn(&outcome.sent.unwrap().1).0, NONE);
}

#[test]
fn what_exceeds_a_claim_gets_no_class_by_what_it_has_sent() {
    let mut leaf = leaf();
    leaf.let_claim(HOST, EARLY.into(), 1);
    leaf.police(HOST, 1, 1, frame_bytes());
    let frame = with_dscp(data(), EARLY);
    assert_eq!(sent(&mut leaf, &frame, [IDLE, IDLE]), [EARLY, NONE]);
}

#[test]
fn a_host_does_not_stay_early_by_opening_new_flows() {
    let mut leaf = leaf();
    leaf.police(HOST, 1, 1, frame_bytes());
    let flow = flow_to(address(2, 1, 1));
    let dscps = [0, 1, 2].map(|number| {
        let flow = Tcp {
            src_port: flow.src_port + number,
            ..flow
        };
        sent(&mut leaf, &flow.data(1, 1000).frame(), [IDLE])
    });
    assert_eq!(dscps, [[EARLY], [LATE], [LATE]]);
}

#[test]
fn a_host_that_may_claim_nothing_is_as_one_that_claims_nothing() {
    let mut leaf = leaf();
    leaf.clear_claims(HOST, 31);
    assert_eq!(
        sent(&mut leaf, &with_dscp(data(), 31), EACH),
        [EARLY, EARLY, LATE, LATE, NONE]
    );
}
