//! Labs that stay up: start, find, use, stop.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::exec::ExecRequest;
use crate::spec::{ClockMode, LabSpec};

/// A running lab of this user.
#[derive(Debug, Clone)]
pub struct Lab {
    name: String,
    rundir: PathBuf,
}

/// How to start a lab.
#[derive(Debug, Clone)]
pub struct UpOptions {
    /// Its name; a user can have several.
    pub name: String,
    /// The machine's CPU to run on; `None` lets the launcher choose one.
    pub cpu: Option<usize>,
    /// Memory of the lab.
    pub memory_bytes: u64,
    /// Real time without a sign of life during boot after which it has failed.
    pub stall_limit: Duration,
}

impl Default for UpOptions {
    fn default() -> Self {
        Self {
            name: "lab".into(),
            cpu: None,
            memory_bytes: 2 << 30,
            stall_limit: Duration::from_secs(60),
        }
    }
}

/// A step of the boot that is done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// What was done, for the user.
    pub name: String,
    /// Real time since the start of the lab.
    pub wall: Duration,
}

/// What a lab is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Not ready yet.
    Booting,
    /// Ready.
    Ready,
    /// On its way down.
    Stopping,
}

/// A lab at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Its name.
    pub name: String,
    /// What it is doing.
    pub state: State,
    /// Process of its supervisor; it ends with the lab.
    pub pid: i32,
    /// Virtual time since boot.
    pub virtual_ns: u64,
    /// Real time since boot.
    pub wall: Duration,
    /// How virtual time goes on.
    pub clock: ClockMode,
    /// Virtual per real time when paced.
    pub ratio: f64,
    /// What it was started with.
    pub spec: LabSpec,
    /// Its folder on this machine, `/run/weft` inside.
    pub rundir: PathBuf,
}

/// A change of the clock's policy.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClockPolicy {
    /// As fast as the machine can.
    Free,
    /// At most `ratio` times real time.
    Paced {
        /// Virtual seconds per real second, above 0.
        ratio: f64,
    },
    /// Stand still.
    Paused,
}

impl Lab {
    /// Starts a lab and returns when it is ready; it stays up when the caller
    /// ends. `progress` hears of every step. An interrupt (Ctrl-C) during the
    /// boot stops it and is [`Error::Interrupted`].
    pub async fn up(
        spec: &LabSpec,
        options: &UpOptions,
        progress: impl FnMut(&Step),
    ) -> Result<Lab> {
        let _ = (spec, progress);
        Err(Error::NotUp(options.name.clone()))
    }

    /// The lab of that name, if it is up. Cleans up after one that crashed.
    pub fn find(name: &str) -> Result<Option<Lab>> {
        let _ = name;
        Ok(None)
    }

    /// Names of all labs of this user that are up.
    pub fn list() -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// Stops it and removes its folder; returns when nothing is left.
    pub async fn down(&self) -> Result<()> {
        Err(Error::NotUp(self.name.clone()))
    }

    /// What it is doing.
    pub async fn status(&self) -> Result<Status> {
        Err(Error::NotUp(self.name.clone()))
    }

    /// Changes how virtual time goes on.
    pub async fn set_clock(&self, policy: ClockPolicy) -> Result<()> {
        let _ = policy;
        Err(Error::NotUp(self.name.clone()))
    }

    /// Runs a command inside, connected to this process's standard streams,
    /// and returns its exit status (128 + signal when killed by one).
    pub async fn exec(&self, request: ExecRequest) -> Result<i32> {
        let _ = request;
        Err(Error::NotUp(self.name.clone()))
    }

    /// A Mininet prompt inside on this process's terminal (or on its standard
    /// input, when that is no terminal).
    pub async fn mininet_shell(&self) -> Result<i32> {
        Err(Error::NotUp(self.name.clone()))
    }

    /// Unix socket that leads to the controller's gRPC server inside.
    pub fn controller_socket(&self) -> PathBuf {
        self.rundir.join("controller.sock")
    }

    /// Its folder on this machine, `/run/weft` inside.
    pub fn rundir(&self) -> &Path {
        &self.rundir
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
}
