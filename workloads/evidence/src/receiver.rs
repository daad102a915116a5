// SPDX-License-Identifier: Apache-2.0

//! One direction of a connection, at the host that receives the data.
//!
//! No I/O: data and Data ACKs go in with their times, and the outcome of each packet comes out.
//! Data is counted from 0, the connection's first byte.

use std::collections::{BTreeMap, VecDeque};

use crate::distribution::Distribution;

/// Decimal digits of a connection's percentiles.
const DIGITS: u8 = 2;

/// Limit on ranges that wait for earlier data, and on packets that wait for their Data ACK; more
/// than any window allows.
const WAITING_MAX: usize = 1 << 20;

/// Data that waits for earlier data, and packets that wait for their Data ACK.
///
/// Memory: bounded by the receiver's window, because a Data ACK ends all waiting before it. In a
/// capture without Data ACKs, at most a million packets.
#[derive(Debug, Default)]
pub struct Receiver {
    /// All data before this has arrived.
    next: u64,
    /// Out-of-order data by its start; ranges don't overlap.
    waiting: BTreeMap<u64, Waiting>,
    waiting_bytes: u64,
    /// Ends of packets that are in order but not acknowledged.
    unacknowledged: VecDeque<u64>,
    data_ack: u64,
    /// The totals of this direction.
    pub totals: Received,
}

/// A range of out-of-order data.
#[derive(Debug)]
struct Waiting {
    end: u64,
    /// The packet that carried it; `None` for its second range.
    packet: Option<Packet>,
}

/// A packet with data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// When it arrived.
    pub at_ns: u64,
    /// Subflow of the connection, from 0.
    pub subflow: u32,
    /// Whether the subflow had carried later data before.
    pub retransmission: bool,
    /// Data sequence number of its first byte.
    pub data_sequence: u64,
    /// Length of its data.
    pub bytes: u32,
}

/// The outcome of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketOutcome {
    /// The packet.
    pub packet: Packet,
    /// How long it waited for earlier data; `None` for a duplicate, all of whose data had arrived
    /// before.
    pub out_of_order_delay_ns: Option<u64>,
}

/// Totals of one direction of a connection.
#[derive(Debug)]
pub struct Received {
    /// Arrival of the first packet with data.
    pub first_ns: Option<u64>,
    /// Arrival of the last one.
    pub last_ns: u64,
    /// Packets with data that arrived.
    pub arrived_packets: u64,
    /// Packets all of whose data had arrived before.
    pub duplicate_packets: u64,
    /// Bytes that arrived, each counted once.
    pub bytes: u64,
    /// Out-of-order delay of each packet with new data.
    pub delay_ns: Distribution<u32>,
    /// Packets with an out-of-order delay above 0.
    pub out_of_order_packets: u64,
    /// Out-of-order bytes after each packet with new data.
    pub queue_bytes: QueueBytes,
    /// Packets newly acknowledged by each Data ACK.
    pub leap_packets: Distribution<u32>,
}

/// A mean and a maximum, without percentiles.
#[derive(Debug, Default, Clone, Copy)]
pub struct QueueBytes {
    /// Sum over all packets.
    pub sum: u128,
    /// Number of packets.
    pub count: u64,
    /// Maximum.
    pub max: u64,
}

impl Default for Received {
    fn default() -> Self {
        Self {
            first_ns: None,
            last_ns: 0,
            arrived_packets: 0,
            duplicate_packets: 0,
            bytes: 0,
            delay_ns: Distribution::new(DIGITS),
            out_of_order_packets: 0,
            queue_bytes: QueueBytes::default(),
            leap_packets: Distribution::new(DIGITS),
        }
    }
}

impl Receiver {
    /// The first byte that hasn't arrived.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Processes the arrival of a packet. Calls `report` for every packet whose outcome is now
    /// known.
    pub fn data(&mut self, packet: Packet, mut report: impl FnMut(PacketOutcome)) {
        let totals = &mut self.totals;
        totals.first_ns.get_or_insert(packet.at_ns);
        totals.last_ns = totals.last_ns.max(packet.at_ns);
        totals.arrived_packets += 1;
        let end = packet.data_sequence + u64::from(packet.bytes);
        if packet.data_sequence <= self.next && self.next < end && self.waiting.is_empty() {
            totals.bytes += end - self.next;
            self.next = end;
            self.deliver(packet, packet.at_ns, end, &mut report);
        } else if self.insert(packet, end) {
            if self.waiting.len() > WAITING_MAX {
                self.next = self.waiting.keys().next().copied().unwrap_or(self.next);
            }
            self.advance(packet.at_ns, &mut report);
        } else {
            self.totals.duplicate_packets += 1;
            report(PacketOutcome {
                packet,
                out_of_order_delay_ns: None,
            });
            return;
        }
        let queue = &mut self.totals.queue_bytes;
        queue.sum += u128::from(self.waiting_bytes);
        queue.count += 1;
        queue.max = queue.max.max(self.waiting_bytes);
    }

    /// Processes a Data ACK of everything before `data_ack`. If it advances, returns by how many
    /// packets.
    pub fn data_ack(
        &mut self,
        at_ns: u64,
        data_ack: u64,
        mut report: impl FnMut(PacketOutcome),
    ) -> Option<u64> {
        if data_ack <= self.data_ack {
            return None;
        }
        self.data_ack = data_ack;
        if data_ack > self.next && !self.waiting.is_empty() {
            // The data has arrived, although the capture lacks it.
            self.next = data_ack;
            self.advance(at_ns, &mut report);
        }
        self.next = self.next.max(data_ack);
        let moved = self.unacknowledged.partition_point(|end| *end <= data_ack);
        self.unacknowledged.drain(..moved);
        // Only the end of data (DATA_FIN) advances it by no packet.
        if moved == 0 {
            return None;
        }
        self.totals.leap_packets.record(moved as u64);
        Some(moved as u64)
    }

    /// Stores the new data of a packet. Returns whether there is any.
    fn insert(&mut self, packet: Packet, end: u64) -> bool {
        let mut start = packet.data_sequence.max(self.next);
        if let Some((_, before)) = self.waiting.range(..=start).next_back() {
            start = start.max(before.end);
        }
        let mut first = Some(packet);
        while start < end {
            let (gap_end, behind) = match self.waiting.range(start..).next() {
                Some((at, waiting)) if *at < end => (*at, waiting.end),
                _ => (end, end),
            };
            if start < gap_end {
                let waiting = Waiting {
                    end: gap_end,
                    packet: first.take(),
                };
                self.waiting.insert(start, waiting);
                self.waiting_bytes += gap_end - start;
                self.totals.bytes += gap_end - start;
            }
            start = behind;
        }
        first.is_none()
    }

    /// Delivers out-of-order data up to the next hole.
    fn advance(&mut self, now_ns: u64, report: &mut impl FnMut(PacketOutcome)) {
        while let Some(entry) = self.waiting.first_entry() {
            if *entry.key() > self.next {
                return;
            }
            let (start, waiting) = entry.remove_entry();
            self.waiting_bytes -= waiting.end - start;
            self.next = self.next.max(waiting.end);
            if let Some(packet) = waiting.packet {
                self.deliver(packet, now_ns, waiting.end, report);
            }
        }
    }

    fn deliver(
        &mut self,
        packet: Packet,
        now_ns: u64,
        end: u64,
        report: &mut impl FnMut(PacketOutcome),
    ) {
        let delay_ns = now_ns.saturating_sub(packet.at_ns);
        self.totals.delay_ns.record(delay_ns);
        self.totals.out_of_order_packets += u64::from(delay_ns > 0);
        if end > self.data_ack {
            if self.unacknowledged.len() == WAITING_MAX {
                self.unacknowledged.pop_front();
            }
            self.unacknowledged.push_back(end);
        }
        report(PacketOutcome {
            packet,
            out_of_order_delay_ns: Some(delay_ns),
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packet(at_ns: u64, data_sequence: u64, bytes: u32) -> Packet {
        Packet {
            at_ns,
            subflow: 0,
            retransmission: false,
            data_sequence,
            bytes,
        }
    }

    #[test]
    fn data_behind_a_hole_waits_until_it_is_filled() {
        let mut receiver = Receiver::default();
        let mut fates = Vec::new();
        for (at_ns, start) in [(10, 0), (20, 2_000), (25, 3_000), (70, 1_000)] {
            receiver.data(packet(at_ns, start, 1_000), |outcome| {
                fates.push((outcome.packet.data_sequence, outcome.out_of_order_delay_ns));
            });
        }
        let expected = [
            (0, Some(0)),
            (1_000, Some(0)),
            (2_000, Some(50)),
            (3_000, Some(45)),
        ];
        assert_eq!(fates, expected);
        assert_eq!(receiver.totals.queue_bytes.max, 2_000);
        assert_eq!(receiver.totals.queue_bytes.sum, 3_000);
        assert_eq!(receiver.totals.out_of_order_packets, 2);
    }

    #[test]
    fn a_data_ack_leaps_over_what_a_hole_held_back() {
        let mut receiver = Receiver::default();
        let mut leaps = Vec::new();
        for (start, data_ack) in [(0, 1_000), (2_000, 1_000), (3_000, 1_000), (1_000, 4_000)] {
            receiver.data(packet(0, start, 1_000), |_| {});
            leaps.push(receiver.data_ack(0, data_ack, |_| {}));
        }
        assert_eq!(leaps, [Some(1), None, None, Some(3)]);
    }

    #[test]
    fn the_end_of_data_is_no_leap() {
        let mut receiver = Receiver::default();
        receiver.data(packet(0, 0, 100), |_| {});
        assert_eq!(receiver.data_ack(0, 100, |_| {}), Some(1));
        assert_eq!(receiver.data_ack(0, 101, |_| {}), None);
    }

    #[test]
    fn what_the_capture_lacks_ends_when_the_host_acknowledges_it() {
        let mut receiver = Receiver::default();
        let mut fates = Vec::new();
        receiver.data(packet(10, 1_000, 1_000), |_| {});
        receiver.data_ack(40, 2_000, |outcome| {
            fates.push(outcome.out_of_order_delay_ns)
        });
        assert_eq!(fates, [Some(30)]);
        assert_eq!(receiver.next(), 2_000);
    }

    proptest! {
        /// Compares with a model that looks at every byte.
        #[test]
        fn delays_are_those_of_the_definition(
            packets in proptest::collection::vec((0_u64..60, 1_u32..15), 1..60),
        ) {
            let mut receiver = Receiver::default();
            let mut fates = BTreeMap::new();
            for (at_ns, (start, bytes)) in (0..).zip(&packets) {
                receiver.data(packet(at_ns, *start, *bytes), |outcome| {
                    fates.insert(outcome.packet.at_ns, outcome.out_of_order_delay_ns);
                });
            }
            // When each byte first arrived, and when all bytes before it had.
            let mut arrived = [u64::MAX; 80];
            for (at_ns, (start, bytes)) in (0..).zip(&packets) {
                for byte in &mut arrived[*start as usize..][..*bytes as usize] {
                    *byte = (*byte).min(at_ns);
                }
            }
            for (at_ns, (start, bytes)) in (0..).zip(&packets) {
                let range = *start as usize..(*start + u64::from(*bytes)) as usize;
                let expected = match range.into_iter().find(|byte| arrived[*byte] == at_ns) {
                    None => Some(None),
                    Some(first_new) => {
                        let ready = arrived[..=first_new].iter().copied().max();
                        ready.filter(|ready| *ready != u64::MAX).map(|ready| Some(ready - at_ns))
                    }
                };
                prop_assert_eq!(fates.get(&at_ns).copied(), expected);
            }
            let new = arrived.iter().filter(|at| **at != u64::MAX).count() as u64;
            prop_assert_eq!(receiver.totals.bytes, new);
        }
    }
}
