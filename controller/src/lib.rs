//! P4Runtime client, telemetry, pattern engine, query API
//!
//! ```text
//! switches --digests--> p4 -> engine (telemetry -> patterns) -> hub -> agents
//!     ^                  |                                       `--> users
//!     `--- pipelines, ---'
//!          tables
//! ```
//!
//! [`fabric`], [`pattern`], [`telemetry`], [`cost`], [`pacing`], [`liveness`], [`gray`]
//! and [`engine`] are free of I/O: samples and the time go in, patterns, probes and
//! deadlines come out.
//!
//! The daemon `weft-controller` runs it. The command line `weft` is a crate of its own
//! (`cli/`) above this one, and nothing here knows its flags.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod api;
pub mod bids;
#[cfg(test)]
mod circle;
pub mod clock;
pub mod cost;
pub mod engine;
pub mod fabric;
pub mod followers;
pub mod gray;
pub mod hub;
pub mod liveness;
pub mod loss;
pub mod p4;
pub mod pacing;
pub mod pattern;
pub mod probe;
#[cfg(test)]
mod push_bench;
pub mod record;
pub mod telemetry;
#[cfg(test)]
mod testing;
pub mod view;
