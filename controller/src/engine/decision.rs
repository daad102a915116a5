// SPDX-License-Identifier: Apache-2.0

//! Patterns, and the decisions behind them.

use crate::telemetry::Sample;

/// The pattern of a leaf pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// Increases with every pattern of the pair.
    pub version: u64,
    /// When it was computed.
    pub at_ns: u64,
    /// The cost of each path.
    pub costs_ns: Vec<u64>,
    /// The cost of each path without queues, 0 for unused paths.
    pub lowest_ns: Vec<u64>,
    /// Packets per path in one pattern.
    pub gaps: Vec<u32>,
    /// The path of every position.
    pub sequence: Vec<u8>,
}

/// Why a pattern was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// The first pattern: the cost of every path is known now.
    First,
    /// A cost has moved a gap beyond the hysteresis.
    Moved,
    /// No path has had samples lately, so queues have drained.
    Idle,
    /// A path has died.
    Failed,
    /// A path loses packets.
    Gray,
    /// A path is back to life, or no longer loses packets.
    Returned,
    /// Patterns chased their own queues, so only rates set the pattern for a while.
    Herd,
}

impl Rule {
    /// Whether samples trigger it, not probes or time.
    #[must_use]
    pub fn follows_samples(self) -> bool {
        matches!(self, Self::First | Self::Moved | Self::Gray)
    }

    /// Its name in `loop.csv` and for users.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Moved => "moved",
            Self::Idle => "idle",
            Self::Failed => "failed",
            Self::Gray => "gray",
            Self::Returned => "returned",
            Self::Herd => "herd",
        }
    }
}

/// The sample that made the engine reassess a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    /// When the controller got it.
    pub at_ns: u64,
    /// A lower bound on when it was taken, by the same clock; `None` if the switch has a
    /// different clock.
    pub sampled_ns: Option<u64>,
    /// The switch that took it.
    pub switch: String,
    /// The sample.
    pub sample: Sample,
}

/// A pattern, and why it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The pattern.
    pub pattern: Pattern,
    /// The reason.
    pub rule: Rule,
    /// The sample that triggered it; `None` if time did.
    pub trigger: Option<Trigger>,
    /// Whether it had to wait because the pattern before it was too recent.
    pub rested: bool,
}
