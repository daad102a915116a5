// SPDX-License-Identifier: Apache-2.0

//! The document of a run, made from flags as `weft run` makes it.

use std::path::PathBuf;

use clap::Parser;
use weft_load::args::{RunDocument, SchedulerArgs, WorkloadArgs};

#[derive(Debug, Parser)]
struct Flags {
    #[command(flatten)]
    workload: WorkloadArgs,
    #[command(flatten)]
    kernel: SchedulerArgs,
}

/// The document that these flags make, with results in `out`.
pub fn document(flags: &str, out: PathBuf) -> RunDocument {
    let flags = Flags::parse_from(std::iter::once("test").chain(flags.split_whitespace()));
    RunDocument::in_lab(flags.workload, &flags.kernel.scheduler, out)
}
