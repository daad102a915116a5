// SPDX-License-Identifier: Apache-2.0

//! RTTs from NIC to NIC: two hosts of different leaves, and the switches between them.

use weft_testing::packet::{Tcp, address, expected_path, ping};

use crate::bench::{Bench, HOSTS, Outcome, PATHS, RttSample};

/// Ports of a NIC.
const HOST: u16 = 1;
const NETWORK: u16 = 2;

const MS: u64 = 1_000_000;
/// From NIC to NIC, each way.
const THERE: u64 = 40_000;
const BACK: u64 = 30_000;
/// The header that NICs insert between Ethernet and IPv4.
const HEADER_BYTES: usize = 18;

/// Two NICs and the leaf of the first.
struct TwoNics {
    near: Bench,
    leaf: Bench,
    far: Bench,
    /// How much the far NIC's clock is ahead.
    ahead: u64,
}

impl TwoNics {
    fn new() -> TwoNics {
        TwoNics {
            near: Bench::nic(1),
            leaf: Bench::leaf(1),
            far: Bench::nic(2),
            ahead: 0,
        }
    }

    /// Sends a segment from the near host's NIC at `now`. Returns what the far host gets.
    fn send(&mut self, segment: &Tcp, now: u64) -> Vec<u8> {
        let (port, frame) = self.near.send(HOST, &segment.frame(), now).sent.unwrap();
        assert_eq!(port, NETWORK);
        let (port, frame) = self.leaf.send(1, &frame, now).sent.unwrap();
        assert!(port > HOSTS, "it goes up");
        let arrives = now + THERE + self.ahead;
        let (port, frame) = self.far.send(NETWORK, &frame, arrives).sent.unwrap();
        assert_eq!(port, HOST);
        frame
    }

    /// Sends a segment from the far host's NIC at `now`. Returns its outcome at the near NIC.
    fn answer(&mut self, segment: &Tcp, now: u64) -> Outcome {
        let sent = self.far.send(HOST, &segment.frame(), now + self.ahead).sent;
        self.near.send(NETWORK, &sent.unwrap().1, now + BACK)
    }
}

fn subflow() -> Tcp {
    Tcp::subflow(address(1, 1, 1), address(2, 1, 1))
}

/// The path that leaf 1 chooses.
fn path_of(flow: &Tcp) -> u8 {
    expected_path(flow.src, flow.dst, PATHS.into())
}

fn rtts(samples: &[RttSample]) -> Vec<u64> {
    samples.iter().map(|sample| sample.rtt).collect()
}

#[test]
fn an_rtt_is_what_the_network_took_however_long_hosts_do() {
    for host_takes in [0, 700_000, 40 * MS] {
        let mut nics = TwoNics::new();
        let flow = subflow();
        nics.send(&flow.data(1, 1000), MS);
        let answered = MS + THERE + host_takes;
        let samples = nics.answer(&flow.ack_of(1001), answered).rtt;
        let rtt = THERE + BACK;
        let expected = RttSample {
            src: flow.src,
            dst: flow.dst,
            src_port: flow.src_port,
            dst_port: flow.dst_port,
            path: path_of(&flow),
            length_bytes: 1052,
            rtt,
            smoothed: rtt,
            minimum: rtt,
            at: answered + BACK,
        };
        assert_eq!(samples, [expected], "host takes {host_takes}");
    }
}

#[test]
fn the_leaf_tells_the_path_and_local_traffic_has_none() {
    let mut nics = TwoNics::new();
    for local in 1..=4 {
        let flow = Tcp::subflow(address(1, 1, local), address(2, 1, 1));
        nics.send(&flow.syn(0), MS);
        let samples = nics.answer(&flow.ack_of(1), 2 * MS).rtt;
        assert_eq!(samples[0].path, path_of(&flow));
    }
    let neighbours = Tcp::subflow(address(1, 1, 1), address(1, 2, 1));
    let (_, frame) = nics
        .near
        .send(HOST, &neighbours.syn(0).frame(), MS)
        .sent
        .unwrap();
    let (_, frame) = nics.leaf.send(1, &frame, MS).sent.unwrap();
    let mut neighbour = Bench::nic(1);
    neighbour.send(NETWORK, &frame, MS);
    let (_, ack) = neighbour
        .send(HOST, &neighbours.ack_of(1).frame(), MS)
        .sent
        .unwrap();
    assert_eq!(nics.near.send(NETWORK, &ack, MS).rtt, []);
}

#[test]
fn hosts_get_what_hosts_have_sent() {
    let mut nics = TwoNics::new();
    let segment = subflow().data(1, 100);
    let frame = nics.send(&segment, MS);
    // Except for what leaves change: Ethernet addresses, TTL and checksum.
    let sent = segment.frame();
    assert_eq!(frame.len(), sent.len());
    assert_eq!(frame[12..22], sent[12..22]);
    assert_eq!(frame[26..], sent[26..]);
    let back = subflow().ack_of(101);
    assert_eq!(nics.answer(&back, 2 * MS).sent, Some((HOST, back.frame())));
}

#[test]
fn only_tcp_is_stamped() {
    let mut nic = Bench::nic(1);
    let request = ping(address(1, 1, 1), address(2, 1, 1));
    for (from, to) in [(HOST, NETWORK), (NETWORK, HOST)] {
        assert_eq!(
            nic.send(from, &request, MS).sent,
            Some((to, request.clone()))
        );
    }
    let segment = subflow().syn(0).frame();
    let (_, stamped) = nic.send(HOST, &segment, MS).sent.unwrap();
    assert_eq!(stamped.len(), segment.len() + HEADER_BYTES);
    assert_eq!(stamped[12..14], [0x88, 0xb5]);
}

#[test]
fn clocks_of_nics_may_differ_and_wrap() {
    for (ahead, start) in [
        (17 * MS, MS),
        (1 << 40, MS),
        (0, (1 << 32) - THERE / 2),
        ((1 << 32) - MS - 2 * THERE, MS),
    ] {
        let mut nics = TwoNics::new();
        nics.ahead = ahead;
        nics.send(&subflow().syn(0), start);
        let samples = nics.answer(&subflow().ack_of(1), start + THERE + MS).rtt;
        assert_eq!(
            rtts(&samples),
            [THERE + BACK],
            "{ahead} ahead from {start} on"
        );
    }
}

#[test]
fn the_last_segment_is_echoed_once_be_it_new_or_not() {
    let mut nics = TwoNics::new();
    let flow = subflow();
    nics.send(&flow.data(1, 1000), MS);
    nics.send(&flow.data(1001, 1000), 2 * MS);
    nics.send(&flow.data(1, 1000), 3 * MS);
    let late = nics.answer(&flow.ack_of(2001), 4 * MS).rtt;
    assert_eq!(rtts(&late), [THERE + BACK]);
    assert_eq!(nics.answer(&flow.ack_of(2001), 5 * MS).rtt, []);
}

#[test]
fn what_answers_need_not_acknowledge() {
    let mut nics = TwoNics::new();
    let flow = subflow();
    nics.send(&flow.data(1, 1000), MS);
    let data = flow.ack_of(1).data(7, 500);
    assert_eq!(rtts(&nics.answer(&data, 2 * MS).rtt), [THERE + BACK]);
}

#[test]
fn bare_acks_are_not_echoed() {
    let mut nics = TwoNics::new();
    let flow = subflow();
    nics.send(&flow, MS);
    assert_eq!(nics.answer(&flow.ack_of(1), 2 * MS).rtt, []);
}

#[test]
fn subflows_are_told_apart() {
    let mut nics = TwoNics::new();
    let first = subflow();
    let second = Tcp {
        src_port: 41_000,
        ..first
    };
    nics.send(&first.syn(0), MS);
    assert_eq!(nics.answer(&second.ack_of(1), 2 * MS).rtt, []);
    nics.send(&second.syn(0), 3 * MS);
    assert_eq!(
        rtts(&nics.answer(&first.ack_of(1), 4 * MS).rtt),
        [THERE + BACK]
    );
    assert_eq!(
        rtts(&nics.answer(&second.ack_of(1), 5 * MS).rtt),
        [THERE + BACK]
    );
}

#[test]
fn what_the_network_cannot_take_is_counted_and_not_used() {
    for (longest, used) in [(THERE + BACK, 1), (THERE + BACK - 1, 0)] {
        let mut nics = TwoNics::new();
        nics.near.expect(2, path_of(&subflow()), 0, longest);
        nics.send(&subflow().syn(0), MS);
        let samples = nics.answer(&subflow().ack_of(1), 2 * MS).rtt;
        assert_eq!(samples.len(), used);
        assert_eq!(nics.near.count("rtt.impossible"), 1 - used as u64);
    }
}
