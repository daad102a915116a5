//! Patterns, and how they came about.

use crate::telemetry::Sample;

/// The pattern of a leaf pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// Grows with every pattern of the pair.
    pub version: u64,
    /// When it was computed.
    pub at_ns: u64,
    /// What it was computed from, per path.
    pub costs_ns: Vec<u64>,
    /// What paths cost without any queue, 0 for those that carry nothing.
    pub lowest_ns: Vec<u64>,
    /// Packets per path.
    pub gaps: Vec<u32>,
    /// Path of every position.
    pub sequence: Vec<u8>,
}

/// Why a pattern was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// It is the first: every path has a cost now.
    First,
    /// A cost went clearly beyond where a gap changes.
    Moved,
    /// No path has had samples of late: queues have drained.
    Idle,
    /// A path carries nothing any more.
    Failed,
    /// A path loses packets.
    Gray,
    /// A path carries packets again, or loses none any more.
    Returned,
    /// Patterns have chased their own queues: rates alone decide for a while.
    Herd,
}

impl Rule {
    /// Whether samples, not probes or time, lead to it.
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

/// What made the engine look at a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    /// When the sample came here.
    pub at_ns: u64,
    /// No later than when it was taken, by the same clock; `None` if the switch's
    /// clock is another.
    pub sampled_ns: Option<u64>,
    /// Who took it.
    pub switch: String,
    /// The sample.
    pub sample: Sample,
}

/// A pattern and how it came about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What was decided.
    pub pattern: Pattern,
    /// Why.
    pub rule: Rule,
    /// The sample that led to it; `None` when time alone did.
    pub trigger: Option<Trigger>,
    /// Whether it had to wait because the pattern before it was too young.
    pub rested: bool,
}
