// SPDX-License-Identifier: Apache-2.0

//! What people write to Weft's programs and read from them, in one way for all.
//!
//! - [`units`]: rates, durations, sizes and shares: read, and shown.
//! - [`table`]: plain text tables.
//! - [`usage`]: wrong command lines, explained in one line, and their exit status.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod table;
pub mod units;
pub mod usage;
