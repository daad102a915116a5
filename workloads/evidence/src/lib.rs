// SPDX-License-Identifier: Apache-2.0

//! Evaluates the captures of a run: what happened to every packet.
//!
//! ```text
//! <host>.pcap  -> capture -> segment -> mptcp -> host -> receiver, sender --+
//! arrivals.csv -> arrivals -------------------> port (queue, burstiness) ---+-> tables, summary
//! ```
//!
//! [`evaluate`] reads the folder of a run and writes its folder `evidence`. README.md describes
//! both, with definitions and their sources. All files are read once, sequentially. Memory grows
//! with the number of connections and ports, not with the number of packets.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod arrivals;
pub mod capture;
pub mod distribution;
mod error;
mod evaluation;
pub mod host;
pub mod mptcp;
mod packet_tables;
pub mod port;
pub mod receiver;
mod run_totals;
pub mod segment;
pub mod sender;
pub mod series;
pub mod stream;
mod summary;
mod tables;

pub use error::Error;
pub use evaluation::{Options, evaluate};
pub use summary::Summary;
