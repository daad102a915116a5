//! What can go wrong with a lab, in words for its user.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why a lab could not be started, found, used or stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The name cannot be a folder's name.
    #[error("lab name {0:?}: use letters, digits, `-` and `_`, at most 32")]
    Name(String),
    /// A lab of that name is up already.
    #[error("lab {name} is already up (pid {pid}); stop it with `weft topo down`")]
    AlreadyUp {
        /// Its name.
        name: String,
        /// Process of its supervisor.
        pid: i32,
    },
    /// No such lab.
    #[error("lab {0} is not up; start it with `weft topo up`")]
    NotUp(String),
    /// A file that the lab needs is not there.
    #[error("{what} {path}: {source}")]
    Missing {
        /// What it is.
        what: &'static str,
        /// Where it should be.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No file system can hold the lab's memory.
    #[error(
        "no room for the lab's {needed_mib} MiB of memory in {tried}; \
         free some, or set TMPDIR to a folder with room where programs may run"
    )]
    NoRoom {
        /// What it takes.
        needed_mib: u64,
        /// Where was looked, with what is free.
        tried: String,
    },
    /// The lab did not come up, or broke down.
    #[error("{message}{}", .log.as_ref().map(|l| format!("\n  logs: {}", l.display())).unwrap_or_default())]
    Failed {
        /// Which step, and why.
        message: String,
        /// Folder with the console and the logs of everything inside.
        log: Option<PathBuf>,
    },
    /// The user stopped it.
    #[error("interrupted; everything is stopped")]
    Interrupted,
    /// The lab does not answer.
    #[error("lab {name}: no answer to `{request}` within {} s", .limit.as_secs())]
    NoAnswer {
        /// Its name.
        name: String,
        /// What was asked.
        request: &'static str,
        /// How long was waited.
        limit: Duration,
    },
    /// The lab refuses a request.
    #[error("lab: {0}")]
    Refused(String),
    /// A system call failed.
    #[error("{context}: {source}")]
    Io {
        /// What was being done, to what.
        context: String,
        /// What the system said.
        source: io::Error,
    },
}

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Says what was being done when a system call failed.
pub(crate) trait Context<T> {
    /// Wraps the error; `what` is built only then.
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
