// SPDX-License-Identifier: Apache-2.0

//! Where hosts are attached.

/// A switch port that leads to a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPort {
    /// The switch, as an index into [`Network::switches`](super::Network::switches).
    pub switch: usize,
    /// The port's number.
    pub port: u16,
    /// The switch's end of the cable, an interface of this network namespace.
    pub interface: String,
    /// The host.
    pub host: String,
    /// Its NIC, if that runs a program, as an index into
    /// [`Network::switches`](super::Network::switches).
    pub nic: Option<usize>,
    /// Propagation delay of the cable, or of the bus to the NIC.
    pub delay_ns: u64,
    /// Rate of the cable or bus, from the host.
    pub rate_bps: u64,
    /// Scheduling noise between the host's kernel and the cable, see [`weft_topology::Host`].
    pub jitter_ns: u64,
}
