// SPDX-License-Identifier: Apache-2.0

//! The P4 pipeline: compiles a BMv2 JSON program to a form with resolved names, and runs it.
//!
//! ```text
//! bytes, port, now -> parser -> verify checksum -> ingress -> [traffic manager: the caller's]
//!                  -> egress -> update checksum -> deparser -> bytes
//! ```
//!
//! ```text
//! compile --> model <-- run
//! ```
//!
//! `model` has the data structures of a program, and imports neither of the others. `compile`
//! builds a program from BMv2 JSON, and `run` executes it for packets.
//!
//! The module does no I/O and owns no clock and no queue: [`Pipeline::ingress`] turns the bytes of
//! a packet into [`Output`]s (a port, and the parsed packet to queue there). [`Pipeline::egress`]
//! turns one of them into the bytes to send. Its semantics are those of BMv2's `simple_switch` for
//! programs that `p4c-bm2-ss` compiled for v1model; [`Program::load`] refuses what it does not
//! implement, by name.
//!
//! Packets come from outside, so no packet makes it panic or allocate without bound.

mod compile;
mod model;
mod run;
#[cfg(test)]
mod tests;

pub use compile::error::LoadError;
pub use model::info::{
    ActionId, ActionInfo, CounterId, CounterInfo, DigestInfo, FieldInfo, KeyInfo, MatchKind,
    MeterId, MeterInfo, MeterUnit, RegisterId, RegisterInfo, TableId, TableInfo,
};
pub use model::intrinsics::DROP_PORT;
pub use model::program::Program;
pub use run::api::{
    ActionCall, CloneSession, CounterValue, Digest, Effects, InFlight, MatchValue, MeterConfig,
    MeterRates, Output, PRIORITIES, QueueMetadata, Replica, TableEntry,
};
pub use run::control_plane::error::StateError;
pub(crate) use run::externs::Random;
pub use run::pipeline::Pipeline;
