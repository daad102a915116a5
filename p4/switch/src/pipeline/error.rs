//! What can go wrong when a program is loaded or its state is changed.

use thiserror::Error;

/// Why a BMv2 JSON program was refused.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The bytes are not JSON, or not shaped like BMv2 JSON.
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

/// Why a read or write of tables, counters, registers or replication state was refused.
///
/// The variants are the canonical gRPC codes that P4Runtime asks for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StateError {
    /// `ALREADY_EXISTS`: an insert met an entry with the same key.
    #[error("{0}")]
    AlreadyExists(String),
    /// `NOT_FOUND`: no such entry, index or object.
    #[error("{0}")]
    NotFound(String),
    /// `INVALID_ARGUMENT`: a value out of range, a missing key field, an action the table lacks.
    #[error("{0}")]
    InvalidArgument(String),
    /// `RESOURCE_EXHAUSTED`: the table is full.
    #[error("{0}")]
    ResourceExhausted(String),
    /// `PERMISSION_DENIED`: the program declared it `const`.
    #[error("{0}")]
    PermissionDenied(String),
}

/// An error about a construct that is not implemented.
pub(super) fn unsupported(place: String, construct: String) -> LoadError {
    LoadError::Unsupported { construct, place }
}

/// An error about a program that contradicts itself.
pub(super) fn malformed(place: String, problem: String) -> LoadError {
    LoadError::Malformed { problem, place }
}
