// SPDX-License-Identifier: Apache-2.0

//! The parser and header stacks.

use super::*;

const PROGRAM: &[u8] = include_bytes!("../../../tests/fixtures/parsing.json");

/// The errors as the program reports them.
const NONE: u8 = 0;
const PACKET_TOO_SHORT: u8 = 1;
const NO_MATCH: u8 = 2;
const STACK_OUT_OF_BOUNDS: u8 = 3;
const HEADER_TOO_SHORT: u8 = 4;
const PARSER_TIMEOUT: u8 = 5;
const PARSER_INVALID_ARGUMENT: u8 = 6;
const FORBIDDEN_LABEL: u8 = 7;

/// The outcome: the parser's error, the byte from `lookahead`, the last index of the stack, and the
/// packet.
fn parse(packet: &[u8]) -> (u8, u8, u8, Vec<u8>) {
    let mut pipeline = pipeline(PROGRAM);
    let (frames, _) = send(&mut pipeline, 1, packet, 0);
    let frame = &frames[0].1;
    assert_eq!(frame[0], 0);
    (frame[1], frame[2], frame[3], frame[4..].to_vec())
}

fn error(packet: &[u8]) -> u8 {
    let (error, _, _, rest) = parse(packet);
    assert_eq!(rest, packet, "what was not parsed is payload");
    error
}

#[test]
fn select_looks_at_all_parts_of_its_key() {
    assert_eq!(
        error(&[0x17, 7, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]),
        NONE
    );
    assert_eq!(error(&[0x17, 8, 1, 2]), NO_MATCH);
    assert_eq!(error(&[0x27, 7, 1, 2]), NO_MATCH);
    assert_eq!(error(&[0x02, 1]), NO_MATCH);
}

#[test]
fn a_short_packet_is_an_error_and_stays_whole() {
    assert_eq!(error(&[0x17, 7, 1, 2, 3]), PACKET_TOO_SHORT);
    assert_eq!(error(&[0x17]), PACKET_TOO_SHORT);
    assert_eq!(error(&[]), PACKET_TOO_SHORT);
    assert_eq!(error(&[0x04, 0, 1, 2]), PACKET_TOO_SHORT);
}

#[test]
fn stack_elements_are_taken_until_the_last() {
    let (error, _, last, rest) = parse(&[0x01, 0, 2, 4, 7, 0x99]);
    assert_eq!((error, last, rest), (NONE, 2, vec![0x01, 0, 2, 4, 7, 0x99]));
    let (error, _, last, _) = parse(&[0x01, 0, 3]);
    assert_eq!((error, last), (NONE, 0));
}

#[test]
fn a_stack_has_no_room_for_one_too_many() {
    assert_eq!(error(&[0x01, 0, 2, 4, 6, 8, 11]), STACK_OUT_OF_BOUNDS);
}

#[test]
fn verify_gives_the_programs_own_error() {
    assert_eq!(error(&[0x01, 0, 2, 0xff]), FORBIDDEN_LABEL);
}

#[test]
fn a_varbit_takes_what_its_length_says() {
    assert_eq!(error(&[0x02, 0, 3, 0xa, 0xb, 0xc, 0xd]), NONE);
    assert_eq!(error(&[0x02, 0, 0, 0xa]), NONE);
    assert_eq!(error(&[0x02, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8]), NONE);
    assert_eq!(
        error(&[0x02, 0, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        HEADER_TOO_SHORT
    );
    assert_eq!(error(&[0x02, 0, 8, 1, 2, 3]), PACKET_TOO_SHORT);
    assert_eq!(error(&[0x02, 0, 9, 1, 2, 3]), PACKET_TOO_SHORT);
}

#[test]
fn advance_skips_whole_bytes_only() {
    let (error, _, _, rest) = parse(&[0x03, 16, 1, 2, 3]);
    assert_eq!((error, rest), (NONE, vec![0x03, 16, 3]));
    assert_eq!(
        super::parsing::error(&[0x03, 9, 1, 2, 3]),
        PARSER_INVALID_ARGUMENT
    );
    assert_eq!(
        super::parsing::error(&[0x03, 32, 1, 2, 3]),
        PACKET_TOO_SHORT
    );
}

#[test]
fn lookahead_sees_and_takes_nothing() {
    let (error, ahead, _, rest) = parse(&[0x04, 0, 0x77, 0x88, 0x99]);
    assert_eq!(
        (error, ahead, rest),
        (NONE, 0x99, vec![0x04, 0, 0x77, 0x88, 0x99])
    );
    let mut packet = vec![0x04, 0, 0x12, 0x34];
    assert_eq!(super::parsing::error(&packet), PACKET_TOO_SHORT);
    packet.resize(13, 0xee);
    assert_eq!(super::parsing::error(&packet), NONE);
}

#[test]
fn a_parser_that_takes_nothing_off_the_packet_ends() {
    assert_eq!(error(&[0x05, 1]), PARSER_TIMEOUT);
    assert_eq!(error(&[0x05, 0]), NONE);
}

#[test]
fn push_front_makes_room_and_drops_what_has_none() {
    let (_, _, _, rest) = parse(&[0x06, 0, 2, 4, 7, 0x99]);
    assert_eq!(rest, [0x06, 0, 0xaa, 2, 4, 0x99]);
}

#[test]
fn pop_front_moves_the_rest_to_the_front() {
    let (_, _, _, rest) = parse(&[0x07, 0, 2, 4, 7, 0x99]);
    assert_eq!(rest, [0x07, 0, 4, 7, 0x99]);
}

#[test]
fn an_element_can_be_written_by_its_index() {
    let (_, _, _, rest) = parse(&[0x08, 1, 2, 4, 7]);
    assert_eq!(rest, [0x08, 1, 2, 0x54, 7]);
    let (_, _, _, rest) = parse(&[0x08, 3, 2, 4, 7]);
    assert_eq!(
        rest,
        [0x08, 3, 2, 4, 7],
        "an index out of bounds writes nothing"
    );
}
