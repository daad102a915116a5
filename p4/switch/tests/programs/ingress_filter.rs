// SPDX-License-Identifier: Apache-2.0

//! Packets of hosts that look like those which only switches and the controller send.

use weft_testing::packet::{Tcp, address, edit_ipv4, over_ipv6, udp_with};

use crate::bench::{Bench, CPU_PORT, drops, uplink};

const HOST: u16 = 1;
const INT_PORT: u16 = 54_321;
const BFD_ECHO_PORT: u16 = 3785;
const ETHERNET_BYTES: usize = 14;
const UDP: usize = ETHERNET_BYTES + 20;

/// A segment with telemetry as a leaf sends it.
fn with_telemetry(from: u8, to: u8) -> Vec<u8> {
    let mut leaf = Bench::leaf(from.into());
    leaf.collect_as(1);
    leaf.start_collecting_every(0);
    let segment = Tcp::subflow(address(from, 1, 1), address(to, 1, 1)).data(1, 100);
    let (_, frame) = leaf.send(HOST, &segment.frame(), 1).sent.unwrap();
    assert_eq!(frame[UDP + 2..UDP + 4], INT_PORT.to_be_bytes());
    frame
}

#[test]
fn a_datagram_to_the_port_of_telemetry_passes_as_it_is() {
    let telemetry = with_telemetry(1, 2)[UDP + 8..].to_vec();
    // Too short for telemetry, long enough, and telemetry after a UDP checksum.
    let payloads = [&[][..], &[1; 4], &[2; 36], &[0x18; 1000], &telemetry];
    for payload in payloads {
        let ports = [53, INT_PORT];
        let sent = udp_with(address(1, 1, 1), address(2, 1, 1), ports, 0xbeef, payload);
        let [mut first, mut spine, mut last] = [Bench::leaf(1), Bench::spine(), Bench::leaf(2)];
        let (_, frame) = first.send(HOST, &sent, 1).sent.unwrap();
        let (_, frame) = spine.send(1, &frame, 2).sent.unwrap();
        let outcome = last.send(uplink(0), &frame, 3);
        let (port, arrived) = outcome.sent.unwrap();
        assert_eq!(port, HOST);
        assert_eq!(arrived[UDP..], sent[UDP..]);
        assert!(outcome.collected.is_empty());
    }
}

#[test]
fn telemetry_from_a_host_is_dropped_and_counted() {
    for mut leaf in [Bench::leaf(1), Bench::leaf_with_nics(1)] {
        for frame in [with_telemetry(1, 2), with_telemetry(2, 1)] {
            let outcome = leaf.send(HOST, &frame, 10);
            assert!(outcome.sent.is_none() && outcome.collected.is_empty());
        }
        assert_eq!(leaf.dropped(drops::FORGED), 2);
        let outcome = leaf.send(uplink(0), &with_telemetry(2, 1), 10);
        assert_eq!(outcome.port(), Some(HOST));
        assert_eq!(outcome.collected.len(), 1);
    }
}

#[test]
fn a_host_cannot_answer_the_probes_of_the_controller() {
    let ports = [BFD_ECHO_PORT; 2];
    let probe = |leaf| {
        udp_with(
            address(1, 255, 2),
            address(leaf, 255, 1),
            ports,
            0,
            &[0; 12],
        )
    };
    for mut leaf in [Bench::leaf(1), Bench::leaf_with_nics(1)] {
        let to_controller = ("routing.to_controller", vec![]);
        leaf.route(address(1, 255, 1), 32, to_controller);
        let mut fragment = probe(1);
        edit_ipv4(&mut fragment, |header| header[6] = 0x20);
        let forged = [probe(1), probe(2), fragment, over_ipv6(&probe(1))];
        for frame in &forged {
            assert_eq!(leaf.send(HOST, frame, 10).port(), None);
        }
        assert_eq!(leaf.dropped(drops::FORGED), forged.len() as u64);
        assert_eq!(leaf.send(uplink(0), &probe(1), 10).port(), Some(CPU_PORT));
    }
}

#[test]
fn a_leaf_leaves_rtts_to_the_nics_of_its_hosts() {
    let measured = |mut leaf: Bench| {
        let flow = Tcp::subflow(address(1, 1, 1), address(2, 1, 1));
        leaf.send(HOST, &flow.syn(0).frame(), 10);
        leaf.send(uplink(0), &flow.ack_of(1).frame(), 70_010)
            .rtt
            .len()
    };
    assert_eq!(measured(Bench::leaf(1)), 1);
    assert_eq!(measured(Bench::leaf_with_nics(1)), 0);
}
