// SPDX-License-Identifier: Apache-2.0

//! Fields between the wire and a packet's words.

use super::bits::{BitWriter, read_bits, read_limbs};
use crate::pipeline::model::wire::FieldGroup;

/// Appends fields as they stand on the wire.
pub fn write_fields(groups: &[FieldGroup], words: &[u64], writer: &mut BitWriter) {
    for group in groups {
        match group {
            FieldGroup::Packed { bits, fields } => {
                let value = fields.iter().fold(0, |value, field| {
                    value | words[field.word as usize].wrapping_shl(field.shift)
                });
                writer.push(value, *bits);
            }
            FieldGroup::Wide(slot) => writer.push_limbs(&words[slot.range()], slot.bits),
            FieldGroup::Variable(field) => {
                let bits = words[field.length_word()] as u32;
                if bits > 0 {
                    writer.push_limbs(&words[field.slot.range()], bits);
                }
            }
        }
    }
}

/// Reads fields off the wire; `variable_bits` is the length of a varbit field.
pub fn read_fields(groups: &[FieldGroup], data: &[u8], variable_bits: u32, words: &mut [u64]) {
    let mut offset = 0;
    for group in groups {
        match group {
            FieldGroup::Packed { bits, fields } => {
                let value = read_bits(data, offset, *bits);
                for field in fields {
                    words[field.word as usize] = value.wrapping_shr(field.shift) & field.mask;
                }
                offset += *bits as usize;
            }
            FieldGroup::Wide(slot) => {
                read_limbs(data, offset, slot.bits, &mut words[slot.range()]);
                offset += slot.bits as usize;
            }
            FieldGroup::Variable(field) => {
                words[field.length_word()] = variable_bits.into();
                let limbs = &mut words[field.slot.range()];
                read_limbs(data, offset, variable_bits, limbs);
                offset += variable_bits as usize;
            }
        }
    }
}
