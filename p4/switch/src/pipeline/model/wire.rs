//! Fields as they stand on the wire, several at a time.
//!
//! Neighbouring fields are packed into groups of at most 64 bits, which end on a byte where they
//! can: an IPv4 header is three of them, and one load or store serves up to eight fields.

use super::slot::{Field, Slot};

/// Neighbouring fields.
#[derive(Debug, Clone)]
pub enum FieldGroup {
    /// Fields of together at most 64 bits.
    Packed {
        bits: u32,
        fields: Box<[PackedField]>,
    },
    /// A field of more than 64 bits.
    Wide(Slot),
    /// A varbit field.
    Variable(Field),
}

/// A field in a packed group.
#[derive(Debug, Clone, Copy)]
pub struct PackedField {
    pub word: u32,
    /// How many bits of the group follow it, less than 64.
    pub shift: u32,
    pub mask: u64,
}
