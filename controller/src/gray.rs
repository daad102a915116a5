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

use std::collections::BTreeMap;

use weft_topology::ways::Step;

use crate::fabric::{FULL_SIZE_BYTES, Fabric};
use crate::telemetry::QueueSample;

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

/// Of an Ethernet header.
const HEADER_BYTES: u64 = 14;

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
    /// Of the slow samples: what a healthy link would have needed, and what it took.
    healthy_ns: u64,
    delay_ns: u64,
    is_slow: bool,
}

impl Links {
    /// Takes a sample; gives the share of its rate, in percent, that a link carries
    /// which has just turned out to be slow.
    pub fn sampled(
        &mut self,
        fabric: &Fabric,
        now_ns: u64,
        switch: &str,
        sample: &QueueSample,
    ) -> Option<u64> {
        let at = fabric.port(switch, sample.port)?;
        let full_size_ns = full_size_ns(fabric, at)?;
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
        } else {
            if percent >= SLOW_PERCENT.1 && depth <= before {
                port.speaks_for();
            }
            None
        }
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
    fn speaks_against(&mut self, now_ns: u64, healthy_ns: u64, delay_ns: u64) -> Option<u64> {
        if self.slow_samples == 0 {
            self.since_ns = now_ns;
        }
        self.healthy_samples = 0;
        self.slow_samples = self.slow_samples.saturating_add(1);
        self.healthy_ns = self.healthy_ns.saturating_add(healthy_ns);
        self.delay_ns = self.delay_ns.saturating_add(delay_ns);
        let is_long = now_ns.saturating_sub(self.since_ns) >= LONG_NS;
        if self.is_slow || self.slow_samples < SAMPLES || !is_long {
            return None;
        }
        self.is_slow = true;
        Some(self.percent())
    }

    fn speaks_for(&mut self) {
        self.healthy_samples += 1;
        let needed = if self.is_slow {
            SAMPLES
        } else {
            CLEARED_SAMPLES
        };
        if self.healthy_samples >= needed {
            *self = Self {
                depth_packets: self.depth_packets,
                ..Self::default()
            };
        }
    }

    fn percent(&self) -> u64 {
        let healthy_ns = u128::from(self.healthy_ns) * 100;
        // Below 100: every slow sample is.
        (healthy_ns / u128::from(self.delay_ns.max(1))) as u64
    }
}

/// Time of a full-size packet on the wire behind a port.
fn full_size_ns(fabric: &Fabric, at: Step) -> Option<u64> {
    let bits = (u64::from(FULL_SIZE_BYTES) + HEADER_BYTES) * 8;
    (bits * 1_000_000_000).checked_div(fabric.rate_bps(at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fabric;

    const MS: u64 = 1_000_000;
    /// At 1 Gbps.
    const FULL_NS: u64 = 12_112;

    fn leaf1_port(number: u16) -> Step {
        fabric(2, 2, 4).port("leaf1", number).unwrap()
    }

    /// Feeds a sample every millisecond; when the link was found to be slow, and how.
    fn feed(links: &mut Links, samples: &[(u32, u64)]) -> Option<(u64, u64)> {
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
                let percent = links.sampled(&fabric, ms * MS, "leaf1", &sample)?;
                Some((ms, percent))
            })
    }

    #[test]
    fn a_link_at_half_its_rate_is_found_and_forgotten_when_it_is_well() {
        let mut links = Links::default();
        let half: Vec<_> = (0..30)
            .map(|n| (20 + n, u64::from(20 + n) * 2 * FULL_NS))
            .collect();
        assert_eq!(feed(&mut links, &half), Some((20, 50)));
        assert_eq!(links.slow_percent(leaf1_port(6)), Some(50));
        assert_eq!(links.slow_percent(leaf1_port(5)), None);
        feed(&mut links, &[(40, 40 * FULL_NS); SAMPLES as usize + 1]);
        assert_eq!(links.slow_percent(leaf1_port(6)), None);
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
