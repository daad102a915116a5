// SPDX-License-Identifier: Apache-2.0

//! The engine: decides when a leaf pair gets a new pattern, and which.
//!
//! A pair gets its first pattern once the cost of each of its paths is known. With queues as
//! input that is at the start, so no connection has to learn. When a gap changes, a new
//! pattern follows at once, unless the last one is too recent ([`pacing`] defines how
//! recent). [`sticky_gaps`](crate::pattern::sticky_gaps) adds hysteresis, so that patterns don't follow every change of a
//! queue. When a pair falls idle, its queues have drained and its gaps are computed without
//! hysteresis.
//!
//! The engine keeps the latest decisions, each with the sample that triggered it.
//!
//! A version is the time in microseconds. So versions keep growing when a controller
//! restarts, although it stores nothing.

mod assess;
mod decision;
mod links;

use std::collections::{BTreeMap, VecDeque};

use weft_topology::Routing;

pub use assess::{Assessment, Verdict};
pub use decision::{Decision, Pattern, Rule, Trigger};
pub use links::{Fault, LinkEvent};

use crate::classes::{Changes, Classes};
use crate::cost::{self, Input, QUEUE_FRESH_NS};
use crate::fabric::{LeafPair, RoutedFabric};
use crate::gray_failure::{self, GrayLinks};
use crate::liveness::{Liveness, Probe, both_ways};
use crate::pacing::{self, Pace};
use crate::slow_links::SlowLinks;
use crate::telemetry::{PathStats, Sample, Telemetry};

/// Decisions kept per pair.
pub const HISTORY_DECISIONS: usize = 64;

/// A sample this much older than the newest one of its switch was delayed or retransmitted
/// and is dropped. Digest lists reorder by less.
const LATE_NS: u64 = 5_000_000;

/// No sample is delayed this long: the switch's clock has restarted.
const RESTART_NS: u64 = 10_000_000_000;

/// Settings of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// What costs are computed from.
    pub input: Input,
    /// Limits on the interval between patterns.
    pub limits: pacing::Limits,
    /// Added to the time in versions: real time minus the clock of `now_ns`. It makes versions
    /// of controllers on different machines comparable.
    pub epoch_ns: u64,
    /// Paths over a link that loses this many packets per million are avoided.
    pub gray_ppm: u32,
    /// Whether to detect slow links. Must be off where queues serve packets instead of bits, as
    /// in BMv2.
    pub finds_slow_links: bool,
    /// Whether thresholds between classes follow the sizes of flows; otherwise the built-in ones
    /// hold.
    pub adapts_thresholds: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            input: Input::default(),
            limits: pacing::Limits::default(),
            epoch_ns: 0,
            gray_ppm: gray_failure::GRAY_PPM,
            finds_slow_links: true,
            adapts_thresholds: true,
        }
    }
}

/// Decides on patterns. Takes samples and the time, returns changes.
#[derive(Debug)]
pub struct Engine {
    fabric: RoutedFabric,
    config: Config,
    telemetry: Telemetry,
    /// Time of the newest sample of each switch.
    newest_ns: BTreeMap<String, u64>,
    late_samples: u64,
    liveness: Liveness,
    probes: Vec<Probe>,
    slow_links: SlowLinks,
    gray_links: GrayLinks,
    link_events: Vec<LinkEvent>,
    /// Where hosts write classes.
    classes: Option<Classes>,
    pairs: BTreeMap<LeafPair, Pair>,
    /// When to reassess each pair.
    due: BTreeMap<LeafPair, u64>,
}

#[derive(Debug, Default)]
struct Pair {
    pattern: Option<Pattern>,
    pace: Pace,
    /// The first sample since the last assessment that kept the pattern.
    trigger: Option<Trigger>,
    /// Whether a new pattern waits because the last one is too recent.
    resting: bool,
    history: VecDeque<Decision>,
}

impl Engine {
    /// An engine without samples.
    #[must_use]
    pub fn new(fabric: RoutedFabric, config: Config) -> Self {
        let classes = fabric.topology().priorities;
        let mut engine = Self {
            classes: classes.map(|count| Classes::new(count, config.adapts_thresholds)),
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
            // The configured RTTs are enough for a first pattern.
            engine.due = engine.fabric.pairs().map(|pair| (pair, 0)).collect();
        }
        engine
    }

    /// The fabric.
    #[must_use]
    pub fn fabric(&self) -> &RoutedFabric {
        &self.fabric
    }

    /// All telemetry so far.
    #[must_use]
    pub fn telemetry(&self) -> &Telemetry {
        &self.telemetry
    }

    /// Which paths are alive.
    #[must_use]
    pub fn liveness(&self) -> &Liveness {
        &self.liveness
    }

    /// The classes that hosts write; `None` if they write none.
    #[must_use]
    pub fn classes(&self) -> Option<&Classes> {
        self.classes.as_ref()
    }

    /// Looks at the thresholds between classes. Returns what has changed.
    pub fn poll_classes(&mut self, now_ns: u64) -> Changes {
        let version = self.version_at(now_ns);
        let classes = self.classes.as_mut();
        classes.map_or_else(Changes::default, |classes| classes.poll(now_ns, version))
    }

    /// The version of what is decided now: the time in microseconds.
    fn version_at(&self, now_ns: u64) -> u64 {
        self.config.epoch_ns.saturating_add(now_ns) / 1_000
    }

    /// The settings.
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

    /// The latest decisions about `pair`, oldest first.
    pub fn history(&self, pair: LeafPair) -> impl DoubleEndedIterator<Item = &Decision> {
        self.pairs
            .get(&pair)
            .into_iter()
            .flat_map(|pair| &pair.history)
    }

    /// Processes a sample of `switch` that was taken no earlier than `sampled_ns`. Call
    /// [`Engine::poll`] for the patterns that follow.
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
            Sample::Classes(sample) => {
                if let Some(classes) = &mut self.classes {
                    classes.record(now_ns, switch, sample);
                }
                Vec::new()
            }
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
                // A loss sample triggers its own decision.
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

    /// Whether a sample of `path` shows that the path is no longer dead.
    fn is_back(&mut self, now_ns: u64, pair: LeafPair, path: u8) -> bool {
        // Without patterns there is nothing to keep dead paths out of.
        self.makes_patterns() && self.liveness.sampled(&self.fabric, now_ns, pair, path)
    }

    fn makes_patterns(&self) -> bool {
        self.config.input != Input::Srtt && self.fabric.topology().routing == Routing::Subflow
    }

    /// Samples that were dropped because newer ones had arrived long before.
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
        // A clock that jumps back that far belongs to a restarted switch.
        if !is_late || newest_ns.saturating_sub(sampled_ns) > RESTART_NS {
            *newest_ns = sampled_ns.max(if is_late { 0 } else { *newest_ns });
            return false;
        }
        true
    }

    /// Processes the arrival of `probe` at the far leaf.
    pub fn probed(&mut self, now_ns: u64, probe: Probe) {
        if self.gray_probe_arrived(now_ns, probe) {
            return;
        }
        if self.liveness.arrived(now_ns, probe) {
            self.schedule(now_ns, both_ways(probe.pair));
        }
    }

    /// Forgets which paths are silent, and pending triggers. Needed when mastership changes:
    /// meanwhile the switches reported to another controller.
    pub fn forget_silence(&mut self) {
        self.liveness = Liveness::default();
        self.probes.clear();
        for pair in self.pairs.values_mut() {
            pair.trigger = None;
        }
    }

    /// The probes that [`Engine::poll`] has scheduled for sending.
    pub fn take_probes(&mut self) -> Vec<Probe> {
        std::mem::take(&mut self.probes)
    }

    /// When [`Engine::poll`] is due next if no sample arrives.
    #[must_use]
    pub fn next_deadline_ns(&self) -> Option<u64> {
        let due_ns = self.due.values().copied().min();
        let losses_ns = self.gray_links.next_deadline_ns();
        [due_ns, self.liveness.next_deadline_ns(), losses_ns]
            .into_iter()
            .flatten()
            .min()
    }

    /// Computes what is due at `now_ns`. Returns the pairs with a new pattern.
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

    /// Reassesses a pair. Returns whether it has a new pattern.
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
        let now_us = self.version_at(now_ns);
        let pair = self.pairs.entry(key).or_default();
        let is_held = match assessment.verdict {
            Verdict::Held { .. } => true,
            Verdict::Due(rule) => rule == Rule::Herd,
            _ => false,
        };
        if is_held {
            let until_ns = match pair.pace.held_until_ns() {
                until_ns if until_ns > now_ns => until_ns,
                _ => pair.pace.hold_rates(now_ns),
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

    /// Makes the next [`Engine::poll`] reassess `pairs`.
    fn schedule(&mut self, now_ns: u64, pairs: impl IntoIterator<Item = LeafPair>) {
        let due = pairs.into_iter().map(|pair| (pair, now_ns));
        self.due.extend(due);
    }

    /// Schedules the time at which the costs of `pair` may change without new samples.
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

    /// When the last of the pair's paths becomes idle if no samples arrive.
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
