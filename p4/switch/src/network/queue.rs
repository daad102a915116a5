// SPDX-License-Identifier: Apache-2.0

//! The queue of an egress port: packets by priority, in a buffer that they share.
//!
//! A greater priority is always served first, and packets of the same priority in the order of
//! their arrival. When the buffer is full, the newest packet of the lowest priority makes room for
//! one of a higher priority. A program that sets no priority has one first-in first-out queue.

use std::collections::VecDeque;

use crate::pipeline::{InFlight, PRIORITIES};
use crate::prefetch::prefetch;

/// A packet that waits for the link.
#[derive(Debug)]
pub(super) struct Queued {
    pub packet: InFlight,
    pub enqueued_ns: u64,
    /// Packets of its priority that waited when it came.
    pub depth: u32,
}

/// All packets that wait.
#[derive(Debug, Default)]
pub(super) struct Queue {
    by_priority: [VecDeque<Queued>; PRIORITIES],
    /// A bit for each priority that has packets.
    occupied: u8,
    packets: usize,
    bytes: u64,
}

impl Queue {
    /// Packets that wait.
    pub fn packets(&self) -> usize {
        self.packets
    }

    /// Their bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds a packet behind those of its priority.
    pub fn push(&mut self, packet: InFlight, priority: u8, now_ns: u64) {
        let queue = &mut self.by_priority[usize::from(priority)];
        self.occupied |= 1 << priority;
        self.packets += 1;
        self.bytes += packet.length_bytes() as u64;
        queue.push_back(Queued {
            packet,
            enqueued_ns: now_ns,
            depth: count(queue),
        });
    }

    /// Takes the packet that is served next, and gives how many of its priority are left.
    pub fn pop(&mut self) -> Option<(Queued, u32)> {
        let highest = 7_u32.checked_sub(self.occupied.leading_zeros())?;
        let queued = self.by_priority[highest as usize].pop_front()?;
        self.note_gone(highest as usize, &queued);
        Some((queued, count(&self.by_priority[highest as usize])))
    }

    /// Takes the packet that is served last, if its priority is below `priority`.
    pub fn pop_last_below(&mut self, priority: u8) -> Option<InFlight> {
        let lowest = self.occupied.trailing_zeros();
        if lowest >= u32::from(priority) {
            return None;
        }
        let queued = self.by_priority[lowest as usize].pop_back()?;
        self.note_gone(lowest as usize, &queued);
        Some(queued.packet)
    }

    /// Drops all packets.
    pub fn clear(&mut self) {
        for queue in &mut self.by_priority {
            queue.clear();
        }
        self.occupied = 0;
        self.packets = 0;
        self.bytes = 0;
    }

    /// Prefetches what a packet needs.
    pub fn prefetch(&self) {
        prefetch(&self.by_priority[0]);
        prefetch(&self.packets);
    }

    fn note_gone(&mut self, priority: usize, queued: &Queued) {
        if self.by_priority[priority].is_empty() {
            self.occupied &= !(1 << priority);
        }
        self.packets -= 1;
        self.bytes -= queued.packet.length_bytes() as u64;
    }
}

fn count(queue: &VecDeque<Queued>) -> u32 {
    u32::try_from(queue.len()).unwrap_or(u32::MAX)
}
