//! Match-action tables as packets see them.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::index::{Index, Room};
use super::layout::Slot;
use super::word::{limbs_for, mask64};
use super::{CounterValue, TableInfo};
use crate::prefetch::prefetch;

/// Arguments of an action, as its parameters' slots have them. Most are few, and then beside what
/// else an entry has.
pub(super) type Args = SmallVec<[u64; 2]>;

/// An action with its arguments, as a table entry calls it.
#[derive(Debug, Clone)]
pub(super) struct Call {
    /// The action's place in the program.
    pub action: usize,
    /// Its place among the table's actions.
    pub position: usize,
    /// Its arguments.
    pub args: Args,
}

/// A field of a table's key.
#[derive(Debug, Clone)]
pub(super) struct KeyField {
    /// What is matched.
    pub slot: Slot,
    /// The bits of it that count, if not all.
    pub mask: Option<Box<[u64]>>,
}

/// The value of a key field in an entry, as limbs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Match {
    Exact(Box<[u64]>),
    Lpm { value: Box<[u64]>, prefix_bits: u32 },
    Ternary { value: Box<[u64]>, mask: Box<[u64]> },
    Range { low: Box<[u64]>, high: Box<[u64]> },
}

/// What identifies an entry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EntryKey {
    pub matches: Box<[Match]>,
    pub priority: i32,
}

/// An entry of a table: a line of the cache, of which hundreds of switches have many.
#[derive(Debug, Clone)]
#[repr(C, align(64))]
pub(super) struct Entry {
    pub call: Call,
    pub counter: CounterValue,
    pub key: Box<EntryKey>,
}

/// A table: its entries and the way to find them. What a packet that matches needs comes first, in
/// one line of the cache, and then what one needs that does not.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Table {
    index: Index,
    entries: Vec<Option<Entry>>,
    /// Called when no entry matches.
    pub default: Option<Call>,
    pub rest: Box<Rest>,
}

/// What packets seldom need of a table.
#[derive(Debug)]
pub(super) struct Rest {
    /// Counts the packets that no entry matched.
    pub default_counter: CounterValue,
    key: Box<[KeyField]>,
    free: Vec<u32>,
    by_key: BTreeMap<EntryKey, u32>,
    room: Room,
}

impl Table {
    /// An empty table. What kinds of fields its key has, and how long it is, decides how entries
    /// are found.
    pub fn new(key: &[KeyField], info: &TableInfo) -> Self {
        Table {
            index: Index::new(key, info),
            entries: Vec::new(),
            default: None,
            rest: Box::new(Rest {
                default_counter: CounterValue::default(),
                key: key.into(),
                free: Vec::new(),
                by_key: BTreeMap::new(),
                room: Room::default(),
            }),
        }
    }

    /// Lets come nearer what a packet at `port` needs of it.
    #[inline]
    pub fn prefetch(&self, port: u16) {
        prefetch(&self.index);
        prefetch(&self.default);
        self.index.prefetch(&self.entries, port);
    }

    pub fn len(&self) -> usize {
        self.rest.by_key.len()
    }

    pub fn get(&self, key: &EntryKey) -> Option<&Entry> {
        let slot = *self.rest.by_key.get(key)?;
        self.entries[slot as usize].as_ref()
    }

    pub fn get_mut(&mut self, key: &EntryKey) -> Option<&mut Entry> {
        let slot = *self.rest.by_key.get(key)?;
        self.entries[slot as usize].as_mut()
    }

    /// The entries in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        let slots = self.rest.by_key.values();
        slots.filter_map(|slot| self.entries[*slot as usize].as_ref())
    }

    /// Adds an entry; the caller has seen to it that there is none with its key.
    pub fn insert(&mut self, entry: Entry) {
        let rest = &mut *self.rest;
        let any = || rest.free.pop().unwrap_or(self.entries.len() as u32);
        let slot = self.index.slot(&entry.key).unwrap_or_else(any);
        self.index.insert(&rest.key, &entry.key, slot);
        if slot as usize >= self.entries.len() {
            self.entries.resize(slot as usize + 1, None);
        }
        rest.by_key.insert((*entry.key).clone(), slot);
        self.entries[slot as usize] = Some(entry);
    }

    /// Removes an entry; returns whether there was one.
    pub fn remove(&mut self, key: &EntryKey) -> bool {
        let Some(slot) = self.rest.by_key.remove(key) else {
            return false;
        };
        self.entries[slot as usize] = None;
        self.index.remove(key, slot);
        if self.index.slot(key).is_none() {
            self.rest.free.push(slot);
        }
        true
    }

    /// The entry that matches a packet.
    #[inline]
    pub fn lookup(&mut self, words: &[u64]) -> Option<&mut Entry> {
        let rest = &mut *self.rest;
        let slot = self
            .index
            .find(words, &rest.key, &self.entries, &mut rest.room)?;
        self.entries.get_mut(slot as usize)?.as_mut()
    }
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

/// The mask of the first `prefix_bits` of `bits`, as limbs.
pub(super) fn prefix_limbs(prefix_bits: u32, bits: u32) -> Box<[u64]> {
    let host_bits = bits - prefix_bits.min(bits);
    let mut limbs = vec![u64::MAX; limbs_for(bits)];
    super::word::mask_limbs(&mut limbs, bits);
    for (index, limb) in limbs.iter_mut().enumerate() {
        let below = host_bits.saturating_sub(index as u32 * 64);
        *limb &= !if below == 0 { 0 } else { mask64(below) };
    }
    limbs.into()
}
