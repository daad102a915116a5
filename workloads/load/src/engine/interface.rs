// SPDX-License-Identifier: Apache-2.0

//! The interface of the engine: its settings, actions and outcomes.

/// How flows get connections.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Connections {
    /// A pool per pair of hosts, opened before the run. A flow takes an idle connection. If all
    /// are busy, it opens another one, whose handshake then counts as part of its completion time.
    Persistent,
    /// A new connection for every flow. The handshake is part of its completion time.
    New,
}

/// Number of a connection, never reused.
pub type ConnectionId = usize;

/// Index of a flow in the plan.
pub type FlowId = usize;

/// What starts flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The times of the plan, regardless of the network's state: an open loop.
    Timed,
    /// The times of the plan, but every flow starts with a request from its destination to its
    /// source, like the answer to a query.
    Requested,
    /// A browser's way: each of a number of connections fetches the next flow of the plan when
    /// its last one is complete. A flow starts with a request from its destination to its source.
    Fetched {
        /// Number of connections, at least 1.
        parallel: usize,
    },
}

/// Settings of a run.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// How flows get connections.
    pub connections: Connections,
    /// What starts flows.
    pub order: Order,
    /// A run without any progress is aborted after this time.
    pub stall_ns: u64,
    /// Pause between warm-up and the first flow, in which the kernel adds subflows.
    pub settle_ns: u64,
    /// When unfinished flows are stopped, from the start of the run.
    pub stop_ns: Option<u64>,
    /// Start no more flows once the mean FCT is known this precisely: half of its 95% confidence
    /// interval, relative to the mean.
    pub precision: Option<f64>,
    /// Flows that arrive before count for nothing.
    pub warmup_ns: u64,
}

/// An action for the event loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Announces when the run starts, which may be later than now.
    Announce {
        /// The start of the run.
        start_ns: u64,
    },
    /// Opens a connection between two hosts.
    Open {
        /// The connection.
        connection: ConnectionId,
        /// The host that connects, and sends.
        source: usize,
        /// The host that listens, and receives.
        destination: usize,
    },
    /// Sends a request from the destination of an open connection to its source.
    Request {
        /// The connection.
        connection: ConnectionId,
        /// Size of the request.
        bytes: u64,
    },
    /// Sends data on an open connection.
    Send {
        /// The connection.
        connection: ConnectionId,
        /// Amount of data.
        bytes: u64,
        /// The flow that it belongs to; `None` for the greeting of the warm-up.
        flow: Option<FlowId>,
    },
    /// A flow is complete: read the connection's counters.
    Finish {
        /// The connection, which is still open.
        connection: ConnectionId,
        /// The flow.
        flow: FlowId,
    },
    /// Closes both ends.
    Close {
        /// The connection.
        connection: ConnectionId,
    },
}

/// How a flow ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It hasn't ended yet.
    Pending,
    /// It is complete. Its completion time runs from its arrival, even if no connection was
    /// ready, until the receiver has read the last byte.
    Done {
        /// Flow completion time.
        fct_ns: u64,
    },
    /// It was stopped at the end of the run's time.
    Stopped {
        /// How long it ran.
        after_ns: u64,
        /// Bytes that the receiver had read by then.
        bytes: u64,
    },
    /// It failed.
    Failed {
        /// The reason.
        reason: String,
    },
}
