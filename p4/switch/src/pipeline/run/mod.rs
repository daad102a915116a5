// SPDX-License-Identifier: Apache-2.0

//! Executes a program for packets, and holds its state: tables, registers, counters, meters.
//!
//! [`pipeline::Pipeline`] takes a packet from ingress to egress. Its stages are [`parser`],
//! [`control`] and [`deparser`]; [`machine`] executes the primitives of actions, [`eval`] their
//! expressions. [`control_plane`] is what P4Runtime reads and writes.

pub mod api;
pub mod bits;
pub mod control;
pub mod control_plane;
pub mod deparser;
pub mod entry;
pub mod eval;
pub mod externs;
pub mod hash;
pub mod index;
pub mod machine;
pub mod meter;
mod packet;
pub mod parser;
pub mod pipeline;
pub mod registers;
pub mod table;
pub mod wire;
