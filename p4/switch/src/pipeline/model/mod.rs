//! What a program is: data without behaviour of its own, shared by all switches that run it.
//!
//! Names are resolved: a table, an action, a field is an index or a place among a packet's words
//! ([`layout`]). [`program::Program`] holds everything else here.

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
