// SPDX-License-Identifier: Apache-2.0

//! Match-action tables as lookups see them.

use std::collections::BTreeMap;

use super::api::CounterValue;
use super::entry::Entry;
use super::index::{Index, Scratch};
use crate::pipeline::model::info::TableInfo;
use crate::pipeline::model::table::{Call, EntryKey, KeyField};
use crate::prefetch::prefetch;

/// A table: its entries and their index. The fields that a matching packet needs come first, in one
/// cache line, and then those for a packet that does not match.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Table {
    index: Index,
    entries: Vec<Option<Entry>>,
    /// Called when no entry matches.
    pub default: Option<Call>,
    pub rest: Box<Rest>,
}

/// The parts of a table that packets rarely need.
#[derive(Debug)]
pub struct Rest {
    /// Counts the packets that no entry matched.
    pub default_counter: CounterValue,
    key: Box<[KeyField]>,
    free: Vec<u32>,
    by_key: BTreeMap<EntryKey, u32>,
    scratch: Scratch,
}

impl Table {
    /// Creates an empty table. The kinds of its key fields and the width of the key decide how
    /// entries are found.
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
                scratch: Scratch::default(),
            }),
        }
    }

    /// Prefetches what a packet at `port` needs of the table.
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

    /// Adds an entry. The caller ensures that there is none with its key.
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
            .find(words, &rest.key, &self.entries, &mut rest.scratch)?;
        self.entries.get_mut(slot as usize)?.as_mut()
    }
}
