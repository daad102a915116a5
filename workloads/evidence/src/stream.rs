// SPDX-License-Identifier: Apache-2.0

//! One direction of a subflow: maps its sequence numbers to those of the connection.

use std::collections::VecDeque;

use crate::mptcp::{SignalledMapping, nearest};

/// Limit per subflow and direction: on stored mappings that are longer than their segment, and on
/// packets that wait for their mapping.
const HISTORY_MAX: usize = 4_096;

/// One direction of a subflow.
#[derive(Debug)]
pub struct Stream {
    /// Sequence number of its first byte of data.
    first: u32,
    /// End of the data carried so far.
    next: u64,
    /// Mappings that extend beyond their segment.
    mappings: VecDeque<Mapping>,
    /// Packets that wait for their mapping, which was in an earlier segment that was lost.
    unmapped: VecDeque<PacketData>,
    /// Whether it is plain TCP, whose data needs no mapping.
    plain: bool,
}

/// Maps a range of the subflow's data to the connection's. Both count from 0.
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
    /// Time of the packet.
    pub at_ns: u64,
    /// First byte in the subflow, from 0.
    pub offset: u64,
    /// Length.
    pub bytes: u32,
    /// Whether the subflow had carried later data before.
    pub late: bool,
}

impl Stream {
    /// A direction whose SYN has the sequence number `syn`.
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

    /// Makes data sequence numbers those of the subflow, as in plain TCP.
    pub fn make_plain(&mut self) {
        self.plain = true;
    }

    /// Offset of a sequence number in the subflow; `None` before its data.
    #[must_use]
    pub fn offset(&self, sequence: u32) -> Option<u64> {
        nearest(sequence.wrapping_sub(self.first), self.next)
    }

    /// Processes `bytes` of data at `offset`. Returns whether later data came before.
    pub fn advance(&mut self, offset: u64, bytes: u32) -> bool {
        let late = offset < self.next;
        self.next = self.next.max(offset + u64::from(bytes));
        late
    }

    /// The mapping of a segment at `offset`, where `data_sequence` is that of its first byte.
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

    /// Stores a mapping, and calls `found` for packets that waited for it.
    pub fn add_mapping(&mut self, mapping: Mapping, mut found: impl FnMut(PacketData, u64)) {
        // Linux repeats a mapping in every segment.
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

    /// The data sequence number of the byte at `offset`, by the stored mappings.
    #[must_use]
    pub fn lookup(&self, offset: u64) -> Option<u64> {
        if self.plain {
            return Some(offset);
        }
        let mut newest_first = self.mappings.iter().rev();
        newest_first.find_map(|mapping| mapping.data_sequence_of(offset))
    }

    /// Holds a packet until its mapping comes. Returns whether another one was discarded for it.
    pub fn hold(&mut self, data: PacketData) -> bool {
        let full = self.unmapped.len() == HISTORY_MAX;
        if full {
            self.unmapped.pop_front();
        }
        self.unmapped.push_back(data);
        full
    }

    /// Number of packets without a mapping.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.unmapped.len() as u64
    }
}

impl Mapping {
    /// The data sequence number of the byte at `offset` of the subflow, if this mapping covers it.
    #[must_use]
    pub fn data_sequence_of(&self, offset: u64) -> Option<u64> {
        let within = offset.checked_sub(self.offset)?;
        if within >= self.bytes {
            return None;
        }
        self.data_sequence.checked_add(within)
    }
}
