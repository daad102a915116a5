// SPDX-License-Identifier: Apache-2.0

//! Why no network can be built from a topology.

use super::port::CPU_PORT;

/// Why no network can be built from a topology.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// A port number that the data plane reserves.
    #[error("{switch} port {port}: ports are numbered 1 to {}", CPU_PORT - 1)]
    PortNumber {
        /// The switch.
        switch: String,
        /// The number.
        port: u16,
    },
    /// Two ports with the same number.
    #[error("{switch} has two ports {port}")]
    Twice {
        /// The switch.
        switch: String,
        /// The number.
        port: u16,
    },
    /// A link ends at a switch port that does not exist.
    #[error("{switch} port {port}: its link ends at {peer} port {peer_port}, which does not exist")]
    NoPeer {
        /// The switch.
        switch: String,
        /// The number.
        port: u16,
        /// The far end.
        peer: String,
        /// The far end's port.
        peer_port: u16,
    },
    /// A rate of 0, or one that arithmetic cannot hold.
    #[error("{switch} port {port}: rate {rate_bps} bps is out of range 1 to 10^13")]
    Rate {
        /// The switch.
        switch: String,
        /// The number.
        port: u16,
        /// The rate.
        rate_bps: u64,
    },
}
