//! What goes into the engine and comes out of it.

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

/// When flows start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// At the times of the plan, whatever the network makes of them: an open
    /// loop.
    Timed,
    /// At the times of the plan too, but every flow begins with a request from its
    /// destination to its source, as a query's answers do.
    Asked,
    /// One after the other on so many connections, a browser's way: each
    /// fetches the next flow of the plan when its last is done. A flow begins
    /// with a request from its destination to its source.
    Fetched {
        /// Connections, at least 1.
        parallel: usize,
    },
}

/// How a run goes.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// How flows get their connections.
    pub connections: Connections,
    /// When they start.
    pub order: Order,
    /// When a run in which nothing moves is given up.
    pub stall_ns: u64,
    /// Rest between warm-up and the first flow, in which the kernel adds
    /// subflows.
    pub settle_ns: u64,
    /// When flows that still run are stopped, from the start of the run.
    pub stop_ns: Option<u64>,
    /// Start no more flows once the mean FCT is known so well: half of its 95%
    /// confidence interval, as a share of it.
    pub precision: Option<f64>,
}

/// What the shell has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Be told when the run starts, which may be later than now.
    Announce {
        /// When.
        start_ns: u64,
    },
    /// Connect two hosts.
    Open {
        /// The connection.
        connection: ConnectionId,
        /// Host that connects, and sends.
        source: usize,
        /// Host that listens, and receives.
        destination: usize,
    },
    /// Send a request from the destination of an open connection to its source.
    Request {
        /// The connection.
        connection: ConnectionId,
        /// How much.
        bytes: u64,
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
    /// It was stopped when the time of the run was over.
    Stopped {
        /// Time it had.
        after_ns: u64,
        /// Bytes that the receiver had read by then.
        bytes: u64,
    },
    /// It did not get through.
    Failed {
        /// Why.
        reason: String,
    },
}
