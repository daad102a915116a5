// SPDX-License-Identifier: Apache-2.0

//! Match-action tables: their keys and their initial contents.

use smallvec::SmallVec;

use super::slot::Slot;
use super::word::{limbs_for, mask_limbs, mask64};

/// Arguments of an action, at the slots of its parameters. Most actions have few, which are then
/// stored inside the entry.
pub type Args = SmallVec<[u64; 2]>;

/// An action with its arguments, as a table entry calls it.
#[derive(Debug, Clone)]
pub struct Call {
    /// Index of the action in the program.
    pub action: usize,
    /// Index of the action among those of the table.
    pub position: usize,
    /// Its arguments.
    pub args: Args,
}

/// A field of a table's key.
#[derive(Debug, Clone)]
pub struct KeyField {
    /// The value that is matched.
    pub slot: Slot,
    /// The bits that are compared, if not all.
    pub mask: Option<Box<[u64]>>,
}

/// The value of a key field in an entry, as limbs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Match {
    Exact(Box<[u64]>),
    Lpm { value: Box<[u64]>, prefix_bits: u32 },
    Ternary { value: Box<[u64]>, mask: Box<[u64]> },
    Range { low: Box<[u64]>, high: Box<[u64]> },
}

impl Match {
    pub fn limbs(&self) -> usize {
        match self {
            Match::Exact(value) | Match::Lpm { value, .. } | Match::Ternary { value, .. } => {
                value.len()
            }
            Match::Range { low, .. } => low.len(),
        }
    }
}

/// The key of an entry, which identifies it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryKey {
    pub matches: Box<[Match]>,
    pub priority: i32,
}

/// The initial contents of a table.
#[derive(Debug)]
pub struct TablePlan {
    pub key: Box<[KeyField]>,
    pub default: Option<Call>,
    pub entries: Vec<(EntryKey, Call)>,
}

/// The mask of the first `prefix_bits` of `bits`, as limbs.
pub fn prefix_limbs(prefix_bits: u32, bits: u32) -> Box<[u64]> {
    let host_bits = bits - prefix_bits.min(bits);
    let mut limbs = vec![u64::MAX; limbs_for(bits)];
    mask_limbs(&mut limbs, bits);
    for (index, limb) in limbs.iter_mut().enumerate() {
        let below = host_bits.saturating_sub(index as u32 * 64);
        *limb &= !if below == 0 { 0 } else { mask64(below) };
    }
    limbs.into()
}
