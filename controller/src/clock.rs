//! The monotonic clock: virtual time in the lab.

use nix::time::{ClockId, clock_gettime};

/// Nanoseconds of `CLOCK_MONOTONIC`, the clock of switches' statistics too.
#[must_use]
pub fn now_ns() -> u64 {
    // Linux has this clock, and it counts from boot: never negative.
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |time| {
        time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
    })
}
