// SPDX-License-Identifier: Apache-2.0

//! Batch labs: they run one command and stop, as experiments do.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::control::Event;
use crate::control::Step;
use crate::error::{Error, Result};
use crate::rundir;
use crate::spec::LabSpec;
use crate::starter::Started;
use crate::supervisor::Options;

/// Batches started by this process; several may run at a time.
static RUNS: AtomicU32 = AtomicU32::new(0);

/// Options of a batch.
#[derive(Debug, Clone)]
pub struct BatchOptions {
    /// Folder for the results of the run; created if missing.
    pub out: PathBuf,
    /// CPU to run on; `None` lets the launcher choose.
    pub cpu: Option<usize>,
    /// Memory of the lab; `None` uses [`LabSpec::memory_bytes`].
    pub memory_bytes: Option<u64>,
    /// Real time without progress of virtual time after which the batch has failed.
    pub stall_limit: Duration,
}

impl BatchOptions {
    /// Default options, with results in `out`.
    pub fn new(out: impl AsRef<Path>) -> Self {
        Self {
            out: out.as_ref().into(),
            cpu: None,
            memory_bytes: None,
            stall_limit: Duration::from_secs(120),
        }
    }
}

/// Progress of a batch.
#[derive(Debug, Clone, PartialEq)]
pub enum BatchProgress {
    /// A boot step is complete.
    Step(Step),
    /// The command is running; reported several times per second.
    Running {
        /// Virtual time since boot.
        virtual_ns: u64,
        /// Real time since the start.
        wall: Duration,
        /// Contents of `/run/weft/progress.json`, if the command wrote it.
        report: Option<serde_json::Value>,
    },
}

/// The outcome of a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchOutcome {
    /// Exit status of the command (128 + signal if a signal killed it).
    pub exit_code: i32,
    /// Virtual time from boot to power off.
    pub virtual_ns: u64,
    /// Real time of the whole run.
    pub wall: Duration,
    /// Folder with the results of the run.
    pub out: PathBuf,
}

/// Boots a separate lab, runs `spec.batch` in it as fast as the machine allows, stops the lab,
/// and moves its results to `options.out`. The same `spec` gives the same bytes. An interrupt
/// (Ctrl-C) stops it with [`Error::Interrupted`].
pub async fn run_batch(
    spec: &LabSpec,
    options: &BatchOptions,
    mut progress: impl FnMut(&BatchProgress),
) -> Result<BatchOutcome> {
    if spec.batch.is_none() {
        return Err(Error::Refused("a batch needs a command".into()));
    }
    let start = Instant::now();
    let number = RUNS.fetch_add(1, Ordering::Relaxed);
    let name = format!("run-{}-{number}", std::process::id());
    let mut started = Started::new(&name, spec, |rundir| Options {
        rundir,
        cpu: options.cpu,
        memory_bytes: options.memory_bytes,
        stall_limit: options.stall_limit,
    })?;
    let (exit_code, virtual_ns) = loop {
        match started.next().await? {
            Event::Step(step) => progress(&BatchProgress::Step(step)),
            Event::Running {
                virtual_ns,
                wall,
                report,
            } => progress(&BatchProgress::Running {
                virtual_ns,
                wall,
                report,
            }),
            Event::Ended {
                exit_code,
                virtual_ns,
            } => break (exit_code, virtual_ns),
            Event::Ready | Event::Failed(_) => {}
        }
    };
    let collected = rundir::collect(started.rundir(), &options.out);
    started.stop();
    collected?;
    Ok(BatchOutcome {
        exit_code,
        virtual_ns,
        wall: start.elapsed(),
        out: options.out.clone(),
    })
}
