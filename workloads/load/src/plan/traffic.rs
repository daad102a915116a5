// SPDX-License-Identifier: Apache-2.0

//! The traffic that a plan is made for.

use super::{Entry, Starts};
use crate::distribution::Distribution;

/// The traffic of a workload.
#[derive(Debug, Clone, PartialEq)]
pub enum Traffic {
    /// A Poisson process of flows.
    Random {
        /// Sender and receiver pairs.
        pairs: Pairs,
        /// Name of the distribution.
        name: String,
        /// Sizes.
        sizes: Distribution,
        /// Load, as a share of the host links' total rate.
        load: f64,
        /// When the process ends.
        extent: Extent,
    },
    /// Flows from several hosts to one.
    Incast {
        /// Number of flows.
        senders: u32,
        /// Size of each.
        bytes: u64,
        /// When they start.
        starts: Starts,
    },
    /// Long flows, each between two hosts.
    Bulk {
        /// Number of flows.
        flows: u32,
        /// When each ends.
        volume: Volume,
    },
    /// The objects of a page, fetched by one host.
    Page {
        /// Number of objects.
        objects: u32,
        /// Total size.
        bytes: u64,
        /// Parallel connections.
        parallel: u32,
    },
    /// A flow from every host to every other.
    AllToAll {
        /// Size of each flow.
        bytes: u64,
        /// When they start.
        starts: Starts,
    },
    /// Long and short flows.
    Mixed(Mix),
    /// Queries of one host to several others.
    Queries {
        /// Number of queries.
        queries: u32,
        /// Hosts asked per query.
        fan_out: u32,
        /// Size of an answer.
        bytes: u64,
        /// Mean time between two queries.
        interarrival_ns: u64,
        /// Deadline of a query.
        deadline_ns: Option<u64>,
    },
    /// A list of flows.
    Replay {
        /// The flows.
        entries: Vec<Entry>,
    },
}

/// How a Poisson process pairs senders and receivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairs {
    /// Random pairs in different racks.
    Random,
    /// A permutation: every host has one partner.
    Permutation,
    /// All send to one receiver.
    ManyToOne,
}

/// When a Poisson process of flows ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// After this number of flows.
    Flows(u32),
    /// After this time in nanoseconds; flows that have started run on.
    Time(u64),
}

/// Long and short flows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mix {
    /// Number of flows.
    pub flows: u32,
    /// Share of long flows.
    pub long_share: f64,
    /// Size of a long flow.
    pub long_bytes: u64,
    /// Size of a short flow.
    pub short_bytes: u64,
    /// When they start.
    pub starts: Starts,
}

/// When a long flow ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Volume {
    /// After this number of bytes.
    Bytes(u64),
    /// After this time in nanoseconds.
    Duration(u64),
}
