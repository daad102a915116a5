//! From telemetry to patterns: which pair gets a new one, and when.
//!
//! A pair has a pattern once every path of it has an RTT. A new one follows at
//! once when a gap moves, but at most every 10 ms (the paper's interval), and
//! [`sticky_gaps`] keep it from following every queue. When a pair falls idle,
//! its queues are gone and its gaps are computed afresh.
//!
//! Versions are the time in milliseconds, so they grow across restarts of the
//! controller, which remembers nothing.

use std::collections::BTreeMap;

use weft_topology::Routing;

use crate::fabric::{Fabric, LeafPair};
use crate::pattern::{gaps, sequence, sticky_gaps};
use crate::telemetry::{PathStats, Sample, Telemetry};

/// Shortest time between two patterns of a pair.
pub const PATTERN_INTERVAL_NS: u64 = 10_000_000;

/// The pattern of a leaf pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// Grows with every pattern of the pair.
    pub version: u64,
    /// When it was computed.
    pub at_ns: u64,
    /// RTTs that it was computed from, per path.
    pub rtts_ns: Vec<u64>,
    /// Packets per path.
    pub gaps: Vec<u32>,
    /// Path of every position.
    pub sequence: Vec<u8>,
}

/// Decides on patterns. Takes samples and the time, returns changes.
#[derive(Debug)]
pub struct Engine {
    fabric: Fabric,
    telemetry: Telemetry,
    patterns: BTreeMap<LeafPair, Pattern>,
    /// Pairs to look at again, and when.
    due: BTreeMap<LeafPair, u64>,
}

impl Engine {
    /// An engine that knows nothing yet.
    #[must_use]
    pub fn new(fabric: Fabric) -> Self {
        Self {
            fabric,
            telemetry: Telemetry::default(),
            patterns: BTreeMap::new(),
            due: BTreeMap::new(),
        }
    }

    /// The fabric it serves.
    #[must_use]
    pub fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// What it has been told.
    #[must_use]
    pub fn telemetry(&self) -> &Telemetry {
        &self.telemetry
    }

    /// The current pattern of `pair`.
    #[must_use]
    pub fn pattern(&self, pair: LeafPair) -> Option<&Pattern> {
        self.patterns.get(&pair)
    }

    /// All current patterns.
    pub fn patterns(&self) -> impl Iterator<Item = (LeafPair, &Pattern)> {
        self.patterns.iter().map(|(&pair, pattern)| (pair, pattern))
    }

    /// Takes a sample of `switch`; [`Engine::poll`] tells what follows from it.
    pub fn record(&mut self, now_ns: u64, switch: &str, sample: &Sample) {
        match sample {
            Sample::Queue(sample) => {
                self.telemetry
                    .record_queue(&self.fabric, now_ns, switch, sample);
            }
            Sample::Rtt(sample) => {
                let pair = self.telemetry.record_rtt(&self.fabric, now_ns, sample);
                if let Some(pair) = pair {
                    self.due.insert(pair, now_ns);
                }
            }
        }
    }

    /// When [`Engine::poll`] may have something without further samples.
    #[must_use]
    pub fn next_deadline_ns(&self) -> Option<u64> {
        self.due.values().copied().min()
    }

    /// Computes what is due at `now_ns`; returns pairs with a new pattern.
    pub fn poll(&mut self, now_ns: u64) -> Vec<LeafPair> {
        let due: Vec<LeafPair> = self
            .due
            .iter()
            .filter(|&(_, &at_ns)| at_ns <= now_ns)
            .map(|(&pair, _)| pair)
            .collect();
        due.into_iter()
            .filter(|&pair| self.reconsider(now_ns, pair))
            .collect()
    }

    /// Looks at `pair`; whether it has a new pattern.
    fn reconsider(&mut self, now_ns: u64, pair: LeafPair) -> bool {
        self.due.remove(&pair);
        // With ECMP an address does not decide the path of its subflow.
        if self.fabric.topology().routing == Routing::Ecmp {
            return false;
        }
        let paths = self.fabric.paths();
        let Some(rtts_ns) = self.telemetry.rtts_ns(now_ns, pair, paths) else {
            return false;
        };
        let idle_at_ns = self.idle_at_ns(pair);
        let is_idle = idle_at_ns <= now_ns;
        if !is_idle {
            self.due.insert(pair, idle_at_ns);
        }
        let current = self.patterns.get(&pair);
        let wanted = match current {
            Some(current) if !is_idle => sticky_gaps(&rtts_ns, &current.gaps),
            _ => gaps(&rtts_ns),
        };
        if let Some(current) = current {
            if current.gaps == wanted {
                return false;
            }
            let earliest_ns = current.at_ns.saturating_add(PATTERN_INTERVAL_NS);
            if now_ns < earliest_ns {
                self.due.insert(pair, earliest_ns);
                return false;
            }
        }
        let pattern = Pattern {
            version: (now_ns / 1_000_000).max(current.map_or(1, |current| current.version + 1)),
            at_ns: now_ns,
            sequence: sequence(&wanted),
            gaps: wanted,
            rtts_ns,
        };
        self.patterns.insert(pair, pattern);
        true
    }

    /// When the last of the pair's paths becomes idle, unless samples come.
    fn idle_at_ns(&self, pair: LeafPair) -> u64 {
        (0..self.fabric.paths())
            .filter_map(|path| self.telemetry.path(pair, path))
            .map(PathStats::idle_at_ns)
            .max()
            .unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::pattern::letters;
    use crate::telemetry::{IDLE_NS, RttSample};
    use crate::testing::{fabric, leaf_spine};

    const MS: u64 = 1_000_000;
    const PAIR: LeafPair = LeafPair {
        source: 1,
        destination: 2,
    };

    /// A sample over `path` with so much queueing.
    fn sample(engine: &Engine, path: u8, queueing_ns: u64) -> Sample {
        let source = Ipv4Addr::new(10, 1, 1, 1);
        let destination = Ipv4Addr::new(10, 2, 1, 1);
        let base = engine
            .fabric()
            .measured_base_ns(source, destination, path, 1500)
            .unwrap();
        Sample::Rtt(RttSample {
            source,
            destination,
            source_port: 1,
            destination_port: 2,
            path,
            length_bytes: 1500,
            rtt_ns: base + queueing_ns,
        })
    }

    fn record(engine: &mut Engine, now_ns: u64, path: u8, queueing_ns: u64) {
        let sample = sample(engine, path, queueing_ns);
        engine.record(now_ns, "leaf1", &sample);
    }

    fn letters_of(engine: &Engine) -> String {
        letters(&engine.pattern(PAIR).unwrap().sequence)
    }

    /// Both paths measured at 50 ms.
    fn started() -> Engine {
        let mut engine = Engine::new(fabric(2, 2, 2));
        record(&mut engine, 50 * MS, 0, 0);
        record(&mut engine, 50 * MS, 1, 0);
        assert_eq!(engine.poll(50 * MS), [PAIR]);
        engine
    }

    #[test]
    fn there_is_no_pattern_before_every_path_has_an_rtt() {
        let mut engine = Engine::new(fabric(2, 2, 2));
        record(&mut engine, MS, 0, 0);
        assert_eq!(engine.poll(MS), []);
        record(&mut engine, 2 * MS, 1, 0);
        assert_eq!(engine.poll(2 * MS), [PAIR]);
        assert_eq!(letters_of(&engine), "AB");
    }

    #[test]
    fn gaps_follow_a_slow_spine() {
        let mut topology = leaf_spine(2, 2, 2);
        for link in &mut topology.links {
            if link.b.node == "spine2" {
                link.delay_ns = 40_000;
            }
        }
        let mut engine = Engine::new(Fabric::new(topology).unwrap());
        record(&mut engine, MS, 0, 0);
        record(&mut engine, MS, 1, 0);
        engine.poll(MS);
        // 237.6 us to 117.6 us.
        assert_eq!(letters_of(&engine), "AAB");
    }

    #[test]
    fn a_moved_gap_waits_for_the_interval_and_no_longer() {
        let mut engine = started();
        record(&mut engine, 52 * MS, 1, 3 * MS);
        assert_eq!(engine.poll(52 * MS), []);
        assert_eq!(engine.next_deadline_ns(), Some(60 * MS));
        assert_eq!(engine.poll(60 * MS), [PAIR]);
        assert_eq!(letters_of(&engine), "AAAAB");
    }

    #[test]
    fn the_same_gaps_make_no_new_version() {
        let mut engine = started();
        let version = engine.pattern(PAIR).unwrap().version;
        for at in 60..100 {
            record(&mut engine, at * MS, (at % 2) as u8, (at % 7) * 2_000);
            assert_eq!(engine.poll(at * MS), []);
        }
        assert_eq!(engine.pattern(PAIR).unwrap().version, version);
    }

    #[test]
    fn an_idle_pair_returns_to_the_pattern_of_empty_queues_and_sleeps() {
        let mut engine = started();
        for at in 60..80 {
            record(&mut engine, at * MS, 1, 2 * MS);
            engine.poll(at * MS);
        }
        assert_ne!(letters_of(&engine), "AB");
        let mut last = 0;
        while let Some(deadline) = engine.next_deadline_ns() {
            engine.poll(deadline);
            last = deadline;
        }
        assert_eq!(last, 79 * MS + IDLE_NS);
        assert_eq!(letters_of(&engine), "AB");
    }

    #[test]
    fn versions_grow_across_a_restart() {
        let mut engine = started();
        let mut last = engine.pattern(PAIR).unwrap().version;
        let mut now = 50 * MS;
        for round in 0..50 {
            now += PATTERN_INTERVAL_NS;
            record(&mut engine, now, 1, 6 * MS * (round % 2));
            for path in 0..2 {
                record(&mut engine, now, path, 0);
            }
            engine.poll(now);
            let version = engine.pattern(PAIR).unwrap().version;
            assert!(version >= last);
            last = version;
        }
        let mut restarted = Engine::new(fabric(2, 2, 2));
        now += MS;
        record(&mut restarted, now, 0, 0);
        record(&mut restarted, now, 1, 0);
        restarted.poll(now);
        assert!(restarted.pattern(PAIR).unwrap().version > last);
    }

    #[test]
    fn ecmp_gets_no_patterns() {
        let mut topology = leaf_spine(2, 2, 2);
        topology.routing = Routing::Ecmp;
        let mut engine = Engine::new(Fabric::new(topology).unwrap());
        record(&mut engine, MS, 0, 0);
        record(&mut engine, MS, 1, 0);
        assert_eq!(engine.poll(MS), []);
        assert_eq!(engine.next_deadline_ns(), None);
    }
}
