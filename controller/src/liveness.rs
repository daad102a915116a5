// SPDX-License-Identifier: Apache-2.0

//! Detects dead paths.
//!
//! Nobody reports a link or switch that fails. The only sign is silence: a path has no more
//! RTT samples. But a silent path may just be unused. So the controller probes it: one leaf
//! sends a probe (a packet-out) to the other over the path, which hands it to the controller
//! (a packet-in).
//!
//! ```text
//!                      silent                  unanswered for `patience_ns`
//!          alive ----------------> suspect ---------------------------------> dead
//!            ^ ^- sample or answer -'                                          |
//!            '--- RETURN_ANSWERS rounds, each answered both ways (or samples) -'
//! ```
//!
//! A path is probed once when it falls silent. While other paths between the same leaves have
//! samples, it is probed again, less and less often. So an idle network has no probes. (The
//! first probe must not wait for samples of other paths: all of a connection stalls when one
//! of its paths dies.) State is kept per path between two leaves, not per direction, because
//! data without ACKs is as good as lost.

use std::collections::{BTreeMap, BTreeSet};

use crate::fabric::{LeafPair, RoutedFabric};

/// A path is suspect after this silence. It exceeds the longest time between two samples of
/// a path in use.
pub const SILENCE_NS: u64 = 12_000_000;

/// The longest silence, for unused paths that answer probes.
const LONGEST_SILENCE_NS: u64 = 200_000_000;

/// Minimum time between two rounds of probes for a suspect path.
const SUSPECT_INTERVAL_NS: u64 = 500_000;

/// Rounds of probes within the patience for a suspect path. One or two probes may be lost, and
/// a few probes are no load for a slow path with long queues.
const SUSPECT_ROUNDS: u64 = 8;

/// Time between two rounds for a dead path: at first, and at most.
const DEAD_INTERVAL_NS: (u64, u64) = (1_000_000, 8_000_000);

/// Answered rounds that bring a path back to life.
const RETURN_ANSWERS: u32 = 3;

/// Allowance for the control network in both directions, and for processing.
const CONTROL_NS: u64 = 1_000_000;

/// A packet that tests whether a path carries packets in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// From the source leaf to the destination leaf.
    pub pair: LeafPair,
    /// The path to test.
    pub path: u8,
    /// Increases with every round of the path.
    pub round: u64,
}

/// The state of all paths.
#[derive(Debug, Default)]
pub struct Liveness {
    watches: BTreeMap<Key, Watch>,
    /// When each watch is due to probe; those that wait for nothing are left out. A large
    /// fabric has tens of thousands of watches, and few that are due.
    agenda: BTreeSet<(u64, Key)>,
}

/// Two leaves, the lower number first, and a path between them.
type Key = (u8, u8, u8);

#[derive(Debug)]
struct Watch {
    phase: Phase,
    /// How long a probe may take through full queues.
    patience_ns: u64,
    /// Time of the last sample or answer.
    heard_ns: u64,
    /// The silence after which it is suspect while other paths have samples.
    silence_ns: u64,
    round: u64,
    /// Answers to earlier rounds don't count.
    first_round: u64,
    /// Whether the round's probes have arrived, to the higher leaf and to the lower.
    arrived: [bool; 2],
    probe_at_ns: u64,
    interval_ns: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Alive,
    Suspect { since_ns: u64 },
    Dead { answers: u32 },
}

impl Liveness {
    /// Whether `path` of `pair` is dead.
    #[must_use]
    pub fn is_dead(&self, pair: LeafPair, path: u8) -> bool {
        let watch = self.watches.get(&key(pair, path));
        watch.is_some_and(|watch| matches!(watch.phase, Phase::Dead { .. }))
    }

    /// Processes a sample of `path`: the path is alive, and silent paths between the same leaves
    /// become suspect. Returns whether it was dead until now.
    pub fn sampled(
        &mut self,
        fabric: &RoutedFabric,
        now_ns: u64,
        pair: LeafPair,
        path: u8,
    ) -> bool {
        for other in 0..fabric.paths() {
            let key = key(pair, other);
            let watch = self.watches.entry(key);
            let watch = watch.or_insert_with(|| Watch::new(fabric, now_ns, pair, other));
            if other != path {
                change(&mut self.agenda, key, watch, |watch| {
                    watch.others_are_alive(now_ns);
                });
            }
        }
        let is_back = self.update(key(pair, path), |watch| watch.sampled(now_ns));
        is_back.unwrap_or(false)
    }

    /// Processes the arrival of `probe`. Returns whether its path was dead until now.
    pub fn arrived(&mut self, now_ns: u64, probe: Probe) -> bool {
        let key = key(probe.pair, probe.path);
        let is_back = self.update(key, |watch| watch.arrived(now_ns, probe));
        is_back.unwrap_or(false)
    }

    /// The probes to send at `now_ns`, and the leaf pairs, in both directions, that have just
    /// lost a path.
    pub fn poll(&mut self, now_ns: u64) -> (Vec<Probe>, Vec<LeafPair>) {
        let (mut probes, mut lost) = (Vec::new(), Vec::new());
        let due = self.agenda.iter().take_while(|(at_ns, _)| *at_ns <= now_ns);
        let mut due: Vec<Key> = due.map(|(_, key)| *key).collect();
        // By path, not by due time.
        due.sort_unstable();
        for key in due {
            let Some((died, round)) = self.update(key, |watch| (watch.probe(now_ns), watch.round))
            else {
                continue;
            };
            let (low, high, path) = key;
            let pairs = both_ways(LeafPair {
                source: low,
                destination: high,
            });
            if died {
                lost.extend(pairs);
            }
            probes.extend(pairs.map(|pair| Probe { pair, path, round }));
        }
        (probes, lost)
    }

    /// When [`Liveness::poll`] is due next.
    #[must_use]
    pub fn next_deadline_ns(&self) -> Option<u64> {
        self.agenda.first().map(|(at_ns, _)| *at_ns)
    }

    /// Modifies a watch and its place in the agenda; `None` if there is no such watch.
    fn update<T>(&mut self, key: Key, how: impl FnOnce(&mut Watch) -> T) -> Option<T> {
        let watch = self.watches.get_mut(&key)?;
        Some(change(&mut self.agenda, key, watch, how))
    }
}

/// Modifies the watch of `key` and its place in the agenda.
fn change<T>(
    agenda: &mut BTreeSet<(u64, Key)>,
    key: Key,
    watch: &mut Watch,
    how: impl FnOnce(&mut Watch) -> T,
) -> T {
    let before_ns = watch.probe_at_ns;
    let result = how(watch);
    let after_ns = watch.probe_at_ns;
    if after_ns != before_ns {
        agenda.remove(&(before_ns, key));
        if after_ns < u64::MAX {
            agenda.insert((after_ns, key));
        }
    }
    result
}

/// `pair`, and the pair in the direction of its ACKs.
#[must_use]
pub fn both_ways(pair: LeafPair) -> [LeafPair; 2] {
    let back = LeafPair {
        source: pair.destination,
        destination: pair.source,
    };
    [pair, back]
}

fn key(pair: LeafPair, path: u8) -> Key {
    let (low, high) = (pair.source, pair.destination);
    (low.min(high), low.max(high), path)
}

impl Watch {
    fn new(fabric: &RoutedFabric, now_ns: u64, pair: LeafPair, path: u8) -> Self {
        let address = |leaf| Some(*fabric.hosts_of(leaf).next()?.addresses.first()?);
        let queues_ns = address(pair.source)
            .zip(address(pair.destination))
            .and_then(|(source, destination)| fabric.queues_ns(source, destination, path))
            .unwrap_or(0);
        let base_ns = fabric.configured_rtt_ns(pair, path).unwrap_or(0);
        Self {
            phase: Phase::Alive,
            // A probe meets only the queues of one direction.
            patience_ns: base_ns + queues_ns / 2 + CONTROL_NS,
            heard_ns: now_ns,
            silence_ns: SILENCE_NS,
            round: 0,
            first_round: 0,
            arrived: [false; 2],
            probe_at_ns: u64::MAX,
            interval_ns: SUSPECT_INTERVAL_NS,
        }
    }

    /// Processes a sample. Returns whether the path comes back to life.
    fn sampled(&mut self, now_ns: u64) -> bool {
        self.silence_ns = SILENCE_NS;
        let is_back = self.sign_of_life(now_ns);
        if self.phase == Phase::Alive {
            self.probe_at_ns = now_ns + SILENCE_NS;
        }
        is_back
    }

    fn others_are_alive(&mut self, now_ns: u64) {
        let silent_ns = now_ns.saturating_sub(self.heard_ns);
        if self.phase == Phase::Alive && silent_ns > self.silence_ns {
            self.probe_at_ns = now_ns;
        }
    }

    fn expect_anew(&mut self) {
        self.arrived = [false; 2];
        self.first_round = self.round + 1;
    }

    fn arrived(&mut self, now_ns: u64, probe: Probe) -> bool {
        if probe.round < self.first_round || probe.round > self.round {
            return false;
        }
        self.arrived[usize::from(probe.pair.source > probe.pair.destination)] = true;
        if self.arrived != [true; 2] {
            return false;
        }
        self.expect_anew();
        self.silence_ns = self.silence_ns.saturating_mul(2).min(LONGEST_SILENCE_NS);
        self.sign_of_life(now_ns)
    }

    /// Packets have crossed in both directions. Returns whether the path comes back to life.
    fn sign_of_life(&mut self, now_ns: u64) -> bool {
        self.heard_ns = now_ns;
        let is_back = match &mut self.phase {
            Phase::Alive | Phase::Suspect { .. } => false,
            Phase::Dead { answers } => {
                *answers += 1;
                self.interval_ns = DEAD_INTERVAL_NS.0;
                self.probe_at_ns = now_ns + self.interval_ns;
                if *answers < RETURN_ANSWERS {
                    return false;
                }
                true
            }
        };
        self.phase = Phase::Alive;
        self.probe_at_ns = u64::MAX;
        is_back
    }

    /// Starts a round. Returns whether the path has just died.
    fn probe(&mut self, now_ns: u64) -> bool {
        let mut died = false;
        match &mut self.phase {
            Phase::Alive => {
                self.phase = Phase::Suspect { since_ns: now_ns };
                self.expect_anew();
                self.interval_ns = SUSPECT_INTERVAL_NS.max(self.patience_ns / SUSPECT_ROUNDS);
            }
            Phase::Suspect { since_ns } => {
                if now_ns.saturating_sub(*since_ns) >= self.patience_ns {
                    self.phase = Phase::Dead { answers: 0 };
                    self.interval_ns = DEAD_INTERVAL_NS.0;
                    died = true;
                }
            }
            Phase::Dead { answers } => {
                if now_ns.saturating_sub(self.heard_ns) > self.patience_ns + self.interval_ns {
                    *answers = 0;
                    self.interval_ns = (self.interval_ns * 2).min(DEAD_INTERVAL_NS.1);
                }
            }
        }
        self.round += 1;
        self.probe_at_ns = now_ns + self.interval_ns;
        died
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{fabric, leaf_spine};

    const MS: u64 = 1_000_000;
    const PAIR: LeafPair = LeafPair {
        source: 1,
        destination: 2,
    };

    /// Path 0 has a sample every millisecond until `until_ms`; path 1 has one at the start.
    fn silent(until_ms: u64) -> (Liveness, RoutedFabric) {
        let fabric = fabric(2, 2, 2);
        let mut liveness = Liveness::default();
        liveness.sampled(&fabric, 0, PAIR, 1);
        for ms in 0..=until_ms {
            liveness.sampled(&fabric, ms * MS, PAIR, 0);
        }
        (liveness, fabric)
    }

    /// Serves deadlines until `until_ns`; `carries` says whether a probe arrives. Returns when
    /// paths died and came back.
    fn follow(
        liveness: &mut Liveness,
        until_ns: u64,
        carries: impl Fn(u64, &Probe) -> bool,
    ) -> (Vec<u64>, Vec<u64>) {
        let (mut died, mut returned) = (Vec::new(), Vec::new());
        while let Some(now_ns) = liveness.next_deadline_ns().filter(|&at| at <= until_ns) {
            let (probes, lost) = liveness.poll(now_ns);
            died.extend(lost.first().map(|_| now_ns));
            for probe in probes.into_iter().filter(|probe| carries(now_ns, probe)) {
                if liveness.arrived(now_ns + 100_000, probe) {
                    returned.push(now_ns);
                }
            }
        }
        (died, returned)
    }

    #[test]
    fn a_path_in_use_is_never_probed() {
        let fabric = fabric(2, 2, 2);
        let mut liveness = Liveness::default();
        for ms in 0..1000 {
            liveness.sampled(&fabric, ms * MS, PAIR, (ms % 2) as u8);
            assert!(liveness.poll(ms * MS).0.is_empty());
        }
    }

    #[test]
    fn an_unused_path_answers_and_is_asked_ever_less() {
        let (mut liveness, fabric) = silent(12);
        let mut rounds = 0;
        for ms in 13..1000 {
            liveness.sampled(&fabric, ms * MS, PAIR, 0);
            while liveness.next_deadline_ns().is_some_and(|at| at <= ms * MS) {
                let (probes, lost) = liveness.poll(ms * MS);
                rounds += 1;
                assert_eq!((probes.len(), lost.len()), (2, 0));
                for probe in probes {
                    liveness.arrived(ms * MS + 100_000, probe);
                }
            }
        }
        assert!((4..=10).contains(&rounds), "{rounds}");
    }

    #[test]
    fn a_path_that_carries_nothing_is_dead_within_its_patience_and_returns_when_it_carries() {
        let (mut liveness, _) = silent(13);
        let back_ns = 60 * MS;
        let (died, returned) = follow(&mut liveness, 200 * MS, |now_ns, probe| {
            probe.path == 0 || now_ns >= back_ns
        });
        assert_eq!(died.len(), 1);
        assert!(died[0] - SILENCE_NS <= 6 * MS, "{died:?}");
        assert_eq!(returned.len(), 1);
        assert!(
            returned[0] - back_ns <= 3 * DEAD_INTERVAL_NS.1,
            "{returned:?}"
        );
        assert!(!liveness.is_dead(PAIR, 1));
        assert_eq!(liveness.next_deadline_ns(), None);
    }

    #[test]
    fn a_path_that_carries_one_way_is_dead_both_ways() {
        let (mut liveness, _) = silent(13);
        follow(&mut liveness, 30 * MS, |_, probe| {
            probe.path == 0 || probe.pair == PAIR
        });
        assert!(
            both_ways(PAIR)
                .iter()
                .all(|&pair| liveness.is_dead(pair, 1))
        );
        assert!(!liveness.is_dead(PAIR, 0));
    }

    #[test]
    fn a_lost_probe_or_two_do_not_kill_a_path() {
        let (mut liveness, _) = silent(13);
        let (died, _) = follow(&mut liveness, 100 * MS, |_, probe| probe.round > 2);
        assert!(died.is_empty(), "{died:?}");
    }

    #[test]
    fn a_suspect_that_may_take_long_to_answer_is_asked_a_few_times() {
        let mut topology = leaf_spine(2, 2, 2);
        for link in &mut topology.links {
            link.delay_ns = 100 * MS;
        }
        let fabric = RoutedFabric::new(topology).unwrap();
        let mut liveness = Liveness::default();
        liveness.sampled(&fabric, 0, PAIR, 1);
        liveness.sampled(&fabric, 13 * MS, PAIR, 0);
        let mut rounds = 0;
        while !liveness.is_dead(PAIR, 1) {
            let now_ns = liveness.next_deadline_ns().unwrap();
            let (probes, _) = liveness.poll(now_ns);
            rounds += u64::from(probes.iter().any(|probe| probe.path == 1));
        }
        assert_eq!(rounds, SUSPECT_ROUNDS + 1);
    }

    #[test]
    fn answers_that_come_twice_or_from_nowhere_count_for_nothing() {
        let (mut liveness, fabric) = silent(13);
        let (probes, _) = liveness.poll(13 * MS);
        follow(&mut liveness, 40 * MS, |_, _| false);
        // Late answers from before its death count as one round at most.
        for _ in 0..10 {
            for &probe in &probes {
                assert!(!liveness.arrived(41 * MS, probe));
            }
        }
        let nowhere = Probe {
            path: 7,
            round: u64::MAX,
            ..probes[0]
        };
        assert!(!liveness.arrived(41 * MS, nowhere));
        assert!(liveness.is_dead(PAIR, 1));
        assert!(!liveness.sampled(&fabric, 41 * MS, PAIR, 0));
    }
}
