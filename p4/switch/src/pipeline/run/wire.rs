//! Fields between the wire and a packet's words.

use super::bits::{BitWriter, read_bits, read_limbs};
use crate::pipeline::model::wire::Piece;

/// Appends fields as they stand on the wire.
pub fn write_pieces(pieces: &[Piece], words: &[u64], writer: &mut BitWriter) {
    for piece in pieces {
        match piece {
            Piece::Packed { bits, parts } => {
                let value = parts.iter().fold(0, |value, part| {
                    value | words[part.word as usize].wrapping_shl(part.shift)
                });
                writer.push(value, *bits);
            }
            Piece::Wide(slot) => writer.push_limbs(&words[slot.range()], slot.bits),
            Piece::Variable(field) => {
                let bits = words[field.length_word()] as u32;
                if bits > 0 {
                    writer.push_limbs(&words[field.slot.range()], bits);
                }
            }
        }
    }
}

/// Reads fields off the wire; `variable_bits` is the length of a varbit field.
pub fn read_pieces(pieces: &[Piece], data: &[u8], variable_bits: u32, words: &mut [u64]) {
    let mut offset = 0;
    for piece in pieces {
        match piece {
            Piece::Packed { bits, parts } => {
                let value = read_bits(data, offset, *bits);
                for part in parts {
                    words[part.word as usize] = value.wrapping_shr(part.shift) & part.mask;
                }
                offset += *bits as usize;
            }
            Piece::Wide(slot) => {
                read_limbs(data, offset, slot.bits, &mut words[slot.range()]);
                offset += slot.bits as usize;
            }
            Piece::Variable(field) => {
                words[field.length_word()] = variable_bits.into();
                let limbs = &mut words[field.slot.range()];
                read_limbs(data, offset, variable_bits, limbs);
                offset += variable_bits as usize;
            }
        }
    }
}
