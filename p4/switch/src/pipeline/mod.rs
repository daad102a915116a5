//! The P4 pipeline: a BMv2 JSON program compiled to an index-resolved form, and run.
//!
//! ```text
//! bytes, port, now -> parser -> verify checksum -> ingress -> [traffic manager: the caller's]
//!                  -> egress -> update checksum -> deparser -> bytes
//! ```
//!
//! The module does no I/O and owns no clock and no queue: [`Pipeline::ingress`] turns the bytes of a
//! packet into [`Output`]s (a port and the parsed packet to queue there), [`Pipeline::egress`] turns
//! one of those into the bytes to send. Its semantics are those of BMv2's `simple_switch` for
//! programs that `p4c-bm2-ss` compiled for v1model; what it does not implement, [`Program::load`]
//! refuses by name.
//!
//! Packets come from outside: no bytes make it panic, and none make it allocate without bound.

mod action;
mod api;
mod bits;
mod compile_action;
mod compile_control;
mod compile_expr;
mod compile_parser;
mod control;
mod deparser;
mod entries;
mod error;
mod expr;
mod externs;
mod hash;
mod index;
mod intrinsics;
mod json;
mod layout;
mod lower;
mod packet;
mod parser;
mod pieces;
mod program;
mod registers;
mod state;
mod switch;
mod table;
mod word;

#[cfg(test)]
mod tests;

pub use api::{
    ActionCall, ActionId, ActionInfo, CloneSession, CounterId, CounterInfo, CounterValue, Digest,
    DigestInfo, Effects, FieldInfo, InFlight, KeyInfo, MatchKind, MatchValue, Output,
    QueueMetadata, RegisterId, RegisterInfo, Replica, TableEntry, TableId, TableInfo,
};
pub use error::{LoadError, StateError};
pub(crate) use externs::Random;
pub use program::Program;
pub use switch::Pipeline;

/// The egress port that drops a packet (`mark_to_drop` sets it).
pub const DROP_PORT: u16 = 511;
