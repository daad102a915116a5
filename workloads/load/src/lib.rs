//! Weft's traffic generator: which flows there are, when they start, how they
//! run over real sockets, and what came out.
//!
//! ```text
//! distribution -> plan -> engine <-> shell (epoll, sockets in every host)
//!                                      |
//!                          results (a folder) -> report (tables)
//! ```
//!
//! [`distribution`], [`plan`], [`fabric`] and [`engine`] do no I/O: the clock is
//! an argument and every random number comes from the seed. [`shell`] owns the
//! sockets, [`results`] writes a run's folder, and [`report`] reads nothing else.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod args;
pub mod distribution;
pub mod engine;
pub mod fabric;
pub mod plan;
pub mod report;
pub mod results;
pub mod shell;
