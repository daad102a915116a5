//! Where the fields of headers and metadata are kept.
//!
//! A packet's parsed form is one vector of 64-bit words. A header takes a word for its validity
//! and then its fields in order, each in as many words as its width needs (little-endian limbs,
//! bits beyond the width zero). A `varbit` field has one more word in front, its length in bits. A
//! header stack has a word that counts the elements filled so far (`nextIndex`).

use super::slot::{Field, Slot};
use super::wire::FieldGroup;

/// A header or metadata instance.
#[derive(Debug, Clone)]
pub struct Header {
    /// The word of its validity; its fields follow.
    pub base: u32,
    /// How many words it takes with that.
    pub words: u32,
    /// Its fields in wire order.
    pub fields: Box<[Field]>,
    /// The same, packed.
    pub groups: Box<[FieldGroup]>,
    /// The bits on the wire of all fields of fixed length.
    pub fixed_bits: u32,
    /// The most bytes it may take on the wire, if one of its fields varies.
    pub max_bytes: Option<u32>,
    /// Whether it is metadata: always valid, zero when a packet comes in.
    pub metadata: bool,
    /// The place of its type among the header types.
    pub kind: usize,
}

impl Header {
    pub fn range(&self) -> std::ops::Range<usize> {
        self.base as usize..(self.base + self.words) as usize
    }

    pub fn validity(&self) -> Slot {
        Slot {
            word: self.base,
            bits: 1,
            signed: false,
        }
    }

    pub fn is_valid(&self, words: &[u64]) -> bool {
        words[self.base as usize] != 0
    }
}

/// A header stack.
#[derive(Debug, Clone)]
pub struct Stack {
    /// The word that counts the elements filled.
    pub next: u32,
    /// The headers that are its elements, all of one type.
    pub headers: Box<[usize]>,
    /// The bases of those.
    pub bases: Box<[u32]>,
}

impl Stack {
    /// The base of the element extracted last.
    #[inline]
    pub fn last(&self, words: &[u64]) -> Option<u32> {
        let next = words[self.next as usize] as usize;
        self.bases.get(next.checked_sub(1)?).copied()
    }
}

/// All headers, metadata and stacks of a program.
#[derive(Debug, Default)]
pub struct Layout {
    pub headers: Vec<Header>,
    pub stacks: Vec<Stack>,
    /// What the words are when a packet comes in: zero, metadata valid.
    pub initial: Vec<u64>,
}
