// SPDX-License-Identifier: Apache-2.0

//! The agent: applies the controller's patterns in the kernels of hosts, and manages the
//! number of subflows of their connections.
//!
//! One process serves any number of hosts, each in its own network namespace. Per host it
//! has one generic netlink socket, which stays in the namespace where it was opened, and
//! one `WatchPatterns` stream.
//!
//! - [`weft`]: the kernel's netlink family `mptcp_pattern`: sets patterns, reads patterns and flows.
//! - [`subscription`]: a host's subscription to the controller's patterns.
//! - [`installed`]: which patterns to set, so that none replaces a newer one; no I/O.
//! - [`path_manager`]: opens and closes the subflows of a host.
//! - [`adaptive`]: decides how many subflows each path should have; no I/O.
//! - [`mptcp_pm`]: the kernel's path managers: receives events, opens and closes subflows.
//! - [`subflows`]: the subflows of a host, with the kernel's counters.
//! - [`netlink`]: the netlink sockets and attributes that all of these use.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod adaptive;

pub mod installed;
pub mod mptcp_pm;
pub mod netlink;
pub mod netns;
pub mod path_manager;
pub mod subflows;
pub mod subscription;
pub mod weft;
