//! Match-action tables: what their keys are, and what they start as.

use smallvec::SmallVec;

use super::slot::Slot;
use super::word::{limbs_for, mask_limbs, mask64};

/// Arguments of an action, as its parameters' slots have them. Most are few, and then beside what
/// else an entry has.
pub type Args = SmallVec<[u64; 2]>;

/// An action with its arguments, as a table entry calls it.
#[derive(Debug, Clone)]
pub struct Call {
    /// The action's place in the program.
    pub action: usize,
    /// Its place among the table's actions.
    pub position: usize,
    /// Its arguments.
    pub args: Args,
}

/// A field of a table's key.
#[derive(Debug, Clone)]
pub struct KeyField {
    /// What is matched.
    pub slot: Slot,
    /// The bits of it that count, if not all.
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

/// What identifies an entry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryKey {
    pub matches: Box<[Match]>,
    pub priority: i32,
}

/// What a table starts as.
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
