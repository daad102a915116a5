// SPDX-License-Identifier: Apache-2.0

//! Fields as they stand on the wire, several at a time.
//!
//! Adjacent fields are packed into groups of at most 64 bits, which end at a byte boundary if
//! possible. So one load or store serves up to eight fields: an IPv4 header has three groups.

use super::slot::{Field, Slot};

/// Adjacent fields.
#[derive(Debug, Clone)]
pub enum FieldGroup {
    /// Fields of at most 64 bits in total.
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
    /// Number of bits after it in the group, less than 64.
    pub shift: u32,
    pub mask: u64,
}
