// SPDX-License-Identifier: Apache-2.0

//! Why a program is refused.

use thiserror::Error;

/// Why a BMv2 JSON program was refused.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The bytes are not JSON, or not the structure of BMv2 JSON.
    #[error("not a BMv2 JSON program: {0}")]
    Json(#[from] serde_json::Error),
    /// The program uses something this target does not implement.
    #[error("{place}: {construct} is not implemented by weft-switch")]
    Unsupported {
        /// The construct, by its name in the JSON (`execute_meter`, `header_union`).
        construct: String,
        /// Where it stands (`action routing.to_host`, `parser state start`).
        place: String,
    },
    /// The program refers to something it does not define, or contradicts itself.
    #[error("{place}: {problem}")]
    Malformed {
        /// What is wrong.
        problem: String,
        /// Where it stands.
        place: String,
    },
}

/// An error about a construct that is not implemented.
pub fn unsupported(place: String, construct: String) -> LoadError {
    LoadError::Unsupported { construct, place }
}

/// An error about a program that contradicts itself.
pub fn malformed(place: String, problem: String) -> LoadError {
    LoadError::Malformed { problem, place }
}
