// SPDX-License-Identifier: Apache-2.0

//! The life cycle of flows, without I/O: when connections open, which flow uses which
//! connection, and when a flow is complete, has failed or is stuck.
//!
//! The event loop passes events in (`handle_*`, each with the time `now`). It takes
//! [`Action`]s and the next deadline (`poll_*`), until [`Engine::is_done`].
//!
//! ```text
//! warm-up:  Open -> connected -> Send 1 byte -> received -> idle      (persistent only)
//! settle:   a pause, so that the kernel can add its subflows
//! running:  arrival -> idle connection, or Open -> connected
//!                   -> Send bytes -> received ... all -> Finish -> idle, or Close
//! requested: like arrival, with Request -> requested before Send
//! fetched:  the same, but started by the end of the previous flow, not by time
//! ```
//!
//! The run starts when settling ends, and flow times count from there. The warm-up must send
//! a byte, because Linux adds subflows to a connection only after data has been acknowledged
//! on the first one.

mod interface;
mod pool;
mod precision;
mod state;

use std::collections::VecDeque;

use crate::plan::Flow;
pub use interface::{Action, ConnectionId, Connections, FlowId, Order, Outcome, Settings};
use pool::Pool;
use precision::Precision;
use state::{Connection, Phase, State, User};

/// Connections that open at the same time in the warm-up: few enough for their handshakes to
/// fit into any queue.
const WARM_UP_CONCURRENCY: usize = 16;

/// Bytes sent on a new connection in the warm-up.
const GREETING_BYTES: u64 = 1;

/// Size of a request: a browser's GET with the usual headers and no cookies.
const REQUEST_BYTES: u64 = 400;

/// The state of a run.
#[derive(Debug)]
pub struct Engine {
    plan: Vec<Flow>,
    outcomes: Vec<Outcome>,
    settings: Settings,
    connections: Vec<Connection>,
    pool: Pool,
    actions: VecDeque<Action>,
    phase: Phase,
    /// The next flow of the plan to start.
    next: FlowId,
    active: usize,
    finished: usize,
    last_progress_ns: u64,
    precision: Option<Precision>,
}

impl Engine {
    /// A run of `plan` (ordered by start time) that begins at `now`. Flows fail when there is no
    /// progress at all for the time given in `settings`.
    #[must_use]
    pub fn new(plan: Vec<Flow>, settings: Settings, now: u64) -> Self {
        let mut actions = VecDeque::new();
        let phase = match settings.connections {
            Connections::Persistent => {
                let mut waiting = pool::needed_at_once(&plan);
                if let Order::Fetched { parallel } = settings.order {
                    waiting.truncate(parallel);
                }
                Phase::WarmUp { waiting, open: 0 }
            }
            Connections::New => {
                actions.push_back(Action::Announce { start_ns: now });
                Phase::Running { epoch_ns: now }
            }
        };
        let mut engine = Self {
            outcomes: vec![Outcome::Pending; plan.len()],
            plan,
            settings,
            connections: Vec::new(),
            pool: Pool::default(),
            actions,
            phase,
            next: 0,
            active: 0,
            finished: 0,
            last_progress_ns: now,
            precision: settings.precision.map(Precision::new),
        };
        engine.advance(now);
        engine
    }

    /// The next action, if any.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// The latest time at which to call [`Engine::handle_timeout`].
    #[must_use]
    pub fn poll_timeout(&self) -> Option<u64> {
        let stalled = self.stalled_at_ns();
        match &self.phase {
            Phase::WarmUp { .. } => Some(stalled),
            Phase::Settle { until_ns } => Some(*until_ns),
            Phase::Running { epoch_ns } => {
                let arrival = match self.settings.order {
                    Order::Timed | Order::Requested => self.plan.get(self.next),
                    Order::Fetched { .. } => None,
                };
                let arrival = arrival.map(|flow| epoch_ns + flow.start_ns);
                let stalled = (self.active > 0).then_some(stalled);
                let stop = self.settings.stop_ns.map(|stop_ns| epoch_ns + stop_ns);
                arrival.into_iter().chain(stalled).chain(stop).min()
            }
        }
    }

    /// Whether every flow has ended and every action has been taken.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.finished == self.plan.len() && self.actions.is_empty()
    }

    /// The start of the run, once it has started.
    #[must_use]
    pub fn epoch_ns(&self) -> Option<u64> {
        match self.phase {
            Phase::Running { epoch_ns } => Some(epoch_ns),
            _ => None,
        }
    }

    /// Number of flows that have ended, with any outcome.
    #[must_use]
    pub fn finished(&self) -> usize {
        self.finished
    }

    /// The plan, and the outcome of each of its flows.
    #[must_use]
    pub fn into_outcomes(self) -> (Vec<Flow>, Vec<Outcome>) {
        (self.plan, self.outcomes)
    }

    /// Processes the time `now`: starts due flows, ends phases, and aborts flows that are stuck.
    pub fn handle_timeout(&mut self, now: u64) {
        let waits = self.active > 0 || matches!(self.phase, Phase::WarmUp { .. });
        if waits && now >= self.stalled_at_ns() {
            self.give_up();
            self.last_progress_ns = now;
        }
        self.advance(now);
        if let (Some(epoch_ns), Some(stop_ns)) = (self.epoch_ns(), self.settings.stop_ns) {
            if now >= epoch_ns + stop_ns {
                self.stop(now);
            }
        }
    }

    /// Processes the end of a handshake.
    pub fn handle_connected(&mut self, connection: ConnectionId, now: u64) {
        let State::Opening { user } = self.connections[connection].state else {
            return;
        };
        self.last_progress_ns = now;
        self.begin(connection, user);
    }

    /// Processes `bytes` of a request that the source has read from `connection`.
    pub fn handle_requested(&mut self, connection: ConnectionId, bytes: u64, now: u64) {
        let State::Asking { flow, missing } = self.connections[connection].state else {
            return;
        };
        self.last_progress_ns = now;
        if bytes < missing {
            let missing = missing - bytes;
            self.connections[connection].state = State::Asking { flow, missing };
            return;
        }
        self.send(connection, User::Flow(flow));
    }

    /// Processes `bytes` that the receiver has read from `connection`.
    pub fn handle_received(&mut self, connection: ConnectionId, bytes: u64, now: u64) {
        let State::Busy { user, missing } = self.connections[connection].state else {
            return;
        };
        self.last_progress_ns = now;
        if bytes < missing {
            let missing = missing - bytes;
            self.connections[connection].state = State::Busy { user, missing };
            return;
        }
        if let (User::Flow(flow), Some(epoch_ns)) = (user, self.epoch_ns()) {
            self.actions.push_back(Action::Finish { connection, flow });
            let fct_ns = now - epoch_ns - self.plan[flow].start_ns;
            self.end_flow(flow, Outcome::Done { fct_ns });
            self.stop_when_precise(flow, fct_ns);
        }
        match self.settings.connections {
            Connections::Persistent => self.release(connection),
            Connections::New => self.close(connection),
        }
        self.warmed(user, now);
        self.fetch(now);
    }

    /// Processes a broken `connection`. The flow that uses it fails for `reason`.
    pub fn handle_failed(&mut self, connection: ConnectionId, reason: &str, now: u64) {
        self.last_progress_ns = now;
        match self.connections[connection].state {
            State::Opening { user } | State::Busy { user, .. } => {
                self.close(connection);
                if let User::Flow(flow) = user {
                    self.fail_flow(flow, reason);
                }
                self.warmed(user, now);
                self.fetch(now);
            }
            State::Asking { flow, .. } => {
                self.close(connection);
                self.fail_flow(flow, reason);
                self.fetch(now);
            }
            State::Idle => {
                let Connection {
                    source,
                    destination,
                    ..
                } = self.connections[connection];
                self.pool.remove(source, destination, connection);
                self.close(connection);
            }
            State::Closed => {}
        }
    }

    /// Enters the next phase if it is due, and starts due flows.
    fn advance(&mut self, now: u64) {
        if let Phase::WarmUp { waiting, open } = &mut self.phase {
            let batch = (WARM_UP_CONCURRENCY - *open).min(waiting.len());
            *open += batch;
            let idle = *open == 0;
            for (source, destination) in waiting.drain(..batch).collect::<Vec<_>>() {
                self.open(source, destination, User::WarmUp);
            }
            if idle {
                let until_ns = now + self.settings.settle_ns;
                self.actions
                    .push_back(Action::Announce { start_ns: until_ns });
                self.phase = Phase::Settle { until_ns };
            }
        }
        if let Phase::Settle { until_ns } = self.phase {
            if now >= until_ns {
                self.phase = Phase::Running { epoch_ns: until_ns };
            }
        }
        self.fetch(now);
        if let (Phase::Running { epoch_ns }, Order::Timed | Order::Requested) =
            (&self.phase, self.settings.order)
        {
            let epoch_ns = *epoch_ns;
            while let Some(flow) = self.plan.get(self.next).copied() {
                if epoch_ns + flow.start_ns > now {
                    break;
                }
                self.start_flow(self.next, flow, now);
                self.next += 1;
            }
        }
    }

    /// Starts flows of the plan while there are free connections, if flows are fetched.
    fn fetch(&mut self, now: u64) {
        let (Some(epoch_ns), Order::Fetched { parallel }) = (self.epoch_ns(), self.settings.order)
        else {
            return;
        };
        while self.active < parallel && self.next < self.plan.len() {
            let flow = &mut self.plan[self.next];
            flow.start_ns = now - epoch_ns;
            let flow = *flow;
            self.start_flow(self.next, flow, now);
            self.next += 1;
        }
    }

    fn start_flow(&mut self, id: FlowId, flow: Flow, now: u64) {
        if self.active == 0 {
            self.last_progress_ns = now;
        }
        self.active += 1;
        match self.pool.take(flow.source, flow.destination) {
            Some(connection) => self.begin(connection, User::Flow(id)),
            None => self.open(flow.source, flow.destination, User::Flow(id)),
        }
    }

    fn open(&mut self, source: usize, destination: usize, user: User) {
        let connection = self.connections.len();
        self.connections.push(Connection {
            source,
            destination,
            state: State::Opening { user },
        });
        self.actions.push_back(Action::Open {
            connection,
            source,
            destination,
        });
    }

    /// Starts to use an open connection.
    fn begin(&mut self, connection: ConnectionId, user: User) {
        match (user, self.settings.order) {
            (User::Flow(flow), Order::Fetched { .. } | Order::Requested) => {
                let (bytes, missing) = (REQUEST_BYTES, REQUEST_BYTES);
                self.connections[connection].state = State::Asking { flow, missing };
                self.actions
                    .push_back(Action::Request { connection, bytes });
            }
            _ => self.send(connection, user),
        }
    }

    fn send(&mut self, connection: ConnectionId, user: User) {
        let (bytes, flow) = match user {
            User::WarmUp => (GREETING_BYTES, None),
            User::Flow(flow) => (self.plan[flow].bytes, Some(flow)),
        };
        self.connections[connection].state = State::Busy {
            user,
            missing: bytes,
        };
        self.actions.push_back(Action::Send {
            connection,
            bytes,
            flow,
        });
    }

    fn release(&mut self, connection: ConnectionId) {
        let Connection {
            source,
            destination,
            ref mut state,
        } = self.connections[connection];
        *state = State::Idle;
        self.pool.put(source, destination, connection);
    }

    fn close(&mut self, connection: ConnectionId) {
        self.connections[connection].state = State::Closed;
        self.actions.push_back(Action::Close { connection });
    }

    fn end_flow(&mut self, flow: FlowId, outcome: Outcome) {
        self.outcomes[flow] = outcome;
        self.active -= 1;
        self.finished += 1;
    }

    fn fail_flow(&mut self, flow: FlowId, reason: &str) {
        self.end_flow(
            flow,
            Outcome::Failed {
                reason: reason.to_owned(),
            },
        );
    }

    /// Counts a connection of the warm-up, which is ready or has failed.
    fn warmed(&mut self, user: User, now: u64) {
        if let (User::WarmUp, Phase::WarmUp { open, .. }) = (user, &mut self.phase) {
            *open -= 1;
            self.advance(now);
        }
    }

    fn stalled_at_ns(&self) -> u64 {
        self.last_progress_ns.saturating_add(self.settings.stall_ns)
    }

    /// Stops unfinished flows at the end of the run's time.
    fn stop(&mut self, now: u64) {
        let Some(epoch_ns) = self.epoch_ns() else {
            return;
        };
        for connection in 0..self.connections.len() {
            let (flow, missing) = match self.connections[connection].state {
                State::Busy {
                    user: User::Flow(flow),
                    missing,
                } => (flow, missing),
                State::Opening {
                    user: User::Flow(flow),
                }
                | State::Asking { flow, .. } => (flow, self.plan[flow].bytes),
                _ => continue,
            };
            self.actions.push_back(Action::Finish { connection, flow });
            self.close(connection);
            let Flow {
                bytes, start_ns, ..
            } = self.plan[flow];
            let outcome = Outcome::Stopped {
                after_ns: now - epoch_ns - start_ns,
                bytes: bytes - missing,
            };
            self.end_flow(flow, outcome);
        }
    }

    /// Skips flows that haven't started, once the mean is precise enough.
    fn stop_when_precise(&mut self, flow: usize, fct_ns: u64) {
        if self.plan[flow].start_ns < self.settings.warmup_ns {
            return;
        }
        let precision = self.precision.as_mut();
        if precision.is_some_and(|precision| precision.is_reached_by(fct_ns as f64)) {
            self.plan.truncate(self.next);
            self.outcomes.truncate(self.next);
        }
    }

    /// Aborts the run: all waiting flows fail, and no more flows start.
    fn give_up(&mut self) {
        let reason = format!(
            "no byte arrived anywhere for {} s",
            self.settings.stall_ns as f64 / 1e9
        );
        for connection in 0..self.connections.len() {
            let user = match self.connections[connection].state {
                State::Opening { user } | State::Busy { user, .. } => user,
                State::Asking { flow, .. } => User::Flow(flow),
                State::Idle | State::Closed => continue,
            };
            self.close(connection);
            if let User::Flow(flow) = user {
                self.fail_flow(flow, &reason);
            }
        }
        for outcome in &mut self.outcomes[self.next..] {
            let reason = format!("not started: {reason}");
            *outcome = Outcome::Failed { reason };
            self.finished += 1;
        }
        self.next = self.plan.len();
        if let Phase::WarmUp { waiting, open } = &mut self.phase {
            waiting.clear();
            *open = 0;
        }
    }
}

#[cfg(test)]
mod tests;
