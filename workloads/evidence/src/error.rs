//! Why there is no evidence.

use std::io;
use std::path::{Path, PathBuf};

/// What went wrong, in one line that names the file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The run was not captured.
    #[error("{run}: no folder capture in it; run it with --capture all")]
    NotCaptured {
        /// Folder of the run.
        run: PathBuf,
    },
    /// The run's own files are missing or malformed.
    #[error("{0}")]
    Run(String),
    /// The fabric's description is missing or malformed.
    #[error(transparent)]
    Topology(#[from] weft_topology::Error),
    /// A capture is damaged.
    #[error("{path}: at byte {offset}: {what}")]
    Capture {
        /// The file.
        path: PathBuf,
        /// Where its first unusable byte is.
        offset: u64,
        /// What is wrong there.
        what: String,
    },
    /// A table is damaged.
    #[error("{path}: line {line}: {what}")]
    Table {
        /// The file.
        path: PathBuf,
        /// Its line, from 1.
        line: u64,
        /// What is wrong there.
        what: String,
    },
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Error {
    /// Whether another command line would help.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::NotCaptured { .. })
    }

    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        |source| Self::File { path, source }
    }
}
