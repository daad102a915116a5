// SPDX-License-Identifier: Apache-2.0

//! The monotonic clock: virtual time in the lab.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd, RawFd};
use std::time::Duration;

use nix::sys::timerfd::{self, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::{ClockId, clock_gettime};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Nanoseconds of `CLOCK_MONOTONIC`, which also times the switches' samples.
#[must_use]
pub fn now_ns() -> u64 {
    // Linux always has this clock, and it counts from boot, so it's never negative.
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |time| {
        time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
    })
}

/// Offset of real time from [`now_ns`].
#[must_use]
pub fn epoch_ns() -> u64 {
    let real_ns = clock_gettime(ClockId::CLOCK_REALTIME).map_or(0, |time| {
        time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
    });
    real_ns.saturating_sub(now_ns())
}

/// A timer with nanosecond resolution; tokio's timers have milliseconds.
#[derive(Debug)]
pub struct Alarm {
    timer: AsyncFd<Timer>,
}

/// nix only lends its descriptor; tokio needs the raw number.
#[derive(Debug)]
struct Timer(TimerFd);

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl Alarm {
    /// A timer that isn't set.
    ///
    /// # Errors
    /// If the system is out of file descriptors.
    pub fn new() -> io::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(timerfd::ClockId::CLOCK_MONOTONIC, flags)?;
        // SAFETY: the timer owns the descriptor, which stays open and the same as long as the
        // registration exists.
        let timer = unsafe { AsyncFd::register_with_interest(Timer(timer), Interest::READABLE) };
        Ok(Self { timer: timer? })
    }

    /// Sleeps until `at_ns`. Returns at once if that is past.
    ///
    /// # Errors
    /// If the system refuses, which it has no reason to do.
    pub async fn sleep_until(&self, at_ns: u64) -> io::Result<()> {
        // Zero would disarm the timer.
        let at = Duration::from_nanos(at_ns.max(1));
        self.timer.get_ref().0.set(
            Expiration::OneShot(at.into()),
            TimerSetTimeFlags::TFD_TIMER_ABSTIME,
        )?;
        loop {
            let mut ready = self.timer.readable().await?;
            let read = ready.try_io(|timer| match timer.get_ref().0.wait() {
                Err(errno) => Err(errno.into()),
                Ok(()) => Ok(()),
            });
            match read {
                Ok(result) => return result,
                // An expiry of an earlier setting.
                Err(_would_block) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alarm_may_be_set_again_before_it_rings() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let alarm = Alarm::new().unwrap();
            let start_ns = now_ns();
            let far = alarm.sleep_until(start_ns + 3_600_000_000_000);
            tokio::select! {
                biased;
                _ = far => panic!("rang an hour early"),
                () = std::future::ready(()) => {}
            }
            alarm.sleep_until(start_ns + 300_000).await.unwrap();
            assert!(now_ns() >= start_ns + 300_000);
            // In the past.
            alarm.sleep_until(0).await.unwrap();
        });
    }
}
