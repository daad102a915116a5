// SPDX-License-Identifier: Apache-2.0

//! Errors of a lab, in words for its user.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why a lab cannot be started, found, used or stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The name isn't valid for a folder.
    #[error("lab name {0:?}: use letters, digits, `-` and `_`, at most 32")]
    Name(String),
    /// A lab with this name is already up.
    #[error("lab {name} is already up (pid {pid}); stop it with `weft topo down`")]
    AlreadyUp {
        /// Its name.
        name: String,
        /// Process ID of its supervisor.
        pid: i32,
    },
    /// There is no lab with this name.
    #[error("lab {0} is not up; start it with `weft topo up`")]
    NotUp(String),
    /// A file that the lab needs is missing.
    #[error("{what} {path}: {source}")]
    Missing {
        /// Kind of file.
        what: &'static str,
        /// Its expected path.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// No file system has room for the lab's memory.
    #[error(
        "no room for the lab's {needed_mib} MiB of memory in {tried}; \
         free some, or set TMPDIR to a folder with room where programs may run"
    )]
    NoRoom {
        /// Required memory.
        needed_mib: u64,
        /// The folders tried, with their free space.
        tried: String,
    },
    /// The lab didn't come up, or failed while running.
    #[error("{message}{}", .log.as_ref().map(|l| format!("\n  logs: {}", l.display())).unwrap_or_default())]
    Failed {
        /// The failed step, and why.
        message: String,
        /// Folder with the console log and all other logs.
        log: Option<PathBuf>,
    },
    /// The user interrupted it.
    #[error("interrupted; everything is stopped")]
    Interrupted,
    /// The lab does not answer.
    #[error("lab {name}: no answer to `{request}` within {} s", .limit.as_secs())]
    NoAnswer {
        /// Its name.
        name: String,
        /// The request.
        request: &'static str,
        /// The timeout.
        limit: Duration,
    },
    /// The lab refused a request.
    #[error("lab: {0}")]
    Refused(String),
    /// A system call failed.
    #[error("{context}: {source}")]
    Io {
        /// The operation and its object.
        context: String,
        /// The I/O error.
        source: io::Error,
    },
}

/// A result with this crate's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Adds what was being done to the error of a system call.
pub(crate) trait Context<T> {
    /// Wraps the error; `what` is evaluated only then.
    fn context(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Into<io::Error>> Context<T> for std::result::Result<T, E> {
    fn context(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|source| Error::Io {
            context: what(),
            source: source.into(),
        })
    }
}
