// SPDX-License-Identifier: Apache-2.0

//! Errors of an evaluation.

use std::io;
use std::path::{Path, PathBuf};

/// An error, in one line that names the file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The run has no captures.
    #[error("{run}: no folder capture in it; run it with --capture all")]
    NotCaptured {
        /// Folder of the run.
        run: PathBuf,
    },
    /// The run's own files are missing or malformed.
    #[error("{0}")]
    Run(String),
    /// The topology is missing or malformed.
    #[error(transparent)]
    Topology(#[from] weft_topology::Error),
    /// A capture is damaged.
    #[error("{path}: at byte {offset}: {what}")]
    Capture {
        /// The file.
        path: PathBuf,
        /// Offset of the first unusable byte.
        offset: u64,
        /// The damage.
        what: String,
    },
    /// A table is damaged.
    #[error("{path}: line {line}: {what}")]
    Table {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: u64,
        /// The damage.
        what: String,
    },
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
}

impl Error {
    /// Whether different arguments would help.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::NotCaptured { .. })
    }

    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        |source| Self::File { path, source }
    }
}
