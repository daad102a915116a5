//! Which of the patterns that streams bring go into the kernel.
//!
//! A kernel takes whatever it is given. So it is here that nothing old goes in after
//! something newer, whoever sent it: a controller that was replaced and does not
//! know it yet, or a message that came late. Only when the newer one has outlived its
//! time is an older one taken: then it is a controller that starts afresh, with a
//! clock behind that of the last.

use std::collections::BTreeMap;

use crate::weft::{Pattern, Prefix};

/// What a message asks of the kernel.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// Expired, and of an older stream: to be deleted, before a renewal revives them.
    pub delete: Vec<Prefix>,
    /// To be set.
    pub set: Vec<Pattern>,
    /// Whether everything else in the kernel is to be renewed.
    pub renew: bool,
}

/// What a host's kernel holds, as far as this agent is concerned.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Of each prefix the version in the kernel, and when it dies.
    newest: BTreeMap<Prefix, (u64, u64)>,
    /// What the current stream has brought.
    brought: BTreeMap<Prefix, Pattern>,
}

impl Ledger {
    /// A ledger of a kernel that holds `patterns` at `now_ns`: from an agent before
    /// this one.
    #[must_use]
    pub fn new(patterns: &[Pattern], now_ns: u64) -> Self {
        let newest = patterns.iter().map(|pattern| {
            let left_ns = pattern.time_to_live_ns.saturating_sub(pattern.age_ns);
            (
                pattern.prefix,
                (pattern.version, now_ns.saturating_add(left_ns)),
            )
        });
        Self {
            newest: newest.collect(),
            brought: BTreeMap::new(),
        }
    }

    /// A new stream starts; it has brought nothing yet, so nothing is its to renew.
    pub fn start_stream(&mut self) {
        self.brought.clear();
    }

    /// Takes what the stream brings at `now_ns`: patterns, and whether everything it
    /// has brought lives on. Gives what is to be done.
    pub fn bring(&mut self, now_ns: u64, patterns: Vec<Pattern>, renew: bool) -> Orders {
        let mut orders = Orders::default();
        let mut set = BTreeMap::new();
        if renew {
            orders.delete = self.forget_dead(now_ns);
            orders.renew = self.is_all_of_this_stream();
            if orders.renew {
                for ((_, dies_ns), pattern) in self.newest.values_mut().zip(self.brought.values()) {
                    *dies_ns = now_ns.saturating_add(pattern.time_to_live_ns);
                }
            } else {
                set.clone_from(&self.brought);
            }
        }
        set.extend(
            patterns
                .into_iter()
                .map(|pattern| (pattern.prefix, pattern)),
        );
        set.retain(|prefix, pattern| {
            let newest = self.newest.get(prefix);
            newest.is_none_or(|&(version, dies_ns)| pattern.version >= version || dies_ns <= now_ns)
        });
        for (&prefix, pattern) in &set {
            let dies_ns = now_ns.saturating_add(pattern.time_to_live_ns);
            self.newest.insert(prefix, (pattern.version, dies_ns));
            self.brought.insert(prefix, pattern.clone());
        }
        orders.set = set.into_values().collect();
        orders
    }

    /// The kernel did not take the pattern of `prefix`: the next renewal tries again.
    pub fn refused(&mut self, prefix: Prefix) {
        self.newest.remove(&prefix);
    }

    /// Whether the kernel holds what the stream has brought and nothing else.
    fn is_all_of_this_stream(&self) -> bool {
        self.newest.len() == self.brought.len()
            && self.newest.iter().all(|(prefix, (version, _))| {
                let brought = self.brought.get(prefix);
                brought.is_some_and(|pattern| pattern.version == *version)
            })
    }

    /// Forgets what has expired by `now_ns` and is not of this stream; gives its prefixes.
    fn forget_dead(&mut self, now_ns: u64) -> Vec<Prefix> {
        let mut dead = Vec::new();
        self.newest.retain(|prefix, (_, dies_ns)| {
            let lives = *dies_ns > now_ns || self.brought.contains_key(prefix);
            if !lives {
                dead.push(*prefix);
            }
            lives
        });
        dead
    }

    /// The stream withdraws the pattern of `prefix`.
    pub fn withdraw(&mut self, prefix: Prefix) {
        self.brought.remove(&prefix);
        self.newest.remove(&prefix);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const TTL_NS: u64 = 200;

    fn pattern(host: u8, version: u64) -> Pattern {
        Pattern {
            prefix: Prefix {
                address: Ipv4Addr::new(10, 2, host, 0),
                length: 24,
            },
            version,
            time_to_live_ns: TTL_NS,
            age_ns: 0,
            paths: Vec::new(),
            sequence: vec![0],
            wait_unit_ns: 0,
        }
    }

    fn versions(orders: &Orders) -> Vec<u64> {
        orders.set.iter().map(|pattern| pattern.version).collect()
    }

    fn renewal() -> Orders {
        Orders {
            renew: true,
            ..Orders::default()
        }
    }

    #[test]
    fn an_older_version_does_not_follow_a_newer_one() {
        let mut ledger = Ledger::default();
        assert_eq!(versions(&ledger.bring(0, vec![pattern(1, 7)], false)), [7]);
        assert_eq!(
            ledger.bring(10, vec![pattern(1, 6)], false),
            Orders::default()
        );
        // Nor does it when it comes twice, or is renewed.
        assert_eq!(
            ledger.bring(20, vec![pattern(1, 6)], false),
            Orders::default()
        );
        assert_eq!(ledger.bring(30, Vec::new(), true), renewal());
    }

    #[test]
    fn not_even_from_another_controller_as_long_as_the_newer_one_lives() {
        let mut ledger = Ledger::default();
        ledger.bring(0, vec![pattern(1, 7)], false);
        ledger.start_stream();
        let early = ledger.bring(TTL_NS - 1, vec![pattern(1, 6)], true);
        assert_eq!(early, Orders::default());
        assert_eq!(
            versions(&ledger.bring(TTL_NS, vec![pattern(1, 6)], true)),
            [6]
        );
    }

    #[test]
    fn an_agent_that_restarts_asks_the_kernel_what_is_newest() {
        let old = Pattern {
            age_ns: 150,
            ..pattern(1, 7)
        };
        let mut ledger = Ledger::new(&[old], 1000);
        assert_eq!(
            ledger.bring(1049, vec![pattern(1, 6)], false),
            Orders::default()
        );
        assert_eq!(
            versions(&ledger.bring(1050, vec![pattern(1, 6)], false)),
            [6]
        );
    }

    #[test]
    fn a_renewal_is_one_order_whatever_the_stream_has_brought() {
        let mut ledger = Ledger::default();
        ledger.bring(0, (1..=200).map(|host| pattern(host, 7)).collect(), false);
        assert_eq!(ledger.bring(150, Vec::new(), true), renewal());
        // It is alive again, so that an older version stays out.
        let older = ledger.bring(TTL_NS + 149, vec![pattern(1, 6)], false);
        assert_eq!(older, Orders::default());
        let later = ledger.bring(TTL_NS + 150, vec![pattern(1, 6)], false);
        assert_eq!(versions(&later), [6]);
    }

    #[test]
    fn a_stream_renews_what_it_has_brought_and_nothing_else() {
        let mut ledger = Ledger::default();
        ledger.bring(0, vec![pattern(1, 7), pattern(2, 8)], false);
        ledger.start_stream();
        ledger.bring(10, vec![pattern(2, 9)], false);
        let orders = ledger.bring(20, Vec::new(), true);
        assert_eq!((versions(&orders), orders.renew), (vec![9], false));
        // What the stream before has left dies, and is not revived.
        let orders = ledger.bring(TTL_NS, Vec::new(), true);
        assert_eq!(orders.delete, [pattern(1, 7).prefix]);
        assert!(orders.renew && orders.set.is_empty());
        ledger.withdraw(pattern(2, 9).prefix);
        assert_eq!(ledger.bring(TTL_NS + 10, Vec::new(), true), renewal());
    }

    #[test]
    fn what_the_kernel_refuses_is_set_again_with_the_next_renewal() {
        let mut ledger = Ledger::default();
        ledger.bring(0, vec![pattern(1, 7), pattern(2, 7)], false);
        ledger.refused(pattern(1, 7).prefix);
        let orders = ledger.bring(10, Vec::new(), true);
        assert_eq!((versions(&orders), orders.renew), (vec![7, 7], false));
        assert_eq!(ledger.bring(20, Vec::new(), true), renewal());
    }

    #[test]
    fn a_change_and_a_renewal_in_one_message_set_what_has_changed() {
        let mut ledger = Ledger::default();
        ledger.bring(0, vec![pattern(1, 7), pattern(2, 7)], false);
        let orders = ledger.bring(10, vec![pattern(1, 8)], true);
        assert_eq!((versions(&orders), orders.renew), (vec![8], true));
    }
}
