// SPDX-License-Identifier: Apache-2.0

//! How `weft-load`, the traffic generator, is started inside a lab.

use std::path::PathBuf;

use weft_lab::Paths;
use weft_load::args::{RunDocument, WorkloadArgs};

use crate::installation;

/// Where the lab's folder is, inside.
const GUEST_RUNDIR: &str = "/run/weft";

/// The command line of `weft-load`, with results in `out` (inside).
pub fn load_argv(paths: &Paths, workload: WorkloadArgs, scheduler: &str, out: &str) -> Vec<String> {
    let inside = PathBuf::from(GUEST_RUNDIR).join(out);
    let document = RunDocument {
        revision: installation::revision(&paths.repo),
        ..RunDocument::in_lab(workload, scheduler, inside)
    };
    let program = paths.bin.join("weft-load");
    vec![
        program.to_string_lossy().into_owned(),
        "run".to_owned(),
        document.to_json(),
    ]
}
