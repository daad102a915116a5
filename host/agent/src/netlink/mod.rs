// SPDX-License-Identifier: Apache-2.0

//! Netlink. Messages and attributes come from specifications: those of the kernel's own
//! families from `netlink_bindings`, those of `weft` from
//! [`weft::spec`](crate::weft::spec). This module sends and reads them: a [`Socket`] makes
//! requests, a [`Group`] receives multicast messages, and a [`DiagSocket`] lists the sockets
//! of a namespace.

mod attribute;
mod diag;
mod group;
mod socket;

use std::io;

use netlink_bindings::utils::ErrorContext;

pub use attribute::{Attribute, Attributes, Nest, Type, Writable, Writer};
pub use diag::{DiagSocket, MptcpSubflow, TcpSocket};
pub use group::Group;
pub use socket::Socket;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The namespace could not be entered, or the socket failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The kernel has no such family.
    #[error("the kernel has no generic netlink family {0:?}; is its module loaded?")]
    NoFamily(String),
    /// The family has no multicast group with this name.
    #[error("the kernel's family {family:?} has no multicast group {group:?}")]
    NoGroup {
        /// Name of the family.
        family: String,
        /// Name of the group.
        group: String,
    },
    /// The kernel refused the request; with its own text, if any.
    #[error("the kernel refused: {}", .text.as_deref().unwrap_or("no reason given"))]
    Refused {
        /// The errno.
        source: io::Error,
        /// The extended ACK.
        text: Option<String>,
    },
    /// Messages of a group arrived faster than they were read, and some were dropped.
    #[error("the kernel dropped messages: they arrived faster than they were read")]
    Overrun,
    /// The kernel's answer is malformed.
    #[error("malformed netlink answer: {0}")]
    Decode(String),
}

impl Error {
    /// Whether the kernel refused with `errno`.
    #[must_use]
    pub fn is(&self, errno: nix::errno::Errno) -> bool {
        matches!(self, Self::Refused { source, .. } if source.raw_os_error() == Some(errno as i32))
    }
}

impl From<ErrorContext> for Error {
    fn from(error: ErrorContext) -> Self {
        Self::Decode(error.to_string())
    }
}
