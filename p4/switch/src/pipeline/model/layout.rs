// SPDX-License-Identifier: Apache-2.0

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
    /// The word with its validity. Its fields follow.
    pub base: u32,
    /// Number of words, including the validity.
    pub words: u32,
    /// Its fields in wire order.
    pub fields: Box<[Field]>,
    /// The same fields, packed into groups.
    pub groups: Box<[FieldGroup]>,
    /// Total length of its fixed-length fields on the wire, in bits.
    pub fixed_bits: u32,
    /// Its maximum length on the wire, if it has a variable-length field.
    pub max_bytes: Option<u32>,
    /// Whether it is metadata, which is always valid, and zero when a packet arrives.
    pub metadata: bool,
    /// Index of its header type.
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
    /// The word that counts the filled elements.
    pub next: u32,
    /// The headers that are its elements. All have one type.
    pub headers: Box<[usize]>,
    /// The bases of these headers.
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
    /// The words of a packet that arrives: zero, with metadata valid.
    pub initial: Vec<u64>,
}
