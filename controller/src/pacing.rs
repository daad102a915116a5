// SPDX-License-Identifier: Apache-2.0

//! The interval between patterns of a pair.
//!
//! The effect of a pattern on queues shows at its leaf one round trip later. A decision
//! before that is based on old queues, and all hosts of the pair would chase the emptier path
//! together. So the interval between two patterns is at least two round trips.
//!
//! That isn't enough when the traffic itself follows the patterns: the emptier path fills, the
//! next pattern favors the other path, and that one fills. A pattern that takes back what an
//! earlier one did is a reversal. Each reversal doubles the interval, up to that of MPTCP-RB
//! (10 ms, section 4):
//!
//! ```text
//! A slower   A slower still   A faster     A slower        ...       quiet
//!    |--2 RTT--|--2 RTT----------|--4 RTT-----|--8 RTT---------       |--2 RTT--
//!                                reversal     reversal
//! ```
//!
//! A pattern after a quiet time is never delayed, so a sudden change in the network gets its
//! pattern at once.
//!
//! Longer intervals slow this herding down but don't stop it. Gaps are whole numbers, and where
//! all traffic follows the pattern, any but the balanced one fills a queue. So after
//! `HERD_REVERSALS` reversals in a row the queues are attributed to the pair's own traffic.
//! For a while only path rates then set its pattern, longer each time that reversals
//! continue. RTTs can't be used for that: the pair's own traffic fills its paths, and the
//! pattern of their lowest RTTs would leave a longer path underused.

use std::cmp::Ordering;

/// Bounds on the interval between two patterns of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Minimum, however short the round trip. Agents and kernels need time for a pattern.
    pub shortest_ns: u64,
    /// Maximum, however often patterns reverse.
    pub longest_ns: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            shortest_ns: 200_000,
            longest_ns: 10_000_000,
        }
    }
}

impl Limits {
    /// At least `interval_ns` between two patterns; MPTCP-RB uses 10 ms.
    #[must_use]
    pub fn at_least(interval_ns: u64) -> Self {
        let usual = Self::default();
        Self {
            shortest_ns: interval_ns,
            longest_ns: usual.longest_ns.max(interval_ns),
        }
    }
}

/// Reversals are forgotten after this many intervals without a new pattern.
const QUIET_INTERVALS: u64 = 8;

/// Reversals in a row that show that patterns chase their own queues.
const HERD_REVERSALS: u64 = 4;

/// How long only rates set the pattern: the first time, and at most.
const HOLD_NS: (u64, u64) = (100_000_000, 1_600_000_000);

/// The pacing state of one pair.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pace {
    changed_ns: u64,
    min_interval_ns: u64,
    /// For each path, whether its share grew or shrank last.
    directions: Vec<Ordering>,
    reversals: u64,
    held_until_ns: u64,
    hold_duration_ns: u64,
}

impl Pace {
    /// Until when only rates set the pattern.
    #[must_use]
    pub fn held_until_ns(&self) -> u64 {
        self.held_until_ns
    }

    /// Whether a change of gaps from `old` to `new` at `now_ns` would chase the pair's own queues.
    #[must_use]
    pub fn is_herd(&self, now_ns: u64, old: &[u32], new: &[u32]) -> bool {
        !self.is_quiet(now_ns)
            && self.reversals + 1 >= HERD_REVERSALS
            && self.is_reversal(&directions(old, new))
    }

    /// Starts a time in which only rates set the pattern. Returns its end.
    pub fn hold_rates(&mut self, now_ns: u64) -> u64 {
        let (shortest_ns, longest_ns) = HOLD_NS;
        let next_ns = self.hold_duration_ns.saturating_mul(2);
        self.hold_duration_ns = next_ns.clamp(shortest_ns, longest_ns);
        self.held_until_ns = now_ns.saturating_add(self.hold_duration_ns);
        self.held_until_ns
    }

    /// Records a new pattern at `now_ns` that wasn't caused by queues.
    pub fn settled(&mut self, now_ns: u64) {
        self.changed_ns = now_ns;
    }

    /// When the next pattern is allowed.
    #[must_use]
    pub fn next_allowed_ns(&self) -> u64 {
        self.changed_ns.saturating_add(self.min_interval_ns)
    }

    /// Number of reversals in a row.
    #[must_use]
    pub fn reversals(&self) -> u64 {
        self.reversals
    }

    /// Records that gaps changed from `old` to `new` at `now_ns`. The slowest path has an RTT of
    /// `rtt_ns`.
    pub fn changed(&mut self, limits: Limits, now_ns: u64, rtt_ns: u64, old: &[u32], new: &[u32]) {
        let usual = rtt_ns
            .saturating_mul(2)
            .clamp(limits.shortest_ns, limits.longest_ns);
        if self.is_quiet(now_ns) {
            self.directions.clear();
            self.reversals = 0;
            self.hold_duration_ns = 0;
        }
        let directions = directions(old, new);
        let min_interval_ns = if self.is_reversal(&directions) {
            self.reversals += 1;
            self.min_interval_ns.saturating_mul(2)
        } else if self.reversals > 0 {
            self.min_interval_ns
        } else {
            usual
        };
        self.min_interval_ns = min_interval_ns.clamp(usual, limits.longest_ns);
        self.changed_ns = now_ns;
        if self.directions.len() == directions.len() {
            for (direction, new) in self.directions.iter_mut().zip(directions) {
                if new.is_ne() {
                    *direction = new;
                }
            }
        } else {
            self.directions = directions;
        }
    }
}

impl Pace {
    /// Whether the last reversal is long enough ago to be forgotten.
    fn is_quiet(&self, now_ns: u64) -> bool {
        let quiet_ns = self.min_interval_ns.saturating_mul(QUIET_INTERVALS);
        // The time in which only rates counted shows nothing.
        let since_ns = self.changed_ns.max(self.held_until_ns);
        now_ns.saturating_sub(since_ns) > quiet_ns
    }

    /// Whether a share that grew last time now shrinks, or the other way round.
    fn is_reversal(&self, directions: &[Ordering]) -> bool {
        let mut pairs = self.directions.iter().zip(directions);
        pairs.any(|(before, now)| now.is_ne() && *before == now.reverse())
    }
}

/// For each path, whether its share of the packets grew.
fn directions(old: &[u32], new: &[u32]) -> Vec<Ordering> {
    let sum = |gaps: &[u32]| gaps.iter().map(|&gap| u64::from(gap)).sum::<u64>();
    let (old_sum, new_sum) = (sum(old), sum(new));
    old.iter()
        .zip(new)
        // new / new_sum to old / old_sum
        .map(|(&old, &new)| (u64::from(new) * old_sum).cmp(&(u64::from(old) * new_sum)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const RTT_NS: u64 = 250_000;

    fn change(pace: &mut Pace, now_ns: u64, old: &[u32], new: &[u32]) -> u64 {
        pace.changed(Limits::default(), now_ns, RTT_NS, old, new);
        pace.next_allowed_ns() - now_ns
    }

    #[test]
    fn steps_in_one_direction_rest_for_two_round_trips_each() {
        let mut pace = Pace::default();
        assert_eq!(change(&mut pace, MS, &[1, 1], &[2, 1]), 2 * RTT_NS);
        assert_eq!(change(&mut pace, 2 * MS, &[2, 1], &[3, 1]), 2 * RTT_NS);
        assert_eq!(pace.reversals(), 0);
    }

    #[test]
    fn each_turn_doubles_the_rest_up_to_the_papers_interval() {
        let mut pace = Pace::default();
        let mut now = MS;
        change(&mut pace, now, &[1, 1], &[2, 1]);
        let mut rests = Vec::new();
        for turn in 0..8 {
            now = pace.next_allowed_ns();
            let (old, new) = if turn % 2 == 0 {
                ([2, 1], [1, 2])
            } else {
                ([1, 2], [2, 1])
            };
            rests.push(change(&mut pace, now, &old, &new) / RTT_NS);
        }
        assert_eq!(rests, [4, 8, 16, 32, 40, 40, 40, 40]);
    }

    #[test]
    fn after_a_quiet_time_a_turn_is_a_step_again() {
        let mut pace = Pace::default();
        change(&mut pace, MS, &[1, 1], &[2, 1]);
        change(&mut pace, 2 * MS, &[2, 1], &[1, 1]);
        assert_eq!(pace.reversals(), 1);
        assert_eq!(change(&mut pace, 50 * MS, &[1, 1], &[2, 1]), 2 * RTT_NS);
        assert_eq!(pace.reversals(), 0);
    }

    #[test]
    fn a_herd_is_held_longer_each_time_until_it_is_quiet() {
        let mut pace = Pace::default();
        let (one, two): (&[u32], &[u32]) = (&[2, 1], &[1, 2]);
        change(&mut pace, MS, &[1, 1], one);
        let mut now = MS;
        let mut ends = [(one, two), (two, one)].into_iter().cycle();
        let mut reversals = 0;
        while let Some((old, new)) = ends
            .next()
            .filter(|(old, new)| !pace.is_herd(now, old, new))
        {
            now = pace.next_allowed_ns();
            change(&mut pace, now, old, new);
            reversals += 1;
        }
        assert_eq!(reversals, HERD_REVERSALS - 1);
        assert_eq!(pace.hold_rates(now) - now, 100 * MS);
        now = pace.held_until_ns() + MS;
        assert_eq!(pace.hold_rates(now) - now, 200 * MS);
        now = pace.held_until_ns() + 1000 * MS;
        assert!(!pace.is_herd(now, one, two));
        change(&mut pace, now, one, two);
        assert_eq!(pace.hold_rates(now) - now, 100 * MS);
    }

    #[test]
    fn the_papers_interval_can_be_had() {
        let mut pace = Pace::default();
        pace.changed(Limits::at_least(10 * MS), 7, RTT_NS, &[1, 1], &[2, 1]);
        assert_eq!(pace.next_allowed_ns(), 7 + 10 * MS);
    }

    #[test]
    fn a_share_grows_when_the_others_shrink() {
        use Ordering::{Equal, Greater, Less};
        assert_eq!(directions(&[1, 1], &[2, 1]), [Greater, Less]);
        assert_eq!(directions(&[2, 2], &[1, 1]), [Equal, Equal]);
        assert_eq!(directions(&[1, 1], &[1, 0]), [Greater, Less]);
    }
}
