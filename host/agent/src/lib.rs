//! The agent: applies the controller's patterns in the kernels of hosts, and manages the
//! number of subflows of their connections.
//!
//! One process serves any number of hosts, each in its own network namespace. Per host it
//! has one generic netlink socket, which stays in the namespace where it was opened, and
//! one `WatchPatterns` stream.
//!
//! - [`weft`]: the kernel's netlink family `mptcp_pattern`: patterns in, patterns and flows out.
//! - [`subscription`]: the stream of a host, from the controller into its kernel.
//! - [`installed`]: which of them go in: nothing old after something newer; no I/O.
//! - [`path_manager`]: who opens subflows; the loop that does it for a host.
//! - [`adaptive`]: how many subflows each path should have; no I/O.
//! - [`mptcp_pm`]: the kernel's path managers: events in, subflows out.
//! - [`subflows`]: the subflows of a host and what the kernel counts for them.
//! - [`netlink`]: the sockets and attributes under them.

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
