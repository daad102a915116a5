//! Why a topology makes no network.

use super::port::CPU_PORT;

/// Why a topology makes no network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// A port number that the data plane keeps for itself.
    #[error("{switch} port {port}: ports are numbered 1 to {}", CPU_PORT - 1)]
    PortNumber {
        /// The switch.
        switch: String,
        /// The number.
        port: u16,
    },
    /// Two ports of one number.
    #[error("{switch} has two ports {port}")]
    Twice {
        /// The switch.
        switch: String,
        /// The number.
        port: u16,
    },
    /// A cable ends at a switch port that does not exist.
    #[error("{switch} port {port}: its cable ends at {peer} port {peer_port}, which is none")]
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
    #[error("{switch} port {port}: rate {rate_bps} bps is not in 1 to 10^13")]
    Rate {
        /// The switch.
        switch: String,
        /// The number.
        port: u16,
        /// The rate.
        rate_bps: u64,
    },
}
