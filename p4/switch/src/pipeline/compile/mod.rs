// SPDX-License-Identifier: Apache-2.0

//! From BMv2 JSON to a program of the [`model`](super::model).
//!
//! ```text
//! json -> symbols (headers, fields), objects (counters, registers, ...)
//!      -> expr, width -> action -> parser, table, control -> program
//! ```
//!
//! [`json`] is the structure of the document. [`symbols`] and [`objects`] are its symbol tables. A
//! construct that is not implemented gives an [`error::LoadError`] that names it.

pub mod action;
pub mod control;
pub mod error;
pub mod expr;
pub mod hash;
pub mod intrinsics;
pub mod json;
pub mod objects;
pub mod parser;
pub mod program;
pub mod registers;
pub mod symbols;
pub mod table;
pub mod width;
pub mod wire;
