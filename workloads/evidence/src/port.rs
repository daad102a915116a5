// SPDX-License-Identifier: Apache-2.0

//! One egress queue: its arrivals, drops, queue length and burstiness.

use std::collections::{BTreeMap, VecDeque};

use crate::arrivals::Arrival;
use crate::distribution::Distribution;
use crate::series::Series;

/// Bursty strength is measured over the transmission time of a full frame.
const FULL_FRAME_BYTES: u64 = 1514;

/// An observed queue.
#[derive(Debug)]
pub struct Port {
    /// Packets that arrived.
    pub arrived_packets: u64,
    /// Their bytes.
    pub arrived_bytes: u64,
    /// Packets that were dropped.
    pub dropped_packets: u64,
    /// Queue length at each arrival.
    pub queue_packets: Distribution<u64>,
    /// Bursty strength at each arrival.
    pub strength_packets: Distribution<u64>,
    /// Number of arrivals for each bursty strength.
    pub strengths: BTreeMap<u64, u64>,
    /// The queue over time.
    pub series: Series,
    /// Transmission time of a full frame, rounded down so that back-to-back frames at the link's
    /// own rate have strength 1.
    frame_ns: u64,
    /// Arrivals within the last transmission time.
    recent: VecDeque<u64>,
}

impl Port {
    /// A queue in front of a link of this rate. Its time series has at most `rows` rows.
    #[must_use]
    pub fn new(rate_bps: u64, rows: usize) -> Self {
        Self {
            arrived_packets: 0,
            arrived_bytes: 0,
            dropped_packets: 0,
            queue_packets: Distribution::new(3),
            strength_packets: Distribution::new(3),
            strengths: BTreeMap::new(),
            series: Series::new(rows),
            frame_ns: FULL_FRAME_BYTES * 8 * 1_000_000_000 / rate_bps.max(1),
            recent: VecDeque::new(),
        }
    }

    /// Adds an arrival. Arrivals must be in order of time.
    pub fn arrive(&mut self, arrival: Arrival) {
        self.arrived_packets += 1;
        self.arrived_bytes += arrival.bytes;
        self.dropped_packets += arrival.dropped_packets;
        self.queue_packets.record(arrival.queue_packets);
        self.series.add(arrival);
        let now_ns = arrival.at_ns;
        while let Some(at_ns) = self.recent.front() {
            if at_ns.saturating_add(self.frame_ns) > now_ns {
                break;
            }
            self.recent.pop_front();
        }
        self.recent.push_back(now_ns);
        let strength = self.recent.len() as u64;
        self.strength_packets.record(strength);
        *self.strengths.entry(strength).or_default() += 1;
    }

    /// Share of the packets that was dropped.
    #[must_use]
    pub fn loss_rate(&self) -> f64 {
        loss_rate(self.dropped_packets, self.arrived_packets)
    }
}

/// Share of `packets` that was `lost`, rounded to a millionth; 0 if there are none.
pub(crate) fn loss_rate(lost: u64, packets: u64) -> f64 {
    if packets == 0 {
        return 0.0;
    }
    (lost as f64 / packets as f64 * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    const GBPS: u64 = 1_000_000_000;
    const FRAME_NS: u64 = 12_112;

    fn strengths(times: &[u64]) -> Vec<(u64, u64)> {
        let mut port = Port::new(GBPS, 10);
        for &at_ns in times {
            port.arrive(Arrival {
                at_ns,
                bytes: 1514,
                queue_packets: 0,
                dropped_packets: 0,
            });
        }
        port.strengths.into_iter().collect()
    }

    #[test]
    fn packets_at_the_links_own_rate_have_strength_one() {
        let times: Vec<_> = (0..5).map(|i| i * FRAME_NS).collect();
        assert_eq!(strengths(&times), [(1, 5)]);
    }

    #[test]
    fn ten_packets_at_once_have_strength_ten() {
        let expected: Vec<_> = (1..=10).map(|strength| (strength, 1)).collect();
        assert_eq!(strengths(&[7; 10]), expected);
    }

    #[test]
    fn a_burst_is_over_one_packets_time_later() {
        let times = [0, 1, FRAME_NS - 1, FRAME_NS, FRAME_NS + 1];
        // At the end of the burst the first packet is out of the window, then the second.
        assert_eq!(strengths(&times), [(1, 1), (2, 1), (3, 3)]);
    }

    #[test]
    fn what_is_dropped_is_counted_among_what_came() {
        let mut port = Port::new(GBPS, 10);
        for dropped_packets in [0, 0, 1, 0] {
            port.arrive(Arrival {
                at_ns: 0,
                bytes: 100,
                queue_packets: 3,
                dropped_packets,
            });
        }
        assert_eq!((port.arrived_packets, port.arrived_bytes), (4, 400));
        assert_eq!((port.dropped_packets, port.loss_rate()), (1, 0.25));
    }
}
