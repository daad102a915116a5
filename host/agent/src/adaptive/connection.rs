// SPDX-License-Identifier: Apache-2.0

//! One connection: its paths, and the subflows to open or close on them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddrV4};

use super::measure::Sample;
use super::path::Path;
use super::{OPEN_TIMEOUT_NS, Policy, SUBFLOWS_MAX};

/// A request to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Open one more subflow.
    Open {
        /// Local address; the kernel picks the port.
        local: Ipv4Addr,
        /// MPTCP's ID of that address.
        address_id: u8,
        /// Remote address and port.
        remote: SocketAddrV4,
    },
    /// Close a subflow.
    Close {
        /// Local end.
        local: SocketAddrV4,
        /// Remote end.
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
    /// Expiry times of requests for subflows that haven't been seen yet.
    requested_ns: Vec<u64>,
}

impl Connection {
    /// A connection to `remote` from a host with these `addresses`, one per path. Paths beyond
    /// [`SUBFLOWS_MAX`] are not managed.
    #[must_use]
    pub fn new(policy: Policy, addresses: &[Ipv4Addr], remote: SocketAddrV4, now_ns: u64) -> Self {
        let managed = |(id, address): (u8, &Ipv4Addr)| {
            let managed = Managed {
                path: Path::new(now_ns),
                address_id: id,
                requested_ns: Vec::new(),
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

    /// The wanted number of subflows of each path, by local address.
    pub fn targets(&self) -> impl Iterator<Item = (Ipv4Addr, usize)> {
        self.paths
            .iter()
            .map(|(address, managed)| (*address, self.target(managed)))
    }

    /// Whether requested subflows are still missing.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.paths
            .values()
            .any(|managed| !managed.requested_ns.is_empty())
    }

    /// Processes the current samples of all subflows, established and connecting. Returns what to
    /// do. A subflow is requested once, and again only if it is missing for seconds.
    pub fn observe(&mut self, now_ns: u64, samples: &[Sample]) -> Vec<Action> {
        self.track(samples);
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
        // A request is done when its subflow appears, even if it is still connecting.
        managed
            .requested_ns
            .retain(|expires_ns| now_ns < *expires_ns);
        let missing = target.saturating_sub(samples.len());
        managed.requested_ns.truncate(missing);
        for _ in managed.requested_ns.len()..missing {
            managed
                .requested_ns
                .push(now_ns.saturating_add(OPEN_TIMEOUT_NS));
            actions.push(Action::Open {
                local: address,
                address_id: managed.address_id,
                remote: self.remote,
            });
        }
        // Close the newest first, but never the last established one.
        let surplus = samples.len().saturating_sub(target);
        established.sort_by_key(|sample| self.order.get(&(sample.local, sample.remote)));
        for sample in established.iter().skip(1).rev().take(surplus) {
            actions.push(Action::Close {
                local: sample.local,
                remote: sample.remote,
            });
        }
    }

    /// Records new subflows in order, and forgets those that are gone.
    fn track(&mut self, samples: &[Sample]) {
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
