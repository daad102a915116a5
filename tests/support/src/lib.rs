// SPDX-License-Identifier: Apache-2.0

//! What the tests of several crates share.
//!
//! - [`topology`] builds fabrics as `topology/` describes them: `topology/tests/golden/` has the
//!   documents that the Python side writes, and this crate's own tests compare.
//! - [`packet`] makes frames, and reads what a switch made of them.
//! - [`tools`] runs tests that need a tool which may be missing, such as BMv2.
//!
//! Helpers panic where a test would: on a mistake of the test, or of the code under test.

#![allow(clippy::unwrap_used)]

pub mod packet;
pub mod tools;
pub mod topology;
