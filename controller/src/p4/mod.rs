// SPDX-License-Identifier: Apache-2.0

//! P4Runtime: one session per switch.
//!
//! [`program`], [`desired`], [`reconcile`] and [`digest`] do no I/O;
//! [`session`] talks to a switch.

pub mod desired;
pub mod digest;
pub mod program;
pub mod reconcile;
pub mod session;
mod subscription;
pub mod timestamps;
