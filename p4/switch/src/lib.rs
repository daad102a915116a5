// SPDX-License-Identifier: Apache-2.0

//! The embedded P4 target: runs BMv2 JSON, speaks P4Runtime
//!
//! One process runs all switches of a network:
//!
//! ```text
//!            P4Runtime, one server per switch      [server]
//!                         |
//!   hosts -- [shell] -- [network] -- [shell] -- hosts
//!                         |
//!             one [pipeline] per switch
//! ```
//!
//! [`pipeline`] and [`network`] do no I/O and take time as an argument.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod capture;
pub mod network;
pub mod pipeline;
mod prefetch;
pub mod queue_log;
pub mod server;
pub mod shell;
#[cfg(test)]
mod testing;
