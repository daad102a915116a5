// SPDX-License-Identifier: Apache-2.0

//! The types of a running pipeline's interface.

use super::packet::PacketState;
use crate::pipeline::model::info::ActionId;

/// The value of one key field. Byte strings are big-endian. On input, leading zeros are optional.
/// On output, there are none, but at least one byte.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MatchValue {
    /// Matches anything, as a P4Runtime entry that leaves the field out. Not for exact fields.
    Any,
    /// For [`Exact`](crate::pipeline::MatchKind::Exact), and for
    /// [`Ternary`](crate::pipeline::MatchKind::Ternary) with all bits in the mask; the latter is
    /// read back as [`MatchValue::Ternary`].
    Exact(Vec<u8>),
    /// For [`Lpm`](crate::pipeline::MatchKind::Lpm); bits beyond the prefix must be zero.
    Lpm {
        /// The value.
        value: Vec<u8>,
        /// Its length in bits.
        prefix_bits: u32,
    },
    /// For [`Ternary`](crate::pipeline::MatchKind::Ternary); bits outside the mask must be zero.
    Ternary {
        /// The value.
        value: Vec<u8>,
        /// The bits that are compared.
        mask: Vec<u8>,
    },
    /// For [`Range`](crate::pipeline::MatchKind::Range), with inclusive bounds.
    Range {
        /// The smallest value that matches.
        low: Vec<u8>,
        /// The greatest value that matches.
        high: Vec<u8>,
    },
}

/// An action and its arguments (big-endian, one for each parameter).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionCall {
    /// The action.
    pub action: ActionId,
    /// Its arguments, in the parameters' order.
    pub args: Vec<Vec<u8>>,
}

/// An entry of a table. Its key is `matches` and, if the table has priorities, `priority`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableEntry {
    /// One value for each key field of the table.
    pub matches: Vec<MatchValue>,
    /// The greater priority wins, as in P4Runtime. It is above 0 if the table has priorities,
    /// otherwise 0.
    pub priority: i32,
    /// The action for packets that match.
    pub action: ActionCall,
}

/// The value of a counter cell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CounterValue {
    /// Packets counted.
    pub packets: u64,
    /// Bytes counted (frame length at ingress).
    pub bytes: u64,
}

impl CounterValue {
    pub(in crate::pipeline) fn add(&mut self, bytes: usize) {
        self.packets = self.packets.wrapping_add(1);
        self.bytes = self.bytes.wrapping_add(bytes as u64);
    }
}

/// How a cell of a meter colours packets, in units of the meter: bytes or packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeterConfig {
    /// Units per second that are green (CIR).
    pub committed_rate: u64,
    /// Units that may come at once and are green (CBS).
    pub committed_burst: u64,
    /// What is yellow, and what is red.
    pub rates: MeterRates,
}

/// The second bucket of a meter's cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeterRates {
    /// Two rates, three colours (RFC 2698).
    Two {
        /// Units per second beyond which packets are red (PIR).
        peak_rate: u64,
        /// Units that may come at once without being red (PBS).
        peak_burst: u64,
    },
    /// One rate, three colours (RFC 2697).
    One {
        /// Units beyond the committed burst that are yellow (EBS).
        excess_burst: u64,
    },
}

/// A copy to make of a multicast or cloned packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replica {
    /// The egress port.
    pub port: u16,
    /// The copy's `egress_rid`.
    pub instance: u16,
}

/// Where `clone` sends its copies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloneSession {
    /// The copies.
    pub replicas: Vec<Replica>,
    /// Cut each copy to this many bytes; 0 keeps it whole.
    pub length_bytes: usize,
}

/// The queue's metadata for egress. Times are in the unit of the timestamps that the caller passes
/// to the pipeline.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueMetadata {
    /// When the packet was queued.
    pub enq_timestamp: u64,
    /// Packets of this one's priority in the queue when it arrived, not counting it.
    pub enq_qdepth: u32,
    /// How long the packet waited.
    pub deq_timedelta: u64,
    /// Packets of its priority left in the queue when it was taken out.
    pub deq_qdepth: u32,
}

/// A packet between ingress and egress: parsed headers, metadata and payload.
///
/// Return it to the [`Pipeline`](crate::pipeline::Pipeline) that made it with `egress` or
/// `discard`, so that its buffers are reused.
#[derive(Debug)]
pub struct InFlight(pub(in crate::pipeline) Box<PacketState>);

impl InFlight {
    /// Number of bytes that came in. Only egress decides how many leave.
    pub fn length_bytes(&self) -> usize {
        self.0.length()
    }
}

/// A packet that is to be queued at a port.
#[derive(Debug)]
pub struct Output {
    /// The egress port, never [`DROP_PORT`](crate::pipeline::DROP_PORT).
    pub port: u16,
    /// The packet.
    pub packet: InFlight,
    /// Its `priority`, below [`PRIORITIES`]: a greater one is served first.
    pub priority: u8,
}

/// Priorities of packets at a port: the values of `standard_metadata.priority`.
pub const PRIORITIES: usize = 8;

/// A digest message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digest {
    /// The digest, as an index into [`Program::digests`](crate::pipeline::Program::digests).
    pub digest: usize,
    /// One byte string for each member, big-endian without leading zeros.
    pub fields: Vec<Vec<u8>>,
}

/// The effects of packets. The pipeline appends them, and the caller drains them.
#[derive(Debug, Default)]
pub struct Effects {
    /// Packets to queue, in order.
    pub outputs: Vec<Output>,
    /// Digests to send to the control plane, in order.
    pub digests: Vec<Digest>,
    /// Buffers to reuse. All pipelines of a caller share them, because those used last are still in
    /// the processor's caches.
    spare: Vec<InFlight>,
}

/// Maximum number of packets whose buffers are kept for reuse.
const MAX_SPARE: usize = 4096;

impl Effects {
    /// Takes back the buffers of a packet, for example one that found its queue full.
    pub fn discard(&mut self, packet: InFlight) {
        if self.spare.len() < MAX_SPARE {
            self.spare.push(packet);
        }
    }

    /// Buffers for a packet, with left-over contents of another.
    pub(in crate::pipeline) fn take(&mut self) -> InFlight {
        self.spare.pop().unwrap_or_else(|| InFlight(Box::default()))
    }
}
