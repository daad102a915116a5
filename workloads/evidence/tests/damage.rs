// SPDX-License-Identifier: Apache-2.0

//! Captures that are not what they should be.

#![allow(clippy::unwrap_used)]

mod common;

use std::fs;

use common::{Conversation, FILE_HEADER_BYTES, RECORD_HEADER_BYTES, Run};
use proptest::prelude::*;

fn conversation() -> Conversation {
    let mut conversation = Conversation::open(1);
    conversation.data(10, 0, 0, 1_000);
    conversation.data_ack(20, 0, 1_000, true);
    conversation
}

/// The one line that says what is wrong; nothing is left behind.
fn refusal(file: &[u8]) -> String {
    let run = Run::new(&[("h2_1", file)], "");
    let line = run.evaluate().unwrap_err().to_string();
    assert!(!line.contains('\n'), "{line}");
    let names = fs::read_dir(run.path()).unwrap();
    assert!(
        names
            .map(|name| name.unwrap().file_name())
            .all(|name| { name != "evidence" && name != ".evidence.partial" })
    );
    line
}

#[test]
fn a_run_that_was_not_captured_is_wrong_usage() {
    let folder = tempfile::tempdir().unwrap();
    let error = weft_evidence::evaluate(folder.path(), Default::default()).unwrap_err();
    assert!(error.is_usage());
    assert!(
        error
            .to_string()
            .ends_with("no folder capture in it; run it with --capture all")
    );
}

#[test]
fn a_cut_file_is_refused_with_the_place_of_its_last_record() {
    let file = conversation().file;
    let last = FILE_HEADER_BYTES + {
        let mut at = FILE_HEADER_BYTES;
        let mut start = at;
        while at < file.len() {
            start = at;
            let length = u32::from_le_bytes(file[at + 8..at + 12].try_into().unwrap());
            at += RECORD_HEADER_BYTES + length as usize;
        }
        start - FILE_HEADER_BYTES
    };
    for cut in [last + 1, last + RECORD_HEADER_BYTES, file.len() - 1] {
        let line = refusal(&file[..cut]);
        let expected = format!("h2_1.pcap: at byte {last}: ends within a record");
        assert!(line.ends_with(&expected), "{line}");
    }
    for cut in [0, 1, FILE_HEADER_BYTES - 1] {
        let line = refusal(&file[..cut]);
        assert!(line.contains("h2_1.pcap: at byte 0: "), "{line}");
    }
}

#[test]
fn a_record_that_contradicts_itself_is_refused_with_its_place() {
    let start = FILE_HEADER_BYTES;
    for (field, said) in [
        (4, "ns after its second"),
        (8, "a record"),
        (12, "a record of"),
    ] {
        let mut file = conversation().file;
        let value = if field == 12 { 1_u32 } else { u32::MAX };
        file[start + field..start + field + 4].copy_from_slice(&value.to_le_bytes());
        let line = refusal(&file);
        assert!(
            line.contains("h2_1.pcap: at byte 24: ") && line.contains(said),
            "{line}"
        );
    }
}

#[test]
fn a_file_of_something_else_is_refused() {
    let line = refusal(b"not a capture, but long enough to be one");
    assert!(
        line.ends_with("h2_1.pcap: at byte 0: not a pcap file"),
        "{line}"
    );
    let mut wifi = conversation().file;
    wifi[20] = 105;
    assert!(refusal(&wifi).ends_with("not Ethernet frames"));
}

#[test]
fn a_bad_row_of_arrivals_is_refused_with_its_line() {
    for (row, said) in [
        (
            "x,leaf1,1,h1_1,60,0,0\n",
            "time_ns: not a whole number: \"x\"",
        ),
        (
            "9000000000,leaf9,1,h1_1,60,0,0\n",
            "leaf9 port 1: no such port",
        ),
        ("9000000000,leaf1,99999,h1_1,60,0,0\n", "port: "),
        ("9000000000,leaf1,1\n", "record"),
    ] {
        let run = Run::new(&[], &format!("1,leaf1,1,h1_1,60,0,0\n{row}"));
        let line = run.evaluate().unwrap_err().to_string();
        assert!(
            line.contains("arrivals.csv: line 3: ") && line.contains(said),
            "{line}"
        );
    }
}

#[test]
fn other_frames_are_passed_over_and_counted() {
    let mut conversation = conversation();
    let arp = [&[0xff; 12][..], &[8, 6], &[0; 28]].concat();
    conversation.record(common::START_NS, &arp);
    conversation.record(common::START_NS, &[0; 10]);
    let summary = Run::new(&[("h2_1", &conversation.file)], "")
        .evaluate()
        .unwrap();
    assert_eq!(summary.ignored.other_frames, 1);
    assert_eq!(summary.ignored.malformed_frames, 1);
    assert_eq!(summary.data_packets, 1);
}

#[test]
fn new_evidence_replaces_the_old() {
    let run = Run::new(&[("h2_1", &conversation().file)], "");
    run.evaluate().unwrap();
    let stale = run.path().join("evidence/stale.csv");
    fs::write(&stale, "").unwrap();
    run.evaluate().unwrap();
    assert!(!stale.exists());
    assert!(run.path().join("evidence/summary.json").exists());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_flipped_byte_makes_it_panic(at in 0_usize..1_000, value: u8) {
        let mut file = conversation().file;
        let at = at % file.len();
        file[at] ^= value;
        let _ = Run::new(&[("h2_1", &file)], "").evaluate();
    }
}
