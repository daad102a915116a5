// SPDX-License-Identifier: Apache-2.0

//! At which switches this controller is primary.
//!
//! The controller serves hosts only while its view of the network is current: at most half
//! of the switches may be unreachable or have another primary. A switch without an
//! arbitration result yet counts in its favor. When a session ends, the last result stands
//! until the next attempt fails, so that a switch that comes back at once has no effect.

use std::collections::BTreeMap;

/// The result of the last arbitration at a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arbitration {
    /// This controller is primary.
    Primary,
    /// Another controller is primary; this one is a backup.
    Backup,
    /// The switch cannot be reached.
    Unreachable,
}

/// The last arbitration results of all switches.
#[derive(Debug)]
pub struct Mastership {
    switches: usize,
    last: BTreeMap<String, Arbitration>,
}

impl Mastership {
    /// No results yet, for this number of switches.
    #[must_use]
    pub fn new(switches: usize) -> Self {
        Self {
            switches,
            last: BTreeMap::new(),
        }
    }

    /// Records the result of an arbitration at `switch`. A switch with another primary keeps
    /// that result while it is unreachable.
    pub fn record(&mut self, switch: &str, outcome: Arbitration) {
        let is_lost = self.last.get(switch) == Some(&Arbitration::Backup);
        if !(is_lost && outcome == Arbitration::Unreachable) {
            self.last.insert(switch.to_owned(), outcome);
        }
    }

    /// Whether this controller is primary at half of the switches or more.
    #[must_use]
    pub fn is_primary(&self) -> bool {
        2 * self.count(|outcome| outcome == Arbitration::Primary) >= self.switches
    }

    /// Whether another controller is primary at most switches.
    #[must_use]
    pub fn is_backup(&self) -> bool {
        self.are_most(|outcome| outcome == Arbitration::Backup)
    }

    /// Whether most switches have another primary or are unreachable.
    #[must_use]
    pub fn is_standby(&self) -> bool {
        self.are_most(|outcome| outcome != Arbitration::Primary)
    }

    fn are_most(&self, which: impl Fn(Arbitration) -> bool) -> bool {
        2 * self.count(which) > self.switches
    }

    fn count(&self, which: impl Fn(Arbitration) -> bool) -> usize {
        self.last
            .values()
            .filter(|outcome| which(**outcome))
            .count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mastership with these numbers of results; the other switches have none.
    fn mastership(switches: usize, last: &[(Arbitration, usize)]) -> Mastership {
        let mut mastership = Mastership::new(switches);
        let each = last
            .iter()
            .flat_map(|&(outcome, count)| std::iter::repeat_n(outcome, count));
        for (switch, outcome) in each.enumerate() {
            mastership.record(&format!("switch{switch}"), outcome);
        }
        mastership
    }

    #[test]
    fn a_controller_that_has_not_bid_yet_is_neither_primary_nor_on_standby() {
        let mastership = mastership(3, &[]);
        assert!(!mastership.is_primary() && !mastership.is_standby());
    }

    #[test]
    fn a_switch_that_is_dead_changes_nothing() {
        let mastership = mastership(
            3,
            &[(Arbitration::Primary, 2), (Arbitration::Unreachable, 1)],
        );
        assert!(mastership.is_primary() && !mastership.is_standby());
    }

    #[test]
    fn without_most_switches_it_is_on_standby_whether_they_obey_another_or_nobody() {
        for last in [
            [(Arbitration::Backup, 3), (Arbitration::Primary, 1)],
            [(Arbitration::Unreachable, 3), (Arbitration::Primary, 1)],
            [(Arbitration::Backup, 2), (Arbitration::Unreachable, 1)],
        ] {
            let mastership = mastership(4, &last);
            assert!(
                mastership.is_standby() && !mastership.is_primary(),
                "{last:?}"
            );
        }
    }

    #[test]
    fn only_another_controller_outbids() {
        assert!(mastership(4, &[(Arbitration::Backup, 3)]).is_backup());
        assert!(
            !mastership(
                4,
                &[(Arbitration::Backup, 2), (Arbitration::Unreachable, 2)]
            )
            .is_backup()
        );
    }

    #[test]
    fn a_switch_that_is_lost_stays_so_until_a_bid_is_won() {
        let mut mastership = mastership(1, &[(Arbitration::Backup, 1)]);
        mastership.record("switch0", Arbitration::Unreachable);
        assert!(mastership.is_backup());
        mastership.record("switch0", Arbitration::Primary);
        assert!(mastership.is_primary());
        mastership.record("switch0", Arbitration::Unreachable);
        assert!(mastership.is_standby() && !mastership.is_backup());
    }
}
