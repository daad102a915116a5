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
mod decision;
mod links;

use std::collections::{BTreeMap, VecDeque};

use weft_topology::Routing;

pub use assess::{Assessment, Verdict};
pub use decision::{Decision, Pattern, Rule, Trigger};
pub use links::{Fault, LinkEvent};

use crate::cost::{self, Input, QUEUE_FRESH_NS};
use crate::fabric::{LeafPair, RoutedFabric};
use crate::gray_failure::{self, GrayLinks};
use crate::liveness::{Liveness, Probe, both_ways};
use crate::pacing::{self, Pace};
use crate::slow_links::SlowLinks;
use crate::telemetry::{PathStats, Sample, Telemetry};

/// Decisions that are remembered, per pair.
pub const HISTORY_DECISIONS: usize = 64;

/// A sample so much older than the newest of its switch was held up or sent again: the
/// network has moved on. Lists overtake each other by less.
const LATE_NS: u64 = 5_000_000;

/// Nothing is held up for so long.
const RESTART_NS: u64 = 10_000_000_000;

/// How to decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// What patterns follow from.
    pub input: Input,
    /// How soon they follow each other.
    pub limits: pacing::Limits,
    /// Added to the time in versions: with the difference between real time and
    /// the clock of `now_ns`, versions of controllers on several machines compare.
    pub epoch_ns: u64,
    /// A link that loses so many of a million packets is avoided.
    pub gray_ppm: u32,
    /// Whether a link that sends fewer bits than its rate is a slow one: not where queues
    /// serve packets, as BMv2's do.
    pub finds_slow_links: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            input: Input::default(),
            limits: pacing::Limits::default(),
            epoch_ns: 0,
            gray_ppm: gray_failure::GRAY_PPM,
            finds_slow_links: true,
        }
    }
}

/// Decides on patterns. Takes samples and the time, returns changes.
#[derive(Debug)]
pub struct Engine {
    fabric: RoutedFabric,
    config: Config,
    telemetry: Telemetry,
    /// When the newest sample of each switch was taken.
    newest_ns: BTreeMap<String, u64>,
    late_samples: u64,
    liveness: Liveness,
    probes: Vec<Probe>,
    slow_links: SlowLinks,
    gray_links: GrayLinks,
    link_events: Vec<LinkEvent>,
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
    pub fn new(fabric: RoutedFabric, config: Config) -> Self {
        let mut engine = Self {
            fabric,
            config,
            telemetry: Telemetry::default(),
            newest_ns: BTreeMap::new(),
            late_samples: 0,
            liveness: Liveness::default(),
            probes: Vec::new(),
            slow_links: SlowLinks::default(),
            gray_links: GrayLinks::new(config.gray_ppm),
            link_events: Vec::new(),
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
    pub fn fabric(&self) -> &RoutedFabric {
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
                let turned = self.slowed(switch, sample);
                match self.config.input {
                    Input::RttAndQueue => self.pairs_through(switch, sample.port),
                    Input::Rtt => turned,
                    Input::Srtt => Vec::new(),
                }
            }
            Sample::Loss(sample) => self.lost(now_ns, switch, sample),
            Sample::Rtt(sample) => {
                let pair = self.telemetry.record_rtt(&self.fabric, now_ns, sample);
                pair.map_or_else(Vec::new, |pair| {
                    let mut pairs = self.crossed(pair, sample);
                    if self.is_back(now_ns, pair, sample.path) {
                        pairs.extend(both_ways(pair));
                    } else {
                        pairs.push(pair);
                    }
                    pairs
                })
            }
        };
        for key in concerned {
            self.due.insert(key, now_ns);
            let pair = self.pairs.entry(key).or_default();
            if matches!(sample, Sample::Loss(_)) {
                // It leads to something by itself.
                pair.trigger = None;
            }
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
        if self.gray_probe_arrived(now_ns, probe) {
            return;
        }
        if self.liveness.arrived(now_ns, probe) {
            self.schedule(now_ns, both_ways(probe.pair));
        }
    }

    /// Forgets which paths are silent, and samples that have led to nothing yet: the
    /// switches tell another controller what they measure, or did so until now.
    pub fn forget_silence(&mut self) {
        self.liveness = Liveness::default();
        self.probes.clear();
        for pair in self.pairs.values_mut() {
            pair.trigger = None;
        }
    }

    /// Probes that [`Engine::poll`] wants to be sent.
    pub fn take_probes(&mut self) -> Vec<Probe> {
        std::mem::take(&mut self.probes)
    }

    /// When [`Engine::poll`] may have something without further samples.
    #[must_use]
    pub fn next_deadline_ns(&self) -> Option<u64> {
        let due_ns = self.due.values().copied().min();
        let losses_ns = self.gray_links.next_deadline_ns();
        [due_ns, self.liveness.next_deadline_ns(), losses_ns]
            .into_iter()
            .flatten()
            .min()
    }

    /// Computes what is due at `now_ns`; returns pairs with a new pattern.
    pub fn poll(&mut self, now_ns: u64) -> Vec<LeafPair> {
        let (probes, lost) = self.liveness.poll(now_ns);
        self.probes.extend(probes);
        self.schedule(now_ns, lost);
        self.probe_gray_links(now_ns);
        let due: Vec<LeafPair> = self
            .due
            .iter()
            .filter(|&(_, &at_ns)| at_ns <= now_ns)
            .map(|(&pair, _)| pair)
            .collect();
        due.into_iter()
            .filter(|&pair| self.reassess(now_ns, pair))
            .collect()
    }

    /// Looks at `key`; whether it has a new pattern.
    fn reassess(&mut self, now_ns: u64, key: LeafPair) -> bool {
        self.due.remove(&key);
        let assessment = self.assess(now_ns, key);
        match assessment.verdict {
            Verdict::KernelRtt | Verdict::Ecmp | Verdict::Unmeasured => {}
            Verdict::Right | Verdict::Sticky | Verdict::Due(_) => self.schedule_next(now_ns, key),
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
        let carries: Vec<bool> = assessment.gaps.iter().map(|&gap| gap > 0).collect();
        let lowest_ns = cost::lowest_ns(&self.fabric, &self.telemetry, key, &carries);
        let pattern = Pattern {
            version: now_us.max(current.as_ref().map_or(1, |current| current.version + 1)),
            at_ns: now_ns,
            sequence: assess::sequence_of(&assessment.gaps),
            lowest_ns: lowest_ns.unwrap_or_default(),
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
                Rule::Failed | Rule::Gray | Rule::Returned | Rule::Herd => {
                    pair.pace.settled(now_ns);
                }
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

    /// Has `pairs` looked at when [`Engine::poll`] is called next.
    fn schedule(&mut self, now_ns: u64, pairs: impl IntoIterator<Item = LeafPair>) {
        let due = pairs.into_iter().map(|pair| (pair, now_ns));
        self.due.extend(due);
    }

    /// Sets when time alone may change the costs of `pair`.
    fn schedule_next(&mut self, now_ns: u64, pair: LeafPair) {
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
