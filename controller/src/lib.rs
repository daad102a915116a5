//! P4Runtime client, telemetry, pattern engine, query API, and the CLI weft
//!
//! ```text
//! switches --digests--> p4 -> engine (telemetry -> patterns) -> hub -> agents
//!     ^                  |                                       `--> users
//!     `--- pipelines, ---'
//!          tables
//! ```
//!
//! [`fabric`], [`pattern`], [`telemetry`] and [`engine`] are free of I/O: samples
//! and the time go in, patterns and deadlines come out.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod engine;
pub mod fabric;
pub mod pattern;
pub mod telemetry;
#[cfg(test)]
mod testing;
