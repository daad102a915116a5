//! From telemetry to patterns: which pair gets a new one, and when.
//!
//! A pair has a pattern once the cost of every path of it is known, with queues as
//! input from the start: no connection has to learn. A new one
//! follows at once when a gap moves, unless the last one is too young ([`pacing`]
//! says how young), and [`sticky_gaps`] keep it from following every queue. When a
//! pair falls idle, its queues are gone and its gaps are computed afresh.
//!
//! Every decision is kept for a while, with the sample that led to it.
//!
//! Versions are the time in microseconds, so they grow across restarts of the
//! controller, which remembers nothing.

mod assess;

use std::collections::{BTreeMap, VecDeque};

use weft_topology::Routing;

pub use assess::{Assessment, Verdict};

use crate::cost::{Input, QUEUE_FRESH_NS};
use crate::fabric::{Fabric, LeafPair};
use crate::gray::Links;
use crate::liveness::{Liveness, Probe, both_ways};
use crate::pacing::{self, Pace};
use crate::telemetry::{PathStats, Sample, Telemetry};

/// Decisions that are remembered, per pair.
pub const HISTORY_DECISIONS: usize = 64;

/// A sample so much older than the newest of its switch was held up or sent again: the
/// network has moved on. Lists overtake each other by less.
const LATE_NS: u64 = 5_000_000;

/// Nothing is held up for so long.
const RESTART_NS: u64 = 10_000_000_000;

/// How to decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Config {
    /// What patterns follow from.
    pub input: Input,
    /// How soon they follow each other.
    pub limits: pacing::Limits,
    /// Added to the time in versions: with the difference between real time and
    /// the clock of `now_ns`, versions of controllers on several machines compare.
    pub epoch_ns: u64,
}

/// The pattern of a leaf pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// Grows with every pattern of the pair.
    pub version: u64,
    /// When it was computed.
    pub at_ns: u64,
    /// What it was computed from, per path.
    pub costs_ns: Vec<u64>,
    /// Packets per path.
    pub gaps: Vec<u32>,
    /// Path of every position.
    pub sequence: Vec<u8>,
}

/// Why a pattern was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// It is the first: every path has a cost now.
    First,
    /// A cost went clearly beyond where a gap changes.
    Moved,
    /// No path has had samples of late: queues have drained.
    Idle,
    /// A path carries nothing any more.
    Failed,
    /// A path carries packets again.
    Returned,
    /// Patterns have chased their own queues: these are left out for a while.
    Herd,
}

impl Rule {
    /// Whether samples, not probes or time, lead to it.
    #[must_use]
    pub fn follows_samples(self) -> bool {
        matches!(self, Self::First | Self::Moved)
    }

    /// Its name in `loop.csv` and for users.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Moved => "moved",
            Self::Idle => "idle",
            Self::Failed => "failed",
            Self::Returned => "returned",
            Self::Herd => "herd",
        }
    }
}

/// A link that carries less than it should.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlowLink {
    /// The switch in front of it.
    pub switch: String,
    /// Its port there.
    pub port: u16,
    /// What it carries at most, in percent of its rate.
    pub percent: u64,
}

/// What made the engine look at a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    /// When the sample came here.
    pub at_ns: u64,
    /// No later than when it was taken, by the same clock; `None` if the switch's
    /// clock is another.
    pub sampled_ns: Option<u64>,
    /// Who took it.
    pub switch: String,
    /// The sample.
    pub sample: Sample,
}

/// A pattern and how it came about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What was decided.
    pub pattern: Pattern,
    /// Why.
    pub rule: Rule,
    /// The sample that led to it; `None` when time alone did.
    pub trigger: Option<Trigger>,
    /// Whether it had to wait because the pattern before it was too young.
    pub rested: bool,
}

/// Decides on patterns. Takes samples and the time, returns changes.
#[derive(Debug)]
pub struct Engine {
    fabric: Fabric,
    config: Config,
    telemetry: Telemetry,
    /// When the newest sample of each switch was taken.
    newest_ns: BTreeMap<String, u64>,
    late_samples: u64,
    liveness: Liveness,
    probes: Vec<Probe>,
    links: Links,
    slow: Vec<SlowLink>,
    pairs: BTreeMap<LeafPair, Pair>,
    /// Pairs to look at again, and when.
    due: BTreeMap<LeafPair, u64>,
}

#[derive(Debug, Default)]
struct Pair {
    pattern: Option<Pattern>,
    pace: Pace,
    /// The first sample since the last look that found the pattern right.
    trigger: Option<Trigger>,
    /// Whether a pattern waits for the end of a rest.
    resting: bool,
    history: VecDeque<Decision>,
}

impl Engine {
    /// An engine that knows nothing yet.
    #[must_use]
    pub fn new(fabric: Fabric, config: Config) -> Self {
        let mut engine = Self {
            fabric,
            config,
            telemetry: Telemetry::default(),
            newest_ns: BTreeMap::new(),
            late_samples: 0,
            liveness: Liveness::default(),
            probes: Vec::new(),
            links: Links::default(),
            slow: Vec::new(),
            pairs: BTreeMap::new(),
            due: BTreeMap::new(),
        };
        if config.input == Input::RttAndQueue && engine.makes_patterns() {
            // What the topology says is a start.
            engine.due = engine.fabric.pairs().map(|pair| (pair, 0)).collect();
        }
        engine
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

    /// Which paths carry packets.
    #[must_use]
    pub fn liveness(&self) -> &Liveness {
        &self.liveness
    }

    /// How it decides.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The current pattern of `pair`.
    #[must_use]
    pub fn pattern(&self, pair: LeafPair) -> Option<&Pattern> {
        self.pairs.get(&pair)?.pattern.as_ref()
    }

    /// All current patterns.
    pub fn patterns(&self) -> impl Iterator<Item = (LeafPair, &Pattern)> {
        self.pairs
            .iter()
            .filter_map(|(&key, pair)| Some((key, pair.pattern.as_ref()?)))
    }

    /// The last decisions about `pair`, oldest first.
    pub fn history(&self, pair: LeafPair) -> impl DoubleEndedIterator<Item = &Decision> {
        self.pairs
            .get(&pair)
            .into_iter()
            .flat_map(|pair| &pair.history)
    }

    /// Takes a sample of `switch`, which was taken no earlier than `sampled_ns`;
    /// [`Engine::poll`] tells what follows from it.
    pub fn record(&mut self, now_ns: u64, sampled_ns: Option<u64>, switch: &str, sample: &Sample) {
        if sampled_ns.is_some_and(|sampled_ns| self.is_late(switch, sampled_ns)) {
            self.late_samples += 1;
            return;
        }
        let concerned: Vec<LeafPair> = match sample {
            Sample::Queue(sample) => {
                self.telemetry
                    .record_queue(&self.fabric, now_ns, switch, sample);
                let percent = self.links.sampled(&self.fabric, now_ns, switch, sample);
                let is_news = percent.is_some();
                self.slow.extend(percent.map(|percent| SlowLink {
                    switch: switch.to_owned(),
                    port: sample.port,
                    percent,
                }));
                match self.config.input {
                    Input::RttAndQueue => self.pairs_through(switch, sample.port),
                    Input::Rtt if is_news => self.pairs_through(switch, sample.port),
                    Input::Srtt | Input::Rtt => Vec::new(),
                }
            }
            Sample::Rtt(sample) => {
                let pair = self.telemetry.record_rtt(&self.fabric, now_ns, sample);
                let path = sample.path;
                match pair {
                    Some(pair) if self.is_back(now_ns, pair, path) => both_ways(pair).to_vec(),
                    pair => pair.into_iter().collect(),
                }
            }
        };
        for key in concerned {
            self.due.insert(key, now_ns);
            let pair = self.pairs.entry(key).or_default();
            pair.trigger.get_or_insert_with(|| Trigger {
                at_ns: now_ns,
                sampled_ns,
                switch: switch.to_owned(),
                sample: *sample,
            });
        }
    }

    /// Whether a sample of `path` shows that it is not dead any more.
    fn is_back(&mut self, now_ns: u64, pair: LeafPair, path: u8) -> bool {
        // Where there are no patterns there is nothing to leave out of them.
        self.makes_patterns() && self.liveness.sampled(&self.fabric, now_ns, pair, path)
    }

    fn makes_patterns(&self) -> bool {
        self.config.input != Input::Srtt && self.fabric.topology().routing == Routing::Weft
    }

    /// Samples that came so long after newer ones that they were not used.
    #[must_use]
    pub fn late_samples(&self) -> u64 {
        self.late_samples
    }

    fn is_late(&mut self, switch: &str, sampled_ns: u64) -> bool {
        let Some(newest_ns) = self.newest_ns.get_mut(switch) else {
            self.newest_ns.insert(switch.to_owned(), sampled_ns);
            return false;
        };
        let is_late = sampled_ns.saturating_add(LATE_NS) < *newest_ns;
        // A clock that went back far is that of a switch that has started anew.
        if !is_late || newest_ns.saturating_sub(sampled_ns) > RESTART_NS {
            *newest_ns = sampled_ns.max(if is_late { 0 } else { *newest_ns });
            return false;
        }
        true
    }

    /// Notes that `probe` has arrived at the far leaf.
    pub fn probed(&mut self, now_ns: u64, probe: Probe) {
        if self.liveness.arrived(now_ns, probe) {
            for pair in both_ways(probe.pair) {
                self.due.insert(pair, now_ns);
            }
        }
    }

    /// Links that have turned out to be slow since the last call.
    pub fn take_slow(&mut self) -> Vec<SlowLink> {
        std::mem::take(&mut self.slow)
    }

    /// The share of its rate, in percent, that the slowest link on the data's way carries
    /// at most, if one is slow.
    #[must_use]
    pub fn slow_percent(&self, pair: LeafPair, path: u8) -> Option<u64> {
        let steps = self.fabric.steps(pair, path);
        steps.filter_map(|at| self.links.slow_percent(at)).min()
    }

    /// What the slowest link on the data's way carries: as the topology has it, or less
    /// if queues show that. `None` if there is no such path.
    #[must_use]
    pub fn rate_bps(&self, pair: LeafPair, path: u8) -> Option<u64> {
        let rate_bps = |at| {
            let percent = self.links.slow_percent(at).unwrap_or(100);
            self.fabric.rate_bps(at).saturating_mul(percent.max(1)) / 100
        };
        self.fabric.steps(pair, path).map(rate_bps).min()
    }

    /// Probes that [`Engine::poll`] wants to be sent.
    pub fn take_probes(&mut self) -> Vec<Probe> {
        std::mem::take(&mut self.probes)
    }

    /// Pairs whose data goes through `port` of `switch`.
    fn pairs_through(&self, switch: &str, port: u16) -> Vec<LeafPair> {
        let port = self.fabric.port(switch, port);
        port.map_or_else(Vec::new, |port| self.fabric.pairs_through(port).to_vec())
    }

    /// When [`Engine::poll`] may have something without further samples.
    #[must_use]
    pub fn next_deadline_ns(&self) -> Option<u64> {
        let due_ns = self.due.values().copied().min();
        [due_ns, self.liveness.next_deadline_ns()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Computes what is due at `now_ns`; returns pairs with a new pattern.
    pub fn poll(&mut self, now_ns: u64) -> Vec<LeafPair> {
        let (probes, lost) = self.liveness.poll(now_ns);
        self.probes.extend(probes);
        for pair in lost {
            self.due.insert(pair, now_ns);
        }
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

    /// Looks at `key`; whether it has a new pattern.
    fn reconsider(&mut self, now_ns: u64, key: LeafPair) -> bool {
        self.due.remove(&key);
        let assessment = self.assess(now_ns, key);
        match assessment.verdict {
            Verdict::KernelRtt | Verdict::Ecmp | Verdict::Unmeasured => {}
            Verdict::Right | Verdict::Sticky | Verdict::Due(_) => self.look_again(now_ns, key),
            Verdict::Resting { until_ns } => {
                self.due.insert(key, until_ns);
            }
            Verdict::Held { .. } => {}
        }
        let pair = self.pairs.entry(key).or_default();
        let is_held = match assessment.verdict {
            Verdict::Held { .. } => true,
            Verdict::Due(rule) => rule == Rule::Herd,
            _ => false,
        };
        if is_held {
            let until_ns = match pair.pace.held_until_ns() {
                until_ns if until_ns > now_ns => until_ns,
                _ => pair.pace.hold(now_ns),
            };
            self.due.insert(key, until_ns);
        }
        let Verdict::Due(rule) = assessment.verdict else {
            pair.resting = matches!(assessment.verdict, Verdict::Resting { .. });
            if !pair.resting {
                pair.trigger = None;
            }
            return false;
        };
        let now_us = self.config.epoch_ns.saturating_add(now_ns) / 1_000;
        let current = pair.pattern.take();
        let pattern = Pattern {
            version: now_us.max(current.as_ref().map_or(1, |current| current.version + 1)),
            at_ns: now_ns,
            sequence: assess::sequence_of(&assessment.gaps),
            gaps: assessment.gaps,
            costs_ns: assessment.costs_ns,
        };
        if let Some(current) = current {
            let slowest_ns = pattern.costs_ns.iter().copied().max().unwrap_or(0);
            let (old, new) = (&current.gaps, &pattern.gaps);
            match rule {
                Rule::First | Rule::Moved | Rule::Idle => {
                    let limits = self.config.limits;
                    pair.pace.changed(limits, now_ns, slowest_ns, old, new);
                }
                Rule::Failed | Rule::Returned | Rule::Herd => pair.pace.settled(now_ns),
            }
        }
        if pair.history.len() >= HISTORY_DECISIONS {
            pair.history.pop_front();
        }
        pair.history.push_back(Decision {
            pattern: pattern.clone(),
            rule,
            trigger: pair.trigger.take().filter(|_| rule.follows_samples()),
            rested: std::mem::take(&mut pair.resting),
        });
        pair.pattern = Some(pattern);
        true
    }

    /// Sets when time alone may change the costs of `pair`.
    fn look_again(&mut self, now_ns: u64, pair: LeafPair) {
        let paths = 0..self.fabric.paths();
        let queues_ns = paths
            .filter(|_| self.config.input == Input::RttAndQueue)
            .map(|path| self.telemetry.queue(&self.fabric, now_ns, pair, path))
            .filter(|queue| queue.delay_ns > 0)
            .map(|queue| queue.at_ns.saturating_add(QUEUE_FRESH_NS));
        let next_ns = queues_ns
            .chain([self.idle_at_ns(pair)])
            .filter(|&at_ns| at_ns > now_ns)
            .min();
        if let Some(next_ns) = next_ns {
            self.due.insert(pair, next_ns);
        }
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
mod tests;
