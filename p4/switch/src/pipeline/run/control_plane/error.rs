// SPDX-License-Identifier: Apache-2.0

//! Why a request of the control plane is refused.

use thiserror::Error;

/// Why a read or write of tables, counters, registers or replication state was refused.
///
/// The variants are the canonical gRPC codes that P4Runtime asks for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StateError {
    /// `ALREADY_EXISTS`: there is already an entry with the same key.
    #[error("{0}")]
    AlreadyExists(String),
    /// `NOT_FOUND`: no such entry, index or object.
    #[error("{0}")]
    NotFound(String),
    /// `INVALID_ARGUMENT`: for example a value out of range, a missing key field, or an action that
    /// the table lacks.
    #[error("{0}")]
    InvalidArgument(String),
    /// `RESOURCE_EXHAUSTED`: the table is full.
    #[error("{0}")]
    ResourceExhausted(String),
    /// `PERMISSION_DENIED`: the program declared it `const`.
    #[error("{0}")]
    PermissionDenied(String),
}
