// SPDX-License-Identifier: Apache-2.0

//! Checksums, and the deparser.

use super::bits::BitWriter;
use super::eval::Scope;
use super::packet::PacketState;
use super::wire::write_fields;
use crate::pipeline::model::hash::Checksum;
use crate::pipeline::model::program::Program;
use crate::pipeline::model::word::mask64;

impl Checksum {
    /// The correct checksum of a packet; `None` if the program does not ask for one.
    fn expected(
        &self,
        program: &Program,
        packet: &PacketState,
        scratch: &mut Vec<u8>,
    ) -> Option<u64> {
        let scope = &Scope {
            words: &packet.words,
            args: &[],
            stacks: &program.layout.stacks,
        };
        if self.valid.get(&packet.words) == 0 {
            return None;
        }
        if !self
            .condition
            .as_ref()
            .is_none_or(|condition| condition.test(scope))
        {
            return None;
        }
        let calculation = &program.calculations[self.calculation];
        Some(calculation.compute(&program.layout, &packet.words, packet.payload(), scratch))
    }
}

/// Whether all checksums that the program verifies are correct.
pub fn verify_checksums(program: &Program, packet: &PacketState, scratch: &mut Vec<u8>) -> bool {
    let mut verified = program.checksums.iter().filter(|checksum| checksum.verify);
    verified.all(|checksum| {
        let expected = checksum.expected(program, packet, scratch);
        let mask = mask64(checksum.target.bits);
        expected.is_none_or(|sum| sum & mask == checksum.target.get(&packet.words))
    })
}

/// Updates the checksums that the program updates.
pub fn update_checksums(program: &Program, packet: &mut PacketState, scratch: &mut Vec<u8>) {
    for checksum in program.checksums.iter().filter(|checksum| checksum.update) {
        if let Some(sum) = checksum.expected(program, packet, scratch) {
            checksum.target.set(&mut packet.words, sum);
        }
    }
}

/// Sets `frame` to the bytes of a packet: its valid headers in the deparser's order, and its
/// payload. This consumes the packet's own bytes. If the headers have the same length as before,
/// which is the usual case, the payload is not moved.
pub fn deparse(program: &Program, packet: &mut PacketState, frame: &mut Vec<u8>) {
    frame.clear();
    let mut writer = BitWriter::new(frame);
    for header in &program.emitted {
        let header = &program.layout.headers[*header];
        if header.is_valid(&packet.words) {
            write_fields(&header.groups, &packet.words, &mut writer);
        }
    }
    writer.finish();
    if frame.len() == packet.parsed {
        packet.data[..packet.parsed].copy_from_slice(frame);
        std::mem::swap(&mut packet.data, frame);
    } else {
        frame.extend_from_slice(packet.payload());
    }
    if let Some(length) = packet.truncate {
        frame.truncate(length);
    }
}
