// SPDX-License-Identifier: Apache-2.0

//! The index of a table, which finds the entry for a packet.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use super::entry::Entry;
use crate::pipeline::model::info::{MatchKind, TableInfo};
use crate::pipeline::model::table::{EntryKey, KeyField, Match, prefix_limbs};
use crate::prefetch::prefetch;

/// Maximum width of a key whose values index the slots directly: that of ports.
const DENSE_BITS: u32 = 10;

/// How a table finds entries.
#[derive(Debug)]
pub enum Index {
    /// By direct index: this word of the packet under this mask is the entry's slot.
    Dense(u32, u64),
    /// By a hash of one word of the packet under this mask.
    Word(u32, u64, Lengths<u64>),
    /// By a hash of a longer key.
    Words(Lengths<Box<[u64]>>),
    /// By trying all entries, the greatest priority first. Each has its priority and its slot.
    Ordered(Vec<(i32, u32)>),
}

/// Slots by the prefix length of their entries, longest first. Entries without prefixes have one
/// length.
type Lengths<K> = Vec<Prefixes<K>>;

/// The entries whose prefixes have one length.
#[derive(Debug)]
pub struct Prefixes<K> {
    bits: u32,
    /// The bits of a key that are compared.
    mask: K,
    slots: HashMap<K, u32, BuildHasherDefault<KeyHasher>>,
}

/// Scratch space for the key being looked up, and for the key under a mask.
#[derive(Debug, Default)]
pub struct Scratch {
    looked_up: Vec<u64>,
    masked: Vec<u64>,
}

impl Index {
    /// The index of an empty table.
    pub fn new(key: &[KeyField], info: &TableInfo) -> Self {
        let has_prefixes = info.key.iter().any(|field| field.kind == MatchKind::Lpm);
        match key {
            _ if info.prioritised => Index::Ordered(Vec::new()),
            [field] if field.slot.limbs() == 1 => {
                let (word, mask) = (field.slot.word, field.mask.as_ref());
                let mask = mask.map_or(u64::MAX, |mask| mask[0]);
                if field.slot.bits <= DENSE_BITS && !has_prefixes {
                    Index::Dense(word, mask)
                } else {
                    Index::Word(word, mask, Vec::new())
                }
            }
            _ => Index::Words(Vec::new()),
        }
    }

    /// The slot that an entry must have, if its key decides it.
    pub fn slot(&self, key: &EntryKey) -> Option<u32> {
        matches!(self, Index::Dense(..)).then(|| exact_limbs(key)[0] as u32)
    }

    /// Adds an entry.
    pub fn insert(&mut self, fields: &[KeyField], key: &EntryKey, slot: u32) {
        match self {
            Index::Dense(..) => {}
            Index::Word(_, _, lengths) => {
                let length = with_bits(lengths, key, || prefix_mask(fields, key)[0]);
                length.slots.insert(exact_limbs(key)[0], slot);
            }
            Index::Words(lengths) => {
                let length = with_bits(lengths, key, || prefix_mask(fields, key));
                length.slots.insert(exact_limbs(key), slot);
            }
            Index::Ordered(order) => {
                let at = order.partition_point(|(priority, _)| *priority >= key.priority);
                order.insert(at, (key.priority, slot));
            }
        }
    }

    /// Removes an entry.
    pub fn remove(&mut self, key: &EntryKey, slot: u32) {
        match self {
            Index::Dense(..) => {}
            Index::Word(_, _, lengths) => remove(lengths, key, &exact_limbs(key)[0]),
            Index::Words(lengths) => remove(lengths, key, &exact_limbs(key)),
            Index::Ordered(order) => order.retain(|(_, other)| *other != slot),
        }
    }

    /// The slot of the entry that matches a packet, if there is one.
    #[inline]
    pub fn find(
        &self,
        words: &[u64],
        fields: &[KeyField],
        entries: &[Option<Entry>],
        scratch: &mut Scratch,
    ) -> Option<u32> {
        match self {
            Index::Dense(word, mask) => Some((words[*word as usize] & mask) as u32),
            Index::Word(word, mask, lengths) => {
                let key = words[*word as usize] & mask;
                let of = |length: &Prefixes<u64>| length.slots.get(&(key & length.mask)).copied();
                lengths.iter().find_map(of)
            }
            Index::Words(lengths) => {
                look_up(fields, words, &mut scratch.looked_up);
                lengths.iter().find_map(|length| {
                    scratch.masked.clear();
                    let limbs = scratch.looked_up.iter().zip(&length.mask);
                    scratch.masked.extend(limbs.map(|(limb, mask)| limb & mask));
                    length.slots.get(scratch.masked.as_slice()).copied()
                })
            }
            Index::Ordered(order) => {
                look_up(fields, words, &mut scratch.looked_up);
                let mut slots = order.iter().map(|(_, slot)| *slot);
                slots.find(|slot| {
                    let entry = entries[*slot as usize].as_ref();
                    entry.is_some_and(|entry| matches(&entry.key, &scratch.looked_up))
                })
            }
        }
    }

    /// Prefetches the entry of a port, if ports have their own entries.
    #[inline]
    pub fn prefetch(&self, entries: &[Option<Entry>], port: u16) {
        if let Index::Dense(..) = self {
            entries.get(usize::from(port)).map(prefetch);
        }
    }
}

/// Copies the key of a packet to `looked_up`.
fn look_up(key: &[KeyField], words: &[u64], looked_up: &mut Vec<u64>) {
    looked_up.clear();
    for field in key {
        let limbs = &words[field.slot.range()];
        match &field.mask {
            None => looked_up.extend_from_slice(limbs),
            Some(mask) => {
                let masked = limbs.iter().zip(mask).map(|(limb, mask)| limb & mask);
                looked_up.extend(masked);
            }
        }
    }
}

/// The entries with the same prefix length as `key`. If there are none yet, adds them with `mask`.
fn with_bits<'a, K>(
    lengths: &'a mut Lengths<K>,
    key: &EntryKey,
    mask: impl FnOnce() -> K,
) -> &'a mut Prefixes<K> {
    let bits = prefix_bits(key);
    let found = lengths.binary_search_by(|known| bits.cmp(&known.bits));
    let at = found.unwrap_or_else(|at| {
        let (mask, slots) = (mask(), HashMap::default());
        lengths.insert(at, Prefixes { bits, mask, slots });
        at
    });
    &mut lengths[at]
}

fn remove<K: Eq + Hash>(lengths: &mut Lengths<K>, key: &EntryKey, limbs: &K) {
    let bits = prefix_bits(key);
    if let Ok(at) = lengths.binary_search_by(|known| bits.cmp(&known.bits)) {
        lengths[at].slots.remove(limbs);
        if lengths[at].slots.is_empty() {
            lengths.remove(at);
        }
    }
}

fn matches(key: &EntryKey, mut looked_up: &[u64]) -> bool {
    key.matches.iter().all(|field| {
        let (value, rest) = looked_up.split_at(field.limbs());
        looked_up = rest;
        match field {
            Match::Exact(wanted) => **wanted == *value,
            Match::Ternary {
                value: wanted,
                mask,
            } => {
                let mut limbs = value.iter().zip(mask).zip(wanted);
                limbs.all(|((limb, mask), wanted)| limb & mask == *wanted)
            }
            Match::Range { low, high } => {
                let value = || value.iter().rev();
                low.iter().rev().le(value()) && value().le(high.iter().rev())
            }
            // Tables with priorities keep prefixes as masks.
            Match::Lpm { .. } => false,
        }
    })
}

/// The concatenated values of a key, without masks.
fn exact_limbs(key: &EntryKey) -> Box<[u64]> {
    let values = key.matches.iter().flat_map(|field| match field {
        Match::Exact(value) | Match::Lpm { value, .. } | Match::Ternary { value, .. } => {
            value.iter()
        }
        Match::Range { low, .. } => low.iter(),
    });
    values.copied().collect()
}

fn prefix_bits(key: &EntryKey) -> u32 {
    let prefix = key.matches.iter().find_map(|field| match field {
        Match::Lpm { prefix_bits, .. } => Some(*prefix_bits),
        _ => None,
    });
    prefix.unwrap_or(0)
}

/// The bits of a looked-up key that are compared for entries with the prefix length of `entry`.
fn prefix_mask(key: &[KeyField], entry: &EntryKey) -> Box<[u64]> {
    let fields = key.iter().zip(&entry.matches);
    let masks = fields.flat_map(|(field, value)| match value {
        Match::Lpm { prefix_bits, .. } => prefix_limbs(*prefix_bits, field.slot.bits).into_vec(),
        _ => vec![u64::MAX; field.slot.limbs()],
    });
    masks.collect()
}

/// A fast hash of a few words. It need not resist attacks: entries come from the control plane, so
/// senders of packets cannot choose keys that collide.
#[derive(Debug, Default)]
pub struct KeyHasher(u64);

impl KeyHasher {
    fn mix(&mut self, word: u64) {
        let product = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ product >> 32;
    }
}

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_ne_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.mix(word);
    }

    fn write_usize(&mut self, word: usize) {
        self.mix(word as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
