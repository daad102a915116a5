// SPDX-License-Identifier: Apache-2.0

//! The supervisor's protocol: requests to a running lab, and events for the process that started
//! it, as one line of JSON each.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use crate::clock::ClockPolicy;
use crate::error::{Error, Result};
use crate::spec::{ClockMode, LabSpec};

/// Timeout of an answer; a supervisor is never busy that long.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);
/// Maximum length of a request line.
pub const REQUEST_MAX: u64 = 4096;

/// A completed step of the boot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// What was done, as text for the user.
    pub name: String,
    /// Real time since the start of the lab.
    pub wall: Duration,
}

/// The state of a lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Not ready yet.
    Booting,
    /// Ready.
    Ready,
    /// Stopping.
    Stopping,
}

/// The status of a lab.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: State,
    /// Process ID of its supervisor, which ends with the lab.
    pub pid: i32,
    /// Virtual time since boot.
    pub virtual_ns: u64,
    /// Real time since boot.
    pub wall: Duration,
    /// Mode of the virtual clock.
    pub clock: ClockMode,
    /// Virtual seconds per real second when paced.
    pub ratio: f64,
    /// The specification it was started with.
    pub spec: LabSpec,
    /// Its folder on this machine; `/run/weft` inside the lab.
    pub rundir: PathBuf,
}

/// A request to a supervisor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Request {
    /// Asks for the status.
    Status,
    /// Sets the policy of the clock.
    Clock(ClockPolicy),
    /// Stops the lab.
    Down,
}

impl Request {
    fn name(&self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Clock(_) => "clock",
            Self::Down => "down",
        }
    }
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// The answer to [`Request::Status`].
    Status(Box<Status>),
    /// The request is done, or in progress.
    Done,
    /// The request is refused, with the reason.
    Refused(String),
}

/// An event that a supervisor reports to the process that started it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Event {
    /// A boot step is complete.
    Step(Step),
    /// The lab is ready.
    Ready,
    /// The batch command is running.
    Running {
        /// Virtual time since boot.
        virtual_ns: u64,
        /// Real time since the start.
        wall: Duration,
        /// Contents of its progress file.
        report: Option<serde_json::Value>,
    },
    /// The batch command has ended, and the lab is off.
    Ended {
        /// Its exit status.
        exit_code: i32,
        /// Virtual time since boot.
        virtual_ns: u64,
    },
    /// The lab has failed, and is off.
    Failed(String),
}

/// Sends a request to the supervisor of the lab `name` at `socket`.
pub async fn ask(name: &str, socket: &Path, request: Request) -> Result<Answer> {
    let exchange = async {
        let mut stream = BufReader::new(UnixStream::connect(socket).await?);
        let mut line = serde_json::to_string(&request)?;
        line.push('\n');
        stream.write_all(line.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_line(&mut answer).await?;
        Ok::<_, io::Error>(serde_json::from_str(&answer)?)
    };
    match tokio::time::timeout(ANSWER_LIMIT, exchange).await {
        Ok(Ok(Answer::Refused(why))) => Err(Error::Refused(why)),
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(_)) => Err(Error::NotUp(name.into())),
        Err(_) => Err(Error::NoAnswer {
            name: name.into(),
            request: request.name(),
            limit: ANSWER_LIMIT,
        }),
    }
}
