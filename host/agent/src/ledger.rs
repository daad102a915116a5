//! Which of the patterns that streams bring go into the kernel.
//!
//! A kernel takes whatever it is given. So it is here that nothing old goes in after
//! something newer, whoever sent it: a controller that was replaced and does not
//! know it yet, or a message that came late. Only when the newer one has outlived its
//! time is an older one taken: then it is a controller that starts afresh, with a
//! clock behind that of the last.

use std::collections::BTreeMap;

use crate::weft::{Pattern, Prefix};

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
    /// has brought lives on. Gives what is to be set.
    pub fn bring(&mut self, now_ns: u64, patterns: Vec<Pattern>, renew: bool) -> Vec<Pattern> {
        let mut set = BTreeMap::new();
        if renew {
            set.clone_from(&self.brought);
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
        set.into_values().collect()
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

    fn versions(set: &[Pattern]) -> Vec<u64> {
        set.iter().map(|pattern| pattern.version).collect()
    }

    #[test]
    fn an_older_version_does_not_follow_a_newer_one() {
        let mut ledger = Ledger::default();
        assert_eq!(versions(&ledger.bring(0, vec![pattern(1, 7)], false)), [7]);
        assert!(ledger.bring(10, vec![pattern(1, 6)], false).is_empty());
        // Nor does it when it comes twice, or is renewed.
        assert!(ledger.bring(20, vec![pattern(1, 6)], false).is_empty());
        assert_eq!(versions(&ledger.bring(30, Vec::new(), true)), [7]);
    }

    #[test]
    fn not_even_from_another_controller_as_long_as_the_newer_one_lives() {
        let mut ledger = Ledger::default();
        ledger.bring(0, vec![pattern(1, 7)], false);
        ledger.start_stream();
        assert!(
            ledger
                .bring(TTL_NS - 1, vec![pattern(1, 6)], true)
                .is_empty()
        );
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
        assert!(ledger.bring(1049, vec![pattern(1, 6)], false).is_empty());
        assert_eq!(
            versions(&ledger.bring(1050, vec![pattern(1, 6)], false)),
            [6]
        );
    }

    #[test]
    fn a_stream_renews_what_it_has_brought_and_nothing_else() {
        let mut ledger = Ledger::default();
        ledger.bring(0, vec![pattern(1, 7), pattern(2, 8)], false);
        ledger.start_stream();
        ledger.bring(10, vec![pattern(2, 9)], false);
        assert_eq!(versions(&ledger.bring(20, Vec::new(), true)), [9]);
        ledger.withdraw(pattern(2, 9).prefix);
        assert!(ledger.bring(30, Vec::new(), true).is_empty());
    }

    #[test]
    fn a_change_and_a_renewal_in_one_message_set_each_prefix_once() {
        let mut ledger = Ledger::default();
        ledger.bring(0, vec![pattern(1, 7), pattern(2, 7)], false);
        let set = ledger.bring(10, vec![pattern(1, 8)], true);
        assert_eq!(versions(&set), [8, 7]);
    }
}
