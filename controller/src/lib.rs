// SPDX-License-Identifier: Apache-2.0

//! The controller: P4Runtime client, telemetry, pattern engine and query API.
//!
//! ```text
//! switches --digests--> p4 -> engine (telemetry -> patterns) -> hub -> agents
//!     ^                  |                                       `--> users
//!     `--- pipelines, ---'
//!          tables
//! ```
//!
//! [`fabric`], [`pattern`], [`telemetry`], [`cost`], [`pacing`], [`liveness`],
//! [`slow_links`], [`gray_failure`], [`mastership`] and [`engine`] do no I/O. They take
//! samples and the time, and return patterns, probes and deadlines.
//!
//! The daemon `weft-controller` does the I/O. The command line `weft` is a separate crate
//! (`cli/`) on top of this one. This crate knows none of its flags.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod api;

pub mod classes;
pub mod clock;
#[cfg(test)]
mod closed_loop;
pub mod cost;
pub mod engine;
pub mod fabric;

pub mod gray_failure;
pub mod hub;
pub mod liveness;
pub mod mastership;
pub mod p4;
pub mod pacing;
pub mod pattern;
pub mod probe;
#[cfg(test)]
mod push_bench;
pub mod record;
pub mod slow_links;
pub mod subscribers;
pub mod telemetry;
#[cfg(test)]
mod testing;
pub mod view;
