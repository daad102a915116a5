// SPDX-License-Identifier: Apache-2.0

//! Timestamp units of switches.

/// The unit of a switch's timestamps.
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

    /// Right shift from this unit to the one in which ACKs carry their queueing time.
    pub(super) fn wait_shift(self) -> u8 {
        match self {
            Self::Nanoseconds => 10,
            Self::Microseconds => 0,
        }
    }

    /// Nanoseconds per unit of an ACK's queueing time: about a microsecond.
    #[must_use]
    pub fn wait_ns(self) -> u32 {
        match self {
            Self::Nanoseconds => 1 << self.wait_shift(),
            Self::Microseconds => 1_000 << self.wait_shift(),
        }
    }
}
