// SPDX-License-Identifier: Apache-2.0

//! The policing stage of leaves: what hosts may claim, and what they send in each class.

use weft_switch::pipeline::QueueMetadata;
use weft_testing::packet::{Tcp, address, edit_ipv4, over_ipv6};

use crate::bench::{Bench, Intervals};

const HOST: u16 = 1;
const UPLINK: u16 = 3;
/// DSCP and priority of class 1.
const DSCP: u16 = 7;
const PRIORITY: u8 = 6;
const SECOND: u64 = 1_000_000_000;

/// A leaf where hosts may claim class 1.
fn leaf() -> Bench {
    let mut leaf = Bench::leaf(1);
    leaf.let_claim(HOST, DSCP, 1);
    leaf.prioritize(DSCP, PRIORITY.into());
    leaf
}

fn with_dscp(segment: &Tcp, dscp: u16) -> Vec<u8> {
    let mut frame = segment.frame();
    // Both ECN bits, which are no part of the DSCP.
    edit_ipv4(&mut frame, |header| header[1] = (dscp as u8) << 2 | 3);
    frame
}

fn subflow() -> Tcp {
    Tcp::subflow(address(1, 1, 1), address(2, 1, 1))
}

fn data() -> Vec<u8> {
    with_dscp(&subflow().data(1, 1000), DSCP)
}

/// The length of the frames below.
fn frame_bytes() -> u64 {
    data().len() as u64
}

fn dscp_ecn(frame: &[u8]) -> u8 {
    frame[15]
}

#[test]
fn what_exceeds_the_rate_of_a_class_loses_it_at_every_switch() {
    let mut leaf = leaf();
    leaf.police(HOST, 1, 10 * frame_bytes(), 2 * frame_bytes());
    let mut outcomes = |now| [0; 3].map(|_| leaf.send(HOST, &data(), now));
    for now in [0, SECOND] {
        let [first, second, third] = outcomes(now);
        for within in [first, second] {
            assert_eq!(within.priority, PRIORITY);
            assert_eq!(dscp_ecn(&within.sent.unwrap().1), (DSCP as u8) << 2 | 3);
        }
        assert_eq!(third.priority, 0);
        assert_eq!(dscp_ecn(&third.sent.unwrap().1), 3);
    }
    assert_eq!(leaf.demoted(HOST), 2);
}

#[test]
fn a_host_that_may_claim_nothing_has_no_class_anywhere_and_is_in_no_sum() {
    let mut leaf = leaf();
    leaf.clear_claims(2, DSCP);
    leaf.sample_every(Intervals::CHANGES);
    let segment = Tcp::subflow(address(1, 2, 1), address(2, 1, 1)).data(1, 1000);
    for frame in [with_dscp(&segment, DSCP), with_dscp(&segment, 1)] {
        let outcome = leaf.send(2, &frame, SECOND);
        assert_eq!(outcome.priority, 0);
        assert_eq!(outcome.classes, []);
        let kept = if frame[15] >> 2 == 1 { 1 << 2 } else { 0 };
        assert_eq!(dscp_ecn(&outcome.sent.unwrap().1), kept | 3);
    }
    assert_eq!((leaf.demoted(HOST), leaf.demoted(2)), (0, 1));
}

#[test]
fn it_does_over_ipv6_too() {
    let mut leaf = leaf();
    leaf.police(HOST, 1, 1, 1);
    let outcome = leaf.send(HOST, &over_ipv6(&data()), 0);
    assert_eq!(outcome.priority, 0);
    let [first, second, ..] = outcome.sent.unwrap().1[14..] else {
        panic!("no frame");
    };
    assert_eq!((first << 4 | second >> 4) >> 2, 0);
}

#[test]
fn every_host_has_its_own_rate() {
    let mut leaf = leaf();
    leaf.let_claim(2, DSCP, 1);
    leaf.police(HOST, 1, 1, 1);
    let mut other = Tcp::subflow(address(1, 2, 1), address(2, 1, 1)).data(1, 1000);
    other.dst_port = 7;
    assert_eq!(leaf.send(HOST, &data(), 0).priority, 0);
    let other = with_dscp(&other, DSCP);
    assert_eq!(leaf.send(2, &other, 0).priority, PRIORITY);
    assert_eq!((leaf.demoted(HOST), leaf.demoted(2)), (1, 0));
}

#[test]
fn without_rates_and_from_switches_every_claim_holds() {
    let mut leaf = leaf();
    for _ in 0..100 {
        assert_eq!(leaf.send(HOST, &data(), 0).priority, PRIORITY);
    }
    let mut from_fabric = Tcp::subflow(address(2, 1, 1), address(1, 1, 1)).data(1, 1000);
    from_fabric.dst_port = 7;
    leaf.police(UPLINK, 1, 1, 1);
    let from_fabric = with_dscp(&from_fabric, DSCP);
    assert_eq!(leaf.send(UPLINK, &from_fabric, 0).priority, PRIORITY);
}

#[test]
fn segments_without_data_claim_nothing() {
    let mut leaf = leaf();
    leaf.police(HOST, 1, 1, 1);
    leaf.sample_every(Intervals::default());
    let outcome = leaf.send(HOST, &with_dscp(&subflow().ack_of(1), DSCP), 0);
    assert_eq!(dscp_ecn(&outcome.sent.unwrap().1), (DSCP as u8) << 2 | 3);
    assert_eq!(outcome.classes, []);
}

#[test]
fn bytes_within_the_rate_are_reported_by_host_and_class() {
    let mut leaf = leaf();
    leaf.let_claim(HOST, 3, 0);
    leaf.police(HOST, 1, 1, 2 * frame_bytes());
    // Only these samples: no path or queue has anything to confirm.
    leaf.sample_every(Intervals {
        longest: SECOND,
        ..Intervals::CHANGES
    });
    let urgent = with_dscp(&subflow().data(1, 1000), 3);
    leaf.send(HOST, &urgent, 0);
    let mut reports = Vec::new();
    for packet in 1..=24 {
        reports.extend(leaf.send(HOST, &data(), packet * SECOND / 8).classes);
    }
    let bytes = |urgent: u64, short: u64| {
        let mut bytes = [0; 8];
        bytes[..2].copy_from_slice(&[urgent * frame_bytes(), short * frame_bytes()]);
        bytes
    };
    let seen: Vec<_> = reports
        .iter()
        .map(|report| (report.at, report.bytes))
        .collect();
    assert!(reports.iter().all(|report| report.port == HOST));
    assert_eq!(seen.first().map(|(_, bytes)| bytes[0]), Some(frame_bytes()));
    // The third packet in class 1 and all after it are in no sum.
    assert_eq!(seen.last().map(|(_, bytes)| *bytes), Some(bytes(1, 2)));
    let apart = seen.windows(2).all(|two| two[1].0 - two[0].0 >= SECOND);
    assert!(apart, "{seen:?}");
}

#[test]
fn a_quarter_of_the_digests_says_what_hosts_send_where_changes_use_up_the_rest() {
    let mut leaf = leaf();
    leaf.sample_every(Intervals {
        longest: 1,
        digest_bytes: 10 * frame_bytes() as u32,
        ..Intervals::CHANGES
    });
    let (mut changes, mut sums) = (0, 0);
    for packet in 0..4000 {
        let queue = QueueMetadata {
            deq_qdepth: packet % 2 * 50,
            ..QueueMetadata::default()
        };
        let outcome = leaf.send_through(HOST, &data(), packet.into(), queue);
        changes += outcome.queues.len();
        sums += outcome.classes.len();
    }
    // The traffic pays for 400, after a first burst of 16 changes.
    assert!((400..=417).contains(&(changes + sums)), "{changes}, {sums}");
    assert!((95..=100).contains(&sums), "{changes}, {sums}");
}
