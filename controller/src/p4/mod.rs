//! The P4Runtime side: one session per switch.
//!
//! [`program`], [`desired`], [`reconcile`] and [`digest`] are free of I/O;
//! [`session`] speaks with a switch.

pub mod desired;
pub mod digest;
pub mod program;
pub mod reconcile;
pub mod session;
mod subscription;
pub mod timestamps;
