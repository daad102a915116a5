//! One direction of one subflow: from its sequence numbers to the connection's.

use std::collections::VecDeque;

use crate::mptcp::{SignalledMapping, nearest};

/// Mappings longer than their segment that are remembered, per subflow and direction; and packets
/// that wait for theirs.
const HISTORY_MAX: usize = 4_096;

/// A direction of a subflow.
#[derive(Debug)]
pub struct Stream {
    /// Sequence number of its first byte of data.
    first: u32,
    /// The end of what it has carried.
    next: u64,
    /// Mappings that reach beyond their segment.
    mappings: VecDeque<Mapping>,
    /// Packets whose mapping has not come: it stands in an earlier segment that was lost.
    unmapped: VecDeque<PacketData>,
    /// Whether it is plain TCP, whose data is the connection's.
    plain: bool,
}

/// Where a range of a subflow's data belongs. Everything counts from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapping {
    /// First byte in the subflow.
    pub offset: u64,
    /// The same byte in the connection.
    pub data_sequence: u64,
    /// Length.
    pub bytes: u64,
}

/// Data of one packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketData {
    /// When.
    pub at_ns: u64,
    /// First byte in the subflow, from 0.
    pub offset: u64,
    /// Length.
    pub bytes: u32,
    /// Whether the subflow had carried later data before.
    pub late: bool,
}

impl Stream {
    /// A direction whose SYN had the sequence number `syn`.
    #[must_use]
    pub fn new(syn: u32) -> Self {
        Self {
            first: syn.wrapping_add(1),
            next: 0,
            mappings: VecDeque::new(),
            unmapped: VecDeque::new(),
            plain: false,
        }
    }

    /// Data counts as in the subflow, as in plain TCP.
    pub fn make_plain(&mut self) {
        self.plain = true;
    }

    /// Place of a sequence number in the subflow; `None` before its data.
    #[must_use]
    pub fn offset(&self, sequence: u32) -> Option<u64> {
        nearest(sequence.wrapping_sub(self.first), self.next)
    }

    /// Takes `bytes` of data at `offset`; returns whether later data came before.
    pub fn advance(&mut self, offset: u64, bytes: u32) -> bool {
        let late = offset < self.next;
        self.next = self.next.max(offset + u64::from(bytes));
        late
    }

    /// A mapping in a segment that starts at `offset`, with the place of its data.
    #[must_use]
    pub fn mapping(
        signalled: SignalledMapping,
        data_sequence: u64,
        offset: u64,
    ) -> Option<Mapping> {
        // The subflow's first byte of data is 1.
        let first = nearest(signalled.subflow_sequence.wrapping_sub(1), offset)?;
        Some(Mapping {
            offset: first,
            data_sequence,
            bytes: match signalled.bytes {
                0 => u64::MAX,
                bytes => bytes.into(),
            },
        })
    }

    /// Remembers a mapping, and calls `found` for packets that waited for it.
    pub fn add_mapping(&mut self, mapping: Mapping, mut found: impl FnMut(PacketData, u64)) {
        // Linux repeats it in every segment.
        if self.mappings.back() == Some(&mapping) {
            return;
        }
        if self.mappings.len() == HISTORY_MAX {
            self.mappings.pop_front();
        }
        self.mappings.push_back(mapping);
        self.unmapped.retain(|data| {
            let data_sequence = mapping.data_sequence_of(data.offset);
            if let Some(data_sequence) = data_sequence {
                found(*data, data_sequence);
            }
            data_sequence.is_none()
        });
    }

    /// Where the byte at `offset` belongs, by what is remembered.
    #[must_use]
    pub fn lookup(&self, offset: u64) -> Option<u64> {
        if self.plain {
            return Some(offset);
        }
        let mut newest_first = self.mappings.iter().rev();
        newest_first.find_map(|mapping| mapping.data_sequence_of(offset))
    }

    /// Keeps a packet until its mapping comes; returns whether another one is given up for it.
    pub fn hold(&mut self, data: PacketData) -> bool {
        let full = self.unmapped.len() == HISTORY_MAX;
        if full {
            self.unmapped.pop_front();
        }
        self.unmapped.push_back(data);
        full
    }

    /// Packets whose mapping has not come.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.unmapped.len() as u64
    }
}

impl Mapping {
    /// Where the byte at `offset` of the subflow belongs, if this says so.
    #[must_use]
    pub fn data_sequence_of(&self, offset: u64) -> Option<u64> {
        let within = offset.checked_sub(self.offset)?;
        if within >= self.bytes {
            return None;
        }
        self.data_sequence.checked_add(within)
    }
}
