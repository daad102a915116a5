// SPDX-License-Identifier: Apache-2.0

//! Weft's traffic generator: plans flows, runs them over real sockets, and writes the results.
//!
//! ```text
//! distribution -> plan -> engine <-> shell (epoll, sockets in every host)
//!                                      |
//!                         record -> results (a folder) -> report (tables)
//! ```
//!
//! [`distribution`], [`plan`], [`ideal_fabric`] and [`engine`] do no I/O: the clock is an
//! argument, and all randomness comes from the seed. [`shell`] is the event loop with the
//! sockets, [`record`] makes rows of what it measured, [`results`] writes a run's folder, and
//! [`report`] reads only that folder.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod args;
pub mod distribution;
pub mod engine;
pub mod ideal_fabric;
pub mod plan;
pub mod record;
pub mod report;
pub mod results;
pub mod shell;
