// SPDX-License-Identifier: Apache-2.0

//! Samples of the subflows of running flows.

use super::connection::Connection;
use super::subflows::SubflowState;
use crate::engine::FlowId;

/// A sample: flow, time, and state of one of its subflows.
pub type Sample = (FlowId, u64, SubflowState);

/// Samples subflows at a fixed interval.
#[derive(Debug)]
pub(super) struct Samples {
    every_ns: Option<u64>,
    last_ns: Option<u64>,
    /// The samples taken so far.
    pub(super) taken: Vec<Sample>,
}

impl Samples {
    /// With this interval; `None` takes no samples.
    pub(super) fn every(every_ns: Option<u64>) -> Self {
        Self {
            every_ns,
            last_ns: None,
            taken: Vec::new(),
        }
    }

    /// The next sampling time of a run that starts, or has started, at `start_ns`.
    pub(super) fn next_ns(&self, start_ns: Option<u64>) -> Option<u64> {
        let (start_ns, every_ns) = (start_ns?, self.every_ns?);
        Some(self.last_ns.map_or(start_ns, |last| last + every_ns))
    }

    /// Samples the connections that have an unfinished flow.
    pub(super) fn take<'a>(&mut self, now: u64, connections: impl Iterator<Item = &'a Connection>) {
        self.last_ns = Some(now);
        for connection in connections.filter(|connection| connection.to_receive > 0) {
            let Some(flow) = connection.flow else {
                continue;
            };
            let subflows = connection.subflows().into_iter();
            self.taken.extend(subflows.map(|state| (flow, now, state)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_begin_with_the_run_and_come_so_often() {
        let mut samples = Samples::every(Some(10));
        assert_eq!(samples.next_ns(None), None);
        assert_eq!(samples.next_ns(Some(100)), Some(100));
        samples.take(103, std::iter::empty());
        assert_eq!(samples.next_ns(Some(100)), Some(113));
        assert_eq!(Samples::every(None).next_ns(Some(100)), None);
    }
}
