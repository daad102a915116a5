//! Tables against a map of what was inserted, and how large what packets need of them is.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::action::Op;
use super::super::layout::Slot;
use super::super::table::{Args, Call, Entry, EntryKey, KeyField, Match, Table};
use super::super::{CounterValue, KeyInfo, MatchKind, TableInfo};

/// A table with one exact key field of `bits`, of which those in `mask` count.
fn exact_table(bits: u32, mask: Option<u64>) -> Table {
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
            kind: MatchKind::Exact,
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
    EntryKey {
        matches: [Match::Exact([value].into())].into(),
        priority: 0,
    }
}

fn entry(value: u64, action: usize) -> Entry {
    Entry {
        call: Call {
            action,
            position: 0,
            args: Args::new(),
        },
        counter: CounterValue::default(),
        key: Box::new(key(value)),
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
        let mut table = exact_table(bits, mask);
        let mut expected = BTreeMap::new();
        for (action, (value, is_there)) in changes.iter().enumerate() {
            let value = value & width;
            prop_assert_eq!(table.remove(&key(value)), expected.remove(&value).is_some());
            if *is_there {
                table.insert(entry(value, action));
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
}
