// SPDX-License-Identifier: Apache-2.0

//! Links that fail in part: slow links, and links that lose packets.

use weft_topology::routes::EgressPort;

use super::Engine;
use crate::fabric::LeafPair;
use crate::gray_failure::ProbeRound;
use crate::liveness::Probe;
use crate::slow_links::RateChange;
use crate::telemetry::{LossSample, QueueSample, RttSample};

/// Marks the round number of a probe over a gray link. Liveness probes never count this high.
/// The other bits hold the index of the switch in front of the link, that of its port, and
/// the number of the probe.
const GRAY_PROBE: u64 = 1 << 63;
const SWITCH_SHIFT: u32 = 47;
const PORT_SHIFT: u32 = 38;
const PORT_MASK: u64 = 0x1ff;
const SWITCH_MASK: u64 = 0xffff;
const NUMBER_MASK: u64 = (1 << PORT_SHIFT) - 1;

/// A change in the state of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkEvent {
    /// The switch that sends to it.
    pub switch: String,
    /// Its port number there.
    pub port: u16,
    /// What has changed.
    pub fault: Fault,
}

/// What is wrong with a link, or no longer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It transmits less than its rate.
    Slow {
        /// The share of its rate, in percent.
        percent: u64,
    },
    /// It loses packets.
    Lossy {
        /// Packets lost per million.
        loss_ppm: u32,
    },
    /// It was slow and has recovered.
    FullRate,
    /// It lost packets and has recovered.
    NoLoss,
}

impl From<RateChange> for Fault {
    fn from(turn: RateChange) -> Self {
        match turn {
            RateChange::Slow { percent } => Self::Slow { percent },
            RateChange::Healthy => Self::FullRate,
        }
    }
}

impl Engine {
    /// The changes of links since the last call.
    pub fn take_link_events(&mut self) -> Vec<LinkEvent> {
        std::mem::take(&mut self.link_events)
    }

    /// The share of its rate, in percent, that the slowest link in the data's direction
    /// transmits; `None` if no link is slow.
    #[must_use]
    pub fn slow_percent(&self, pair: LeafPair, path: u8) -> Option<u64> {
        let route = self.fabric.route(pair, path);
        route
            .filter_map(|at| self.slow_links.slow_percent(at))
            .min()
    }

    /// The rate of the bottleneck link in the data's direction: as configured, or less if the
    /// link is slow. `None` if there is no such path.
    #[must_use]
    pub fn rate_bps(&self, pair: LeafPair, path: u8) -> Option<u64> {
        let rate_bps = |at| {
            let percent = self.slow_links.slow_percent(at).unwrap_or(100);
            self.fabric.rate_bps(at).saturating_mul(percent.max(1)) / 100
        };
        self.fabric.route(pair, path).map(rate_bps).min()
    }

    /// Loss of the worst gray link in the data's direction, in packets per million; `None` if no
    /// link is gray.
    #[must_use]
    pub fn loss_ppm(&self, pair: LeafPair, path: u8) -> Option<u32> {
        let route = self.fabric.route(pair, path);
        route.filter_map(|at| self.gray_links.gray_ppm(at)).max()
    }

    /// Processes a queue sample. If a link turns slow or recovers, returns the pairs whose data
    /// crosses it.
    pub(super) fn slowed(&mut self, switch: &str, sample: &QueueSample) -> Vec<LeafPair> {
        if !self.config.finds_slow_links {
            return Vec::new();
        }
        let turn = self.slow_links.sampled(&self.fabric, switch, sample);
        let at = self.fabric.port(switch, sample.port);
        let turned = at.zip(turn);
        turned.map_or_else(Vec::new, |(at, turn)| self.report_fault(at, turn.into()))
    }

    /// Processes an RTT. If it shows that a slow link has recovered, returns the pairs whose
    /// data crosses it.
    pub(super) fn crossed(&mut self, pair: LeafPair, sample: &RttSample) -> Vec<LeafPair> {
        let route = self.fabric.route(pair, sample.path);
        let slow: Vec<EgressPort> = route
            .filter(|&at| self.slow_links.slow_percent(at).is_some())
            .collect();
        if slow.is_empty() {
            return Vec::new();
        }
        let (source, destination) = (sample.source, sample.destination);
        let fabric = &self.fabric;
        let base = fabric.measured_base_ns(source, destination, sample.path, sample.length_bytes);
        let above_ns = sample.rtt_ns.saturating_sub(base.unwrap_or(0));
        let mut pairs = Vec::new();
        for at in slow {
            if let Some(turn) = self.slow_links.crossed(&self.fabric, at, sample, above_ns) {
                pairs.extend(self.report_fault(at, turn.into()));
            }
        }
        pairs
    }

    /// Processes a loss sample. If a link turns gray or recovers, returns the pairs whose data
    /// crosses it.
    pub(super) fn lost(&mut self, now_ns: u64, switch: &str, sample: &LossSample) -> Vec<LeafPair> {
        let changed = self
            .gray_links
            .sampled(&self.fabric, now_ns, switch, sample);
        changed.map_or_else(Vec::new, |at| self.report_loss(at))
    }

    /// Reports the loss state of a link. Returns the pairs whose data crosses it.
    fn report_loss(&mut self, at: EgressPort) -> Vec<LeafPair> {
        let loss_ppm = self.gray_links.gray_ppm(at);
        let fault = loss_ppm.map_or(Fault::NoLoss, |loss_ppm| Fault::Lossy { loss_ppm });
        self.report_fault(at, fault)
    }

    fn report_fault(&mut self, at: EgressPort, fault: Fault) -> Vec<LeafPair> {
        let topology = self.fabric.topology();
        self.link_events.push(LinkEvent {
            switch: at.switch(topology).name.clone(),
            port: at.port(topology).number,
            fault,
        });
        self.fabric.pairs_through(at).to_vec()
    }

    /// Sends probes over gray links, so that they can be found to have recovered.
    pub(super) fn probe_gray_links(&mut self, now_ns: u64) {
        let (rounds, forgotten) = self.gray_links.poll(now_ns);
        for at in forgotten {
            let pairs = self.report_loss(at);
            self.schedule(now_ns, pairs);
        }
        if !self.makes_patterns() {
            // Without patterns nothing avoids these links.
            return;
        }
        for ProbeRound { at, numbers } in rounds {
            let numbered = numbers.filter_map(|number| self.probe_across(at, number));
            let probes: Vec<Probe> = numbered.collect();
            self.probes.extend(probes);
        }
    }

    /// Processes the arrival of a probe over a gray link. Returns false for any other probe.
    pub(super) fn gray_probe_arrived(&mut self, now_ns: u64, probe: Probe) -> bool {
        let round = probe.round;
        if round & GRAY_PROBE == 0 {
            return false;
        }
        let at = EgressPort {
            switch: (round >> SWITCH_SHIFT & SWITCH_MASK) as usize,
            port: (round >> PORT_SHIFT & PORT_MASK) as usize,
        };
        if self.gray_links.arrived(now_ns, at, round & NUMBER_MASK) {
            let pairs = self.report_loss(at);
            self.schedule(now_ns, pairs);
        }
        true
    }

    fn probe_across(&self, at: EgressPort, number: u64) -> Option<Probe> {
        let pair = *self.fabric.pairs_through(at).first()?;
        let mut paths = 0..self.fabric.paths();
        let path = paths.find(|&path| self.fabric.route(pair, path).any(|port| port == at))?;
        Some(Probe {
            pair,
            path,
            round: GRAY_PROBE
                | (at.switch as u64 & SWITCH_MASK) << SWITCH_SHIFT
                | (at.port as u64 & PORT_MASK) << PORT_SHIFT
                | number & NUMBER_MASK,
        })
    }

    /// Pairs whose data crosses `port` of `switch`.
    pub(super) fn pairs_through(&self, switch: &str, port: u16) -> Vec<LeafPair> {
        let port = self.fabric.port(switch, port);
        port.map_or_else(Vec::new, |port| self.fabric.pairs_through(port).to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{MS, PAIR, letters_of, record};
    use super::super::{Config, Rule};
    use super::*;
    use crate::fabric::RoutedFabric;
    use crate::telemetry::Sample;
    use crate::testing::leaf_spine;

    /// Four spines whose links `change` may modify.
    fn engine_of(change: impl Fn(&mut weft_topology::Link)) -> Engine {
        let mut topology = leaf_spine(2, 4, 2);
        topology.links.iter_mut().for_each(change);
        let fabric = RoutedFabric::new(topology).unwrap();
        let mut engine = Engine::new(fabric, Config::default());
        measure(&mut engine, 50 * MS);
        engine.poll(50 * MS);
        engine
    }

    fn started() -> Engine {
        let engine = engine_of(|_| {});
        assert_eq!(letters_of(&engine), "ABCD");
        engine
    }

    /// Feeds one RTT of every path.
    fn measure(engine: &mut Engine, now_ns: u64) {
        for path in 0..4 {
            record(engine, now_ns, path, 0);
        }
    }

    /// Feeds loss samples of a spine's link from leaf1, one block per millisecond with `lost`
    /// losses each, until there is a new pattern. Returns when.
    fn lose(engine: &mut Engine, spine: u8, blocks: std::ops::Range<u32>, lost: u32) -> u64 {
        let first = blocks.start;
        for block in blocks {
            let at_ns = u64::from(block) * MS;
            let sample = Sample::Loss(LossSample {
                port: 1,
                blocks: block,
                lost: (block - first) * lost,
                at_ns,
            });
            measure(engine, at_ns);
            engine.record(at_ns, None, &format!("spine{spine}"), &sample);
            if engine.poll(at_ns).contains(&PAIR) {
                return at_ns;
            }
        }
        u64::MAX
    }

    #[test]
    fn a_path_that_loses_packets_leaves_the_patterns_and_says_why() {
        let mut engine = started();
        let gray_ns = lose(&mut engine, 2, 60..90, 2);
        assert!((63 * MS..75 * MS).contains(&gray_ns), "{gray_ns}");
        assert_eq!(letters_of(&engine), "ACD");
        let decision = engine.history(PAIR).next_back().unwrap();
        assert_eq!(decision.rule, Rule::Gray);
        let trigger = decision.trigger.as_ref().unwrap();
        assert_eq!((&*trigger.switch, trigger.at_ns), ("spine2", gray_ns));
        assert!(engine.loss_ppm(PAIR, 1).is_some_and(|ppm| ppm > 10_000));
        assert_eq!(engine.loss_ppm(PAIR, 0), None);
        let news = engine.take_link_events();
        assert_eq!((&*news[0].switch, news[0].port), ("leaf1", 4));
        assert!(matches!(news[0].fault, Fault::Lossy { .. }));
    }

    #[test]
    fn a_gray_path_returns_when_600_probes_have_crossed_it() {
        let mut engine = started();
        let gray_ns = lose(&mut engine, 2, 60..90, 2);
        engine.take_probes();
        let mut now_ns = gray_ns + MS;
        while letters_of(&engine) == "ACD" {
            now_ns += MS;
            assert!(now_ns < gray_ns + 200 * MS, "it does not return");
            measure(&mut engine, now_ns);
            engine.poll(now_ns);
            for probe in engine.take_probes() {
                assert_eq!((probe.pair, probe.path), (PAIR, 1));
                engine.probed(now_ns, probe);
            }
        }
        // Four per millisecond.
        assert!(now_ns > gray_ns + 150 * MS);
        assert_eq!(letters_of(&engine), "ABCD");
        let last = engine.history(PAIR).next_back().unwrap();
        assert_eq!(last.rule, Rule::Returned);
        assert_eq!(
            engine.take_link_events().last().unwrap().fault,
            Fault::NoLoss
        );
    }

    #[test]
    fn acks_that_get_lost_take_no_path_from_the_data() {
        let mut engine = started();
        for block in 0..50 {
            let sample = Sample::Loss(LossSample {
                port: 4,
                blocks: block,
                lost: block * 2,
                at_ns: 0,
            });
            engine.record(60 * MS, None, "leaf1", &sample);
        }
        let back = LeafPair {
            source: 2,
            destination: 1,
        };
        assert!(engine.loss_ppm(back, 1).is_some());
        assert_eq!(engine.loss_ppm(PAIR, 1), None);
        assert_eq!(letters_of(&engine), "ABCD");
    }

    #[test]
    fn where_the_other_paths_have_too_little_rate_all_are_used() {
        let mut engine = started();
        assert!(lose(&mut engine, 2, 60..90, 2) < u64::MAX);
        // Two of four paths would be half of the rate.
        assert!(lose(&mut engine, 1, 90..120, 2) < u64::MAX);
        assert_eq!(letters_of(&engine), "ABCD");

        let mut engine = engine_of(|link| {
            if link.b.node != "spine2" {
                link.rate_bps = 500_000_000;
            }
        });
        let used = letters_of(&engine);
        assert_eq!(lose(&mut engine, 2, 60..90, 2), u64::MAX);
        assert!(engine.loss_ppm(PAIR, 1).is_some());
        assert_eq!(letters_of(&engine), used);
    }

    #[test]
    fn links_are_not_avoided_by_who_does_not_want_it() {
        let mut engine = started();
        engine.gray_links = crate::gray_failure::GrayLinks::new(1_000_000);
        assert_eq!(lose(&mut engine, 2, 60..200, 100), u64::MAX);
    }
}
