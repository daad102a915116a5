// SPDX-License-Identifier: Apache-2.0

//! A packet on its way through the pipeline.

use crate::pipeline::model::layout::Layout;
use crate::pipeline::model::slot::Slot;

/// The parsed form of a packet, and the requests of its actions.
#[derive(Debug, Default)]
pub struct PacketState {
    /// Headers and metadata, as [`Layout`] has them.
    pub words: Vec<u64>,
    /// The bytes that came in.
    pub data: Vec<u8>,
    /// Number of these bytes that the parser has extracted.
    pub parsed: usize,
    /// The egress port.
    pub port: u16,
    /// Set by `exit`: the rest of the control is skipped.
    pub exited: bool,
    /// Set by an `assert` that does not hold: the packet is dropped.
    pub condemned: bool,
    /// Set by `truncate`: the maximum number of bytes to send.
    pub truncate: Option<usize>,
    /// Set by `clone`: session and field list.
    pub clone: Option<(u16, usize)>,
    /// Set by `resubmit`: field list.
    pub resubmit: Option<usize>,
    /// Set by `recirculate`: field list.
    pub recirculate: Option<usize>,
}

impl PacketState {
    /// Resets it to a packet that just arrived with these bytes.
    pub fn load(&mut self, layout: &Layout, data: &[u8]) {
        self.data.clear();
        self.data.extend_from_slice(data);
        self.start(layout);
    }

    /// Resets it to a packet whose bytes just arrived.
    pub fn start(&mut self, layout: &Layout) {
        self.restart(layout);
        self.truncate = None;
    }

    /// Resets everything except the bytes.
    pub fn restart(&mut self, layout: &Layout) {
        self.words.clear();
        self.words.extend_from_slice(&layout.initial);
        self.parsed = 0;
        self.clear_requests();
    }

    /// Clears the requests of actions.
    pub fn clear_requests(&mut self) {
        self.exited = false;
        self.condemned = false;
        self.clone = None;
        self.resubmit = None;
        self.recirculate = None;
    }

    /// Makes it a copy of another packet.
    pub fn copy_from(&mut self, other: &PacketState) {
        self.words.clone_from(&other.words);
        self.data.clone_from(&other.data);
        self.parsed = other.parsed;
        self.port = other.port;
        self.truncate = other.truncate;
        self.clear_requests();
    }

    /// Copies fields from another packet's words.
    pub fn copy_fields(&mut self, fields: &[Slot], from: &[u64]) {
        for slot in fields {
            self.words[slot.range()].copy_from_slice(&from[slot.range()]);
        }
    }

    /// The payload after the parsed headers.
    pub fn payload(&self) -> &[u8] {
        &self.data[self.parsed..]
    }

    /// The bytes that came in.
    pub fn length(&self) -> usize {
        self.data.len()
    }
}
