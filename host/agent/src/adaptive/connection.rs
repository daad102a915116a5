//! One connection: its paths, and what has to be done about them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddrV4};

use super::measure::Sample;
use super::path::Path;
use super::{OPEN_TIMEOUT_NS, Policy, SUBFLOWS_MAX};

/// Something to do in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Open one more subflow.
    Open {
        /// From this address, any port.
        local: Ipv4Addr,
        /// MPTCP's identifier of that address.
        address_id: u8,
        /// To there.
        remote: SocketAddrV4,
    },
    /// Close this one.
    Close {
        /// This end.
        local: SocketAddrV4,
        /// The other end.
        remote: SocketAddrV4,
    },
}

/// A connection that this host has opened.
#[derive(Debug, Clone)]
pub struct Connection {
    policy: Policy,
    remote: SocketAddrV4,
    paths: BTreeMap<Ipv4Addr, Managed>,
    /// Subflows in the order in which they were first seen.
    order: BTreeMap<(SocketAddrV4, SocketAddrV4), u64>,
    next: u64,
}

#[derive(Debug, Clone)]
struct Managed {
    path: Path,
    address_id: u8,
    /// Subflows that were asked for and not seen yet, by the time they expire.
    asked_ns: Vec<u64>,
}

impl Connection {
    /// A connection to `remote` from a host that has `addresses`, one per path.
    /// Paths beyond [`SUBFLOWS_MAX`] are left alone.
    #[must_use]
    pub fn new(policy: Policy, addresses: &[Ipv4Addr], remote: SocketAddrV4, now_ns: u64) -> Self {
        let managed = |(id, address): (u8, &Ipv4Addr)| {
            let managed = Managed {
                path: Path::new(now_ns),
                address_id: id,
                asked_ns: Vec::new(),
            };
            (*address, managed)
        };
        Self {
            policy,
            remote,
            paths: (1..)
                .zip(addresses)
                .take(SUBFLOWS_MAX)
                .map(managed)
                .collect(),
            order: BTreeMap::new(),
            next: 0,
        }
    }

    /// Subflows that each path should have, by local address.
    pub fn targets(&self) -> impl Iterator<Item = (Ipv4Addr, usize)> {
        self.paths
            .iter()
            .map(|(address, managed)| (*address, self.target(managed)))
    }

    /// Whether subflows that were asked for have not come up yet.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.paths
            .values()
            .any(|managed| !managed.asked_ns.is_empty())
    }

    /// Takes the connection's subflows as they are now, established and
    /// connecting, and says what to do. Asks for a subflow once, and again only
    /// when it has not come up for seconds.
    pub fn observe(&mut self, now_ns: u64, samples: &[Sample]) -> Vec<Action> {
        self.remember(samples);
        let mut actions = Vec::new();
        for address in self.paths.keys().copied().collect::<Vec<_>>() {
            let of_path: Vec<_> = samples
                .iter()
                .filter(|sample| *sample.local.ip() == address)
                .collect();
            self.observe_path(now_ns, address, &of_path, &mut actions);
        }
        actions
    }

    fn observe_path(
        &mut self,
        now_ns: u64,
        address: Ipv4Addr,
        samples: &[&Sample],
        actions: &mut Vec<Action>,
    ) {
        let wanted: usize = self.targets().map(|(_, target)| target).sum();
        let Some(managed) = self.paths.get_mut(&address) else {
            return;
        };
        if let Some(known) = samples.first() {
            managed.address_id = known.address_id;
        }
        let mut established: Vec<_> = samples
            .iter()
            .copied()
            .filter(|sample| sample.established)
            .collect();
        if let Policy::Adaptive(parameters) = &self.policy {
            let may_grow = wanted < SUBFLOWS_MAX;
            managed
                .path
                .observe(now_ns, &established, may_grow, parameters);
        }
        let target = match self.policy {
            Policy::Fixed(subflows) => subflows,
            Policy::Adaptive(_) => managed.path.target(),
        };
        // Whatever was asked for and shows up, here or as connecting, is no longer due.
        managed.asked_ns.retain(|expires_ns| now_ns < *expires_ns);
        let missing = target.saturating_sub(samples.len());
        managed.asked_ns.truncate(missing);
        for _ in managed.asked_ns.len()..missing {
            managed
                .asked_ns
                .push(now_ns.saturating_add(OPEN_TIMEOUT_NS));
            actions.push(Action::Open {
                local: address,
                address_id: managed.address_id,
                remote: self.remote,
            });
        }
        // The newest goes first; the last established one stays.
        let surplus = samples.len().saturating_sub(target);
        established.sort_by_key(|sample| self.order.get(&(sample.local, sample.remote)));
        for sample in established.iter().skip(1).rev().take(surplus) {
            actions.push(Action::Close {
                local: sample.local,
                remote: sample.remote,
            });
        }
    }

    /// Keeps the order of subflows and forgets those that are gone.
    fn remember(&mut self, samples: &[Sample]) {
        let keys: BTreeSet<_> = samples
            .iter()
            .map(|sample| (sample.local, sample.remote))
            .collect();
        self.order.retain(|key, _| keys.contains(key));
        for key in keys {
            if let std::collections::btree_map::Entry::Vacant(entry) = self.order.entry(key) {
                entry.insert(self.next);
                self.next += 1;
            }
        }
    }

    fn target(&self, managed: &Managed) -> usize {
        match self.policy {
            Policy::Fixed(subflows) => subflows,
            Policy::Adaptive(_) => managed.path.target(),
        }
    }
}
