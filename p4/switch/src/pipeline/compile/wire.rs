//! From the fields of a header to loads and stores of several at a time.

use crate::pipeline::model::slot::{Field, Slot};
use crate::pipeline::model::wire::{Part, Piece};
use crate::pipeline::model::word::mask64;

/// Packs fields that follow each other.
pub fn pack(fields: &[Field]) -> Box<[Piece]> {
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
