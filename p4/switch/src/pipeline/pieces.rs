//! Fields between the wire and a packet's words, several at a time.
//!
//! Neighbouring fields are packed into pieces of at most 64 bits, which end on a byte where they
//! can: an IPv4 header is three of them, and one load or store serves up to eight fields.

use super::bits::{BitWriter, read_bits, read_limbs};
use super::layout::{Field, Slot};
use super::word::mask64;

/// Neighbouring fields.
#[derive(Debug, Clone)]
pub(super) enum Piece {
    /// Fields of together at most 64 bits.
    Packed { bits: u32, parts: Box<[Part]> },
    /// A field of more than 64 bits.
    Wide(Slot),
    /// A varbit field.
    Variable(Field),
}

/// A field in a packed piece.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    word: u32,
    /// How many bits of the piece follow it, less than 64.
    shift: u32,
    mask: u64,
}

/// Packs fields that follow each other.
pub(super) fn pack(fields: &[Field]) -> Box<[Piece]> {
    let mut pieces = Vec::new();
    let mut open: Vec<Slot> = Vec::new();
    for field in fields {
        if field.variable || field.slot.bits > 64 {
            close_all(&mut open, &mut pieces);
            pieces.push(if field.variable {
                Piece::Variable(*field)
            } else {
                Piece::Wide(field.slot)
            });
            continue;
        }
        while total_bits(&open) + field.slot.bits > 64 {
            let count = whole_bytes(&open).unwrap_or(open.len());
            close(&mut open, count, &mut pieces);
        }
        open.push(field.slot);
    }
    close_all(&mut open, &mut pieces);
    pieces.into()
}

fn total_bits(slots: &[Slot]) -> u32 {
    slots.iter().map(|slot| slot.bits).sum()
}

/// The most of the first slots that are whole bytes together.
fn whole_bytes(slots: &[Slot]) -> Option<usize> {
    (1..=slots.len())
        .rev()
        .find(|count| total_bits(&slots[..*count]) % 8 == 0)
}

fn close_all(open: &mut Vec<Slot>, pieces: &mut Vec<Piece>) {
    let count = open.len();
    if count > 0 {
        close(open, count, pieces);
    }
}

/// Makes a piece of the first slots.
fn close(open: &mut Vec<Slot>, count: usize, pieces: &mut Vec<Piece>) {
    let slots: Vec<Slot> = open.drain(..count).collect();
    let bits = total_bits(&slots);
    let mut left = bits;
    let parts = slots.iter().map(|slot| {
        left -= slot.bits;
        Part {
            word: slot.word,
            shift: left,
            mask: mask64(slot.bits),
        }
    });
    let parts = parts.collect();
    pieces.push(Piece::Packed { bits, parts });
}

/// Appends fields as they stand on the wire.
pub(super) fn write_pieces(pieces: &[Piece], words: &[u64], writer: &mut BitWriter) {
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
pub(super) fn read_pieces(pieces: &[Piece], data: &[u8], variable_bits: u32, words: &mut [u64]) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fields(widths: &[u32]) -> Vec<Field> {
        let mut word = 0;
        let fields = widths.iter().map(|bits| {
            let slot = Slot {
                word,
                bits: *bits,
                signed: false,
            };
            word += slot.limbs() as u32;
            Field {
                slot,
                variable: false,
            }
        });
        fields.collect()
    }

    #[test]
    fn an_ipv4_header_is_three_pieces() {
        let pieces = pack(&fields(&[4, 4, 8, 16, 16, 3, 13, 8, 8, 16, 32, 32]));
        assert_eq!(pieces.len(), 3);
    }

    proptest! {
        #[test]
        fn packed_fields_come_back(widths in proptest::collection::vec(1u32..150, 1..20), seed: u64) {
            let fields = fields(&widths);
            let pieces = pack(&fields);
            let size = fields.iter().map(|field| field.slot.limbs()).sum();
            let mut words = vec![0u64; size];
            for (index, field) in fields.iter().enumerate() {
                let limbs = &mut words[field.slot.range()];
                limbs.fill(seed.rotate_left(index as u32));
                super::super::word::mask_limbs(limbs, field.slot.bits);
            }
            let mut bytes = Vec::new();
            let mut writer = BitWriter::new(&mut bytes);
            write_pieces(&pieces, &words, &mut writer);
            writer.finish();
            prop_assert_eq!(bytes.len() as u32, widths.iter().sum::<u32>().div_ceil(8));
            let mut read = vec![0u64; size];
            read_pieces(&pieces, &bytes, 0, &mut read);
            prop_assert_eq!(read, words);
        }
    }
}
