// SPDX-License-Identifier: Apache-2.0

//! The queue of an egress port: packets by priority, in a buffer that they share.
//!
//! A greater priority is served first, and packets of the same priority in the order of their
//! arrival. So that nothing starves, the lowest priority that waits gets a share of the link. When
//! the buffer is full, the newest packet of the lowest priority makes room for one of a higher
//! priority; the lowest keeps its share of the buffer. A program that sets no priority has one
//! first-in first-out queue.

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

/// All of a link, in millionths.
const WHOLE_PPM: u64 = 1_000_000;

/// All packets that wait.
#[derive(Debug)]
pub(super) struct Queue {
    /// Share of the link for the lowest priority that waits.
    lowest_ppm: u64,
    by_priority: [VecDeque<Queued>; PRIORITIES],
    /// A bit for each priority that has packets.
    occupied: u8,
    packets: usize,
    bytes: u64,
    /// Bytes that others have sent since the lowest priority had its turn.
    sent_before_lowest: u64,
}

impl Queue {
    /// An empty queue whose lowest priority that waits gets this share of the link, in millionths.
    pub fn new(lowest_ppm: u32) -> Self {
        Self {
            lowest_ppm: lowest_ppm.into(),
            by_priority: Default::default(),
            occupied: 0,
            packets: 0,
            bytes: 0,
            sent_before_lowest: 0,
        }
    }

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
        let priority = self.next()?;
        let queued = self.by_priority[priority].pop_front()?;
        self.note_gone(priority, &queued);
        Some((queued, count(&self.by_priority[priority])))
    }

    /// Chooses the priority that is served next.
    fn next(&mut self) -> Option<usize> {
        let highest = 7_u32.checked_sub(self.occupied.leading_zeros())? as usize;
        let lowest = self.occupied.trailing_zeros() as usize;
        let bytes = |priority: usize| {
            let first = self.by_priority[priority].front();
            first.map_or(0, |queued| queued.packet.length_bytes() as u64)
        };
        let others_ppm = WHOLE_PPM - self.lowest_ppm;
        let is_due = self.sent_before_lowest * self.lowest_ppm >= others_ppm * bytes(lowest);
        if highest == lowest || self.lowest_ppm > 0 && is_due {
            self.sent_before_lowest = 0;
            return Some(lowest);
        }
        self.sent_before_lowest += bytes(highest);
        Some(highest)
    }

    /// Takes the newest packet of the lowest priority that is below `priority`, but leaves the
    /// lowest of all its share of the packets: otherwise others could shut it out.
    pub fn pop_last_below(&mut self, priority: u8) -> Option<InFlight> {
        let lowest = self.occupied.trailing_zeros() as usize;
        if lowest >= usize::from(priority) {
            return None;
        }
        let waits = |at: usize| self.by_priority[at].len();
        let has_more_than_its_share =
            waits(lowest) as u64 * WHOLE_PPM > self.packets as u64 * self.lowest_ppm;
        let mut below = lowest + usize::from(!has_more_than_its_share)..usize::from(priority);
        let victim = below.find(|&at| waits(at) > 0)?;
        let queued = self.by_priority[victim].pop_back()?;
        self.note_gone(victim, &queued);
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
