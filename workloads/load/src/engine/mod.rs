//! The life of flows, without I/O: when connections open, who sends on which,
//! when a flow is done, failed, or stuck.
//!
//! The shell feeds events in (`handle_*`, each with the time `now`), and takes
//! [`Action`]s and the next deadline out (`poll_*`), until [`Engine::is_done`].
//!
//! ```text
//! warm-up:  Open -> connected -> Send 1 byte -> received -> idle      (persistent only)
//! settle:   SETTLE_NS of rest, so that the kernel can add its subflows
//! running:  arrival -> idle connection, or Open -> connected
//!                   -> Send bytes -> received ... all -> Finish -> idle, or Close
//! ```
//!
//! The run starts, and times of flows count from, the end of the settling. The
//! byte of the warm-up is needed: Linux adds subflows to a connection only after
//! data has been acknowledged on the first one.

mod pool;

use std::collections::VecDeque;

use crate::plan::Flow;
use pool::Pool;

/// Rest between warm-up and the first flow.
pub const SETTLE_NS: u64 = 50_000_000;

/// Connections that open at the same time in the warm-up: few enough that
/// their handshakes fit into any queue.
const WARM_UP_CONCURRENCY: usize = 16;

/// Bytes sent on a new connection in the warm-up.
const GREETING_BYTES: u64 = 1;

/// How flows get their connections.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Connections {
    /// A pool per pair of hosts, opened before the run; a flow takes an idle
    /// connection or, when all are busy, opens one more (its handshake is then
    /// part of its completion time).
    Persistent,
    /// A new connection for every flow; the handshake is part of its
    /// completion time.
    New,
}

/// A connection's number, never used twice.
pub type ConnectionId = usize;

/// A flow's place in the plan.
pub type FlowId = usize;

/// What the shell has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Connect two hosts.
    Open {
        /// The connection.
        connection: ConnectionId,
        /// Host that connects, and sends.
        source: usize,
        /// Host that listens, and receives.
        destination: usize,
    },
    /// Send on an open connection.
    Send {
        /// The connection.
        connection: ConnectionId,
        /// How much.
        bytes: u64,
        /// For which flow; `None` for a greeting.
        flow: Option<FlowId>,
    },
    /// A flow is complete: read the connection's counters.
    Finish {
        /// The connection, still open.
        connection: ConnectionId,
        /// The flow.
        flow: FlowId,
    },
    /// Close both ends.
    Close {
        /// The connection.
        connection: ConnectionId,
    },
}

/// How a flow ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It has not yet.
    Pending,
    /// From its start (its arrival, whether or not a connection was ready) to
    /// the last byte read by the receiver.
    Done {
        /// That time.
        fct_ns: u64,
    },
    /// It did not get through.
    Failed {
        /// Why.
        reason: String,
    },
}

/// The state of a run.
#[derive(Debug)]
pub struct Engine {
    plan: Vec<Flow>,
    outcomes: Vec<Outcome>,
    mode: Connections,
    stall_ns: u64,
    connections: Vec<Connection>,
    pool: Pool,
    actions: VecDeque<Action>,
    phase: Phase,
    /// The first flow of the plan that has not started.
    next: FlowId,
    active: usize,
    finished: usize,
    last_progress_ns: u64,
}

#[derive(Debug)]
struct Connection {
    source: usize,
    destination: usize,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Opening { user: User },
    Busy { user: User, missing: u64 },
    Idle,
    Closed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum User {
    WarmUp,
    Flow(FlowId),
}

#[derive(Debug)]
enum Phase {
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

impl Engine {
    /// A run of `plan` (ordered by start time) that begins at `now`. Flows fail
    /// when nothing at all moves for `stall_ns`.
    #[must_use]
    pub fn new(plan: Vec<Flow>, mode: Connections, stall_ns: u64, now: u64) -> Self {
        let phase = match mode {
            Connections::Persistent => Phase::WarmUp {
                waiting: pool::needed_at_once(&plan),
                open: 0,
            },
            Connections::New => Phase::Running { epoch_ns: now },
        };
        let mut engine = Self {
            outcomes: vec![Outcome::Pending; plan.len()],
            plan,
            mode,
            stall_ns,
            connections: Vec::new(),
            pool: Pool::default(),
            actions: VecDeque::new(),
            phase,
            next: 0,
            active: 0,
            finished: 0,
            last_progress_ns: now,
        };
        engine.advance(now);
        engine
    }

    /// What to do next, if anything.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When [`Engine::handle_timeout`] has to be called at the latest.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<u64> {
        let stalled = self.last_progress_ns.saturating_add(self.stall_ns);
        match &self.phase {
            Phase::WarmUp { .. } => Some(stalled),
            Phase::Settle { until_ns } => Some(*until_ns),
            Phase::Running { epoch_ns } => {
                let arrival = self
                    .plan
                    .get(self.next)
                    .map(|flow| epoch_ns + flow.start_ns);
                let stalled = (self.active > 0).then_some(stalled);
                arrival.into_iter().chain(stalled).min()
            }
        }
    }

    /// Whether every flow has ended and every action has been taken.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.finished == self.plan.len() && self.actions.is_empty()
    }

    /// When the run started, once it has.
    #[must_use]
    pub fn epoch_ns(&self) -> Option<u64> {
        match self.phase {
            Phase::Running { epoch_ns } => Some(epoch_ns),
            _ => None,
        }
    }

    /// Number of flows that have ended, well or not.
    #[must_use]
    pub fn finished(&self) -> usize {
        self.finished
    }

    /// The plan and how each of its flows ended.
    #[must_use]
    pub fn into_outcomes(self) -> (Vec<Flow>, Vec<Outcome>) {
        (self.plan, self.outcomes)
    }

    /// The time is `now`: starts flows that are due, ends phases, and gives up
    /// what is stuck.
    pub fn handle_timeout(&mut self, now: u64) {
        let waits = self.active > 0 || matches!(self.phase, Phase::WarmUp { .. });
        if waits && now >= self.last_progress_ns.saturating_add(self.stall_ns) {
            self.give_up();
            self.last_progress_ns = now;
        }
        self.advance(now);
    }

    /// The handshake of `connection` is complete.
    pub fn handle_connected(&mut self, connection: ConnectionId, now: u64) {
        let State::Opening { user } = self.connections[connection].state else {
            return;
        };
        self.last_progress_ns = now;
        self.send(connection, user);
    }

    /// The receiver has read `bytes` from `connection`.
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
        }
        match self.mode {
            Connections::Persistent => self.release(connection),
            Connections::New => self.close(connection),
        }
        self.warmed(user, now);
    }

    /// `connection` is broken; whoever uses it fails for `reason`.
    pub fn handle_failed(&mut self, connection: ConnectionId, reason: &str, now: u64) {
        self.last_progress_ns = now;
        match self.connections[connection].state {
            State::Opening { user } | State::Busy { user, .. } => {
                self.close(connection);
                if let User::Flow(flow) = user {
                    self.fail_flow(flow, reason);
                }
                self.warmed(user, now);
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

    /// Moves from phase to phase, and starts what is due.
    fn advance(&mut self, now: u64) {
        if let Phase::WarmUp { waiting, open } = &mut self.phase {
            let batch = (WARM_UP_CONCURRENCY - *open).min(waiting.len());
            *open += batch;
            let idle = *open == 0;
            for (source, destination) in waiting.drain(..batch).collect::<Vec<_>>() {
                self.open(source, destination, User::WarmUp);
            }
            if idle {
                let until_ns = now + SETTLE_NS;
                self.phase = Phase::Settle { until_ns };
            }
        }
        if let Phase::Settle { until_ns } = self.phase {
            if now >= until_ns {
                self.phase = Phase::Running { epoch_ns: until_ns };
            }
        }
        if let Phase::Running { epoch_ns } = self.phase {
            while let Some(flow) = self.plan.get(self.next).copied() {
                if epoch_ns + flow.start_ns > now {
                    break;
                }
                self.start_flow(self.next, flow, now);
                self.next += 1;
            }
        }
    }

    fn start_flow(&mut self, id: FlowId, flow: Flow, now: u64) {
        if self.active == 0 {
            self.last_progress_ns = now;
        }
        self.active += 1;
        match self.pool.take(flow.source, flow.destination) {
            Some(connection) => self.send(connection, User::Flow(id)),
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
        let reason = reason.to_owned();
        self.end_flow(flow, Outcome::Failed { reason });
    }

    /// One connection of the warm-up is ready, or never will be.
    fn warmed(&mut self, user: User, now: u64) {
        if let (User::WarmUp, Phase::WarmUp { open, .. }) = (user, &mut self.phase) {
            *open -= 1;
            self.advance(now);
        }
    }

    /// Nothing moves any more: whatever waits fails, and no further flow starts.
    fn give_up(&mut self) {
        let reason = format!(
            "no byte arrived anywhere for {} s",
            self.stall_ns as f64 / 1e9
        );
        for connection in 0..self.connections.len() {
            if let State::Opening { user } | State::Busy { user, .. } =
                self.connections[connection].state
            {
                self.close(connection);
                if let User::Flow(flow) = user {
                    self.fail_flow(flow, &reason);
                }
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
