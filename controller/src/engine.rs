//! From telemetry to patterns: which pair gets a new one, and when.
//!
//! A pair has a pattern once the cost of every path of it is known. A new one
//! follows at once when a gap moves, unless the last one is too young ([`pacing`]
//! says how young), and [`sticky_gaps`] keep it from following every queue. When a
//! pair falls idle, its queues are gone and its gaps are computed afresh.
//!
//! Every decision is kept for a while, with the sample that led to it.
//!
//! Versions are the time in microseconds, so they grow across restarts of the
//! controller, which remembers nothing.

use std::collections::{BTreeMap, VecDeque};

use weft_topology::Routing;

use crate::cost::{self, Input, QUEUE_FRESH_NS};
use crate::fabric::{Fabric, LeafPair, PortUse};
use crate::pacing::{self, Pace};
use crate::pattern::{gaps, sequence, sticky_gaps};
use crate::telemetry::{PathStats, Sample, Telemetry};

/// Decisions that are remembered, per pair.
pub const HISTORY_DECISIONS: usize = 64;

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

/// What the engine makes of a pair's costs at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assessment {
    /// Per path; empty while one is unknown.
    pub costs_ns: Vec<u64>,
    /// Gaps that follow from the costs by themselves.
    pub plain_gaps: Vec<u32>,
    /// Gaps that hold after hysteresis.
    pub gaps: Vec<u32>,
    /// What follows.
    pub verdict: Verdict,
}

/// What follows from an assessment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The controller makes no patterns: kernels use their own RTT.
    KernelRtt,
    /// With ECMP an address does not decide the path of its subflow.
    Ecmp,
    /// A path has not been measured.
    Unmeasured,
    /// The pattern is what the costs say.
    Right,
    /// The costs say another, but not clearly enough.
    Sticky,
    /// A new one is wanted, and the last one is too young until then.
    Resting {
        /// When it may come.
        until_ns: u64,
    },
    /// A new one is due.
    Due(Rule),
}

/// Decides on patterns. Takes samples and the time, returns changes.
#[derive(Debug)]
pub struct Engine {
    fabric: Fabric,
    config: Config,
    telemetry: Telemetry,
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
        Self {
            fabric,
            config,
            telemetry: Telemetry::default(),
            pairs: BTreeMap::new(),
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
        let concerned: Vec<LeafPair> = match sample {
            Sample::Queue(sample) => {
                self.telemetry
                    .record_queue(&self.fabric, now_ns, switch, sample);
                match self.config.input {
                    Input::RttAndQueue => self.pairs_through(switch, sample.port),
                    Input::Srtt | Input::Rtt => Vec::new(),
                }
            }
            Sample::Rtt(sample) => self
                .telemetry
                .record_rtt(&self.fabric, now_ns, sample)
                .into_iter()
                .collect(),
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

    /// Pairs whose data goes through `port` of `switch`.
    fn pairs_through(&self, switch: &str, port: u16) -> Vec<LeafPair> {
        let port_use = self.fabric.port_use(switch, port);
        let through = |pair: &LeafPair| match port_use {
            Some(PortUse::Up { leaf, .. }) => pair.source == leaf,
            Some(PortUse::Down { leaf, .. }) => pair.destination == leaf,
            Some(PortUse::Host) | None => false,
        };
        self.fabric.pairs().filter(through).collect()
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

    /// What the costs of `pair` at `now_ns` say about its pattern.
    #[must_use]
    pub fn assess(&self, now_ns: u64, pair: LeafPair) -> Assessment {
        let without = |verdict| Assessment {
            costs_ns: Vec::new(),
            plain_gaps: Vec::new(),
            gaps: Vec::new(),
            verdict,
        };
        if self.config.input == Input::Srtt {
            return without(Verdict::KernelRtt);
        }
        if self.fabric.topology().routing == Routing::Ecmp {
            return without(Verdict::Ecmp);
        }
        let input = self.config.input;
        let costs_ns = cost::costs_ns(input, &self.fabric, &self.telemetry, now_ns, pair);
        let Some(costs_ns) = costs_ns else {
            return without(Verdict::Unmeasured);
        };
        let is_idle = self.idle_at_ns(pair) <= now_ns;
        let plain_gaps = gaps(&costs_ns);
        let known = self.pairs.get(&pair);
        let Some((known, current)) = known.and_then(|pair| Some((pair, pair.pattern.as_ref()?)))
        else {
            return Assessment {
                costs_ns,
                gaps: plain_gaps.clone(),
                plain_gaps,
                verdict: Verdict::Due(Rule::First),
            };
        };
        let gaps = if is_idle {
            plain_gaps.clone()
        } else {
            sticky_gaps(&costs_ns, &current.gaps)
        };
        let verdict = if gaps == current.gaps {
            if plain_gaps == current.gaps {
                Verdict::Right
            } else {
                Verdict::Sticky
            }
        } else if now_ns < known.pace.rests_until_ns() {
            Verdict::Resting {
                until_ns: known.pace.rests_until_ns(),
            }
        } else if is_idle {
            Verdict::Due(Rule::Idle)
        } else {
            Verdict::Due(Rule::Moved)
        };
        Assessment {
            costs_ns,
            plain_gaps,
            gaps,
            verdict,
        }
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
        }
        let pair = self.pairs.entry(key).or_default();
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
            sequence: sequence(&assessment.gaps),
            gaps: assessment.gaps,
            costs_ns: assessment.costs_ns,
        };
        if let Some(current) = current {
            let slowest_ns = pattern.costs_ns.iter().copied().max().unwrap_or(0);
            let (old, new) = (&current.gaps, &pattern.gaps);
            pair.pace
                .changed(self.config.limits, now_ns, slowest_ns, old, new);
        }
        if pair.history.len() >= HISTORY_DECISIONS {
            pair.history.pop_front();
        }
        pair.history.push_back(Decision {
            pattern: pattern.clone(),
            rule,
            trigger: pair.trigger.take(),
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
            .map(|path| self.telemetry.queue(now_ns, pair, path))
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
