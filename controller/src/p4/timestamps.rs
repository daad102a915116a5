//! The clock units of switches.

/// What the timestamps of switches count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimestampUnit {
    /// `weft-switch --timestamps ns`.
    Nanoseconds,
    /// BMv2.
    Microseconds,
}

impl TimestampUnit {
    /// Nanoseconds per unit.
    #[must_use]
    pub fn ns(self) -> u64 {
        match self {
            Self::Nanoseconds => 1,
            Self::Microseconds => 1_000,
        }
    }

    /// By how many bits it is shifted into what ACKs tell their waits in.
    pub(super) fn wait_shift(self) -> u8 {
        match self {
            Self::Nanoseconds => 10,
            Self::Microseconds => 0,
        }
    }

    /// Nanoseconds in what ACKs tell their waits in: about a microsecond.
    #[must_use]
    pub fn wait_ns(self) -> u32 {
        match self {
            Self::Nanoseconds => 1 << self.wait_shift(),
            Self::Microseconds => 1_000 << self.wait_shift(),
        }
    }
}
