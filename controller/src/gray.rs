//! Links that carry less than they should, seen in their queues.
//!
//! A full-size packet takes a known time on the wire of a healthy link, so a queue of
//! n packets delays the next one by n such times at most:
//!
//! ```text
//! rate of the link  <=  configured rate * depth * full-size time / delay
//! ```
//!
//! Small packets and a growing queue make that look better than it is, a draining
//! queue worse. So it speaks against a link only when the queue has not shrunk since
//! the last sample, and for it only when the queue has not grown. A link counts as slow
//! after [`SAMPLES`] of the first kind within more than [`LONG_NS`], and until there are
//! as many of the other kind in a row.
//!
//! But patterns give a slow link so little that its queue stays empty. So what crosses it
//! speaks for it too: a packet that comes through sooner than its bits would leave a slow
//! link has crossed none.

use std::collections::BTreeMap;

use weft_topology::ways::Step;

use crate::fabric::{FULL_SIZE_BYTES, Fabric};
use crate::telemetry::{QueueSample, RttSample};

/// Less tells more about the packets than about the link.
const DEEP_PACKETS: u32 = 16;

/// Slow is below this share of the rate, and not slow any more above the second.
const SLOW_PERCENT: (u64, u64) = (67, 80);

/// Longer than a queue takes to drain.
const LONG_NS: u64 = 20_000_000;

/// Samples that settle it.
const SAMPLES: u32 = 5;

/// Healthy samples in a row that clear a link which is only suspect.
const CLEARED_SAMPLES: u32 = 2;

/// Shorter packets leave a slow link nearly as soon as a healthy one.
const TELLING_BYTES: u16 = FULL_SIZE_BYTES / 2;

/// Packets that a slow link would have kept longer, until it counts as healthy.
const FAST_CROSSINGS: u32 = 2;

/// Of an Ethernet header.
const HEADER_BYTES: u64 = 14;

/// What has turned out about a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It is slow.
    Slow {
        /// The share of its rate that it carries at most.
        percent: u64,
    },
    /// It was, and is not any more.
    Healthy,
}

/// What the queues of all ports say about their links.
#[derive(Debug, Default)]
pub struct Links {
    ports: BTreeMap<Step, Port>,
}

#[derive(Debug, Default)]
struct Port {
    depth_packets: u32,
    since_ns: u64,
    slow_samples: u32,
    healthy_samples: u32,
    fast_crossings: u32,
    /// Of the slow samples: what a healthy link would have needed, and what it took.
    healthy_ns: u64,
    delay_ns: u64,
    is_slow: bool,
}

impl Links {
    /// Takes a sample; gives what it settles about its link, if that is new.
    pub fn sampled(
        &mut self,
        fabric: &Fabric,
        now_ns: u64,
        switch: &str,
        sample: &QueueSample,
    ) -> Option<Turn> {
        let at = fabric.port(switch, sample.port)?;
        let full_size_ns = wire_ns(fabric, at, FULL_SIZE_BYTES)?;
        let port = self.ports.entry(at).or_default();
        let depth = sample.depth_packets;
        let before = std::mem::replace(&mut port.depth_packets, depth);
        if depth < DEEP_PACKETS {
            return None;
        }
        let healthy_ns = full_size_ns.saturating_mul(depth.into());
        let percent = healthy_ns.saturating_mul(100) / sample.delay_ns.max(1);
        if percent < SLOW_PERCENT.0 && depth >= before {
            port.speaks_against(now_ns, healthy_ns, sample.delay_ns)
        } else if percent >= SLOW_PERCENT.1 && depth <= before {
            port.speaks_for()
        } else {
            None
        }
    }

    /// Takes the RTT of a packet that has crossed a link, `above_ns` longer than over
    /// empty queues and healthy links; gives what that settles, if it is new.
    pub fn crossed(
        &mut self,
        fabric: &Fabric,
        at: Step,
        sample: &RttSample,
        above_ns: u64,
    ) -> Option<Turn> {
        let wire_ns = wire_ns(fabric, at, sample.length_bytes)?;
        let port = self.ports.get_mut(&at).filter(|port| port.is_slow)?;
        let percent = port.percent().max(1);
        let longer_ns = wire_ns.saturating_mul(100 - percent) / percent;
        if sample.length_bytes < TELLING_BYTES || above_ns > longer_ns / 2 {
            return None;
        }
        port.fast_crossings += 1;
        (port.fast_crossings >= FAST_CROSSINGS).then(|| port.heal())
    }

    /// The share of its rate, in percent, that the slow link at a port carries; `None`
    /// if it is not known to be slow.
    #[must_use]
    pub fn slow_percent(&self, at: Step) -> Option<u64> {
        let port = self.ports.get(&at)?;
        port.is_slow.then(|| port.percent())
    }
}

impl Port {
    fn speaks_against(&mut self, now_ns: u64, healthy_ns: u64, delay_ns: u64) -> Option<Turn> {
        if self.slow_samples == 0 {
            self.since_ns = now_ns;
        }
        self.healthy_samples = 0;
        self.fast_crossings = 0;
        self.slow_samples = self.slow_samples.saturating_add(1);
        self.healthy_ns = self.healthy_ns.saturating_add(healthy_ns);
        self.delay_ns = self.delay_ns.saturating_add(delay_ns);
        let is_long = now_ns.saturating_sub(self.since_ns) >= LONG_NS;
        if self.is_slow || self.slow_samples < SAMPLES || !is_long {
            return None;
        }
        self.is_slow = true;
        Some(Turn::Slow {
            percent: self.percent(),
        })
    }

    fn speaks_for(&mut self) -> Option<Turn> {
        self.healthy_samples += 1;
        let needed = if self.is_slow {
            SAMPLES
        } else {
            CLEARED_SAMPLES
        };
        let was_slow = self.is_slow;
        let is_settled = self.healthy_samples >= needed;
        is_settled.then(|| self.heal()).filter(|_| was_slow)
    }

    fn heal(&mut self) -> Turn {
        *self = Self {
            depth_packets: self.depth_packets,
            ..Self::default()
        };
        Turn::Healthy
    }

    fn percent(&self) -> u64 {
        let healthy_ns = u128::from(self.healthy_ns) * 100;
        // Below 100: every slow sample is.
        (healthy_ns / u128::from(self.delay_ns.max(1))) as u64
    }
}

/// Time of a packet on the wire behind a port, if that is healthy.
fn wire_ns(fabric: &Fabric, at: Step, length_bytes: u16) -> Option<u64> {
    let bits = (u64::from(length_bytes) + HEADER_BYTES) * 8;
    (bits * 1_000_000_000).checked_div(fabric.rate_bps(at))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::testing::fabric;

    const MS: u64 = 1_000_000;
    /// At 1 Gbps.
    const FULL_NS: u64 = 12_112;

    fn leaf1_port(number: u16) -> Step {
        fabric(2, 2, 4).port("leaf1", number).unwrap()
    }

    /// Feeds a sample every millisecond; when something turned out about the link, and what.
    fn feed(links: &mut Links, samples: &[(u32, u64)]) -> Option<(u64, Turn)> {
        let fabric = fabric(2, 2, 4);
        (0..)
            .zip(samples)
            .find_map(|(ms, &(depth_packets, delay_ns))| {
                let sample = QueueSample {
                    port: 6,
                    depth_packets,
                    delay_ns,
                    at_ns: ms * MS,
                };
                let turn = links.sampled(&fabric, ms * MS, "leaf1", &sample)?;
                Some((ms, turn))
            })
    }

    /// Queues of a link that carries half of its rate.
    fn half() -> Vec<(u32, u64)> {
        (0..30)
            .map(|n| (20 + n, u64::from(20 + n) * 2 * FULL_NS))
            .collect()
    }

    /// What an RTT so much above the usual one settles about the same link.
    fn cross(links: &mut Links, length_bytes: u16, above_ns: u64) -> Option<Turn> {
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
        let mut links = Links::default();
        let slow = Turn::Slow { percent: 50 };
        assert_eq!(feed(&mut links, &half()), Some((20, slow)));
        assert_eq!(links.slow_percent(leaf1_port(6)), Some(50));
        assert_eq!(links.slow_percent(leaf1_port(5)), None);
        let healthy = [(40, 40 * FULL_NS); SAMPLES as usize + 1];
        let (_, turn) = feed(&mut links, &healthy).unwrap();
        assert_eq!(turn, Turn::Healthy);
        assert_eq!(links.slow_percent(leaf1_port(6)), None);
        assert_eq!(feed(&mut links, &healthy), None);
    }

    #[test]
    fn a_packet_faster_than_a_slow_link_shows_that_it_is_none() {
        let mut links = Links::default();
        assert_eq!(cross(&mut links, 1500, 0), None);
        feed(&mut links, &half());
        assert!(links.slow_percent(leaf1_port(6)).is_some());
        // At half the rate it takes 12.112 us longer.
        assert_eq!(cross(&mut links, 1500, 11_000), None);
        assert_eq!(cross(&mut links, 100, 0), None);
        assert_eq!(cross(&mut links, 1500, 3_000), None);
        assert_eq!(cross(&mut links, 1500, 3_000), Some(Turn::Healthy));
        assert!(links.slow_percent(leaf1_port(6)).is_none());
    }

    #[test]
    fn packets_before_the_queue_grew_again_show_nothing() {
        let mut links = Links::default();
        feed(&mut links, &half());
        assert_eq!(cross(&mut links, 1500, 0), None);
        feed(&mut links, &half());
        assert_eq!(cross(&mut links, 1500, 0), None);
    }

    #[test]
    fn queues_that_come_and_go_make_no_link_slow() {
        let mut links = Links::default();
        // Drained to a third while the last packet still tells of the whole.
        let burst = [
            (90, 90 * FULL_NS),
            (60, 90 * FULL_NS),
            (30, 90 * FULL_NS),
            (3, 30 * FULL_NS),
        ];
        let bursts: Vec<_> = burst.into_iter().cycle().take(1000).collect();
        assert_eq!(feed(&mut links, &bursts), None);
    }

    #[test]
    fn small_packets_and_ports_of_nobody_say_nothing() {
        let mut links = Links::default();
        assert_eq!(feed(&mut links, &[(50, 50 * 600); 100]), None);
        let sample = QueueSample {
            port: 77,
            depth_packets: 50,
            delay_ns: 1,
            at_ns: 0,
        };
        assert_eq!(links.sampled(&fabric(2, 2, 4), 0, "leaf1", &sample), None);
    }
}
