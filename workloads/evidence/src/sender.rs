// SPDX-License-Identifier: Apache-2.0

//! One direction of a connection, at the host that sends the data.

use std::collections::BTreeMap;

/// What was sent, and what was sent more than once.
///
/// Memory: one range per hole in the data sent. There are few, because schedulers send in order
/// or at most a window ahead.
#[derive(Debug, Default)]
pub struct Sender {
    /// Disjoint ranges of data sent, as start -> end.
    sent: BTreeMap<u64, u64>,
    /// The totals of this direction.
    pub totals: Sent,
}

/// Totals of one direction of a connection.
#[derive(Debug, Default, Clone, Copy)]
pub struct Sent {
    /// Packets with data.
    pub packets: u64,
    /// Packets retransmitted on the same subflow.
    pub retransmitted_packets: u64,
    /// Packets reinjected: data that was sent before on another subflow.
    pub reinjected_packets: u64,
}

impl Sender {
    /// Processes data `start..end`; `retransmission` if its subflow had sent it before.
    pub fn data(&mut self, start: u64, end: u64, retransmission: bool) {
        self.totals.packets += 1;
        let known = self.add(start, end);
        if retransmission {
            self.totals.retransmitted_packets += 1;
        } else if known {
            self.totals.reinjected_packets += 1;
        }
    }

    /// Bytes before `start` that weren't sent yet: what a scheduler leaves to other subflows when
    /// it sends from `start` now.
    #[must_use]
    pub fn unsent_before(&self, start: u64) -> u64 {
        let ranges = self.sent.range(..start);
        let sent: u64 = ranges.map(|(&at, &until)| until.min(start) - at).sum();
        start - sent
    }

    /// The end of the data sent.
    #[must_use]
    pub fn highest(&self) -> u64 {
        self.sent.values().next_back().copied().unwrap_or(0)
    }

    /// Adds a range. Returns whether a part of it was there before.
    fn add(&mut self, mut start: u64, mut end: u64) -> bool {
        let mut known = false;
        // From the last range that starts in or at the new one, back to the first that touches it.
        while let Some((&at, &until)) = self.sent.range(..=end).next_back() {
            if until < start {
                break;
            }
            known |= at < end && until > start;
            start = start.min(at);
            end = end.max(until);
            self.sent.remove(&at);
        }
        self.sent.insert(start, end);
        known
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_same_data_on_another_subflow_is_a_reinjection() {
        let mut sender = Sender::default();
        sender.data(0, 100, false);
        sender.data(200, 300, false);
        sender.data(100, 200, false);
        assert_eq!(sender.totals.reinjected_packets, 0);
        sender.data(0, 100, true);
        sender.data(100, 200, false);
        assert_eq!(sender.totals.packets, 5);
        assert_eq!(sender.totals.retransmitted_packets, 1);
        assert_eq!(sender.totals.reinjected_packets, 1);
        assert_eq!(sender.sent.len(), 1);
    }

    #[test]
    fn what_is_left_for_others_is_what_was_not_sent_before() {
        let mut sender = Sender::default();
        assert_eq!(sender.unsent_before(0), 0);
        sender.data(0, 100, false);
        assert_eq!(sender.unsent_before(100), 0);
        assert_eq!(sender.unsent_before(350), 250);
        sender.data(350, 450, false);
        assert_eq!(sender.unsent_before(500), 300);
        assert_eq!(sender.unsent_before(400), 250);
        sender.data(100, 350, false);
        assert_eq!(sender.unsent_before(450), 0);
    }

    proptest! {
        #[test]
        fn a_range_is_known_if_any_byte_of_it_is(
            ranges in proptest::collection::vec((0_u64..60, 1_u64..12), 1..40),
        ) {
            let mut sender = Sender::default();
            let mut sent = [false; 80];
            for (start, length) in ranges {
                let bytes = &mut sent[start as usize..(start + length) as usize];
                let expected = bytes.iter().any(|byte| *byte);
                bytes.fill(true);
                prop_assert_eq!(sender.add(start, start + length), expected);
                let ends: Vec<_> = sender.sent.iter().collect();
                prop_assert!(ends.windows(2).all(|pair| pair[0].1 < pair[1].0));
            }
        }
    }
}
