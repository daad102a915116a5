// SPDX-License-Identifier: Apache-2.0

//! Tables, as packets and the control plane use them.

use super::*;

const PROGRAM: &[u8] = include_bytes!("../../../tests/fixtures/matching.json");

/// What the tables wrote into the packet.
struct Hits {
    exact: u8,
    lpm: u8,
    wide: u8,
    ternary: u8,
    range: u8,
    constant: u8,
    mixed: u8,
    after: u8,
}

fn look_up(pipeline: &mut Pipeline, small: u16, address: u32, wide: u128) -> Hits {
    let mut packet = small.to_be_bytes().to_vec();
    packet.extend(address.to_be_bytes());
    packet.extend(wide.to_be_bytes());
    packet.extend([0; 8]);
    let (frames, _) = send(pipeline, 1, &packet, 0);
    let hits = &frames[0].1[22..];
    Hits {
        exact: hits[0],
        lpm: hits[1],
        wide: hits[2],
        ternary: hits[3],
        range: hits[4],
        constant: hits[5],
        mixed: hits[6],
        after: hits[7],
    }
}

fn ternary(value: u64, mask: u64) -> MatchValue {
    MatchValue::Ternary {
        value: bytes(value),
        mask: bytes(mask),
    }
}

fn range(low: u64, high: u64) -> MatchValue {
    MatchValue::Range {
        low: bytes(low),
        high: bytes(high),
    }
}

#[test]
fn an_exact_entry_needs_its_whole_key() {
    let mut pipeline = pipeline(PROGRAM);
    insert(
        &mut pipeline,
        "exact_table",
        &[exact(7), exact(9)],
        "IngressImpl.set_exact",
        &[1],
    );
    insert(
        &mut pipeline,
        "exact_table",
        &[exact(9), exact(7)],
        "IngressImpl.other",
        &[],
    );
    let hits = look_up(&mut pipeline, 7, 9, 0);
    assert_eq!((hits.exact, hits.after), (1, 1));
    let hits = look_up(&mut pipeline, 9, 7, 0);
    assert_eq!((hits.exact, hits.after), (0, 2));
    let hits = look_up(&mut pipeline, 7, 7, 0);
    assert_eq!((hits.exact, hits.after), (0xee, 1), "the default action");
}

#[test]
fn the_longest_prefix_wins() {
    let mut pipeline = pipeline(PROGRAM);
    for (prefix, bits, value) in [
        (0x0a00_0000, 8, 1),
        (0x0a01_0000, 16, 2),
        (0x0a01_0203, 32, 3),
    ] {
        insert(
            &mut pipeline,
            "lpm_table",
            &[lpm(prefix, bits)],
            "IngressImpl.set_lpm",
            &[value],
        );
    }
    assert_eq!(look_up(&mut pipeline, 0, 0x0a01_0203, 0).lpm, 3);
    assert_eq!(look_up(&mut pipeline, 0, 0x0a01_0204, 0).lpm, 2);
    assert_eq!(look_up(&mut pipeline, 0, 0x0a02_0204, 0).lpm, 1);
    assert_eq!(look_up(&mut pipeline, 0, 0x0b02_0204, 0).lpm, 0xff);
    insert(
        &mut pipeline,
        "lpm_table",
        &[MatchValue::Any],
        "IngressImpl.set_lpm",
        &[4],
    );
    assert_eq!(look_up(&mut pipeline, 0, 0x0b02_0204, 0).lpm, 4);
    let lpm_table = table(&pipeline, "lpm_table");
    pipeline
        .delete(lpm_table, &[lpm(0x0a01_0000, 16)], 0)
        .unwrap();
    assert_eq!(look_up(&mut pipeline, 0, 0x0a01_0204, 0).lpm, 1);
}

#[test]
fn prefixes_of_128_bits_match_across_words() {
    let mut pipeline = pipeline(PROGRAM);
    let prefix = 0x2001_0db8_u128 << 96 | 0xabc << 52;
    let value = MatchValue::Lpm {
        value: prefix.to_be_bytes().to_vec(),
        prefix_bits: 76,
    };
    insert(
        &mut pipeline,
        "wide_table",
        &[exact(5), value],
        "IngressImpl.set_wide",
        &[8],
    );
    assert_eq!(
        look_up(&mut pipeline, 5, 0, prefix | 0xf_ffff_ffff_ffff).wide,
        8
    );
    assert_eq!(look_up(&mut pipeline, 5, 0, prefix | 1 << 52).wide, 0);
    assert_eq!(look_up(&mut pipeline, 6, 0, prefix).wide, 0);
}

#[test]
fn the_greatest_priority_wins_among_ternary_and_range_entries() {
    let mut pipeline = pipeline(PROGRAM);
    let any = MatchValue::Any;
    let entries: [(i32, [MatchValue; 2], u64); 3] = [
        (10, [ternary(0x0a00_0000, 0xff00_0000), any.clone()], 1),
        (30, [any.clone(), exact(5)], 2),
        (20, [ternary(0x0a00_0001, 0xff00_0001), any], 3),
    ];
    for (priority, matches, value) in entries {
        let action = "IngressImpl.set_ternary";
        insert_at(
            &mut pipeline,
            "ternary_table",
            priority,
            &matches,
            action,
            &[value],
        )
        .unwrap();
    }
    assert_eq!(look_up(&mut pipeline, 5, 0x0a00_0001, 0).ternary, 2);
    assert_eq!(look_up(&mut pipeline, 4, 0x0a00_0001, 0).ternary, 3);
    assert_eq!(look_up(&mut pipeline, 4, 0x0a00_0002, 0).ternary, 1);
    assert_eq!(look_up(&mut pipeline, 4, 0x0b00_0002, 0).ternary, 0);
    for (priority, low, high) in [(1, 0, 0xffff), (2, 100, 200), (3, 200, 200)] {
        let value = [priority as u64];
        let action = "IngressImpl.set_range";
        let matches = [range(low, high)];
        let matches = if high == 0xffff {
            [MatchValue::Any]
        } else {
            matches
        };
        insert_at(
            &mut pipeline,
            "range_table",
            priority,
            &matches,
            action,
            &value,
        )
        .unwrap();
    }
    let ranges = [99, 100, 199, 200, 201].map(|small| look_up(&mut pipeline, small, 0, 0).range);
    assert_eq!(ranges, [1, 2, 2, 3, 1]);
}

#[test]
fn const_entries_are_tried_in_their_order_and_stay() {
    let mut pipeline = pipeline(PROGRAM);
    let of = |pipeline: &mut Pipeline, small| look_up(pipeline, small, 0, 0).constant;
    assert_eq!(of(&mut pipeline, 0x0100), 1);
    assert_eq!(of(&mut pipeline, 0x0300), 2);
    assert_eq!(of(&mut pipeline, 0x0200), 3);
    let id = table(&pipeline, "const_table");
    let entries = pipeline.entries(id);
    let priorities = entries.iter().map(|(entry, _)| entry.priority);
    let best = entries
        .iter()
        .max_by_key(|(entry, _)| entry.priority)
        .unwrap();
    assert_eq!(
        priorities.collect::<std::collections::BTreeSet<_>>(),
        (1..=3).collect()
    );
    assert_eq!(best.0.matches, [ternary(0x0100, 0xff00)]);
    let refused = pipeline.delete(id, &best.0.matches, best.0.priority);
    assert!(matches!(refused, Err(StateError::PermissionDenied(_))));
    let action = call(&pipeline, id, "IngressImpl.set_const", &[5]);
    let refused = pipeline.set_default(id, Some(&action));
    assert!(matches!(refused, Err(StateError::PermissionDenied(_))));
}

#[test]
fn a_default_action_that_is_put_back_counts_from_zero() {
    let mut pipeline = pipeline(PROGRAM);
    let id = table(&pipeline, "exact_table");
    look_up(&mut pipeline, 7, 7, 0);
    let packets = |pipeline: &Pipeline| pipeline.default_action(id).1.packets;
    let other = call(&pipeline, id, "IngressImpl.other", &[]);
    pipeline.set_default(id, Some(&other)).unwrap();
    assert_eq!(packets(&pipeline), 1);
    pipeline.set_default(id, None).unwrap();
    assert_eq!(packets(&pipeline), 0);
}

#[test]
fn a_key_may_mix_kinds_and_mask_its_fields() {
    let mut pipeline = pipeline(PROGRAM);
    let matches = [lpm(0x0a00_0000, 8), ternary(0x0120, 0x0ff0), exact(1)];
    let action = "IngressImpl.set_mixed";
    insert_at(&mut pipeline, "mixed_table", 1, &matches, action, &[6]).unwrap();
    assert_eq!(look_up(&mut pipeline, 0xf12f, 0x0a01_0000, 0).mixed, 6);
    assert_eq!(look_up(&mut pipeline, 0xf13f, 0x0a01_0000, 0).mixed, 0);
    assert_eq!(look_up(&mut pipeline, 0xf12f, 0x0b01_0000, 0).mixed, 0);
    let id = table(&pipeline, "mixed_table");
    assert_eq!(pipeline.entries(id)[0].0.matches, matches);
}

#[test]
fn writes_fail_as_p4runtime_asks() {
    let mut pipeline = pipeline(PROGRAM);
    let id = table(&pipeline, "exact_table");
    let entry = |small, address| TableEntry {
        matches: vec![exact(small), exact(address)],
        priority: 0,
        action: call(&self::pipeline(PROGRAM), id, "IngressImpl.set_exact", &[1]),
    };
    pipeline.insert(id, &entry(1, 1)).unwrap();
    let again = pipeline.insert(id, &entry(1, 1));
    assert!(matches!(again, Err(StateError::AlreadyExists(_))));
    assert!(matches!(
        pipeline.modify(id, &entry(2, 2)),
        Err(StateError::NotFound(_))
    ));
    pipeline.insert(id, &entry(2, 2)).unwrap();
    let full = pipeline.insert(id, &entry(3, 3));
    assert_eq!(
        full,
        Err(StateError::ResourceExhausted(
            "exact_table is full: it holds 2 entries".into()
        ))
    );
    pipeline.delete(id, &entry(1, 1).matches, 0).unwrap();
    let gone = pipeline.delete(id, &entry(1, 1).matches, 0);
    assert!(matches!(gone, Err(StateError::NotFound(_))));
    pipeline.insert(id, &entry(3, 3)).unwrap();
}

#[test]
fn entries_that_make_no_sense_are_invalid() {
    let mut pipeline = pipeline(PROGRAM);
    let mut refused =
        |table: &str, priority, matches: &[MatchValue], action, args: &[u64]| match insert_at(
            &mut pipeline,
            table,
            priority,
            matches,
            action,
            args,
        ) {
            Err(StateError::InvalidArgument(message)) => message,
            other => panic!("{other:?}"),
        };
    let action = "IngressImpl.set_exact";
    let messages = [
        refused("exact_table", 0, &[exact(1)], action, &[1]),
        refused("exact_table", 0, &[exact(0x1_0000), exact(1)], action, &[1]),
        refused("exact_table", 0, &[exact(1), MatchValue::Any], action, &[1]),
        refused("exact_table", 5, &[exact(1), exact(1)], action, &[1]),
        refused("exact_table", 0, &[exact(1), exact(1)], action, &[256]),
        refused("exact_table", 0, &[exact(1), exact(1)], action, &[]),
        refused(
            "lpm_table",
            0,
            &[lpm(0x0a00_0001, 8)],
            "IngressImpl.set_lpm",
            &[1],
        ),
        refused("lpm_table", 0, &[lpm(0, 33)], "IngressImpl.set_lpm", &[1]),
        refused(
            "range_table",
            1,
            &[range(9, 8)],
            "IngressImpl.set_range",
            &[1],
        ),
        refused(
            "range_table",
            0,
            &[range(8, 9)],
            "IngressImpl.set_range",
            &[1],
        ),
    ];
    let expected = [
        "exact_table has 2 key fields, but 1 are given",
        "exact_table, key field hdr.key.small: the value does not fit in 16 bits",
        "exact_table, key field hdr.key.address: an exact field needs a value",
        "entries of exact_table have no priority",
        "IngressImpl.set_exact, parameter value: the value does not fit in 8 bits",
        "IngressImpl.set_exact has 1 parameters, but 0 are given",
        "lpm_table, key field hdr.key.address: the value has bits outside its mask",
        "lpm_table, key field hdr.key.address: a prefix has 1 to 32 bits",
        "range_table, key field hdr.key.small: the range is empty",
        "entries of range_table need a priority above 0",
    ];
    assert_eq!(messages, expected);
}

#[test]
fn a_default_action_can_be_changed_and_put_back() {
    let mut pipeline = pipeline(PROGRAM);
    let id = table(&pipeline, "exact_table");
    let original = pipeline.default_action(id).0;
    let action = call(&pipeline, id, "IngressImpl.set_exact", &[0x42]);
    pipeline.set_default(id, Some(&action)).unwrap();
    assert_eq!(look_up(&mut pipeline, 1, 1, 1).exact, 0x42);
    assert_eq!(pipeline.default_action(id).0, Some(action));
    pipeline.set_default(id, None).unwrap();
    assert_eq!(look_up(&mut pipeline, 1, 1, 1).exact, 0xee);
    assert_eq!(pipeline.default_action(id).0, original);
}

#[test]
fn a_direct_counter_counts_packets_and_frame_bytes_per_entry() {
    let mut pipeline = pipeline(PROGRAM);
    let id = table(&pipeline, "exact_table");
    assert_eq!(
        pipeline.program().direct_counter_table("IngressImpl.hits"),
        Some(id)
    );
    let key = [exact(7), exact(9)];
    insert(
        &mut pipeline,
        "exact_table",
        &key,
        "IngressImpl.set_exact",
        &[1],
    );
    for _ in 0..3 {
        look_up(&mut pipeline, 7, 9, 0);
    }
    look_up(&mut pipeline, 1, 1, 0);
    let counted = |packets| CounterValue {
        packets,
        bytes: packets * 30,
    };
    assert_eq!(pipeline.entry(id, &key, 0).unwrap().unwrap().1, counted(3));
    assert_eq!(pipeline.default_action(id).1, counted(1));
    pipeline
        .write_direct_counter(id, &key, 0, CounterValue::default())
        .unwrap();
    look_up(&mut pipeline, 7, 9, 0);
    assert_eq!(pipeline.entries(id)[0].1, counted(1));
}
