// SPDX-License-Identifier: Apache-2.0

//! The priority stage: DSCP decides where a packet waits.

use weft_testing::packet::{Tcp, address, edit_ipv4, over_ipv6, ping};

use crate::bench::Bench;

/// Of segments without data.
const CS6: u16 = 48;

/// A leaf and a spine with two classes.
fn switches() -> [Bench; 2] {
    [Bench::leaf(1), Bench::spine()].map(|mut switch| {
        switch.prioritize(7, 6);
        switch.prioritize(CS6, 7);
        switch
    })
}

fn with_dscp(mut frame: Vec<u8>, dscp: u8) -> Vec<u8> {
    // Both ECN bits, which are no part of the DSCP.
    edit_ipv4(&mut frame, |header| header[1] = dscp << 2 | 3);
    frame
}

fn subflow() -> Tcp {
    Tcp::subflow(address(1, 1, 1), address(2, 1, 1))
}

#[test]
fn a_packet_has_the_priority_of_its_dscp_over_both_versions_of_ip() {
    for mut switch in switches() {
        let mut priority = |frame: &[u8]| switch.send(1, frame, 0).priority;
        for data in [
            ping(address(1, 1, 1), address(2, 1, 1)),
            subflow().data(1, 1000).frame(),
        ] {
            assert_eq!(priority(&with_dscp(data.clone(), 7)), 6);
            assert_eq!(priority(&with_dscp(data.clone(), 11)), 0);
            assert_eq!(priority(&over_ipv6(&with_dscp(data.clone(), 7))), 6);
            assert_eq!(priority(&over_ipv6(&data)), 0);
        }
    }
}

#[test]
fn segments_without_data_have_the_priority_of_cs6_whatever_their_dscp() {
    for mut switch in switches() {
        let mut priority = |frame: &[u8]| switch.send(1, frame, 0).priority;
        for bare in [subflow().syn(1), subflow().ack_of(1)] {
            assert_eq!(priority(&bare.frame()), 7);
            assert_eq!(priority(&with_dscp(bare.frame(), 7)), 7);
            assert_eq!(priority(&over_ipv6(&bare.frame())), 7);
        }
    }
}

#[test]
fn without_entries_every_packet_has_priority_0() {
    for mut switch in [Bench::leaf(1), Bench::spine()] {
        for frame in [
            subflow().syn(1).frame(),
            with_dscp(subflow().data(1, 9).frame(), 7),
        ] {
            let outcome = switch.send(1, &frame, 0);
            assert!(outcome.sent.is_some());
            assert_eq!(outcome.priority, 0);
        }
    }
}
