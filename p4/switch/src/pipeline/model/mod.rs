// SPDX-License-Identifier: Apache-2.0

//! The data structures of a program, shared by all switches that run it.
//!
//! Names are resolved: tables and actions are indices, and fields are places among a packet's words
//! ([`layout`]). [`program::Program`] contains everything else.

pub mod action;
pub mod control;
pub mod expr;
pub mod hash;
pub mod info;
pub mod intrinsics;
pub mod layout;
pub mod parser;
pub mod program;
pub mod registers;
pub mod slot;
pub mod table;
pub mod wire;
pub mod word;
