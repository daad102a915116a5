// SPDX-License-Identifier: Apache-2.0

//! Pools of idle connections, one per pair of hosts.

use std::collections::{BTreeMap, VecDeque};

use super::ConnectionId;
use crate::plan::Flow;

/// Idle connections. The most recently used is taken first, so that the extra connections of
/// a burst go cold, as in real pools.
#[derive(Debug, Default)]
pub(super) struct Pool {
    idle: BTreeMap<(usize, usize), Vec<ConnectionId>>,
}

impl Pool {
    pub(super) fn put(&mut self, source: usize, destination: usize, connection: ConnectionId) {
        self.idle
            .entry((source, destination))
            .or_default()
            .push(connection);
    }

    pub(super) fn take(&mut self, source: usize, destination: usize) -> Option<ConnectionId> {
        self.idle.get_mut(&(source, destination))?.pop()
    }

    pub(super) fn remove(&mut self, source: usize, destination: usize, connection: ConnectionId) {
        if let Some(idle) = self.idle.get_mut(&(source, destination)) {
            idle.retain(|known| *known != connection);
        }
    }
}

/// The connections that the warm-up opens: for every pair of hosts as many as it has flows
/// with the same start time, in order of first use.
pub(super) fn needed_at_once(plan: &[Flow]) -> VecDeque<(usize, usize)> {
    let mut known: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    let mut needed = VecDeque::new();
    for moment in plan.chunk_by(|a, b| a.start_ns == b.start_ns) {
        let mut now: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        for flow in moment {
            let pair = (flow.source, flow.destination);
            let used = now.entry(pair).or_default();
            *used += 1;
            let open = known.entry(pair).or_default();
            if *used > *open {
                *open += 1;
                needed.push_back(pair);
            }
        }
    }
    needed
}
