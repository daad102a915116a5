//! The leaf of Weft itself.

use super::*;
use crate::pipeline::model::hash::Algorithm;

const LEAF: &[u8] = include_bytes!("../../../../compiled/leaf.json");

const SYN: u8 = 0x02;
const ACK: u8 = 0x10;

struct Segment {
    source: [u8; 4],
    destination: [u8; 4],
    ports: (u16, u16),
    sequence: u32,
    acknowledged: u32,
    flags: u8,
    payload_bytes: usize,
}

fn frame(segment: &Segment) -> Vec<u8> {
    let mut ip = vec![0x45, 0];
    ip.extend((40 + segment.payload_bytes as u16).to_be_bytes());
    ip.extend([0x12, 0x34, 0x40, 0, 64, 6, 0, 0]);
    ip.extend(segment.source);
    ip.extend(segment.destination);
    let sum = Algorithm::Csum16.compute(&ip) as u16;
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    let mut frame = vec![2, 0, 0, 0xff, 0, 1, 2, 0, 0, 0, 1, 1, 0x08, 0];
    frame.extend(ip);
    frame.extend(segment.ports.0.to_be_bytes());
    frame.extend(segment.ports.1.to_be_bytes());
    frame.extend(segment.sequence.to_be_bytes());
    frame.extend(segment.acknowledged.to_be_bytes());
    frame.extend([0x50, segment.flags, 0xff, 0xff, 0, 0, 0, 0]);
    frame.extend(vec![0xab; segment.payload_bytes]);
    frame
}

fn data(sequence: u32, flags: u8, payload_bytes: usize) -> Vec<u8> {
    frame(&Segment {
        source: [10, 1, 1, 1],
        destination: [10, 2, 1, 1],
        ports: (4000, 80),
        sequence,
        acknowledged: 0,
        flags,
        payload_bytes,
    })
}

fn ack(acknowledged: u32) -> Vec<u8> {
    frame(&Segment {
        source: [10, 2, 1, 1],
        destination: [10, 1, 1, 1],
        ports: (80, 4000),
        sequence: 9,
        acknowledged,
        flags: ACK,
        payload_bytes: 0,
    })
}

/// Leaf 1 with two hosts at ports 1 and 2 and two uplinks at ports 3 and 4.
fn leaf() -> Pipeline {
    let mut leaf = pipeline(LEAF);
    for host in 1..=2u64 {
        insert(
            &mut leaf,
            "routing.ipv4_lpm",
            &[lpm(0x0a01_0000 | host << 8, 24)],
            "routing.to_host",
            &[host, 0x0200_0000_0100 | host],
        );
        insert(
            &mut leaf,
            "rtt.host_port",
            &[exact(host)],
            "rtt.measure",
            &[],
        );
        insert(
            &mut leaf,
            "routing.path_select",
            &[exact(host - 1)],
            "routing.set_uplink",
            &[host + 2],
        );
    }
    insert(
        &mut leaf,
        "routing.ipv4_lpm",
        &[lpm(0x0a02_0000, 16)],
        "routing.to_fabric",
        &[2],
    );
    let policy = table(&leaf, "routing.path_policy");
    let paths = call(&leaf, policy, "routing.weft_paths", &[2]);
    leaf.set_default(policy, Some(&paths)).unwrap();
    let telemetry = table(&leaf, "telemetry.policy");
    let every = call(&leaf, telemetry, "telemetry.sample_every", &[0, 0, 0, 0]);
    leaf.set_default(telemetry, Some(&every)).unwrap();
    leaf
}

/// The path of the contract: (P + P + crc16(net xor net)) mod paths.
fn expected_path(source: [u8; 4], destination: [u8; 4], paths: u32) -> u32 {
    let net: Vec<u8> = (0..3).map(|i| source[i] ^ destination[i]).collect();
    let pair = Algorithm::Crc16.compute(&net) as u32;
    (u32::from(source[3]) + u32::from(destination[3]) + pair) % paths
}

#[test]
fn the_path_is_the_contracts_in_both_directions() {
    let mut leaf = leaf();
    let path = expected_path([10, 1, 1, 1], [10, 2, 1, 1], 2);
    assert_eq!(path, expected_path([10, 2, 1, 1], [10, 1, 1, 1], 2));
    let (frames, _) = send(&mut leaf, 1, &data(100, ACK, 1000), 5);
    assert_eq!(frames.len(), 1);
    assert_eq!(u32::from(frames[0].0), path + 3);
}

#[test]
fn a_routed_frame_differs_in_ttl_and_checksum_only() {
    let mut leaf = leaf();
    let sent = data(100, ACK, 1000);
    let (frames, _) = send(&mut leaf, 1, &sent, 5);
    let got = &frames[0].1;
    assert_eq!(got[22], 63);
    assert_eq!(Algorithm::Csum16.compute(&got[14..34]), 0);
    let mut restored = got.clone();
    restored[22] = 64;
    restored[24..26].copy_from_slice(&sent[24..26]);
    assert_eq!(restored, sent);
}

#[test]
fn an_ack_gives_the_time_since_its_segment_as_a_digest() {
    let mut leaf = leaf();
    send(&mut leaf, 1, &data(99, SYN, 0), 1_000);
    send(&mut leaf, 1, &data(100, ACK, 1000), 2_000);
    let (frames, digests) = send(&mut leaf, 3, &ack(1100), 45_000);
    assert_eq!(frames[0].0, 1);
    assert_eq!(&frames[0].1[..6], &[2, 0, 0, 0, 1, 1]);
    let program = leaf.program().clone();
    let samples: Vec<&Digest> = digests
        .iter()
        .filter(|digest| program.digests()[digest.digest].name == "rtt_sample_t")
        .collect();
    let path = expected_path([10, 1, 1, 1], [10, 2, 1, 1], 2);
    let expected: Vec<Vec<u8>> = vec![
        vec![10, 1, 1, 1],
        vec![10, 2, 1, 1],
        bytes(4000),
        bytes(80),
        bytes(path.into()),
        bytes(1040),
        bytes(43_000),
        bytes(43_000),
        bytes(43_000),
        bytes(45_000),
    ];
    assert_eq!(samples.len(), 1);
    assert_eq!(samples[0].fields, expected);
    // One segment gives one sample.
    let (_, digests) = send(&mut leaf, 3, &ack(1100), 50_000);
    assert!(
        digests
            .iter()
            .all(|d| program.digests()[d.digest].name != "rtt_sample_t")
    );
}

/// Prints what a packet costs; run it with `--ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn a_packet_costs_little() {
    let mut leaf = leaf();
    let telemetry = table(&leaf, "telemetry.policy");
    let every = call(
        &leaf,
        telemetry,
        "telemetry.sample_every",
        &[1 << 40, 1 << 40, 1 << 40, 0],
    );
    leaf.set_default(telemetry, Some(&every)).unwrap();
    send(&mut leaf, 1, &data(99, SYN, 0), 1_000);
    let mut effects = Effects::default();
    let mut frame = Vec::new();
    let mut best = f64::MAX;
    for round in 0..200u32 {
        let numbers = round * 1_000..(round + 1) * 1_000;
        let mut packets: Vec<Vec<u8>> = numbers.map(|n| data(100 + n * 1400, ACK, 1400)).collect();
        let start = std::time::Instant::now();
        for packet in &mut packets {
            leaf.ingress(1, packet, round.into(), &mut effects);
            let output = effects.outputs.pop().unwrap();
            leaf.egress(
                output.packet,
                QueueMetadata::default(),
                1,
                &mut frame,
                &mut effects,
            );
        }
        best = best.min(start.elapsed().as_secs_f64() / packets.len() as f64);
    }
    println!("{:.0} ns a packet", best * 1e9);
}
