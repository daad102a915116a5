// SPDX-License-Identifier: Apache-2.0

//! What the program says to documents that are none.

#![allow(clippy::unwrap_used)]

use std::process::Command;

use clap::Parser;
use weft_load::args::{RunDocument, SchedulerArgs, WorkloadArgs};

/// What a run is made from, as `weft run` has it.
#[derive(Debug, Parser)]
struct Flags {
    #[command(flatten)]
    workload: WorkloadArgs,
    #[command(flatten)]
    kernel: SchedulerArgs,
}

#[test]
fn wrong_usage_is_one_line_and_status_2() {
    let document = |flags: &str| {
        let flags = Flags::parse_from(std::iter::once("test").chain(flags.split_whitespace()));
        RunDocument::in_lab(flags.workload, "rb", "x".into()).to_json()
    };
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
