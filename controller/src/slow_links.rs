// SPDX-License-Identifier: Apache-2.0

//! Detects slow links: links that transmit less than their rate.
//!
//! While packets wait in its queue, a link transmits as fast as it can. Switches report
//! when the current busy period began and how many bytes were sent since. So any two
//! samples of one busy period give the link's rate, for any packet size and queue length:
//!
//! ```text
//!            idle |----------- busy ------------
//! busy_since      ^       24 kB        24 kB
//! samples             '     '    '      '
//! windows         |---------|-----------|
//! ```
//!
//! A link is declared slow after `WINDOWS_TO_DECIDE` slow windows in a row, and healthy
//! again after as many healthy ones. While the link is busy, the estimate follows its rate.
//!
//! Patterns send so little over a slow link that its queue stays empty and windows stop.
//! RTTs then show that the link has recovered: a packet that arrives sooner than a slow link
//! could have transmitted it proves that the link is not slow.

use std::collections::BTreeMap;

use weft_topology::routes::EgressPort;

use crate::fabric::{FULL_SIZE_BYTES, RoutedFabric};
use crate::telemetry::{QueueSample, RttSample};

/// Bytes of a window, unless [`WINDOW_MAX_NS`] ends it. One packet more or less is 6% of it.
const WINDOW_BYTES: u32 = 16 * FULL_SIZE_BYTES as u32;

/// Longest window. A nearly dead link never fills one.
const WINDOW_MAX_NS: u64 = 20_000_000;

/// A link becomes slow below the first share of its rate, and healthy from the second on.
const SLOW_PERCENT: (u64, u64) = (67, 80);

/// Windows in a row that decide.
const WINDOWS_TO_DECIDE: u32 = 2;

/// A new estimate is reported if it differs from the last by more than this fraction of it.
const CHANGE_PART: u64 = 8;

/// Shorter packets take almost the same time on a slow link as on a healthy one.
const INFORMATIVE_BYTES: u16 = FULL_SIZE_BYTES / 2;

/// Packets too fast for a slow link that prove it healthy.
const FAST_CROSSINGS: u32 = 2;

/// Ethernet header.
const HEADER_BYTES: u64 = 14;

/// A change in what a link can transmit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateChange {
    /// It is slow, or its share has changed.
    Slow {
        /// The share of its rate that it transmits.
        percent: u64,
    },
    /// It was slow and has recovered.
    Healthy,
}

/// The state of all links, by egress port.
#[derive(Debug, Default)]
pub struct SlowLinks {
    ports: BTreeMap<EgressPort, Port>,
}

#[derive(Debug, Default)]
struct Port {
    window: Window,
    slow_windows: u32,
    healthy_windows: u32,
    fast_crossings: u32,
    /// Over slow windows, weighted towards recent ones: bytes sent, and bytes that a healthy
    /// link would have sent.
    sent_bytes: u64,
    healthy_bytes: u64,
    /// The share that was last reported, if the link is slow.
    percent: Option<u64>,
}

/// The start of a window.
#[derive(Debug, Clone, Copy, Default)]
struct Window {
    busy_since_ns: u64,
    at_ns: u64,
    sent_bytes: u32,
}

impl SlowLinks {
    /// Processes a queue sample. Returns the change that it reveals, if any.
    pub fn sampled(
        &mut self,
        fabric: &RoutedFabric,
        switch: &str,
        sample: &QueueSample,
    ) -> Option<RateChange> {
        let busy = sample.busy_period.filter(|_| sample.depth_packets > 0)?;
        let at = fabric.port(switch, sample.port)?;
        let port = self.ports.entry(at).or_default();
        if port.window.busy_since_ns != busy.since_ns {
            port.window = Window {
                busy_since_ns: busy.since_ns,
                at_ns: busy.since_ns,
                sent_bytes: 0,
            };
        }
        let begin = port.window;
        let lasted_ns = sample.at_ns.checked_sub(begin.at_ns)?;
        let sent_bytes = busy.sent_bytes.wrapping_sub(begin.sent_bytes);
        if sent_bytes < WINDOW_BYTES && lasted_ns < WINDOW_MAX_NS {
            return None;
        }
        port.window.at_ns = sample.at_ns;
        port.window.sent_bytes = busy.sent_bytes;
        let healthy_bits = u128::from(fabric.rate_bps(at)) * u128::from(lasted_ns) / 1_000_000_000;
        let healthy_bytes = u64::try_from(healthy_bits / 8).unwrap_or(u64::MAX);
        port.sent(sent_bytes.into(), healthy_bytes)
    }

    /// Processes the RTT of a packet that crossed the link, `above_ns` longer than over empty
    /// queues and healthy links. Returns the change that it reveals, if any.
    pub fn crossed(
        &mut self,
        fabric: &RoutedFabric,
        at: EgressPort,
        sample: &RttSample,
        above_ns: u64,
    ) -> Option<RateChange> {
        let wire_ns = wire_ns(fabric, at, sample.length_bytes)?;
        let port = self.ports.get_mut(&at)?;
        let percent = port.percent?.max(1);
        let longer_ns = wire_ns.saturating_mul(100 - percent) / percent;
        if sample.length_bytes < INFORMATIVE_BYTES || above_ns > longer_ns / 2 {
            return None;
        }
        port.fast_crossings += 1;
        (port.fast_crossings >= FAST_CROSSINGS).then(|| port.set_healthy())
    }

    /// The share of its rate, in percent, that a slow link transmits; `None` if the link isn't
    /// known to be slow.
    #[must_use]
    pub fn slow_percent(&self, at: EgressPort) -> Option<u64> {
        self.ports.get(&at)?.percent
    }
}

impl Port {
    /// Adds a window: bytes sent, and bytes that a healthy link would have sent.
    fn sent(&mut self, sent_bytes: u64, healthy_bytes: u64) -> Option<RateChange> {
        let percent = sent_bytes.saturating_mul(100).checked_div(healthy_bytes)?;
        let bound = match self.percent {
            None => SLOW_PERCENT.0,
            Some(_) => SLOW_PERCENT.1,
        };
        if percent < bound {
            self.healthy_windows = 0;
            self.fast_crossings = 0;
            self.slow_windows = self.slow_windows.saturating_add(1);
            self.sent_bytes = self.sent_bytes.saturating_add(sent_bytes);
            self.healthy_bytes = self.healthy_bytes.saturating_add(healthy_bytes);
            let turn = self.update_percent();
            self.sent_bytes /= 2;
            self.healthy_bytes /= 2;
            turn
        } else if percent >= SLOW_PERCENT.1 {
            self.healthy_windows += 1;
            let was_slow = self.percent.is_some();
            let is_settled = !was_slow || self.healthy_windows >= WINDOWS_TO_DECIDE;
            is_settled.then(|| self.set_healthy()).filter(|_| was_slow)
        } else {
            None
        }
    }

    /// Updates the estimate. Returns it if it differs enough from the last.
    fn update_percent(&mut self) -> Option<RateChange> {
        let percent = self.sent_bytes.saturating_mul(100) / self.healthy_bytes.max(1);
        let is_change = match self.percent {
            None => self.slow_windows >= WINDOWS_TO_DECIDE,
            Some(reported) => percent.abs_diff(reported) > reported / CHANGE_PART,
        };
        is_change.then(|| {
            self.percent = Some(percent);
            RateChange::Slow { percent }
        })
    }

    fn set_healthy(&mut self) -> RateChange {
        *self = Self {
            window: self.window,
            ..Self::default()
        };
        RateChange::Healthy
    }
}

/// Transmission time of a packet on the link at a port, at full rate.
fn wire_ns(fabric: &RoutedFabric, at: EgressPort, length_bytes: u16) -> Option<u64> {
    let bits = (u64::from(length_bytes) + HEADER_BYTES) * 8;
    (bits * 1_000_000_000).checked_div(fabric.rate_bps(at))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::telemetry::BusyPeriod;
    use crate::testing::fabric;

    const MS: u64 = 1_000_000;

    fn leaf1_port(number: u16) -> EgressPort {
        fabric(2, 2, 4).port("leaf1", number).unwrap()
    }

    /// Feeds a sample of the link from leaf1 to spine2.
    fn sample(
        links: &mut SlowLinks,
        at_ns: u64,
        since_ns: u64,
        sent_bytes: u32,
    ) -> Option<RateChange> {
        links.sampled(
            &fabric(2, 2, 4),
            "leaf1",
            &busy(at_ns, since_ns, sent_bytes),
        )
    }

    /// Feeds one sample per millisecond of a link that has been busy since 0 and transmits
    /// `percent` of its rate, until a change is reported.
    fn sample_at(
        links: &mut SlowLinks,
        ms: std::ops::Range<u64>,
        percent: u64,
    ) -> Option<(u64, RateChange)> {
        ms.into_iter().find_map(|ms| {
            // 125000 bytes per millisecond.
            let sent_bytes = (ms * 1_250 * percent) as u32;
            Some((ms, sample(links, ms * MS, 0, sent_bytes)?))
        })
    }

    /// A sample of the same link.
    fn busy(at_ns: u64, since_ns: u64, sent_bytes: u32) -> QueueSample {
        QueueSample {
            port: 6,
            depth_packets: 1,
            delay_ns: 1,
            at_ns,
            busy_period: Some(BusyPeriod {
                since_ns,
                sent_bytes,
            }),
            classes: None,
        }
    }

    /// Feeds an RTT over the same link that is `above_ns` above the usual one.
    fn rtt(links: &mut SlowLinks, length_bytes: u16, above_ns: u64) -> Option<RateChange> {
        let sample = RttSample {
            source: Ipv4Addr::new(10, 1, 1, 1),
            destination: Ipv4Addr::new(10, 2, 1, 1),
            source_port: 1,
            destination_port: 2,
            path: 1,
            length_bytes,
            rtt_ns: 0,
            smoothed_ns: 0,
            min_ns: 0,
            at_ns: 0,
        };
        links.crossed(&fabric(2, 2, 4), leaf1_port(6), &sample, above_ns)
    }

    #[test]
    fn a_link_at_half_its_rate_is_found_and_forgotten_when_it_is_well() {
        let mut links = SlowLinks::default();
        let slow = RateChange::Slow { percent: 50 };
        assert_eq!(sample_at(&mut links, 1..10, 50), Some((2, slow)));
        assert_eq!(links.slow_percent(leaf1_port(6)), Some(50));
        assert_eq!(links.slow_percent(leaf1_port(5)), None);
        assert_eq!(sample_at(&mut links, 3..100, 50), None);
        // The same busy period; at full rate from 99 ms on.
        let sent = |ms: u32| 99 * 62_500 + (ms - 99) * 125_000;
        let mut well = |ms: u32| sample(&mut links, u64::from(ms) * MS, 0, sent(ms));
        assert_eq!(well(100), None);
        assert_eq!(well(101), Some(RateChange::Healthy));
        assert_eq!(well(102), None);
        assert_eq!(links.slow_percent(leaf1_port(6)), None);
    }

    #[test]
    fn a_slow_link_that_becomes_slower_is_followed() {
        let mut links = SlowLinks::default();
        sample_at(&mut links, 1..10, 50);
        let mut sent_bytes = 9 * 62_500;
        let mut reported = Vec::new();
        for ms in 10..60 {
            sent_bytes += 12_500;
            reported.extend(sample(&mut links, ms * MS, 0, sent_bytes));
        }
        assert!(reported.len() <= 8, "{reported:?}");
        let percent = links.slow_percent(leaf1_port(6)).unwrap();
        assert!((10..=12).contains(&percent), "{percent}");
    }

    #[test]
    fn a_link_that_is_nearly_dead_is_found_although_it_sends_no_window() {
        let mut links = SlowLinks::default();
        let (ms, turn) = sample_at(&mut links, 1..100, 1).unwrap();
        assert_eq!((ms, turn), (40, RateChange::Slow { percent: 1 }));
    }

    #[test]
    fn a_packet_faster_than_a_slow_link_shows_that_it_is_none() {
        let mut links = SlowLinks::default();
        assert_eq!(rtt(&mut links, 1500, 0), None);
        sample_at(&mut links, 1..3, 50);
        assert!(links.slow_percent(leaf1_port(6)).is_some());
        // At half rate a full-size packet takes 12.112 us longer.
        assert_eq!(rtt(&mut links, 1500, 11_000), None);
        assert_eq!(rtt(&mut links, 100, 0), None);
        assert_eq!(rtt(&mut links, 1500, 3_000), None);
        assert_eq!(rtt(&mut links, 1500, 3_000), Some(RateChange::Healthy));
        assert!(links.slow_percent(leaf1_port(6)).is_none());
    }

    #[test]
    fn packets_before_the_link_was_busy_again_show_nothing() {
        let mut links = SlowLinks::default();
        sample_at(&mut links, 1..3, 50);
        assert_eq!(rtt(&mut links, 1500, 0), None);
        sample_at(&mut links, 3..4, 50);
        assert_eq!(rtt(&mut links, 1500, 0), None);
    }

    #[test]
    fn a_link_that_has_little_to_send_is_not_slow() {
        let mut links = SlowLinks::default();
        // Bursts of 30 packets once per millisecond: a third of the rate.
        for ms in 1..100 {
            let since_ns = ms * MS;
            for packets in [8, 16, 24, 30] {
                let at_ns = since_ns + packets * 12_112;
                let sent_bytes = packets as u32 * 1_514;
                assert_eq!(sample(&mut links, at_ns, since_ns, sent_bytes), None);
            }
        }
    }

    #[test]
    fn what_was_sent_is_counted_across_its_wrap() {
        let mut links = SlowLinks::default();
        let begin = u64::from(u32::MAX) * 8 / 1_000_000_000 * 1_000;
        assert_eq!(sample_at(&mut links, begin - 5..begin + 500, 100), None);
    }

    #[test]
    fn empty_queues_ports_of_nobody_and_what_packets_met_say_nothing() {
        let fabric = fabric(2, 2, 4);
        let mut links = SlowLinks::default();
        for ms in 1..100 {
            let reported = busy(ms * MS, 0, 1);
            let empty = QueueSample {
                depth_packets: 0,
                ..reported
            };
            let nobody = QueueSample {
                port: 77,
                ..reported
            };
            let met = QueueSample {
                busy_period: None,
                classes: None,
                ..reported
            };
            for sample in [empty, nobody, met] {
                assert_eq!(links.sampled(&fabric, "leaf1", &sample), None);
            }
        }
    }
}
