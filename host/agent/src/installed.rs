// SPDX-License-Identifier: Apache-2.0

//! Keeps track of the patterns installed in a kernel, and decides what to change there.
//!
//! A kernel accepts any pattern. So the agent must prevent that an older pattern replaces a
//! newer one, from a controller that doesn't know yet that it was replaced, or in a delayed
//! message. An older pattern is accepted only after the newer one has expired. Then it comes
//! from a restarted controller whose clock is behind that of the last one.

use std::collections::BTreeMap;

use crate::weft::{Pattern, Prefix};

/// Changes to make in the kernel.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct KernelUpdate {
    /// Expired patterns of an earlier stream. They are deleted first, so that a renewal doesn't
    /// revive them.
    pub delete: Vec<Prefix>,
    /// Patterns to set.
    pub set: Vec<Pattern>,
    /// Whether to renew all other patterns in the kernel.
    pub renew: bool,
}

/// The patterns that a host's kernel holds, as far as the agent knows.
#[derive(Debug, Default)]
pub struct Installed {
    /// For each prefix, the version in the kernel and when it expires.
    in_kernel: BTreeMap<Prefix, (u64, u64)>,
    /// The patterns that the current stream has sent.
    received: BTreeMap<Prefix, Pattern>,
}

impl Installed {
    /// The state of a kernel that holds `patterns` at `now_ns`, from an earlier agent.
    #[must_use]
    pub fn new(patterns: &[Pattern], now_ns: u64) -> Self {
        let in_kernel = patterns.iter().map(|pattern| {
            let left_ns = pattern.time_to_live_ns.saturating_sub(pattern.age_ns);
            (
                pattern.prefix,
                (pattern.version, now_ns.saturating_add(left_ns)),
            )
        });
        Self {
            in_kernel: in_kernel.collect(),
            received: BTreeMap::new(),
        }
    }

    /// A new stream starts. It has sent nothing yet, so it has nothing to renew.
    pub fn start_stream(&mut self) {
        self.received.clear();
    }

    /// Processes an update of the stream at `now_ns`: new patterns, and whether to renew all
    /// that the stream has sent. Returns the changes to make in the kernel.
    pub fn receive(&mut self, now_ns: u64, patterns: Vec<Pattern>, renew: bool) -> KernelUpdate {
        let mut update = KernelUpdate::default();
        let mut set = BTreeMap::new();
        if renew {
            update.delete = self.remove_expired(now_ns);
            update.renew = self.is_only_this_stream();
            if update.renew {
                for ((_, expires_ns), pattern) in
                    self.in_kernel.values_mut().zip(self.received.values())
                {
                    *expires_ns = now_ns.saturating_add(pattern.time_to_live_ns);
                }
            } else {
                set.clone_from(&self.received);
            }
        }
        set.extend(
            patterns
                .into_iter()
                .map(|pattern| (pattern.prefix, pattern)),
        );
        set.retain(|prefix, pattern| {
            let in_kernel = self.in_kernel.get(prefix);
            in_kernel.is_none_or(|&(version, expires_ns)| {
                pattern.version >= version || expires_ns <= now_ns
            })
        });
        for (&prefix, pattern) in &set {
            let expires_ns = now_ns.saturating_add(pattern.time_to_live_ns);
            self.in_kernel.insert(prefix, (pattern.version, expires_ns));
            self.received.insert(prefix, pattern.clone());
        }
        update.set = set.into_values().collect();
        update
    }

    /// The kernel refused the pattern of `prefix`. The next renewal sets it again.
    pub fn not_installed(&mut self, prefix: Prefix) {
        self.in_kernel.remove(&prefix);
    }

    /// Whether the kernel holds exactly the patterns of this stream.
    fn is_only_this_stream(&self) -> bool {
        self.in_kernel.len() == self.received.len()
            && self.in_kernel.iter().all(|(prefix, (version, _))| {
                let received = self.received.get(prefix);
                received.is_some_and(|pattern| pattern.version == *version)
            })
    }

    /// Removes patterns of earlier streams that expired by `now_ns`. Returns their prefixes.
    fn remove_expired(&mut self, now_ns: u64) -> Vec<Prefix> {
        let mut expired = Vec::new();
        self.in_kernel.retain(|prefix, (_, expires_ns)| {
            let is_live = *expires_ns > now_ns || self.received.contains_key(prefix);
            if !is_live {
                expired.push(*prefix);
            }
            is_live
        });
        expired
    }

    /// The stream withdraws the pattern of `prefix`.
    pub fn withdraw(&mut self, prefix: Prefix) {
        self.received.remove(&prefix);
        self.in_kernel.remove(&prefix);
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

    fn versions(update: &KernelUpdate) -> Vec<u64> {
        update.set.iter().map(|pattern| pattern.version).collect()
    }

    fn renewal() -> KernelUpdate {
        KernelUpdate {
            renew: true,
            ..KernelUpdate::default()
        }
    }

    #[test]
    fn an_older_version_does_not_follow_a_newer_one() {
        let mut installed = Installed::default();
        assert_eq!(
            versions(&installed.receive(0, vec![pattern(1, 7)], false)),
            [7]
        );
        assert_eq!(
            installed.receive(10, vec![pattern(1, 6)], false),
            KernelUpdate::default()
        );
        // Nor does it as a duplicate, or with a renewal.
        assert_eq!(
            installed.receive(20, vec![pattern(1, 6)], false),
            KernelUpdate::default()
        );
        assert_eq!(installed.receive(30, Vec::new(), true), renewal());
    }

    #[test]
    fn not_even_from_another_controller_as_long_as_the_newer_one_lives() {
        let mut installed = Installed::default();
        installed.receive(0, vec![pattern(1, 7)], false);
        installed.start_stream();
        let early = installed.receive(TTL_NS - 1, vec![pattern(1, 6)], true);
        assert_eq!(early, KernelUpdate::default());
        assert_eq!(
            versions(&installed.receive(TTL_NS, vec![pattern(1, 6)], true)),
            [6]
        );
    }

    #[test]
    fn an_agent_that_restarts_asks_the_kernel_what_is_newest() {
        let old = Pattern {
            age_ns: 150,
            ..pattern(1, 7)
        };
        let mut installed = Installed::new(&[old], 1000);
        assert_eq!(
            installed.receive(1049, vec![pattern(1, 6)], false),
            KernelUpdate::default()
        );
        assert_eq!(
            versions(&installed.receive(1050, vec![pattern(1, 6)], false)),
            [6]
        );
    }

    #[test]
    fn a_renewal_is_one_order_whatever_the_stream_has_brought() {
        let mut installed = Installed::default();
        installed.receive(0, (1..=200).map(|host| pattern(host, 7)).collect(), false);
        assert_eq!(installed.receive(150, Vec::new(), true), renewal());
        // The renewed pattern is alive, so an older version stays out.
        let older = installed.receive(TTL_NS + 149, vec![pattern(1, 6)], false);
        assert_eq!(older, KernelUpdate::default());
        let later = installed.receive(TTL_NS + 150, vec![pattern(1, 6)], false);
        assert_eq!(versions(&later), [6]);
    }

    #[test]
    fn a_stream_renews_what_it_has_brought_and_nothing_else() {
        let mut installed = Installed::default();
        installed.receive(0, vec![pattern(1, 7), pattern(2, 8)], false);
        installed.start_stream();
        installed.receive(10, vec![pattern(2, 9)], false);
        let update = installed.receive(20, Vec::new(), true);
        assert_eq!((versions(&update), update.renew), (vec![9], false));
        // The pattern that only the earlier stream sent expires, and isn't revived.
        let update = installed.receive(TTL_NS, Vec::new(), true);
        assert_eq!(update.delete, [pattern(1, 7).prefix]);
        assert!(update.renew && update.set.is_empty());
        installed.withdraw(pattern(2, 9).prefix);
        assert_eq!(installed.receive(TTL_NS + 10, Vec::new(), true), renewal());
    }

    #[test]
    fn what_the_kernel_refuses_is_set_again_with_the_next_renewal() {
        let mut installed = Installed::default();
        installed.receive(0, vec![pattern(1, 7), pattern(2, 7)], false);
        installed.not_installed(pattern(1, 7).prefix);
        let update = installed.receive(10, Vec::new(), true);
        assert_eq!((versions(&update), update.renew), (vec![7, 7], false));
        assert_eq!(installed.receive(20, Vec::new(), true), renewal());
    }

    #[test]
    fn a_change_and_a_renewal_in_one_message_set_what_has_changed() {
        let mut installed = Installed::default();
        installed.receive(0, vec![pattern(1, 7), pattern(2, 7)], false);
        let update = installed.receive(10, vec![pattern(1, 8)], true);
        assert_eq!((versions(&update), update.renew), (vec![8], true));
    }
}
