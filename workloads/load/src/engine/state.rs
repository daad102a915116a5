// SPDX-License-Identifier: Apache-2.0

//! The states of a run and its connections.

use std::collections::VecDeque;

use super::FlowId;

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) source: usize,
    pub(super) destination: usize,
    pub(super) state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Opening {
        user: User,
    },
    /// A request is being sent.
    Asking {
        flow: FlowId,
        missing: u64,
    },
    Busy {
        user: User,
        missing: u64,
    },
    Idle,
    Closed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum User {
    WarmUp,
    Flow(FlowId),
}

#[derive(Debug)]
pub(super) enum Phase {
    WarmUp {
        waiting: VecDeque<(usize, usize)>,
        open: usize,
    },
    Settle {
        until_ns: u64,
    },
    Running {
        epoch_ns: u64,
    },
}
