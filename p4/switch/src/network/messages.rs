// SPDX-License-Identifier: Apache-2.0

//! What comes out of the network: to hosts, to control planes, to captures.

use crate::pipeline::Digest;

/// A frame that leaves the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The host port that it leaves by, as an index into
    /// [`Network::host_ports`](super::Network::host_ports).
    pub host_port: usize,
    /// When the host gets it, in nanoseconds.
    pub at_ns: u64,
    /// The frame.
    pub frame: Vec<u8>,
}

/// A packet that came to an observed egress queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When, in nanoseconds.
    pub at_ns: u64,
    /// The switch, as an index into [`Network::switches`](super::Network::switches).
    pub switch: usize,
    /// The port's number.
    pub port: u16,
    /// Length of the frame as it came into the switch.
    pub bytes: usize,
    /// Packets that waited there already.
    pub queue_packets: usize,
    /// Packets that were dropped because there was no room: itself, or those of a lower priority
    /// that made room for it.
    pub dropped_packets: u64,
    /// Its priority; a greater one is served first.
    pub priority: u8,
}

/// A message from a switch to its control plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlMessage {
    /// The switch, as an index into [`Network::switches`](super::Network::switches).
    pub switch: usize,
    /// When the switch sent it, in nanoseconds.
    pub at_ns: u64,
    /// What.
    pub content: ControlContent,
}

/// The kinds of [`ControlMessage`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlContent {
    /// The program sent a digest.
    Digest(Digest),
    /// A frame left at [`CPU_PORT`](super::CPU_PORT).
    PacketIn(Vec<u8>),
}
