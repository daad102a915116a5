// SPDX-License-Identifier: Apache-2.0

//! v1model's functions.

use super::*;
use crate::pipeline::compile::symbols::Symbols;
use crate::pipeline::model::hash::{Algorithm, Calculation};

const PROGRAM: &[u8] = include_bytes!("../../../tests/fixtures/externs.json");

const VALUE: [u8; 9] = *b"123456789";

fn command(what: u8, index: u32, value: [u8; 9]) -> Vec<u8> {
    let mut packet = vec![what];
    packet.extend(index.to_be_bytes());
    packet.extend(value);
    packet.extend([0; 2]);
    packet
}

/// Sends a command. Returns the index and the value of the answer.
fn run(pipeline: &mut Pipeline, what: u8, index: u32) -> (u32, [u8; 9]) {
    let (frames, _) = send(pipeline, 1, &command(what, index, VALUE), 0);
    let frame = &frames[0].1;
    let index = u32::from_be_bytes(frame[1..5].try_into().unwrap());
    (index, frame[5..14].try_into().unwrap())
}

#[test]
fn registers_keep_what_packets_write() {
    let mut pipeline = pipeline(PROGRAM);
    run(&mut pipeline, 0x01, 2);
    assert_eq!(run(&mut pipeline, 0x02, 2), (b'9'.into(), VALUE));
    assert_eq!(run(&mut pipeline, 0x02, 1), (0, [0; 9]));
    let wide = pipeline.program().register_id("wide_register").unwrap();
    assert_eq!(pipeline.register(wide, 2).unwrap(), VALUE);
    pipeline.write_register(wide, 3, &[7]).unwrap();
    assert_eq!(run(&mut pipeline, 0x02, 3).1, [0, 0, 0, 0, 0, 0, 0, 0, 7]);
}

#[test]
fn an_index_out_of_bounds_reads_zero_and_writes_nothing() {
    let mut pipeline = pipeline(PROGRAM);
    for index in [4, u32::MAX] {
        run(&mut pipeline, 0x01, index);
        assert_eq!(run(&mut pipeline, 0x02, index), (0, [0; 9]));
    }
    let packets = pipeline.program().counter_id("packets").unwrap();
    let counted = pipeline.counter(packets).iter().map(|cell| cell.packets);
    assert_eq!(counted.collect::<Vec<_>>(), [0; 4]);
}

#[test]
fn an_indexed_counter_counts_packets_and_frame_bytes() {
    let mut pipeline = pipeline(PROGRAM);
    for _ in 0..2 {
        run(&mut pipeline, 0x01, 3);
    }
    let packets = pipeline.program().counter_id("packets").unwrap();
    let expected = CounterValue {
        packets: 2,
        bytes: 32,
    };
    assert_eq!(pipeline.counter(packets)[3], expected);
    pipeline
        .write_counter(packets, 3, CounterValue::default())
        .unwrap();
    assert_eq!(pipeline.counter(packets)[3], CounterValue::default());
    assert!(pipeline.write_counter(packets, 4, expected).is_err());
}

#[test]
fn hashes_are_bmv2s() {
    let mut pipeline = pipeline(PROGRAM);
    assert_eq!(run(&mut pipeline, 0x10, 0).0, 0xbb3d); // CRC-16/ARC's check value
    assert_eq!(run(&mut pipeline, 0x11, 0).0, 0xcbf4_3926); // CRC-32/ISO-HDLC's
    let sum = Algorithm::Csum16.compute(&VALUE) as u32;
    assert_eq!(run(&mut pipeline, 0x12, 0).0, sum);
    // 72 bits and 3 more: the last byte is padded with zeros.
    let mut input = VALUE.to_vec();
    input.push(5 << 5);
    let xor = Algorithm::Xor16.compute(&input) as u32;
    assert_eq!(run(&mut pipeline, 0x13, 0).0, 5 + xor % 0x1000);
}

#[test]
fn a_hash_is_base_plus_remainder_and_base_alone_without_a_range() {
    let mut pipeline = pipeline(PROGRAM);
    assert_eq!(run(&mut pipeline, 0x14, 1234).0, 7 + 4);
    assert_eq!(run(&mut pipeline, 0x15, 1234).0, 7);
}

#[test]
fn a_wrong_checksum_is_seen_and_updated() {
    let mut pipeline = pipeline(PROGRAM);
    let mut summed = vec![0x20, 0, 0, 0, 0, 9];
    summed.extend(VALUE);
    let right = Algorithm::Csum16.compute(&summed) as u16;
    let mut packet = command(0x20, 9, VALUE);
    let (frames, _) = send(&mut pipeline, 1, &packet, 0);
    assert_eq!(frames[0].1[1..5], [0, 0, 0, 1]);
    packet[14..16].copy_from_slice(&right.to_be_bytes());
    let (frames, _) = send(&mut pipeline, 1, &packet, 0);
    assert_eq!(frames[0].1[1..5], [0, 0, 0, 0]);
}

#[test]
fn a_checksum_may_cover_the_payload() {
    let mut pipeline = pipeline(PROGRAM);
    let mut packet = command(0x00, 9, VALUE);
    packet.extend([0x12, 0x34, 0x56]);
    let (frames, _) = send(&mut pipeline, 1, &packet, 0);
    let mut summed = vec![0xaa, 0, 0, 0, 0, 9];
    summed.extend(VALUE);
    summed.extend([0x12, 0x34, 0x56]);
    let sum = Algorithm::Csum16.compute(&summed) as u16;
    assert_eq!(frames[0].1[14..16], sum.to_be_bytes());
}

#[test]
fn digests_carry_the_values_of_their_call_and_a_packet_may_send_several() {
    let mut pipeline = pipeline(PROGRAM);
    let (_, digests) = send(&mut pipeline, 1, &command(0x30, 0x0102, VALUE), 0);
    let program = pipeline.program();
    let named = digests.iter().map(|digest| {
        let info = &program.digests()[digest.digest];
        (info.name.as_str(), digest.fields.clone())
    });
    let expected = [
        ("first_t", vec![vec![1, 2], VALUE.to_vec()]),
        ("second_t", vec![vec![0x30]]),
    ];
    assert_eq!(named.collect::<Vec<_>>(), expected);
    let widths = program.digests()[0].fields.iter().map(|field| field.bits);
    assert_eq!(widths.collect::<Vec<_>>(), [32, 72]);
}

#[test]
fn random_numbers_depend_on_the_seed_alone() {
    let draw = |seed| {
        let program = Arc::new(Program::load(PROGRAM).unwrap());
        let mut pipeline = Pipeline::new(program, seed);
        (0..64)
            .map(|_| run(&mut pipeline, 0x31, 0).0)
            .collect::<Vec<_>>()
    };
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
    assert!(draw(1).iter().all(|number| (10..=12).contains(number)));
}

#[test]
fn truncate_cuts_the_frame() {
    let mut pipeline = pipeline(PROGRAM);
    let (frames, _) = send(&mut pipeline, 1, &command(0x32, 9, VALUE), 0);
    assert_eq!(frames[0].1, [0xaa, 0, 0]);
}

#[test]
fn a_packet_that_fails_an_assertion_is_dropped() {
    let mut pipeline = pipeline(PROGRAM);
    assert_eq!(
        send(&mut pipeline, 1, &command(0x33, 1, VALUE), 0).0.len(),
        1
    );
    assert_eq!(
        send(&mut pipeline, 1, &command(0x33, 0, VALUE), 0).0.len(),
        0
    );
}

#[test]
fn exit_ends_ingress_and_egress_still_runs() {
    let mut pipeline = pipeline(PROGRAM);
    let (frames, _) = send(&mut pipeline, 1, &command(0x34, 1, VALUE), 0);
    assert_eq!(frames[0].1[0], 0x34, "what follows exit did not run");
}

#[test]
fn a_marked_packet_is_dropped_after_ingress_and_after_egress() {
    let mut pipeline = pipeline(PROGRAM);
    let mut effects = Effects::default();
    pipeline.ingress(1, &mut command(0x35, 1, VALUE), 0, &mut effects);
    assert!(effects.outputs.is_empty());
}

#[test]
fn a_checksum_leaves_out_fields_of_headers_that_are_not_valid() {
    let program = Program::load(PROGRAM).unwrap();
    let symbols = Symbols::build(&serde_json::from_slice(PROGRAM).unwrap()).unwrap();
    let command = symbols.header("command", "").unwrap();
    let sums = |valid: u64| {
        let mut words = vec![1; program.layout.initial.len()];
        words[program.layout.headers[command].base as usize] = valid;
        let sum = |calculation: &Calculation| {
            calculation.compute(&program.layout, &words, &[], &mut Vec::new())
        };
        program.calculations.iter().map(sum).collect::<Vec<_>>()
    };
    assert!(sums(0).contains(&0xffff), "the sum of nothing");
    assert!(!sums(1).contains(&0xffff));
}

/// The colours of packets that come at once.
fn colors(pipeline: &mut Pipeline, what: u8, cell: u32, packets: usize) -> Vec<u32> {
    (0..packets).map(|_| run(pipeline, what, cell).0).collect()
}

#[test]
fn meters_colour_packets_by_bytes_or_by_packets() {
    let mut pipeline = pipeline(PROGRAM);
    let meter = |pipeline: &Pipeline, name| pipeline.program().meter_id(name).unwrap();
    let config = |committed_burst, peak_burst| {
        Some(MeterConfig {
            committed_rate: 1,
            committed_burst,
            rates: MeterRates::Two {
                peak_rate: 1,
                peak_burst,
            },
        })
    };
    // A frame has 16 bytes.
    let bytes = meter(&pipeline, "byte_rates");
    pipeline.write_meter(bytes, 1, config(32, 48)).unwrap();
    assert_eq!(colors(&mut pipeline, 0x40, 1, 4), [0, 0, 1, 2]);
    let packets = meter(&pipeline, "packet_rates");
    pipeline.write_meter(packets, 1, config(1, 2)).unwrap();
    assert_eq!(colors(&mut pipeline, 0x41, 1, 3), [0, 1, 2]);
    // Other cells and cells beyond the array colour everything green.
    assert_eq!(colors(&mut pipeline, 0x40, 2, 4), [0; 4]);
    assert_eq!(colors(&mut pipeline, 0x40, 9, 4), [0; 4]);
    assert_eq!(pipeline.meter(packets).nth(1), Some(config(1, 2)));
    pipeline.write_meter(packets, 1, None).unwrap();
    assert_eq!(colors(&mut pipeline, 0x41, 1, 4), [0; 4]);
    assert!(pipeline.write_meter(packets, 4, None).is_err());
}
