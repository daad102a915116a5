//! What the subflows of flows are like while these go on.

use super::connection::Connection;
use super::subflows::SubflowState;
use crate::engine::FlowId;

/// A subflow of a flow at some time.
pub type Sample = (FlowId, u64, SubflowState);

/// Looks at subflows every so often.
#[derive(Debug)]
pub(super) struct Samples {
    every_ns: Option<u64>,
    last_ns: Option<u64>,
    /// What was seen.
    pub(super) taken: Vec<Sample>,
}

impl Samples {
    /// So often, or never.
    pub(super) fn every(every_ns: Option<u64>) -> Self {
        Self {
            every_ns,
            last_ns: None,
            taken: Vec::new(),
        }
    }

    /// When to look next, in a run that starts, or has started, at `start_ns`.
    pub(super) fn next_ns(&self, start_ns: Option<u64>) -> Option<u64> {
        let (start_ns, every_ns) = (start_ns?, self.every_ns?);
        Some(self.last_ns.map_or(start_ns, |last| last + every_ns))
    }

    /// Looks at the connections that have a flow to end.
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
