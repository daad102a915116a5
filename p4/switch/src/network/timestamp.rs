// SPDX-License-Identifier: Apache-2.0

//! The clock that P4 programs see.

/// The unit of the switches' timestamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimestampUnit {
    /// Nanoseconds: at 10 Gbps a packet takes 1200 of them.
    Nanoseconds,
    /// Microseconds, as BMv2 counts.
    Microseconds,
}

impl TimestampUnit {
    /// How many of them are a second.
    #[must_use]
    pub fn per_second(self) -> u64 {
        self.of(1_000_000_000)
    }

    /// `ns` in this unit, rounded down.
    #[must_use]
    pub fn of(self, ns: u64) -> u64 {
        match self {
            Self::Nanoseconds => ns,
            Self::Microseconds => ns / 1000,
        }
    }
}
