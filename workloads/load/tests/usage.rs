// SPDX-License-Identifier: Apache-2.0

//! What the program says to documents that are none.

#![allow(clippy::unwrap_used)]

mod common;

use std::process::Command;

#[test]
fn wrong_usage_is_one_line_and_status_2() {
    let document = |flags: &str| common::document(flags, "x".into()).to_json();
    for words in [
        vec!["run"],
        vec!["run", "--load 7"],
        vec!["run", "{}"],
        vec!["run", &document("--load 7")],
        vec!["run", &document("--workload nonesuch")],
        vec!["run", &document("--bytes 3")],
        vec!["report"],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_weft-load"))
            .args(&words)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{words:?}: {said}");
    }
}
