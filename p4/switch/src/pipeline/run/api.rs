//! What crosses the border of a running pipeline.

use super::packet::PacketState;
use crate::pipeline::model::info::ActionId;

/// The value of one key field. Byte strings are big-endian; leading zeros are optional on input
/// and absent on output, where there is always at least one byte.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MatchValue {
    /// Anything: a P4Runtime entry that leaves the field out. Not for exact fields.
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
        /// The bits that count.
        mask: Vec<u8>,
    },
    /// For [`Range`](crate::pipeline::MatchKind::Range), both bounds included.
    Range {
        /// The least value that matches.
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

/// An entry of a table. Its key is `matches` and, where the table has priorities, `priority`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableEntry {
    /// One value for each key field of the table.
    pub matches: Vec<MatchValue>,
    /// The greater wins, as in P4Runtime. Above 0 where the table has priorities, 0 elsewhere.
    pub priority: i32,
    /// What to do with a packet that matches.
    pub action: ActionCall,
}

/// What a counter cell holds.
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

/// A copy to make of a multicast or cloned packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replica {
    /// The egress port.
    pub port: u16,
    /// What the copy sees as `egress_rid`.
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

/// What the queue in front of a port tells egress. Times are in the unit of the timestamps that
/// the caller passes to the pipeline.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueMetadata {
    /// When the packet was queued.
    pub enq_timestamp: u64,
    /// Packets in the queue when this one came, without it.
    pub enq_qdepth: u32,
    /// How long it waited.
    pub deq_timedelta: u64,
    /// Packets left in the queue when this one was taken out.
    pub deq_qdepth: u32,
}

/// A packet between ingress and egress: parsed headers, metadata and payload.
///
/// Hand it back to the [`Pipeline`](crate::pipeline::Pipeline) that made it, by `egress` or `discard`: its
/// buffers are used again.
#[derive(Debug)]
pub struct InFlight(pub(in crate::pipeline) Box<PacketState>);

impl InFlight {
    /// How many bytes came in. How many will leave, only egress tells.
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
}

/// A digest message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digest {
    /// The place of the digest in [`Program::digests`](crate::pipeline::Program::digests).
    pub digest: usize,
    /// One byte string for each member, big-endian without leading zeros.
    pub fields: Vec<Vec<u8>>,
}

/// What a packet caused. The pipeline appends; the caller drains.
#[derive(Debug, Default)]
pub struct Effects {
    /// Packets to queue, in order.
    pub outputs: Vec<Output>,
    /// Digests to send to the control plane, in order.
    pub digests: Vec<Digest>,
    /// Buffers of packets that are done with. All pipelines of a caller use the same, because
    /// those used last are still in the processor's caches.
    spare: Vec<InFlight>,
}

/// How many packets' buffers are kept to be used again.
const MAX_SPARE: usize = 4096;

impl Effects {
    /// Takes back the buffers of a packet, as of one that found its queue full.
    pub fn discard(&mut self, packet: InFlight) {
        if self.spare.len() < MAX_SPARE {
            self.spare.push(packet);
        }
    }

    /// Buffers for a packet; what they hold is left over from another.
    pub(in crate::pipeline) fn take(&mut self) -> InFlight {
        self.spare.pop().unwrap_or_else(|| InFlight(Box::default()))
    }
}
