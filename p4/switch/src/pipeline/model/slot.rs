// SPDX-License-Identifier: Apache-2.0

//! Where a value is in the words of a packet, of action data or of a register cell.

use super::word::{limbs_for, mask64};

/// A value in the words of a packet, in action data or in a register cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// The first of its limbs.
    pub word: u32,
    /// Its width.
    pub bits: u32,
    /// Whether expressions read it as two's complement.
    pub signed: bool,
}

impl Slot {
    pub fn start(self) -> usize {
        self.word as usize
    }

    pub fn limbs(self) -> usize {
        limbs_for(self.bits)
    }

    pub fn range(self) -> std::ops::Range<usize> {
        self.start()..self.start() + self.limbs()
    }

    /// The absolute slot for the header at `base`, from a slot relative to its header.
    pub fn at(self, base: u32) -> Slot {
        Slot {
            word: base + self.word,
            ..self
        }
    }

    /// Sets a slot of at most 64 bits to the low bits of `value`.
    #[inline]
    pub fn set(self, words: &mut [u64], value: u64) {
        words[self.start()] = value & mask64(self.bits);
    }

    /// Sets a slot of at most 64 bits to `value`, or to its maximum if `value` does not fit.
    #[inline]
    pub fn set_at_most(self, words: &mut [u64], value: u64) {
        words[self.start()] = value.min(mask64(self.bits));
    }

    /// Reads a slot of at most 64 bits.
    #[inline]
    pub fn get(self, words: &[u64]) -> u64 {
        words[self.start()]
    }
}

/// A field of a header; its slot is absolute.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Its value.
    pub slot: Slot,
    /// Whether its length varies. Then `slot.bits` is its maximum, and the word before the slot
    /// holds the length in bits.
    pub variable: bool,
}

impl Field {
    /// The word that holds the length of a variable field.
    pub fn length_word(&self) -> usize {
        self.slot.start() - 1
    }
}
