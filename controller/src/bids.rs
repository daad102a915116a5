//! At which switches this controller is primary.
//!
//! What it knows of the network is current while at most half of the switches obey another
//! controller or cannot be reached: only then it serves hosts. Switches that it has not
//! bid at yet speak for it, and one whose session has ended does until the next bid there
//! has failed: a switch that is back at once has no consequences.

use std::collections::BTreeMap;

/// What has come of the last bid at a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bid {
    /// The switch obeys this controller.
    Won,
    /// It obeys another.
    Lost,
    /// It cannot be reached.
    Unanswered,
}

/// The last bids at all switches.
#[derive(Debug)]
pub struct Bids {
    switches: usize,
    last: BTreeMap<String, Bid>,
}

impl Bids {
    /// None yet at so many switches.
    #[must_use]
    pub fn new(switches: usize) -> Self {
        Self {
            switches,
            last: BTreeMap::new(),
        }
    }

    /// Notes what has come of a bid at `switch`. One that obeys another controller still
    /// does when it cannot be reached.
    pub fn note(&mut self, switch: &str, bid: Bid) {
        let is_lost = self.last.get(switch) == Some(&Bid::Lost);
        if !(is_lost && bid == Bid::Unanswered) {
            self.last.insert(switch.to_owned(), bid);
        }
    }

    /// Whether half of the switches, at least, obey this controller.
    #[must_use]
    pub fn is_primary(&self) -> bool {
        2 * self.count(|bid| bid == Bid::Won) >= self.switches
    }

    /// Whether most switches obey another controller.
    #[must_use]
    pub fn is_outbid(&self) -> bool {
        self.are_most(|bid| bid == Bid::Lost)
    }

    /// Whether most switches obey another controller or cannot be reached.
    #[must_use]
    pub fn is_standby(&self) -> bool {
        self.are_most(|bid| bid != Bid::Won)
    }

    fn are_most(&self, which: impl Fn(Bid) -> bool) -> bool {
        2 * self.count(which) > self.switches
    }

    fn count(&self, which: impl Fn(Bid) -> bool) -> usize {
        self.last.values().filter(|bid| which(**bid)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many bids of each kind, and the other switches not bid at.
    fn bids(switches: usize, last: &[(Bid, usize)]) -> Bids {
        let mut bids = Bids::new(switches);
        let each = last
            .iter()
            .flat_map(|&(bid, count)| std::iter::repeat_n(bid, count));
        for (switch, bid) in each.enumerate() {
            bids.note(&format!("switch{switch}"), bid);
        }
        bids
    }

    #[test]
    fn a_controller_that_has_not_bid_yet_is_neither_primary_nor_on_standby() {
        let bids = bids(3, &[]);
        assert!(!bids.is_primary() && !bids.is_standby());
    }

    #[test]
    fn a_switch_that_is_dead_changes_nothing() {
        let bids = bids(3, &[(Bid::Won, 2), (Bid::Unanswered, 1)]);
        assert!(bids.is_primary() && !bids.is_standby());
    }

    #[test]
    fn without_most_switches_it_is_on_standby_whether_they_obey_another_or_nobody() {
        for last in [
            [(Bid::Lost, 3), (Bid::Won, 1)],
            [(Bid::Unanswered, 3), (Bid::Won, 1)],
            [(Bid::Lost, 2), (Bid::Unanswered, 1)],
        ] {
            let bids = bids(4, &last);
            assert!(bids.is_standby() && !bids.is_primary(), "{last:?}");
        }
    }

    #[test]
    fn only_another_controller_outbids() {
        assert!(bids(4, &[(Bid::Lost, 3)]).is_outbid());
        assert!(!bids(4, &[(Bid::Lost, 2), (Bid::Unanswered, 2)]).is_outbid());
    }

    #[test]
    fn a_switch_that_is_lost_stays_so_until_a_bid_is_won() {
        let mut bids = bids(1, &[(Bid::Lost, 1)]);
        bids.note("switch0", Bid::Unanswered);
        assert!(bids.is_outbid());
        bids.note("switch0", Bid::Won);
        assert!(bids.is_primary());
        bids.note("switch0", Bid::Unanswered);
        assert!(bids.is_standby() && !bids.is_outbid());
    }
}
