// SPDX-License-Identifier: Apache-2.0

//! Packs the fields of a header, so that one load or store serves several.

use crate::pipeline::model::slot::{Field, Slot};
use crate::pipeline::model::wire::{FieldGroup, PackedField};
use crate::pipeline::model::word::mask64;

/// Packs adjacent fields.
pub fn group_fields(fields: &[Field]) -> Box<[FieldGroup]> {
    let mut groups = Vec::new();
    let mut open: Vec<Slot> = Vec::new();
    for field in fields {
        if field.variable || field.slot.bits > 64 {
            close_groups(&mut open, &mut groups);
            groups.push(if field.variable {
                FieldGroup::Variable(*field)
            } else {
                FieldGroup::Wide(field.slot)
            });
            continue;
        }
        while total_bits(&open) + field.slot.bits > 64 {
            let count = whole_bytes(&open).unwrap_or(open.len());
            close_group(&mut open, count, &mut groups);
        }
        open.push(field.slot);
    }
    close_groups(&mut open, &mut groups);
    groups.into()
}

fn total_bits(slots: &[Slot]) -> u32 {
    slots.iter().map(|slot| slot.bits).sum()
}

/// The longest run of first slots that together are whole bytes.
fn whole_bytes(slots: &[Slot]) -> Option<usize> {
    (1..=slots.len())
        .rev()
        .find(|count| total_bits(&slots[..*count]) % 8 == 0)
}

fn close_groups(open: &mut Vec<Slot>, groups: &mut Vec<FieldGroup>) {
    let count = open.len();
    if count > 0 {
        close_group(open, count, groups);
    }
}

/// Makes a group of the first slots.
fn close_group(open: &mut Vec<Slot>, count: usize, groups: &mut Vec<FieldGroup>) {
    let slots: Vec<Slot> = open.drain(..count).collect();
    let bits = total_bits(&slots);
    let mut left = bits;
    let fields = slots.iter().map(|slot| {
        left -= slot.bits;
        PackedField {
            word: slot.word,
            shift: left,
            mask: mask64(slot.bits),
        }
    });
    let fields = fields.collect();
    groups.push(FieldGroup::Packed { bits, fields });
}
