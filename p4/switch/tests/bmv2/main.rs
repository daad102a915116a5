// SPDX-License-Identifier: Apache-2.0

//! Sends the same packets through `weft-switch`'s interpreter and through BMv2: the same must
//! come out. Where no BMv2 is installed, the tests are ignored.

#![allow(clippy::unwrap_used, missing_docs)]

mod program;
mod target;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use weft_switch::pipeline::MatchValue;
use weft_testing::packet::{Tcp, address, internet_checksum};
use weft_testing::tools::{BMV2, run};

use program::{Entry, Ours, bytes, programmed};
use target::{Bmv2, Frame};

/// Packets of a test.
const PACKETS: usize = 2_000;

const PORT: u16 = 1;

fn main() -> ExitCode {
    run(weft_testing::tests![
        BMV2;
        every_operation_gives_what_it_gives_on_bmv2,
        every_packet_is_parsed_as_on_bmv2,
        registers_hashes_and_checksums_are_those_of_bmv2,
        constant_entries_are_chosen_as_on_bmv2,
        a_leaf_sends_what_it_sends_on_bmv2,
        a_leaf_that_hashes_flows_chooses_the_paths_it_chooses_on_bmv2,
        a_leaf_draws_among_all_uplinks_on_bmv2,
        a_leaf_that_knows_classes_sends_what_it_sends_on_bmv2,
        a_leaf_that_draws_from_one_uplink_sends_what_it_sends_on_bmv2,
        a_spine_sends_what_it_sends_on_bmv2,
    ])
}

macro_rules! fixture {
    ($name:literal) => {
        concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/", $name)
    };
}

/// `count` packets that `make` generates.
fn packets(count: usize, mut make: impl FnMut(&mut StdRng) -> Vec<u8>) -> Vec<Frame> {
    let mut random = StdRng::seed_from_u64(1);
    (0..count).map(|_| (PORT, make(&mut random))).collect()
}

fn random_bytes(random: &mut StdRng, count: usize) -> Vec<u8> {
    (0..count).map(|_| random.random()).collect()
}

/// Asserts that both sent the same frames for each packet, in any order.
fn assert_same(packets: &[Frame], ours: &[Vec<Frame>], theirs: &[Vec<Frame>]) {
    assert_eq!((ours.len(), theirs.len()), (packets.len(), packets.len()));
    let differ = |place: &usize| {
        let sorted = |frames: &[Frame]| {
            let mut frames = frames.to_vec();
            frames.sort();
            frames
        };
        sorted(&ours[*place]) != sorted(&theirs[*place])
    };
    let different: Vec<usize> = (0..packets.len()).filter(differ).collect();
    let Some(&first) = different.first() else {
        return;
    };
    let hex = |bytes: &[u8]| -> String { bytes.iter().map(|b| format!("{b:02x}")).collect() };
    let all = |frames: &[Frame]| -> Vec<String> {
        frames
            .iter()
            .map(|(port, frame)| format!("{port}: {}", hex(frame)))
            .collect()
    };
    panic!(
        "{} of {} packets differ, the first is number {first}, {}\n  weft-switch {:?}\n  BMv2        {:?}",
        different.len(),
        packets.len(),
        hex(&packets[first].1),
        all(&ours[first]),
        all(&theirs[first]),
    );
}

/// Runs a fixture without entries on both.
#[tokio::main(flavor = "current_thread")]
async fn compare(bmv2: &Path, json: &'static str, packets: &[Frame]) {
    let mut ours = Ours::new(&std::fs::read(json).unwrap());
    let mut bmv2 = Bmv2::start(bmv2, Some(json)).await;
    let theirs = bmv2.run(packets).await;
    assert_same(packets, &ours.run(packets), &theirs);
}

fn every_operation_gives_what_it_gives_on_bmv2(bmv2: &Path) {
    let packets = packets(PACKETS, |random| random_bytes(random, 63));
    compare(bmv2, fixture!("arithmetic.json"), &packets);
}

fn every_packet_is_parsed_as_on_bmv2(bmv2: &Path) {
    let packets = packets(PACKETS, |random| {
        // There is always a command, because fields of invalid headers are undefined. In BMv2 they
        // have the values of another packet.
        let length = random.random_range(2..40);
        let mut packet = random_bytes(random, length);
        // Three inputs are left out. If no case of a `select` matches, the error is NoMatch (P4-16,
        // 12.6), which BMv2 does not report. A loop (5) would never end, because BMv2 has no
        // ParserTimeout. And BMv2 exits at an index that a stack does not have (8).
        let index = random.random_range(0..=255);
        let (what, index) = match random.random_range(0..8) {
            0 => (0x01, index),
            1 => (0x02, 0x00),
            2 => (0x10 | index & 0x0f, 0x07),
            3 => (0x03, index),
            4 => (0x04, index),
            5 => (0x06, 0x00),
            6 => (0x07, index),
            _ => (0x08, index % 3),
        };
        packet[..2].copy_from_slice(&[what, index]);
        packet
    });
    compare(bmv2, fixture!("parsing.json"), &packets);
}

fn registers_hashes_and_checksums_are_those_of_bmv2(bmv2: &Path) {
    let what = [
        0x01, 0x02, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x20, 0x32, 0x34, 0x35, 0x40, 0x50,
    ];
    let packets = packets(PACKETS, |random| {
        let length = random.random_range(17..60);
        let mut packet = random_bytes(random, length);
        packet[0] = what[random.random_range(0..what.len())];
        // BMv2 exits at an index that a register does not have.
        if packet[0] <= 0x02 {
            packet[1..5].copy_from_slice(&random.random_range(0..4u32).to_be_bytes());
        }
        packet
    });
    compare(bmv2, fixture!("externs.json"), &packets);
}

fn constant_entries_are_chosen_as_on_bmv2(bmv2: &Path) {
    let packets = packets(PACKETS, |random| {
        let mut packet = random_bytes(random, 30);
        packet[0] = random.random_range(0..4);
        packet
    });
    compare(bmv2, fixture!("matching.json"), &packets);
}

fn exact(value: u64) -> MatchValue {
    MatchValue::Exact(bytes(value))
}

fn prefix(address: [u8; 4], prefix_bits: u32) -> MatchValue {
    let value = bytes(u32::from_be_bytes(address).into());
    MatchValue::Lpm { value, prefix_bits }
}

/// In units of 2^31 us every wait is 0, even on a slow machine.
const NO_WAIT: u64 = 31;

/// Leaf 1 of two, with hosts at ports 1 and 2 and uplinks at 3 to 6.
fn leaf_entries(policy: &'static str) -> Vec<Entry> {
    leaf_entries_with(policy, &[4])
}

fn leaf_entries_with(policy: &'static str, arguments: &[u64]) -> Vec<Entry> {
    let mut entries = Vec::new();
    for host in 1..=2u64 {
        let key = vec![prefix([10, 1, host as u8, 0], 24)];
        let mac = 0x0200_0000_0100 + host;
        entries.push(Entry::new("routing.ipv4_lpm", key, "routing.to_host").args(&[host, mac]));
        entries.push(Entry::new(
            "rtt.host_port",
            vec![exact(host)],
            "rtt.measure",
        ));
        entries.push(
            Entry::new("ack_delay.ports", vec![exact(host)], "ack_delay.start").args(&[NO_WAIT]),
        );
    }
    entries.push(Entry::new("ack_delay.ports", Vec::new(), "ack_delay.carry").args(&[NO_WAIT]));
    let key = vec![prefix([10, 2, 0, 0], 16)];
    entries.push(Entry::new("routing.ipv4_lpm", key, "routing.to_fabric").args(&[2]));
    for path in 0..4 {
        let key = vec![exact(path)];
        let entry = Entry::new("routing.path_select", key, "routing.set_uplink");
        entries.push(entry.args(&[3 + path]));
    }
    entries.push(Entry::new("routing.path_policy", Vec::new(), policy).args(arguments));
    let policy = Entry::new("telemetry.policy", Vec::new(), "telemetry.sample_every");
    entries.push(policy.args(&[0, 0, 0, 0]));
    entries
}

/// A frame as hosts and others send them. Most are TCP between known hosts. Any may be damaged.
fn frame(random: &mut StdRng) -> Vec<u8> {
    let payload = random.random_range(0..64_usize).saturating_sub(8);
    let hops = [0, 1, 2, 64, 255][random.random_range(0..5)];
    let protocol = if random.random_bool(0.8) { 6 } else { 17 };
    let addresses = [(); 2].map(|()| {
        let (leaf, host) = (random.random_range(1..4), random.random_range(1..4));
        [10, leaf, host, random.random_range(1..5)]
    });
    let bytes = 20 + payload as u16;
    let mut frame = vec![2, 0, 0, 0xff, 0, 1, 2, 0, 0, 0, 1, 1];
    if random.random_bool(0.3) {
        frame.extend([0x86, 0xdd]);
        frame.extend(ipv6(random, bytes, protocol, hops, addresses));
    } else {
        frame.extend([8, 0]);
        frame.extend(ipv4(random, bytes, protocol, hops, addresses));
    }
    let start = frame.len();
    frame.extend(random_bytes(random, 12));
    frame.push(0x50);
    frame.extend(random_bytes(random, 7 + payload));
    // The UDP port of in-band telemetry, with and without telemetry.
    if protocol == 17 && random.random_bool(0.7) {
        frame[start + 2..][..2].copy_from_slice(&[0xd4, 0x31]);
        if random.random_bool(0.7) {
            let words = [3, 7, random.random()][random.random_range(0..3)];
            frame[start + 6..][..7].copy_from_slice(&[0, 0, 0x18, words, 0, 6, 0x20]);
        }
    }
    // Some are damaged, or end early.
    if random.random_bool(0.1) {
        let place = random.random_range(12..36);
        frame[place] = random.random();
    }
    if random.random_bool(0.05) {
        frame.truncate(random.random_range(1..frame.len()));
    }
    frame
}

type Addresses = [[u8; 4]; 2];

/// An IPv4 header for a payload of `bytes`. Its checksum may be wrong.
fn ipv4(random: &mut StdRng, bytes: u16, protocol: u8, ttl: u8, addresses: Addresses) -> Vec<u8> {
    let mut ip = vec![0x45, random.random()];
    ip.extend((20 + bytes).to_be_bytes());
    ip.extend(random_bytes(random, 2));
    ip.extend([0x40, 0, ttl, protocol, 0, 0]);
    ip.extend(addresses.concat());
    if random.random_bool(0.9) {
        let sum = internet_checksum(&ip);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
    }
    ip
}

/// An IPv6 header, whose addresses may have another prefix.
fn ipv6(random: &mut StdRng, bytes: u16, protocol: u8, hops: u8, addresses: Addresses) -> Vec<u8> {
    let mut ip = vec![0x60 | random.random_range(0..16)];
    ip.extend(random_bytes(random, 3));
    ip.extend(bytes.to_be_bytes());
    ip.extend([protocol, hops]);
    for address in addresses {
        let first = if random.random_bool(0.9) { 0xfd } else { 0xfe };
        ip.extend([first, 0x57, 0x65, 0x66, 0x74, 0, 0, 0, 0, 0, 0, 0]);
        ip.extend(address);
    }
    ip
}

/// The JSON and the P4Info of a compiled program.
fn compiled(name: &str) -> (Vec<u8>, String) {
    let compiled = format!("{}/../compiled/{name}", env!("CARGO_MANIFEST_DIR"));
    (
        std::fs::read(format!("{compiled}.json")).unwrap(),
        std::fs::read_to_string(format!("{compiled}.p4info.txtpb")).unwrap(),
    )
}

/// Runs a compiled program with entries on both.
#[tokio::main(flavor = "current_thread")]
async fn compare_programs(bmv2: &Path, name: &str, entries: &[Entry]) {
    let (json, info) = compiled(name);
    let mut bmv2 = Bmv2::start(bmv2, None).await;
    let mut ours = programmed(&bmv2, &json, &info, entries).await;
    let mut random = StdRng::seed_from_u64(1);
    let packets: Vec<Frame> = (0..PACKETS)
        .map(|_| (random.random_range(1..7), frame(&mut random)))
        .collect();
    let theirs = bmv2.run(&packets).await;
    let ours = ours.run(&packets);
    let sent = ours.iter().filter(|frames| !frames.is_empty()).count();
    assert!(sent > PACKETS / 5, "only {sent} packets were routed at all");
    assert_same(&packets, &ours, &theirs);
}

fn a_leaf_sends_what_it_sends_on_bmv2(bmv2: &Path) {
    compare_programs(bmv2, "leaf", &leaf_entries("routing.subflow_paths"));
}

fn a_leaf_that_hashes_flows_chooses_the_paths_it_chooses_on_bmv2(bmv2: &Path) {
    compare_programs(bmv2, "leaf", &leaf_entries("routing.ecmp_paths"));
}

/// One host may claim classes, and the other none; flows of both that claim none get some by what
/// they have sent. BMv2 drops what has a priority without a queue.
fn a_leaf_that_knows_classes_sends_what_it_sends_on_bmv2(bmv2: &Path) {
    let mut entries = leaf_entries("routing.subflow_paths");
    for class in 0..8 {
        let dscp = exact(weft_topology::dscp_of_class(class).into());
        let set = Entry::new(
            "priority.classes",
            vec![dscp.clone()],
            "priority.set_priority",
        );
        entries.push(set.args(&[u64::from(7 - class)]));
        let claims = |port| vec![exact(port), dscp.clone()];
        let claim = Entry::new("policing.claims", claims(1), "policing.claim_class");
        entries.push(claim.args(&[class.into()]));
        entries.push(Entry::new(
            "policing.claims",
            claims(2),
            "policing.clear_class",
        ));
    }
    let dscp = |class| u64::from(weft_topology::dscp_of_class(class));
    for port in [1, 2] {
        let classify = Entry::new("by_sent.hosts", vec![exact(port)], "by_sent.classify");
        entries.push(classify.args(&[70, dscp(1), 100, dscp(6), LONG_TIMEOUT]));
    }
    compare_programs(bmv2, "leaf", &entries);
}

/// A timeout that no pause between the packets of a test exceeds, and one that every pause does.
const LONG_TIMEOUT: u64 = 1 << 40;
const NO_TIMEOUT: u64 = 0;

/// Random numbers are not those of BMv2, so there is one to draw from.
fn a_leaf_that_draws_from_one_uplink_sends_what_it_sends_on_bmv2(bmv2: &Path) {
    for (policy, arguments) in [
        ("routing.spray_uplinks", &[1][..]),
        ("routing.flowlet_uplinks", &[1, LONG_TIMEOUT]),
        ("routing.flowlet_uplinks", &[1, NO_TIMEOUT]),
    ] {
        compare_programs(bmv2, "leaf", &leaf_entries_with(policy, arguments));
    }
}

fn a_leaf_draws_among_all_uplinks_on_bmv2(bmv2: &Path) {
    const FEW: usize = 400;
    for (policy, arguments, uplinks) in [
        ("routing.spray_uplinks", &[4][..], 4),
        ("routing.flowlet_uplinks", &[4, LONG_TIMEOUT], 1),
        ("routing.flowlet_uplinks", &[4, NO_TIMEOUT], 4),
    ] {
        let packets = uplinks_of_a_flow(bmv2, &leaf_entries_with(policy, arguments), FEW);
        let said = format!("{policy} {arguments:?}: {packets:?}");
        assert_eq!(packets.values().sum::<usize>(), FEW, "{said}");
        assert_eq!(packets.len(), uplinks, "{said}");
        // 100 each of four; the standard deviation is below 9.
        let least = FEW / uplinks * 2 / 3;
        assert!(packets.values().all(|count| *count > least), "{said}");
    }
}

/// How many of `count` packets of one flow leave BMv2 by each port.
#[tokio::main(flavor = "current_thread")]
async fn uplinks_of_a_flow(bmv2: &Path, entries: &[Entry], count: usize) -> BTreeMap<u16, usize> {
    let (json, info) = compiled("leaf");
    let mut bmv2 = Bmv2::start(bmv2, None).await;
    programmed(&bmv2, &json, &info, entries).await;
    let flow = Tcp::subflow(address(1, 1, 1), address(2, 1, 1));
    let packets = vec![(PORT, flow.data(1, 1000).frame()); count];
    let mut by_port = BTreeMap::new();
    for (port, _) in bmv2.run(&packets).await.into_iter().flatten() {
        *by_port.entry(port).or_default() += 1;
    }
    by_port
}

fn a_spine_sends_what_it_sends_on_bmv2(bmv2: &Path) {
    let routes = (1..=3u64).map(|leaf| {
        let key = vec![prefix([10, leaf as u8, 0, 0], 16)];
        Entry::new("routing.ipv4_lpm", key, "routing.to_port").args(&[leaf])
    });
    let waits = Entry::new("ack_delay.ports", Vec::new(), "ack_delay.carry").args(&[NO_WAIT]);
    compare_programs(bmv2, "spine", &routes.chain([waits]).collect::<Vec<_>>());
}
