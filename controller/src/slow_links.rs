//! Links that carry less than they should, seen in what they send.
//!
//! From when a link was idle last until now that packets wait, it has sent as much as it
//! could. Switches tell both, so a link's rate is known from any two samples of one such
//! time, however long packets and queues are:
//!
//! ```text
//!            idle |----------- busy ------------
//! busy_since      ^       24 kB        24 kB
//! samples             '     '    '      '
//! windows         |---------|-----------|
//! ```
//!
//! A link counts as slow after [`WINDOWS_TO_DECIDE`] windows in a row in which it has, until there
//! are as many in which it is not. What it carries is known while it is busy, and followed.
//!
//! But patterns give a slow link so little that its queue stays empty. So what crosses it
//! speaks for it too: a packet that comes through sooner than its bits would leave a slow
//! link has crossed none.

use std::collections::BTreeMap;

use weft_topology::routes::EgressPort;

use crate::fabric::{FULL_SIZE_BYTES, RoutedFabric};
use crate::telemetry::{QueueSample, RttSample};

/// A window is so long, or [`WINDOW_MAX_NS`]: one packet more or less is 6% of it.
const WINDOW_BYTES: u32 = 16 * FULL_SIZE_BYTES as u32;

/// A link that is nearly dead does not fill a window.
const WINDOW_MAX_NS: u64 = 20_000_000;

/// Slow is below this share of the rate, and not slow any more above the second.
const SLOW_PERCENT: (u64, u64) = (67, 80);

/// Windows in a row that settle it.
const WINDOWS_TO_DECIDE: u32 = 2;

/// A new estimate is news if it is off the last one by this part of that.
const CHANGE_PART: u64 = 8;

/// Shorter packets leave a slow link nearly as soon as a healthy one.
const INFORMATIVE_BYTES: u16 = FULL_SIZE_BYTES / 2;

/// Packets that a slow link would have kept longer, until it counts as healthy.
const FAST_CROSSINGS: u32 = 2;

/// Of an Ethernet header.
const HEADER_BYTES: u64 = 14;

/// What has turned out about a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateChange {
    /// It is slow, or slow in another degree.
    Slow {
        /// The share of its rate that it carries.
        percent: u64,
    },
    /// It was, and is not any more.
    Healthy,
}

/// What all ports say about their links.
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
    /// Of slow windows, the last ones most: what was sent, and what a healthy link would
    /// have sent.
    sent_bytes: u64,
    healthy_bytes: u64,
    /// What was said last, if the link is slow.
    percent: Option<u64>,
}

/// Where a window begins.
#[derive(Debug, Clone, Copy, Default)]
struct Window {
    busy_since_ns: u64,
    at_ns: u64,
    sent_bytes: u32,
}

impl SlowLinks {
    /// Takes a sample; gives what it settles about its link, if that is new.
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

    /// Takes the RTT of a packet that has crossed a link, `above_ns` longer than over
    /// empty queues and healthy links; gives what that settles, if it is new.
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

    /// The share of its rate, in percent, that the slow link at a port carries; `None`
    /// if it is not known to be slow.
    #[must_use]
    pub fn slow_percent(&self, at: EgressPort) -> Option<u64> {
        self.ports.get(&at)?.percent
    }
}

impl Port {
    /// Takes a window in which the link has sent so much of what it should.
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

    /// The share that the link carries, if that is news.
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

/// Time of a packet on the wire behind a port, if that is healthy.
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

    /// What leaf1 tells of its link to spine2, and what that settles.
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

    /// A millisecond of a link that is busy since 0 and sends so many percent of its rate,
    /// again and again.
    fn sample_at(
        links: &mut SlowLinks,
        ms: std::ops::Range<u64>,
        percent: u64,
    ) -> Option<(u64, RateChange)> {
        ms.into_iter().find_map(|ms| {
            // 125000 bytes a millisecond.
            let sent_bytes = (ms * 1_250 * percent) as u32;
            Some((ms, sample(links, ms * MS, 0, sent_bytes)?))
        })
    }

    /// A sample of that link.
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
        }
    }

    /// What an RTT so much above the usual one settles about the same link.
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
        // The same busy time, from 99 ms on at its rate.
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
        // At half the rate it takes 12.112 us longer.
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
        // Bursts of 30 packets, one a millisecond: a third of the rate.
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
                ..reported
            };
            for sample in [empty, nobody, met] {
                assert_eq!(links.sampled(&fabric, "leaf1", &sample), None);
            }
        }
    }
}
