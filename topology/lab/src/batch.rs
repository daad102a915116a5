//! Labs that run one command and stop: the way of experiments.

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

/// Batches that this process has started; it may run several at a time.
static RUNS: AtomicU32 = AtomicU32::new(0);

/// How to run a batch.
#[derive(Debug, Clone)]
pub struct BatchOptions {
    /// Folder that gets everything the run wrote; made if missing.
    pub out: PathBuf,
    /// The machine's CPU to run on; `None` lets the launcher choose one.
    pub cpu: Option<usize>,
    /// Memory of the lab; `None` for what [`LabSpec::memory_bytes`] says.
    pub memory_bytes: Option<u64>,
    /// Real time without progress of virtual time after which it has failed.
    pub stall_limit: Duration,
}

impl BatchOptions {
    /// Defaults, with results in `out`.
    pub fn new(out: impl AsRef<Path>) -> Self {
        Self {
            out: out.as_ref().into(),
            cpu: None,
            memory_bytes: None,
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
