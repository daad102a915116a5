// SPDX-License-Identifier: Apache-2.0

//! Tables compared with a map of the same entries, and the size of their parts that packets need.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::pipeline::model::action::Op;
use crate::pipeline::model::info::{KeyInfo, MatchKind, TableInfo};
use crate::pipeline::model::slot::Slot;
use crate::pipeline::model::table::{Args, Call, EntryKey, KeyField, Match};
use crate::pipeline::run::api::CounterValue;
use crate::pipeline::run::entry::Entry;
use crate::pipeline::run::table::Table;

/// A table with one key field of `bits`, which is compared under `mask`.
fn table_of(kind: MatchKind, bits: u32, mask: Option<u64>) -> Table {
    let slot = Slot {
        word: 1,
        bits,
        signed: false,
    };
    let field = KeyField {
        slot,
        mask: mask.map(|mask| [mask].into()),
    };
    let info = TableInfo {
        name: "table".into(),
        key: vec![KeyInfo {
            name: "key".into(),
            kind,
            bits,
        }],
        actions: Vec::new(),
        max_size: 1024,
        counted: false,
        const_entries: false,
        const_default: false,
        prioritised: false,
    };
    Table::new(&[field], &info)
}

fn key(value: u64) -> EntryKey {
    key_of(Match::Exact([value].into()))
}

fn prefix(value: u64, prefix_bits: u32) -> EntryKey {
    key_of(Match::Lpm {
        value: [value].into(),
        prefix_bits,
    })
}

fn key_of(field: Match) -> EntryKey {
    EntryKey {
        matches: [field].into(),
        priority: 0,
    }
}

fn entry(key: EntryKey, action: usize) -> Entry {
    Entry {
        call: Call {
            action,
            position: 0,
            args: Args::new(),
        },
        counter: CounterValue::default(),
        key: Box::new(key),
    }
}

#[test]
fn what_packets_need_fits_into_lines_of_the_cache() {
    assert_eq!(size_of::<Option<Entry>>(), 64);
    assert_eq!(size_of::<Table>(), 128);
    assert!(size_of::<Op>() <= 56);
}

proptest! {
    #[test]
    fn short_and_long_keys_find_what_was_inserted_last_and_not_removed(
        bits in prop_oneof![Just(1u32), Just(9), Just(10), Just(11), Just(32), Just(64)],
        mask: Option<u64>,
        changes in prop::collection::vec((any::<u64>(), any::<bool>()), 0..60),
        others in prop::collection::vec(any::<u64>(), 20),
    ) {
        let width = u64::MAX >> (64 - bits);
        let mut table = table_of(MatchKind::Exact, bits, mask);
        let mut expected = BTreeMap::new();
        for (action, (value, is_there)) in changes.iter().enumerate() {
            let value = value & width;
            prop_assert_eq!(table.remove(&key(value)), expected.remove(&value).is_some());
            if *is_there {
                table.insert(entry(key(value), action));
                expected.insert(value, action);
            }
        }
        prop_assert_eq!(table.len(), expected.len());
        prop_assert!(table.iter().map(|entry| entry.call.action).eq(expected.values().copied()));
        for value in changes.iter().map(|(value, _)| value).chain(&others) {
            let value = value & width;
            let found = table.lookup(&[!0, value, !0]).map(|entry| entry.call.action);
            let counts = value & mask.unwrap_or(u64::MAX);
            prop_assert_eq!(found, expected.get(&counts).copied());
        }
    }

    #[test]
    fn of_prefixes_the_longest_that_is_there_is_found(
        bits in prop_oneof![Just(9u32), Just(32), Just(64)],
        changes in prop::collection::vec((any::<u64>(), 0u32..=64, prop::bool::weighted(0.75)), 0..60),
        others in prop::collection::vec(any::<u64>(), 20),
    ) {
        let width = u64::MAX >> (64 - bits);
        let mask = |length: u32| u64::MAX.checked_shl(bits - length).unwrap_or(0) & width;
        let mut table = table_of(MatchKind::Lpm, bits, None);
        let mut expected = BTreeMap::new();
        for (action, (value, length, is_there)) in changes.iter().enumerate() {
            let length = length % (bits + 1);
            let value = value & mask(length);
            let known = expected.remove(&(length, value)).is_some();
            prop_assert_eq!(table.remove(&prefix(value, length)), known);
            if *is_there {
                table.insert(entry(prefix(value, length), action));
                expected.insert((length, value), action);
            }
        }
        for value in changes.iter().map(|(value, _, _)| value).chain(&others) {
            let value = value & width;
            let found = table.lookup(&[!0, value, !0]).map(|entry| entry.call.action);
            let mut longest_first = expected.iter().rev();
            let longest = longest_first.find(|((length, of), _)| value & mask(*length) == *of);
            prop_assert_eq!(found, longest.map(|(_, action)| *action));
        }
    }
}
