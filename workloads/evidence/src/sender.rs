//! One direction of a connection, at the host that sends the data.

use std::collections::BTreeMap;

/// What was sent, and what of it more than once.
///
/// Memory: a range for every hole in what was sent, few because schedulers send in order or a
/// window ahead.
#[derive(Debug, Default)]
pub struct Sender {
    /// What was sent: ends by starts, apart from each other.
    sent: BTreeMap<u64, u64>,
    /// What it comes to.
    pub totals: Sent,
}

/// A direction of a connection in numbers.
#[derive(Debug, Default, Clone, Copy)]
pub struct Sent {
    /// Packets with data.
    pub packets: u64,
    /// Of these, sent again on the same subflow.
    pub retransmitted_packets: u64,
    /// Of these, data that was sent before on another subflow.
    pub reinjected_packets: u64,
}

impl Sender {
    /// Data `start..end` was sent; `retransmission` if its subflow had sent it before.
    pub fn data(&mut self, start: u64, end: u64, retransmission: bool) {
        self.totals.packets += 1;
        let known = self.add(start, end);
        if retransmission {
            self.totals.retransmitted_packets += 1;
        } else if known {
            self.totals.reinjected_packets += 1;
        }
    }

    /// Bytes before `start` that were not sent yet: what a scheduler leaves for other subflows
    /// when it sends from `start` now.
    #[must_use]
    pub fn unsent_before(&self, start: u64) -> u64 {
        let ranges = self.sent.range(..start);
        let sent: u64 = ranges.map(|(&at, &until)| until.min(start) - at).sum();
        start - sent
    }

    /// The end of what was sent.
    #[must_use]
    pub fn highest(&self) -> u64 {
        self.sent.values().next_back().copied().unwrap_or(0)
    }

    /// Notes a range; returns whether some of it was there.
    fn add(&mut self, mut start: u64, mut end: u64) -> bool {
        let mut known = false;
        // From the last one that starts in or at the range, back to the first that touches it.
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
