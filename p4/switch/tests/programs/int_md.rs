//! In-band telemetry: packets that carry what they met from leaf to leaf.

use std::process::Command;

use weft_switch::pipeline::QueueMetadata;
use weft_testing::packet::{Tcp, address, checksum_is_right};

use crate::bench::{Bench, Hop, Intervals, Outcome, uplink};

const MS: u64 = 1_000_000;
/// UDP, shim and MD header.
const HEADERS_BYTES: usize = 8 + 4 + 12;
const HOP_BYTES: usize = 16;
const ETHERNET_BYTES: usize = 14;
const IPV4_BYTES: usize = 20;
/// Names of the switches on the way.
const LEAF: u64 = 1;
const SPINE: u64 = 102;

/// A leaf, a spine and a leaf in a row.
struct Way {
    first: Bench,
    spine: Bench,
    last: Bench,
}

impl Way {
    fn new() -> Way {
        let mut way = Way {
            first: Bench::leaf(1),
            spine: Bench::spine(),
            last: Bench::leaf(2),
        };
        way.first.collect_as(LEAF);
        way.first.start_collecting_every(MS);
        way.spine.collect_as(SPINE);
        way.last.collect_as(2);
        // Nothing but what is collected leaves room for itself.
        way.last.sample_every(Intervals::CHANGES);
        way
    }

    /// The frame as the first leaf, and as the spine sends it on.
    fn up(&mut self, frame: &[u8], now: u64) -> [Vec<u8>; 2] {
        let in_queue = QueueMetadata {
            deq_timedelta: 24_000,
            deq_qdepth: 2,
            ..QueueMetadata::default()
        };
        let first = self.first.send_through(1, frame, now, in_queue);
        let first = first.sent.unwrap().1;
        let longer = QueueMetadata {
            deq_timedelta: 1_200_000,
            deq_qdepth: 99,
            ..QueueMetadata::default()
        };
        let spine = self.spine.send_through(1, &first, now, longer);
        [first, spine.sent.unwrap().1]
    }

    fn carry(&mut self, frame: &[u8], now: u64) -> Outcome {
        let [_, frame] = self.up(frame, now);
        self.last.send(uplink(0), &frame, now)
    }
}

fn segment() -> Tcp {
    Tcp::subflow(address(1, 1, 1), address(2, 1, 1)).data(1, 1000)
}

#[test]
fn a_packet_reports_every_queue_that_it_met() {
    let mut way = Way::new();
    let outcome = way.carry(&segment().frame(), 5 * MS);
    let up = way
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
    let mut with = Way::new();
    let mut without = Way {
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
    let mut way = Way::new();
    let sent = segment().frame();
    let frames = way.up(&sent, 5 * MS);
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
        // TCP and what follows is as it was.
        assert_eq!(
            frame[frame.len() - 1052 + 20..],
            sent[sent.len() - 1052 + 20..]
        );
    }
}

#[test]
fn an_ack_that_carries_it_tells_all_its_waits() {
    const SHIFT: u64 = 10;
    let told = |way: &mut Way| {
        way.first.tell_waits(&[1], SHIFT);
        way.spine.tell_waits(&[], SHIFT);
        way.last.tell_waits(&[], SHIFT);
        let ack = Tcp::subflow(address(1, 1, 1), address(2, 1, 1)).frame();
        let outcome = way.carry(&ack, 5 * MS);
        let (_, sent) = outcome.sent.unwrap();
        let identification = &sent[ETHERNET_BYTES + 4..][..2];
        let wait = u16::from_be_bytes(identification.try_into().unwrap());
        (outcome.collected.len(), u64::from(wait))
    };
    let waits = (24_000 >> SHIFT) + (1_200_000 >> SHIFT);
    assert_eq!(told(&mut Way::new()), (1, waits));
    let mut without = Way::new();
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
        let [first, _] = Way::new().up(&segment.frame(), 5 * MS);
        let mut aggregation = Bench::aggregation();
        aggregation.path_policy("routing.ecmp_paths");
        let port = aggregation.send(1, &segment.frame(), 0).port();
        assert_eq!(aggregation.send(1, &first, 0).port(), port);
    }
}

#[test]
fn of_every_path_one_packet_in_an_interval_carries_it() {
    let mut way = Way::new();
    let frame = segment().frame();
    let collected = |way: &mut Way, now| way.carry(&frame, now).collected.len();
    assert_eq!(collected(&mut way, 5 * MS), 1);
    assert_eq!(collected(&mut way, 5 * MS + 1), 0);
    assert_eq!(collected(&mut way, 6 * MS), 1);
    let other = Tcp::subflow(address(1, 1, 2), address(2, 1, 1)).data(1, 1000);
    assert_eq!(way.carry(&other.frame(), 6 * MS).collected.len(), 1);
}

#[test]
fn without_a_wish_nobody_carries_it() {
    let mut way = Way::new();
    way.first = Bench::leaf(1);
    let frame = segment().frame();
    let [first, _] = way.up(&frame, 5 * MS);
    assert_eq!(first.len(), frame.len());
}

#[test]
fn no_more_hops_are_added_than_there_is_room_for() {
    let mut way = Way::new();
    let [_, mut frame] = way.up(&segment().frame(), 5 * MS);
    for hops in 3..=6 {
        frame = way.spine.send(1, &frame, 5 * MS).sent.unwrap().1;
        let fitting = hops.min(4);
        let added = HEADERS_BYTES + fitting * HOP_BYTES;
        assert_eq!(frame.len(), segment().frame().len() + added);
        let exceeded = frame[ETHERNET_BYTES + IPV4_BYTES + 12] & 4 != 0;
        assert_eq!(exceeded, hops > 4);
    }
    let collected = way.last.send(uplink(0), &frame, 5 * MS).collected;
    assert_eq!(collected[0].len(), 4);
}

#[test]
fn a_report_goes_first_and_the_rtt_of_its_packet_counts_with_the_next() {
    let mut way = Way::new();
    let flow = Tcp::subflow(address(1, 1, 1), address(2, 1, 1));
    let mut back = Bench::leaf(2);
    back.collect_as(2);
    back.start_collecting_every(MS);
    let mut acknowledged = |segment: Tcp, at: u64| {
        way.up(&segment.frame(), at);
        let ack = flow.ack_of(segment.seq + 1).frame();
        let ack = back.send(1, &ack, at).sent.unwrap().1;
        way.first.send(uplink(0), &ack, at + 70_000)
    };
    let syn = acknowledged(flow.syn(0), 5 * MS);
    assert_eq!((syn.collected.len(), syn.rtt.len()), (1, 0));
    let next = acknowledged(flow.data(1, 1), 5 * MS + 1_000);
    assert_eq!((next.collected.len(), next.rtt.len()), (0, 1));
    let sample = &next.rtt[0];
    assert_eq!((sample.rtt, sample.length_bytes), (70_000, 53));
    assert_eq!(sample.minimum, 70_000);
}

#[test]
fn tshark_decodes_it() {
    if Command::new("tshark").arg("-v").output().is_err() {
        eprintln!("no tshark here");
        return;
    }
    let mut way = Way::new();
    let [_, frame] = way.up(&segment().frame(), 5 * MS);
    let mut pcap = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1, 0, 0] {
        pcap.extend(word.to_le_bytes());
    }
    let length = (frame.len() as u32).to_le_bytes();
    pcap.extend(length);
    pcap.extend(length);
    pcap.extend(&frame);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("int.pcap");
    std::fs::write(&file, pcap).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../wireshark/weft.lua");
    let fields = [
        "version",
        "hop.switch",
        "hop.egress_port",
        "hop.latency",
        "hop.depth",
    ];
    let output = Command::new("tshark")
        .args(["-X", &format!("lua_script:{script}"), "-T", "fields", "-r"])
        .arg(&file)
        .args(
            fields
                .iter()
                .flat_map(|field| ["-e".into(), format!("int_md.{field}")]),
        )
        .args(["-e", "tcp.dstport", "-e", "tcp.len"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let values: Vec<_> = text.trim_end().split('\t').collect();
    let up = way
        .first
        .send(1, &segment().frame(), 5 * MS)
        .port()
        .unwrap();
    let ports = format!("2,{up}");
    let expected = [
        "2",
        "102,1",
        &ports,
        "1200000,24000",
        "99,2",
        "5001",
        "1000",
    ];
    assert_eq!(
        values,
        expected,
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
