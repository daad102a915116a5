// SPDX-License-Identifier: Apache-2.0

//! Classes of what connections have left to send: the thresholds between them, and how much of
//! each class a host may send.
//!
//! Leaves count what every host sends in each class, without what lost its class. How many bytes
//! are sent while so many are left says how long flows are (`sizes.rs`), and from that follow the
//! thresholds with the shortest mean waiting time (`thresholds.rs`). New thresholds are made only
//! if they are clearly better, so that they do not follow every flow, or if long flows have left
//! the first class so wide that a host may claim it for all that it sends.
//!
//! A host that lies must not shift them. So every host counts alike, however much it sends, and
//! the share of a class is the median over the hosts. Windows differ much, because a few long
//! flows are most of the bytes; so the last of them count together.
//!
//! What a host may send in a class is several times the share that the typical host sends in it.

mod sizes;
mod thresholds;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::str::FromStr;

use self::sizes::Sizes;
use crate::engine::HISTORY_DECISIONS;

/// A switch counts so many classes.
pub const CLASSES: usize = 8;

/// Thresholds are looked at again after this time, if so much was sent meanwhile.
const WINDOW_NS: u64 = 200_000_000;
/// Some tens of flows: fewer say little about sizes.
pub const WINDOW_BYTES: u64 = 20_000_000;
/// So many windows count together, and nothing is decided by fewer. What flows send while traffic
/// sets in is not typical: long ones have not come to their ends yet.
pub const WINDOWS: usize = 8;
/// A host with less than that in a window is not typical.
const HOST_BYTES: u64 = 100_000;

/// New thresholds must bring the mean waiting time below this part of what it is, so that they do
/// not come and go. By the same model the built-in ones lose 2% in Web Search, 15% and 18% in Data
/// Mining and Cache Follower, and 22% in Web Server traffic.
const CLEARLY_BETTER: f64 = 0.8;

/// A host may send so many times the share of a typical one in each class, ...
const RATE_MARGIN: f64 = 4.0;
/// ... and at least this share of its link.
const RATE_LEAST: f64 = 0.05;
/// Rates that changed by less are not written to switches.
const RATE_STEP: f64 = 0.2;

/// Where the thresholds between classes come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThresholdsFrom {
    /// The sizes of flows that switches see.
    #[default]
    Seen,
    /// The kernel, where they are built in.
    BuiltIn,
}

impl fmt::Display for ThresholdsFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Seen => "seen",
            Self::BuiltIn => "built-in",
        })
    }
}

impl FromStr for ThresholdsFrom {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Seen, Self::BuiltIn]
            .into_iter()
            .find(|from| from.to_string() == text)
            .ok_or_else(|| format!("{text:?} is not one of seen and built-in"))
    }
}

/// What a host has sent in each class since its leaf started to count: a `class_sample_t` digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassSample {
    /// The leaf's port to the host.
    pub port: u16,
    /// Bytes by class, without what lost its class.
    pub bytes: [u64; CLASSES],
    /// When the sample was taken, by the switch's clock.
    pub at_ns: u64,
}

/// Thresholds, and why they were made.
#[derive(Debug, Clone, PartialEq)]
pub struct Thresholds {
    /// The time in microseconds, as of patterns.
    pub version: u64,
    /// When they were made.
    pub at_ns: u64,
    /// The most bytes left in class 1, 2, ...
    pub most_bytes: Vec<u64>,
    /// What they were made from.
    pub seen_bytes: u64,
    /// Expected mean waiting time, as a share of that with the thresholds before.
    pub waiting: f64,
}

/// A class of flows whose hosts claim none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentClass {
    /// Its number.
    pub class: u8,
    /// The most that such a flow has sent.
    pub most_bytes: u64,
}

/// The classes that leaves give flows whose hosts claim none, by what these have sent, with
/// thresholds for class 1, 2, ... Beyond the last of them such a flow is in the last class; with
/// fewer than three classes it is so from the start.
///
/// Nobody knows how much such a flow has left. It is in class 1 as long as it has sent as little
/// as others there have left. Then it comes before the longest flows only, and not for as long as
/// a connection that claims this class may: TCP took more than its part of a class that it shared
/// with subflows of `weft`. Where 8 flows of plain TCP went to a receiver with 16 of `weft`, they
/// got 0.4 of what they get beside plain TCP when all was in the last class, 0.8 (CUBIC) and 1.1
/// (DCTCP) with these classes, and 1.5 and 1.9 with the last threshold instead of the one before.
#[must_use]
pub fn by_sent(thresholds: &[u64]) -> Vec<SentClass> {
    let step = |class, most_bytes| SentClass { class, most_bytes };
    match *thresholds {
        [] => Vec::new(),
        [first] | [first, _] => vec![step(1, first)],
        [first, .., last_but_one, _] => {
            vec![step(1, first), step(thresholds.len() as u8, last_but_one)]
        }
    }
}

/// What [`Classes::poll`] has decided.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Changes {
    /// There are new thresholds.
    pub thresholds: bool,
    /// Hosts may send other rates.
    pub rates: bool,
}

/// Counts of one host.
#[derive(Debug, Clone, Copy)]
struct Host {
    at_start: [u64; CLASSES],
    now: [u64; CLASSES],
}

impl Host {
    fn sent(&self) -> [u64; CLASSES] {
        let mut sent = self.now;
        for (sent, before) in sent.iter_mut().zip(self.at_start) {
            *sent -= before;
        }
        sent
    }
}

/// What the typical host has sent in a window.
#[derive(Debug)]
struct Window {
    /// Share of class 0 in all bytes.
    urgent: f64,
    /// From the other classes.
    sizes: Sizes,
    seen_bytes: u64,
}

/// The thresholds between the classes of a fabric.
#[derive(Debug)]
pub struct Classes {
    count: u8,
    adapts: bool,
    built_in: Vec<u64>,
    /// By leaf and port.
    hosts: BTreeMap<(String, u16), Host>,
    window_ns: Option<u64>,
    windows: VecDeque<Window>,
    history: VecDeque<Thresholds>,
    /// Of the typical host, by class; empty until there was a window.
    shares: Vec<f64>,
    /// Share of its link that a host may send, by class; without an entry as much as it wants.
    rates: Vec<f64>,
}

impl Classes {
    /// `count` classes, whose thresholds stay the built-in ones unless this `adapts` them.
    #[must_use]
    pub fn new(count: u8, adapts: bool) -> Self {
        Self {
            count,
            adapts,
            built_in: weft_topology::thresholds_of(count),
            hosts: BTreeMap::new(),
            window_ns: None,
            windows: VecDeque::new(),
            history: VecDeque::new(),
            shares: Vec::new(),
            rates: Vec::new(),
        }
    }

    /// How many classes there are.
    #[must_use]
    pub fn count(&self) -> u8 {
        self.count
    }

    /// Whether the thresholds follow what is seen.
    #[must_use]
    pub fn adapts(&self) -> bool {
        self.adapts && self.count > 2
    }

    /// The decisions so far, oldest first; the last one is in force.
    #[must_use]
    pub fn history(&self) -> &VecDeque<Thresholds> {
        &self.history
    }

    /// The thresholds that were decided; `None` while the built-in ones hold.
    #[must_use]
    pub fn decided(&self) -> Option<&Thresholds> {
        self.history.back()
    }

    /// The thresholds in force.
    #[must_use]
    pub fn most_bytes(&self) -> &[u64] {
        self.decided().map_or(&self.built_in, |own| &own.most_bytes)
    }

    /// Of the bytes that the typical host sends, those in each class; empty at first.
    #[must_use]
    pub fn shares(&self) -> &[f64] {
        &self.shares
    }

    /// The share of its link that a host may send in each class but the last; empty at first.
    #[must_use]
    pub fn rates(&self) -> &[f64] {
        &self.rates
    }

    /// How many windows there are, of [`WINDOWS`] at most.
    #[must_use]
    pub fn windows(&self) -> usize {
        self.windows.len()
    }

    /// What was seen since the last look at the thresholds.
    #[must_use]
    pub fn seen_bytes(&self) -> u64 {
        self.hosts.values().flat_map(Host::sent).sum()
    }

    /// Records a sample of `leaf`.
    pub fn record(&mut self, now_ns: u64, leaf: &str, sample: &ClassSample) {
        self.window_ns.get_or_insert(now_ns);
        let place = (leaf.to_owned(), sample.port);
        // What was sent before this controller began is older than its window.
        let host = self.hosts.entry(place).or_insert(Host {
            at_start: sample.bytes,
            now: sample.bytes,
        });
        // A switch that has restarted counts from 0 again.
        if sample
            .bytes
            .iter()
            .zip(host.now)
            .any(|(new, old)| *new < old)
        {
            host.at_start = [0; CLASSES];
        }
        host.now = sample.bytes;
    }

    /// Looks at the thresholds at `now_ns` if enough was seen; `version` is that of new ones.
    pub fn poll(&mut self, now_ns: u64, version: u64) -> Changes {
        let Some(since_ns) = self.window_ns else {
            return Changes::default();
        };
        if now_ns.saturating_sub(since_ns) < WINDOW_NS {
            return Changes::default();
        }
        let seen_bytes = self.seen_bytes();
        if seen_bytes < WINDOW_BYTES {
            return Changes::default();
        }
        let typical = self.typical_shares();
        for host in self.hosts.values_mut() {
            host.at_start = host.now;
        }
        self.window_ns = Some(now_ns);
        let sizes = typical.and_then(|typical| {
            let sizes = Sizes::of(&typical[1..], self.most_bytes())?;
            Some((typical[0], sizes))
        });
        let Some((urgent, sizes)) = sizes else {
            return Changes::default();
        };
        if self.windows.len() >= WINDOWS {
            self.windows.pop_front();
        }
        self.windows.push_back(Window {
            urgent,
            sizes,
            seen_bytes,
        });
        if self.windows.len() < WINDOWS {
            return Changes::default();
        }
        self.decide(now_ns, version)
    }

    /// Makes thresholds and rates from the windows.
    fn decide(&mut self, now_ns: u64, version: u64) -> Changes {
        let windows = self.windows.iter();
        let weighted = windows.map(|window| (&window.sizes, window.seen_bytes as f64));
        let Some(sizes) = Sizes::mean(weighted) else {
            return Changes::default();
        };
        let better = self.clearly_better(&sizes).filter(|_| self.adapts());
        let is_new = better.is_some();
        if let Some((most_bytes, waiting)) = better {
            if self.history.len() >= HISTORY_DECISIONS {
                self.history.pop_front();
            }
            self.history.push_back(Thresholds {
                version,
                at_ns: now_ns,
                most_bytes,
                seen_bytes: self.windows.iter().map(|window| window.seen_bytes).sum(),
                waiting,
            });
        }
        // What hosts send in each class by the thresholds that hold now.
        let urgent = self.urgent_share();
        let of_sizes = sizes.shares(self.most_bytes()).into_iter();
        let of_sizes = of_sizes.map(|share| share * (1.0 - urgent));
        self.shares = std::iter::once(urgent).chain(of_sizes).collect();
        Changes {
            thresholds: is_new,
            rates: self.set_rates(),
        }
    }

    /// Thresholds that are clearly better than those in force, and by how much.
    ///
    /// What is seen within a class is its sum, so where much is in the first one, better thresholds
    /// seem to bring little. But the first class goes before all others, and once the typical host
    /// sends a quarter in it, it has no limit. So if long flows have left it wider than the built-in
    /// one, somewhat better ones are enough that give it a limit again.
    fn clearly_better(&self, sizes: &Sizes) -> Option<(Vec<u64>, f64)> {
        let now = self.most_bytes();
        let best = thresholds::best(sizes, now);
        let waiting = thresholds::waiting(sizes, &best) / thresholds::waiting(sizes, now);
        let has_limit = |most_bytes| RATE_MARGIN * sizes.shares(most_bytes)[0] < 1.0;
        let is_wide = now.first() > self.built_in.first();
        let limits_first = is_wide && !has_limit(now) && has_limit(&best);
        (waiting < CLEARLY_BETTER || limits_first).then_some((best, waiting))
    }

    /// The share of class 0 in the bytes of all windows.
    fn urgent_share(&self) -> f64 {
        let sum = |of: fn(&Window) -> f64| -> f64 { self.windows.iter().map(of).sum() };
        let urgent = sum(|window| window.urgent * window.seen_bytes as f64);
        urgent / sum(|window| window.seen_bytes as f64)
    }

    /// The share of each class in what the typical host has sent; `None` if no host sent enough.
    fn typical_shares(&self) -> Option<Vec<f64>> {
        let shares = |host: &Host| {
            let sent = host.sent();
            let total: u64 = sent.iter().sum();
            (total >= HOST_BYTES).then(|| sent.map(|bytes| bytes as f64 / total as f64))
        };
        let hosts: Vec<_> = self.hosts.values().filter_map(shares).collect();
        let medians: Vec<f64> = (0..usize::from(self.count))
            .map(|class| median(hosts.iter().map(|shares| shares[class]).collect()))
            .collect();
        let total: f64 = medians.iter().sum();
        (total > 0.0).then(|| medians.iter().map(|share| share / total).collect())
    }

    /// Makes rates from the shares. Returns whether they have changed.
    fn set_rates(&mut self) -> bool {
        let policed = self.shares.len().saturating_sub(1);
        let rates = self.shares[..policed].iter();
        let rates: Vec<f64> = rates
            .map(|share| (share * RATE_MARGIN).clamp(RATE_LEAST, 1.0))
            .collect();
        let is_near = |(new, old): (&f64, &f64)| (new / old - 1.0).abs() < RATE_STEP;
        if rates.len() == self.rates.len() && rates.iter().zip(&self.rates).all(is_near) {
            return false;
        }
        self.rates = rates;
        true
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        length if length % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

#[cfg(test)]
mod tests;
