//! Fields as they stand on the wire, several at a time.
//!
//! Neighbouring fields are packed into pieces of at most 64 bits, which end on a byte where they
//! can: an IPv4 header is three of them, and one load or store serves up to eight fields.

use super::slot::{Field, Slot};

/// Neighbouring fields.
#[derive(Debug, Clone)]
pub enum Piece {
    /// Fields of together at most 64 bits.
    Packed { bits: u32, parts: Box<[Part]> },
    /// A field of more than 64 bits.
    Wide(Slot),
    /// A varbit field.
    Variable(Field),
}

/// A field in a packed piece.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    pub word: u32,
    /// How many bits of the piece follow it, less than 64.
    pub shift: u32,
    pub mask: u64,
}
