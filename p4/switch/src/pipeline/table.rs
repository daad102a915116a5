//! Match-action tables as packets see them.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hash, Hasher};

use smallvec::SmallVec;

use super::layout::Slot;
use super::word::{limbs_for, mask64};
use super::{CounterValue, MatchKind, TableInfo};
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

/// The longest key, in bits, of which every value has a place of its own: that of ports.
const DENSE_BITS: u32 = 10;

/// How entries are found.
#[derive(Debug)]
enum Index {
    /// By what the packet has in this word under this mask: it is the entry's place.
    Dense(u32, u64),
    /// By a key of one word: that of the packet under this mask.
    Word(u32, u64, Lengths<u64>),
    /// By a longer key.
    Words(Lengths<Box<[u64]>>),
    /// By trying them, the greatest priority first.
    Ordered(Vec<u32>),
}

/// Entries by the length of their prefix, longest first; those without prefixes all have one.
type Lengths<K> = Vec<Prefixes<K>>;

/// The entries whose prefixes have one length.
#[derive(Debug)]
struct Prefixes<K> {
    bits: u32,
    /// What counts of a key.
    mask: K,
    map: HashMap<K, u32, BuildHasherDefault<KeyHasher>>,
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
    /// Room for the key being looked up, and for it under a mask.
    looked_up: Vec<u64>,
    masked: Vec<u64>,
}

impl Table {
    /// An empty table. What kinds of fields its key has, and how long it is, decides how entries
    /// are found.
    pub fn new(key: &[KeyField], info: &TableInfo) -> Self {
        let has_prefixes = info.key.iter().any(|field| field.kind == MatchKind::Lpm);
        let index = match key {
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
        };
        Table {
            index,
            entries: Vec::new(),
            default: None,
            rest: Box::new(Rest {
                default_counter: CounterValue::default(),
                key: key.into(),
                free: Vec::new(),
                by_key: BTreeMap::new(),
                looked_up: Vec::new(),
                masked: Vec::new(),
            }),
        }
    }

    /// Lets come nearer what a packet at `port` needs of it, and its entry where ports have
    /// entries of their own.
    #[inline]
    pub fn prefetch(&self, port: u16) {
        prefetch(&self.index);
        prefetch(&self.default);
        if let Index::Dense(..) = &self.index {
            self.entries.get(usize::from(port)).map(prefetch);
        }
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
        let slot = match &self.index {
            Index::Dense(..) => exact_limbs(&entry.key)[0] as u32,
            _ => self.rest.free.pop().unwrap_or(self.entries.len() as u32),
        };
        if slot as usize >= self.entries.len() {
            self.entries.resize(slot as usize + 1, None);
        }
        match &mut self.index {
            Index::Dense(..) => {}
            Index::Word(_, _, lengths) => {
                let length = with_bits(lengths, &entry.key, || {
                    prefix_mask(&self.rest.key, &entry.key)[0]
                });
                length.map.insert(exact_limbs(&entry.key)[0], slot);
            }
            Index::Words(lengths) => {
                let length = with_bits(lengths, &entry.key, || {
                    prefix_mask(&self.rest.key, &entry.key)
                });
                length.map.insert(exact_limbs(&entry.key), slot);
            }
            Index::Ordered(order) => {
                let priority = entry.key.priority;
                let entries = &self.entries;
                let at = order.partition_point(|other| {
                    let other = entries[*other as usize].as_ref();
                    other.is_some_and(|other| other.key.priority >= priority)
                });
                order.insert(at, slot);
            }
        }
        self.rest.by_key.insert((*entry.key).clone(), slot);
        self.entries[slot as usize] = Some(entry);
    }

    /// Removes an entry; returns whether there was one.
    pub fn remove(&mut self, key: &EntryKey) -> bool {
        let Some(slot) = self.rest.by_key.remove(key) else {
            return false;
        };
        match &mut self.index {
            Index::Dense(..) => {}
            Index::Word(_, _, lengths) => remove(lengths, key, &exact_limbs(key)[0]),
            Index::Words(lengths) => remove(lengths, key, &exact_limbs(key)),
            Index::Ordered(order) => order.retain(|other| *other != slot),
        }
        self.entries[slot as usize] = None;
        if !matches!(self.index, Index::Dense(..)) {
            self.rest.free.push(slot);
        }
        true
    }

    /// The entry that matches a packet.
    #[inline]
    pub fn lookup(&mut self, words: &[u64]) -> Option<&mut Entry> {
        let slot = match &self.index {
            Index::Dense(word, mask) => {
                let value = words[*word as usize] & mask;
                return self.entries.get_mut(value as usize)?.as_mut();
            }
            Index::Word(word, mask, lengths) => {
                let key = words[*word as usize] & mask;
                let of = |length: &Prefixes<u64>| length.map.get(&(key & length.mask)).copied();
                lengths.iter().find_map(of)?
            }
            Index::Words(lengths) => {
                look_up(&self.rest.key, words, &mut self.rest.looked_up);
                lengths.iter().find_map(|length| {
                    self.rest.masked.clear();
                    let limbs = self.rest.looked_up.iter().zip(&length.mask);
                    self.rest
                        .masked
                        .extend(limbs.map(|(limb, mask)| limb & mask));
                    length.map.get(self.rest.masked.as_slice()).copied()
                })?
            }
            Index::Ordered(order) => {
                look_up(&self.rest.key, words, &mut self.rest.looked_up);
                order.iter().copied().find(|slot| {
                    let entry = self.entries[*slot as usize].as_ref();
                    entry.is_some_and(|entry| matches(&entry.key, &self.rest.looked_up))
                })?
            }
        };
        self.entries[slot as usize].as_mut()
    }
}

/// Puts what a packet has of a key into `looked_up`.
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

/// The entries with prefixes as long as that of `key`; if there are none yet, `mask` is theirs.
fn with_bits<'a, K>(
    lengths: &'a mut Lengths<K>,
    key: &EntryKey,
    mask: impl FnOnce() -> K,
) -> &'a mut Prefixes<K> {
    let bits = prefix_bits(key);
    let found = lengths.binary_search_by(|known| bits.cmp(&known.bits));
    let at = found.unwrap_or_else(|at| {
        let (mask, map) = (mask(), HashMap::default());
        lengths.insert(at, Prefixes { bits, mask, map });
        at
    });
    &mut lengths[at]
}

fn remove<K: Eq + Hash>(lengths: &mut Lengths<K>, key: &EntryKey, limbs: &K) {
    let bits = prefix_bits(key);
    if let Ok(at) = lengths.binary_search_by(|known| bits.cmp(&known.bits)) {
        lengths[at].map.remove(limbs);
        if lengths[at].map.is_empty() {
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

impl Match {
    fn limbs(&self) -> usize {
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

/// The values of a key without masks, one after the other.
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

/// The bits of a looked-up key that count for entries with the prefix length of `entry`.
fn prefix_mask(key: &[KeyField], entry: &EntryKey) -> Box<[u64]> {
    let fields = key.iter().zip(&entry.matches);
    let masks = fields.flat_map(|(field, value)| match value {
        Match::Lpm { prefix_bits, .. } => prefix_limbs(*prefix_bits, field.slot.bits).into_vec(),
        _ => vec![u64::MAX; field.slot.limbs()],
    });
    masks.collect()
}

/// A quick hash of a few words. Entries come from the control plane, so nobody who sends packets
/// can choose keys that collide.
#[derive(Debug, Default)]
pub(super) struct KeyHasher(u64);

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
