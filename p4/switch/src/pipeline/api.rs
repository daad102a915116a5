//! The types that cross the pipeline's border.

use super::packet::PacketState;

/// A table, by its place in [`Program::tables`](super::Program::tables).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub usize);

/// An action, by its place in [`Program::actions`](super::Program::actions).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActionId(pub usize);

/// An indexed counter, by its place in [`Program::counters`](super::Program::counters).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CounterId(pub usize);

/// A register array, by its place in [`Program::registers`](super::Program::registers).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegisterId(pub usize);

/// How a key field is matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchKind {
    /// The value itself.
    Exact,
    /// The longest prefix.
    Lpm,
    /// Value under a mask; priorities decide. P4Info's `OPTIONAL` fields are ternary in BMv2 JSON.
    Ternary,
    /// Between two bounds, both included; priorities decide.
    Range,
}

/// One field of a table's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyInfo {
    /// The name P4Info gives it.
    pub name: String,
    /// How it is matched.
    pub kind: MatchKind,
    /// Its width in bits.
    pub bits: u32,
}

/// A table of the program, its key in P4Info's order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableInfo {
    /// Fully qualified name (`routing.ipv4_lpm`).
    pub name: String,
    /// Key fields; match field id N of P4Info is at N - 1.
    pub key: Vec<KeyInfo>,
    /// The actions an entry or the default may call.
    pub actions: Vec<ActionId>,
    /// How many entries it holds at most.
    pub max_size: usize,
    /// Whether it has a direct counter.
    pub counted: bool,
    /// Whether its entries are `const`: no insert, modify or delete.
    pub const_entries: bool,
    /// Whether its default action is `const`.
    pub const_default: bool,
    /// Whether entries carry a priority (a ternary or range key field).
    pub prioritised: bool,
}

/// A named bit field: an action parameter or a digest member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldInfo {
    /// Its name.
    pub name: String,
    /// Its width in bits.
    pub bits: u32,
}

/// An action of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionInfo {
    /// Fully qualified name (`routing.to_host`).
    pub name: String,
    /// Parameters; parameter id N of P4Info is at N - 1.
    pub params: Vec<FieldInfo>,
}

/// A digest (learn list) of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DigestInfo {
    /// The name of the struct it carries (`rtt_sample_t`), which is its P4Info name.
    pub name: String,
    /// Its members, in order; BMv2 JSON names the fields they were filled from.
    pub fields: Vec<FieldInfo>,
}

/// An indexed counter of the program (direct counters belong to their table).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterInfo {
    /// Fully qualified name.
    pub name: String,
    /// How many cells it has.
    pub size: usize,
}

/// A register array of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisterInfo {
    /// Fully qualified name.
    pub name: String,
    /// How many cells it has.
    pub size: usize,
    /// The width of a cell in bits.
    pub bits: u32,
}

/// The value of one key field. Byte strings are big-endian; leading zeros are optional on input
/// and absent on output, where there is always at least one byte.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MatchValue {
    /// Anything: a P4Runtime entry that leaves the field out. Not for exact fields.
    Any,
    /// For [`MatchKind::Exact`], and for [`MatchKind::Ternary`] with all bits in the mask; the
    /// latter is read back as [`MatchValue::Ternary`].
    Exact(Vec<u8>),
    /// For [`MatchKind::Lpm`]; bits beyond the prefix must be zero.
    Lpm {
        /// The value.
        value: Vec<u8>,
        /// Its length in bits.
        prefix_bits: u32,
    },
    /// For [`MatchKind::Ternary`]; bits outside the mask must be zero.
    Ternary {
        /// The value.
        value: Vec<u8>,
        /// The bits that count.
        mask: Vec<u8>,
    },
    /// For [`MatchKind::Range`], both bounds included.
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
    pub(super) fn add(&mut self, bytes: usize) {
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
/// Hand it back to the [`Pipeline`](super::Pipeline) that made it, by `egress` or `discard`: its
/// buffers are used again.
#[derive(Debug)]
pub struct InFlight(pub(super) Box<PacketState>);

impl InFlight {
    /// How many bytes came in. How many will leave, only egress tells.
    pub fn length_bytes(&self) -> usize {
        self.0.length()
    }
}

/// A packet that is to be queued at a port.
#[derive(Debug)]
pub struct Output {
    /// The egress port, never [`DROP_PORT`](super::DROP_PORT).
    pub port: u16,
    /// The packet.
    pub packet: InFlight,
}

/// A digest message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digest {
    /// The place of the digest in [`Program::digests`](super::Program::digests).
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
    pub(super) fn take(&mut self) -> InFlight {
        self.spare.pop().unwrap_or_else(|| InFlight(Box::default()))
    }
}
