// SPDX-License-Identifier: Apache-2.0

//! Weft's own leaf program.

use weft_testing::packet::{Tcp, address, checksum_is_right, expected_path};

use super::*;

const LEAF: &[u8] = include_bytes!("../../../../compiled/leaf.json");

/// A connection from the first host of leaf 1 to that of leaf 2, without TCP options.
fn connection() -> Tcp {
    Tcp {
        src_port: 4000,
        dst_port: 80,
        option_bytes: 0,
        ..Tcp::subflow(address(1, 1, 1), address(2, 1, 1))
    }
}

fn data(sequence: u32, payload_bytes: usize) -> Vec<u8> {
    connection().data(sequence, payload_bytes).frame()
}

fn ack(acknowledged: u32) -> Vec<u8> {
    let ack = connection().ack_of(acknowledged);
    Tcp {
        option_bytes: 0,
        ..ack
    }
    .frame()
}

/// The path of the connection, from 0.
fn path() -> u8 {
    expected_path(address(1, 1, 1), address(2, 1, 1), 2)
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
    let paths = call(&leaf, policy, "routing.subflow_paths", &[2]);
    leaf.set_default(policy, Some(&paths)).unwrap();
    let telemetry = table(&leaf, "telemetry.policy");
    let every = call(&leaf, telemetry, "telemetry.sample_every", &[0, 0, 0, 0]);
    leaf.set_default(telemetry, Some(&every)).unwrap();
    leaf
}

#[test]
fn the_path_is_the_contracts_in_both_directions() {
    let mut leaf = leaf();
    assert_eq!(path(), expected_path(address(2, 1, 1), address(1, 1, 1), 2));
    let (frames, _) = send(&mut leaf, 1, &data(100, 1000), 5);
    assert_eq!(frames.len(), 1);
    assert_eq!(frames[0].0, u16::from(path()) + 3);
}

#[test]
fn a_routed_frame_differs_in_ttl_and_checksum_only() {
    let mut leaf = leaf();
    let sent = data(100, 1000);
    let (frames, _) = send(&mut leaf, 1, &sent, 5);
    let got = &frames[0].1;
    assert_eq!(got[22], 63);
    assert!(checksum_is_right(got));
    let mut restored = got.clone();
    restored[22] = 64;
    restored[24..26].copy_from_slice(&sent[24..26]);
    assert_eq!(restored, sent);
}

#[test]
fn an_ack_gives_the_time_since_its_segment_as_a_digest() {
    let mut leaf = leaf();
    send(&mut leaf, 1, &connection().syn(99).frame(), 1_000);
    send(&mut leaf, 1, &data(100, 1000), 2_000);
    let (frames, digests) = send(&mut leaf, 3, &ack(1100), 45_000);
    assert_eq!(frames[0].0, 1);
    assert_eq!(&frames[0].1[..6], &[2, 0, 0, 0, 1, 1]);
    let program = leaf.program().clone();
    let samples: Vec<&Digest> = digests
        .iter()
        .filter(|digest| program.digests()[digest.digest].name == "rtt_sample_t")
        .collect();
    let expected: Vec<Vec<u8>> = vec![
        vec![10, 1, 1, 1],
        vec![10, 2, 1, 1],
        bytes(4000),
        bytes(80),
        bytes(path().into()),
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
    send(&mut leaf, 1, &connection().syn(99).frame(), 1_000);
    let mut effects = Effects::default();
    let mut frame = Vec::new();
    let mut best = f64::MAX;
    for round in 0..200u32 {
        let numbers = round * 1_000..(round + 1) * 1_000;
        let mut packets: Vec<Vec<u8>> = numbers.map(|n| data(100 + n * 1400, 1400)).collect();
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
