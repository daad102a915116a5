// SPDX-License-Identifier: Apache-2.0

//! Detects gray failures: links that silently lose packets, as counted by switches
//! (`p4/src/stages/loss.p4`).
//!
//! For each ingress port, a switch reports how many blocks of packets were sent to it and
//! how many of those packets never arrived, since its program started. Drops at full queues
//! don't count. A sequential test compares the counts between samples with a limit:
//!
//! ```text
//! the link is gray     lost - 2 * sqrt(lost)      >=  limit * packets
//! it is healthy        lost + 2 * sqrt(lost) + 3  <=  limit * packets
//! ```
//!
//! The bounds are two standard deviations of a Poisson count; the 3 is the rule of three for
//! a count of zero. Either verdict restarts the test. On a gray link, so does every loss.
//! With a limit of 0.5% it takes about 1600 packets to detect a loss of 1%, and 600 packets
//! without a loss to clear a link.
//!
//! A burst of losses, as during a short outage, must not decide alone. So a sample counts at
//! most `BURST_PACKETS` for each of its blocks, and a verdict needs `LOSSY_SAMPLES`
//! samples with losses.
//!
//! Patterns avoid paths over a gray link, and without traffic its switch sends no samples.
//! So the controller sends numbered probes over it, which arrive in order. The link is healthy
//! again when as many in a row have arrived as the rule of three asks for.

use std::collections::BTreeMap;

use weft_topology::routes::EgressPort;

use crate::fabric::RoutedFabric;

/// Packets in a block: `LOSS_BLOCK_PACKETS` of the switch program.
pub const BLOCK_PACKETS: u32 = 128;

/// Default limit: loss in packets per million, beyond the configured loss, that makes a link
/// gray.
pub const GRAY_PPM: u32 = 5_000;

/// Most losses of one block that count.
const BURST_PACKETS: u32 = 8;

/// Samples with losses that a verdict needs.
const LOSSY_SAMPLES: u32 = 3;

/// Time between two rounds of probes over a gray link: at first, and at most.
const PROBE_INTERVAL_NS: (u64, u64) = (1_000_000, 8_000_000);

/// In between, the interval is this fraction of the time since the link turned gray.
const PROBE_BACKOFF: u64 = 512;

/// Probes in a round, sent back to back.
const PROBES_PER_ROUND: u64 = 4;

/// A gray link is forgotten after this time without samples or probes: the switches have
/// reported to another controller meanwhile.
const SILENCE_NS: u64 = 2_000_000_000;

/// A `loss_sample_t` digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LossSample {
    /// Ingress port.
    pub port: u16,
    /// Blocks of [`BLOCK_PACKETS`] packets that were sent to it.
    pub blocks: u32,
    /// How many of these packets were lost.
    pub lost: u32,
    /// When the sample was taken, by the switch's clock.
    pub at_ns: u64,
}

/// The loss state of all links.
#[derive(Debug)]
pub struct GrayLinks {
    limit_ppm: u32,
    /// Keyed by the sending port.
    links: BTreeMap<EgressPort, Link>,
}

#[derive(Debug, Default)]
struct Link {
    /// Blocks and losses in the last sample.
    last: Option<(u32, u32)>,
    last_heard_ns: u64,
    test: SequentialTest,
    gray: Option<GrayLink>,
}

/// Counts since the last verdict.
#[derive(Debug, Default)]
struct SequentialTest {
    packets: u64,
    lost: u64,
    lossy_samples: u32,
}

#[derive(Debug)]
struct GrayLink {
    loss_ppm: u32,
    since_ns: u64,
    probe_at_ns: u64,
    /// Number of probes sent.
    sent: u64,
    /// Number of the next probe to arrive.
    expected: u64,
    /// Probes that arrived in a row.
    arrived: u64,
}

/// A round of probes to send over a gray link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeRound {
    /// The port that sends to the link.
    pub at: EgressPort,
    /// Numbers of the probes.
    pub numbers: std::ops::Range<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Gray,
    Healthy,
}

impl GrayLinks {
    /// A link is gray if it loses `limit_ppm` packets per million more than configured.
    #[must_use]
    pub fn new(limit_ppm: u32) -> Self {
        Self {
            limit_ppm,
            links: BTreeMap::new(),
        }
    }

    /// Processes a sample of `switch`. Returns the port that sends to the link if the link has
    /// just turned gray or healthy.
    pub fn sampled(
        &mut self,
        fabric: &RoutedFabric,
        now_ns: u64,
        switch: &str,
        sample: &LossSample,
    ) -> Option<EgressPort> {
        let here = fabric.port(switch, sample.port)?;
        let at = fabric.sender_to(here)?;
        let configured_ppm = here.switch(fabric.topology()).loss_ppm;
        let limit_ppm = self.limit_ppm.saturating_add(configured_ppm);
        let link = self.links.entry(at).or_default();
        link.sampled(now_ns, limit_ppm, sample).then_some(at)
    }

    /// Loss of the gray link behind a port, in packets per million; `None` if it isn't gray.
    #[must_use]
    pub fn gray_ppm(&self, at: EgressPort) -> Option<u32> {
        let gray = self.links.get(&at)?.gray.as_ref()?;
        Some(gray.loss_ppm)
    }

    /// Processes the arrival of a probe over the link behind a port. Returns whether the link
    /// has just become healthy.
    pub fn arrived(&mut self, now_ns: u64, at: EgressPort, number: u64) -> bool {
        let enough = 3_000_000_u64.div_ceil(self.limit_ppm.max(1).into());
        let Some(link) = self.links.get_mut(&at) else {
            return false;
        };
        let Some(gray) = link.gray.as_mut().filter(|gray| number >= gray.expected) else {
            return false;
        };
        let is_next = number == gray.expected;
        gray.arrived = if is_next { gray.arrived + 1 } else { 1 };
        gray.expected = number + 1;
        link.last_heard_ns = now_ns;
        let is_healthy = gray.arrived >= enough;
        if is_healthy {
            link.gray = None;
            link.test = SequentialTest::default();
        }
        is_healthy
    }

    /// The probes to send at `now_ns`, and the sending ports of links that are no longer gray.
    pub fn poll(&mut self, now_ns: u64) -> (Vec<ProbeRound>, Vec<EgressPort>) {
        let (mut rounds, mut forgotten) = (Vec::new(), Vec::new());
        for (&at, link) in &mut self.links {
            let due = link.gray.as_mut().filter(|gray| gray.probe_at_ns <= now_ns);
            let Some(gray) = due else {
                continue;
            };
            let (least, most) = PROBE_INTERVAL_NS;
            let gray_ns = now_ns.saturating_sub(gray.since_ns);
            gray.probe_at_ns = now_ns + (gray_ns / PROBE_BACKOFF).clamp(least, most);
            if now_ns.saturating_sub(link.last_heard_ns) > SILENCE_NS {
                *link = Link::default();
                forgotten.push(at);
            } else {
                let first = gray.sent;
                gray.sent += PROBES_PER_ROUND;
                let numbers = first..gray.sent;
                rounds.push(ProbeRound { at, numbers });
            }
        }
        (rounds, forgotten)
    }

    /// When [`GrayLinks::poll`] is due next.
    #[must_use]
    pub fn next_deadline_ns(&self) -> Option<u64> {
        let gray = self.links.values().filter_map(|link| link.gray.as_ref());
        gray.map(|gray| gray.probe_at_ns).min()
    }
}

impl Link {
    /// Processes a sample. Returns whether the link has turned gray or healthy.
    fn sampled(&mut self, now_ns: u64, limit_ppm: u32, sample: &LossSample) -> bool {
        self.last_heard_ns = now_ns;
        let before = self.last.replace((sample.blocks, sample.lost));
        let Some((blocks, lost)) = before else {
            return false;
        };
        // Both counters wrap. If one went backwards, the switch has restarted.
        let blocks = sample.blocks.wrapping_sub(blocks);
        let lost = sample.lost.wrapping_sub(lost);
        if blocks > u32::MAX / 2 || lost > u32::MAX / 2 {
            self.test = SequentialTest::default();
            return false;
        }
        if lost > 0 && self.gray.is_some() {
            self.test = SequentialTest::default();
            return false;
        }
        self.test.add(blocks, lost);
        let Some(verdict) = self.test.verdict(limit_ppm) else {
            return false;
        };
        let loss_ppm = self.test.loss_ppm();
        self.test = SequentialTest::default();
        let was_gray = self.gray.take().is_some();
        if verdict == Verdict::Gray {
            self.gray = Some(GrayLink {
                loss_ppm,
                since_ns: now_ns,
                probe_at_ns: now_ns + PROBE_INTERVAL_NS.0,
                sent: 0,
                expected: 0,
                arrived: 0,
            });
        }
        self.gray.is_some() != was_gray
    }
}

impl SequentialTest {
    fn add(&mut self, blocks: u32, lost: u32) {
        self.packets += u64::from(blocks) * u64::from(BLOCK_PACKETS);
        self.lost += u64::from(lost.min(blocks.saturating_mul(BURST_PACKETS)));
        self.lossy_samples += u32::from(lost > 0);
    }

    fn verdict(&self, limit_ppm: u32) -> Option<Verdict> {
        let lost = self.lost as f64;
        let margin = 2.0 * lost.sqrt();
        let limit = self.packets as f64 * f64::from(limit_ppm) / 1e6;
        if self.lossy_samples >= LOSSY_SAMPLES && lost - margin >= limit {
            Some(Verdict::Gray)
        } else if lost + margin + 3.0 <= limit {
            Some(Verdict::Healthy)
        } else {
            None
        }
    }

    /// At least 1 if any packet was lost.
    fn loss_ppm(&self) -> u32 {
        let ppm = (self.lost * 1_000_000).div_ceil(self.packets.max(1));
        u32::try_from(ppm).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{fabric, leaf_spine};

    const MS: u64 = 1_000_000;

    /// A link that completes one block per millisecond.
    struct Blocks {
        gray_links: GrayLinks,
        fabric: RoutedFabric,
        blocks: u32,
        lost: u32,
        now_ns: u64,
    }

    impl Blocks {
        fn new() -> Self {
            let mut blocks = Self {
                gray_links: GrayLinks::new(GRAY_PPM),
                fabric: fabric(2, 2, 4),
                blocks: 1_000_000,
                lost: 1_000,
                now_ns: 0,
            };
            blocks.sample();
            blocks
        }

        /// Feeds a sample of spine2 about its link from leaf1.
        fn sample(&mut self) -> bool {
            self.now_ns += MS;
            let sample = LossSample {
                port: 1,
                blocks: self.blocks,
                lost: self.lost,
                at_ns: self.now_ns,
            };
            let fabric = &self.fabric;
            let changed = self
                .gray_links
                .sampled(fabric, self.now_ns, "spine2", &sample);
            assert!(changed.is_none() || changed == fabric.port("leaf1", 6));
            changed.is_some()
        }

        /// Completes a block with `lost` losses. Returns whether the verdict changed.
        fn block(&mut self, lost: u32) -> bool {
            self.blocks = self.blocks.wrapping_add(1);
            self.lost = self.lost.wrapping_add(lost);
            self.sample()
        }

        /// Number of blocks until the verdict changes.
        fn until_change(&mut self, mut lost: impl FnMut(u32) -> u32) -> Option<u32> {
            (0..20_000).find(|&block| self.block(lost(block)))
        }

        fn gray_ppm(&self) -> Option<u32> {
            self.gray_links
                .gray_ppm(self.fabric.port("leaf1", 6).unwrap())
        }
    }

    /// Losses of a block when packets are lost at random.
    fn random(ppm: u64) -> impl FnMut(u32) -> u32 {
        // Knuth's MMIX generator.
        let mut state = 1_u64;
        move |_| {
            let strikes = (0..BLOCK_PACKETS).filter(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) % 1_000_000 < ppm
            });
            strikes.count() as u32
        }
    }

    #[test]
    fn a_loss_of_a_hundredth_is_found_in_a_few_thousand_packets() {
        let mut blocks = Blocks::new();
        let found = blocks.until_change(random(10_000)).unwrap();
        assert!(found * BLOCK_PACKETS < 5_000, "{found} blocks");
        let ppm = blocks.gray_ppm().unwrap();
        assert!((7_000..18_000).contains(&ppm), "{ppm}");
    }

    #[test]
    fn a_loss_of_a_thousandth_is_below_the_limit() {
        let mut blocks = Blocks::new();
        assert_eq!(blocks.until_change(random(1_000)), None);
    }

    #[test]
    fn what_the_topology_says_that_is_lost_is_no_fault() {
        let mut blocks = Blocks::new();
        let mut topology = leaf_spine(2, 2, 4);
        for switch in &mut topology.switches {
            switch.loss_ppm = 10_000;
        }
        blocks.fabric = RoutedFabric::new(topology).unwrap();
        assert_eq!(blocks.until_change(random(10_000)), None);
        assert!(blocks.until_change(random(20_000)).is_some());
    }

    #[test]
    fn links_that_are_gone_for_a_moment_are_not_gray() {
        let mut blocks = Blocks::new();
        // Up to 100 packets, once per second.
        let found = blocks.until_change(|block| u32::from(block % 1_000 == 0) * 100);
        assert_eq!(found, None);
    }

    #[test]
    fn a_gray_link_is_healthy_after_600_packets_without_a_loss() {
        let mut blocks = Blocks::new();
        blocks.until_change(random(20_000)).unwrap();
        assert_eq!(blocks.until_change(|_| 0), Some(4));
        assert_eq!(blocks.gray_ppm(), None);
        assert_eq!(blocks.gray_links.next_deadline_ns(), None);
    }

    #[test]
    fn a_gray_link_is_probed_ever_less_while_it_stays_so() {
        let mut blocks = Blocks::new();
        let mut lost = random(20_000);
        blocks.until_change(&mut lost).unwrap();
        let mut rounds = Vec::new();
        for round in 0..10_000 {
            assert!(!blocks.block(lost(round)), "healthy after {round} blocks");
            let (probed, forgotten) = blocks.gray_links.poll(blocks.now_ns);
            assert_eq!(forgotten, []);
            rounds.push(probed.len());
        }
        // One round per millisecond.
        let probes = |rounds: &[usize]| rounds.iter().sum::<usize>();
        assert_eq!(probes(&rounds[..100]), 100);
        assert_eq!(probes(&rounds[5_000..5_800]), 100);
    }

    #[test]
    fn a_gray_link_is_healthy_when_600_probes_in_a_row_have_crossed_it() {
        let mut blocks = Blocks::new();
        blocks.until_change(random(20_000)).unwrap();
        let at = blocks.fabric.port("leaf1", 6).unwrap();
        let gray_links = &mut blocks.gray_links;
        let mut numbers = (0..).filter(|number| *number != 400);
        assert_eq!(
            numbers.position(|n| gray_links.arrived(0, at, n)),
            Some(999)
        );
        assert_eq!(gray_links.gray_ppm(at), None);
        assert!(!gray_links.arrived(0, at, 1001));
        assert!(blocks.until_change(random(20_000)).is_some());
        // Duplicates count once.
        let mut numbers = (0..).flat_map(|number| [number; 2]);
        let gray_links = &mut blocks.gray_links;
        assert_eq!(
            numbers.position(|n| gray_links.arrived(0, at, n)),
            Some(2 * 599)
        );
    }

    #[test]
    fn a_gray_link_of_which_nobody_speaks_any_more_is_forgotten() {
        let mut blocks = Blocks::new();
        blocks.until_change(random(20_000)).unwrap();
        let at = blocks.fabric.port("leaf1", 6).unwrap();
        let soon_ns = blocks.now_ns + SILENCE_NS;
        let numbers = 0..PROBES_PER_ROUND;
        let round = ProbeRound { at, numbers };
        assert_eq!(blocks.gray_links.poll(soon_ns), (vec![round], vec![]));
        let late_ns = soon_ns + 10 * MS;
        assert_eq!(blocks.gray_links.poll(late_ns), (vec![], vec![at]));
        assert_eq!(blocks.gray_ppm(), None);
    }

    #[test]
    fn samples_that_are_lost_or_old_or_of_a_new_start_do_no_harm() {
        let mut blocks = Blocks::new();
        // One sample for many blocks without a loss.
        blocks.blocks += 5_000;
        assert!(!blocks.block(20));
        assert!(!blocks.sample(), "the same twice");
        (blocks.blocks, blocks.lost) = (3, 40);
        for _ in 0..3 {
            assert!(!blocks.block(1));
        }
        (blocks.blocks, blocks.lost) = (u32::MAX - 2, u32::MAX);
        assert!(!blocks.sample());
        assert_eq!(blocks.until_change(|_| 5), Some(2), "across the wrap");
    }

    #[test]
    fn ports_of_hosts_and_of_nobody_say_nothing() {
        let fabric = fabric(2, 2, 4);
        let mut gray_links = GrayLinks::new(GRAY_PPM);
        for blocks in 0..100 {
            for port in [1, 77] {
                let sample = LossSample {
                    port,
                    blocks,
                    lost: blocks * 8,
                    at_ns: 0,
                };
                assert_eq!(gray_links.sampled(&fabric, MS, "leaf1", &sample), None);
            }
        }
    }
}
