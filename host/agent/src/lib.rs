//! The agent: patterns from the controller into the kernels of hosts.
//!
//! One process serves any number of hosts, each in a network namespace of its
//! own. Per host it holds one generic netlink socket, which stays in the
//! namespace it was opened in, and one `WatchPatterns` stream.
//!
//! - [`weft`]: the kernel's family `weft`: patterns in, patterns and flows out.
//! - [`mptcp_pm`]: the kernel's path manager: which addresses make subflows.
//! - [`netlink`]: the generic netlink socket and attributes under both.
//! - [`follow`]: the stream of a host, from the controller into its kernel.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod follow;
pub mod mptcp_pm;
pub mod netlink;
pub mod netns;
pub mod weft;
