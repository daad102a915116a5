//! How soon a pattern may follow another.
//!
//! What a pattern does to the queues shows at its leaf one round trip later: who
//! decides again before that decides on the past, and all hosts of a pair chase
//! the emptier path together. So a pair rests for two round trips after each
//! pattern. That does not help when the traffic itself follows the patterns: the
//! emptier path fills, the pattern turns, the other one fills. A pattern that takes
//! back what one before it did is such a turn, and each doubles the rest, up to the
//! interval of MPTCP-RB (10 ms, section 4):
//!
//! ```text
//! A slower   A slower still   A faster     A slower        ...       quiet
//!    |--2 RTT--|--2 RTT----------|--4 RTT-----|--8 RTT---------       |--2 RTT--
//!                                 turn         turn
//! ```
//!
//! The first pattern after a rest is never late: a step in the network is followed
//! at once.
//!
//! Rests slow a herd down and do not stop it: gaps are whole numbers, and where all
//! traffic follows the pattern any but the balanced one fills a queue. So after
//! [`HERD_TURNS`] turns in a row the queues are known to be our own, and the pair is
//! held to the pattern of its paths' rates for a while, longer each time that the
//! turning goes on afterwards. Queues of our own mean that paths are full: the pattern of
//! their lowest RTTs would leave a longer one unused.

use std::cmp::Ordering;

/// Rests between two patterns of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// However short the round trip: agents and kernels have work with a pattern.
    pub shortest_ns: u64,
    /// However often patterns turn.
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
    /// Never two patterns within `interval_ns`, as MPTCP-RB has it with 10 ms.
    #[must_use]
    pub fn at_least(interval_ns: u64) -> Self {
        let usual = Self::default();
        Self {
            shortest_ns: interval_ns,
            longest_ns: usual.longest_ns.max(interval_ns),
        }
    }
}

/// A turn is forgotten after so many rests without a new pattern.
const QUIET_RESTS: u64 = 8;

/// Turns in a row that show that patterns chase their own queues.
const HERD_TURNS: u64 = 4;

/// For so long a pair is held, the first time and at most.
const HOLD_NS: (u64, u64) = (100_000_000, 1_600_000_000);

/// The rest of one pair.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pace {
    changed_ns: u64,
    rest_ns: u64,
    /// Where the share of each path went last.
    directions: Vec<Ordering>,
    turns: u64,
    held_until_ns: u64,
    hold_ns: u64,
}

impl Pace {
    /// Until when rates alone are to decide.
    #[must_use]
    pub fn held_until_ns(&self) -> u64 {
        self.held_until_ns
    }

    /// Whether gaps that go from `old` to `new` at `now_ns` chase their own queues.
    #[must_use]
    pub fn is_herd(&self, now_ns: u64, old: &[u32], new: &[u32]) -> bool {
        !self.is_quiet(now_ns)
            && self.turns + 1 >= HERD_TURNS
            && self.is_turn(&directions(old, new))
    }

    /// Begins to hold the pair; gives until when.
    pub fn hold(&mut self, now_ns: u64) -> u64 {
        let (shortest_ns, longest_ns) = HOLD_NS;
        let next_ns = self.hold_ns.saturating_mul(2);
        self.hold_ns = next_ns.clamp(shortest_ns, longest_ns);
        self.held_until_ns = now_ns.saturating_add(self.hold_ns);
        self.held_until_ns
    }

    /// Notes a new pattern at `now_ns` that no queue led to.
    pub fn settled(&mut self, now_ns: u64) {
        self.changed_ns = now_ns;
    }

    /// When the next pattern may come.
    #[must_use]
    pub fn rests_until_ns(&self) -> u64 {
        self.changed_ns.saturating_add(self.rest_ns)
    }

    /// Patterns in a row that took back what one before did.
    #[must_use]
    pub fn turns(&self) -> u64 {
        self.turns
    }

    /// Notes that gaps went from `old` to `new` at `now_ns`, on paths of which the
    /// slowest takes `rtt_ns`.
    pub fn changed(&mut self, limits: Limits, now_ns: u64, rtt_ns: u64, old: &[u32], new: &[u32]) {
        let usual = rtt_ns
            .saturating_mul(2)
            .clamp(limits.shortest_ns, limits.longest_ns);
        if self.is_quiet(now_ns) {
            self.directions.clear();
            self.turns = 0;
            self.hold_ns = 0;
        }
        let directions = directions(old, new);
        let rest_ns = if self.is_turn(&directions) {
            self.turns += 1;
            self.rest_ns.saturating_mul(2)
        } else if self.turns > 0 {
            self.rest_ns
        } else {
            usual
        };
        self.rest_ns = rest_ns.clamp(usual, limits.longest_ns);
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
    /// Whether nothing has turned for so long that what was is forgotten.
    fn is_quiet(&self, now_ns: u64) -> bool {
        let quiet_ns = self.rest_ns.saturating_mul(QUIET_RESTS);
        // The time in which it was held says nothing.
        let since_ns = self.changed_ns.max(self.held_until_ns);
        now_ns.saturating_sub(since_ns) > quiet_ns
    }

    /// Whether a share that grew last time shrinks, or the other way round.
    fn is_turn(&self, directions: &[Ordering]) -> bool {
        let mut pairs = self.directions.iter().zip(directions);
        pairs.any(|(before, now)| now.is_ne() && *before == now.reverse())
    }
}

/// Whether each path's share of the packets grew.
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
        pace.rests_until_ns() - now_ns
    }

    #[test]
    fn steps_in_one_direction_rest_for_two_round_trips_each() {
        let mut pace = Pace::default();
        assert_eq!(change(&mut pace, MS, &[1, 1], &[2, 1]), 2 * RTT_NS);
        assert_eq!(change(&mut pace, 2 * MS, &[2, 1], &[3, 1]), 2 * RTT_NS);
        assert_eq!(pace.turns(), 0);
    }

    #[test]
    fn each_turn_doubles_the_rest_up_to_the_papers_interval() {
        let mut pace = Pace::default();
        let mut now = MS;
        change(&mut pace, now, &[1, 1], &[2, 1]);
        let mut rests = Vec::new();
        for turn in 0..8 {
            now = pace.rests_until_ns();
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
        assert_eq!(pace.turns(), 1);
        assert_eq!(change(&mut pace, 50 * MS, &[1, 1], &[2, 1]), 2 * RTT_NS);
        assert_eq!(pace.turns(), 0);
    }

    #[test]
    fn a_herd_is_held_longer_each_time_until_it_is_quiet() {
        let mut pace = Pace::default();
        let (one, two): (&[u32], &[u32]) = (&[2, 1], &[1, 2]);
        change(&mut pace, MS, &[1, 1], one);
        let mut now = MS;
        let mut ends = [(one, two), (two, one)].into_iter().cycle();
        let mut turns = 0;
        while let Some((old, new)) = ends
            .next()
            .filter(|(old, new)| !pace.is_herd(now, old, new))
        {
            now = pace.rests_until_ns();
            change(&mut pace, now, old, new);
            turns += 1;
        }
        assert_eq!(turns, HERD_TURNS - 1);
        assert_eq!(pace.hold(now) - now, 100 * MS);
        now = pace.held_until_ns() + MS;
        assert_eq!(pace.hold(now) - now, 200 * MS);
        now = pace.held_until_ns() + 1000 * MS;
        assert!(!pace.is_herd(now, one, two));
        change(&mut pace, now, one, two);
        assert_eq!(pace.hold(now) - now, 100 * MS);
    }

    #[test]
    fn the_papers_interval_can_be_had() {
        let mut pace = Pace::default();
        pace.changed(Limits::at_least(10 * MS), 7, RTT_NS, &[1, 1], &[2, 1]);
        assert_eq!(pace.rests_until_ns(), 7 + 10 * MS);
    }

    #[test]
    fn a_share_grows_when_the_others_shrink() {
        use Ordering::{Equal, Greater, Less};
        assert_eq!(directions(&[1, 1], &[2, 1]), [Greater, Less]);
        assert_eq!(directions(&[2, 2], &[1, 1]), [Equal, Equal]);
        assert_eq!(directions(&[1, 1], &[1, 0]), [Greater, Less]);
    }
}
