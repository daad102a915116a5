// SPDX-License-Identifier: Apache-2.0

//! The one clock of the process: `CLOCK_MONOTONIC`, in nanoseconds.

use std::io;

/// The clock, to read and to sleep by. The kernel stamps packets with `CLOCK_REALTIME`, so this
/// measures the difference to the monotonic clock now and then.
#[derive(Debug)]
pub struct Clock {
    /// Realtime minus monotonic.
    realtime_offset_ns: i64,
}

impl Clock {
    /// Measures the difference for the first time.
    ///
    /// # Errors
    /// When the system has no such clocks.
    pub fn new() -> io::Result<Self> {
        let mut clock = Self {
            realtime_offset_ns: 0,
        };
        clock.calibrate()?;
        Ok(clock)
    }

    /// Nanoseconds of `CLOCK_MONOTONIC`.
    ///
    /// # Errors
    /// When the system has no such clock.
    pub fn now_ns(&self) -> io::Result<u64> {
        read(libc::CLOCK_MONOTONIC).map(|ns| ns as u64)
    }

    /// Measures the difference to the realtime clock again, because that is slewed against the
    /// monotonic clock when somebody sets it.
    ///
    /// # Errors
    /// When the system has no such clocks.
    pub fn calibrate(&mut self) -> io::Result<()> {
        // Reading a clock takes time (in the lab exactly a nanosecond). So this reads the realtime
        // clock halfway between two readings of the monotonic one.
        let before = read(libc::CLOCK_MONOTONIC)?;
        let realtime = read(libc::CLOCK_REALTIME)?;
        let after = read(libc::CLOCK_MONOTONIC)?;
        self.realtime_offset_ns = realtime - (before + (after - before) / 2);
        Ok(())
    }

    /// Converts a time of the realtime clock to the monotonic clock.
    #[must_use]
    pub fn monotonic_ns(&self, realtime_ns: i64) -> u64 {
        u64::try_from(realtime_ns - self.realtime_offset_ns).unwrap_or(0)
    }

    /// Sleeps until `at_ns`. Returns at once if that has passed.
    ///
    /// # Errors
    /// When the system has no such clock.
    pub fn sleep_until(&self, at_ns: u64) -> io::Result<()> {
        let at = libc::timespec {
            tv_sec: (at_ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (at_ns % 1_000_000_000) as libc::c_long,
        };
        loop {
            // SAFETY: both pointers are valid or null for the length of the call.
            let result = unsafe {
                libc::clock_nanosleep(
                    libc::CLOCK_MONOTONIC,
                    libc::TIMER_ABSTIME,
                    &raw const at,
                    std::ptr::null_mut(),
                )
            };
            match result {
                0 => return Ok(()),
                libc::EINTR => {}
                error => return Err(io::Error::from_raw_os_error(error)),
            }
        }
    }
}

/// Makes sleeps of the calling thread end on time. By default the kernel may let them last up to 50
/// us longer.
pub(super) fn be_punctual() -> io::Result<()> {
    let slack_ns: libc::c_ulong = 1;
    // SAFETY: no pointers.
    if unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack_ns) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

fn read(clock: libc::clockid_t) -> io::Result<i64> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is valid for the length of the call.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(time.tv_sec * 1_000_000_000 + time.tv_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_of_the_realtime_clock_is_a_monotonic_time() {
        let clock = Clock::new().unwrap();
        let before = clock.now_ns().unwrap();
        let stamp = read(libc::CLOCK_REALTIME).unwrap();
        let after = clock.now_ns().unwrap();
        let stamp = clock.monotonic_ns(stamp);
        let margin = 1_000_000;
        assert!(before - margin < stamp && stamp < after + margin);
    }

    #[test]
    fn sleeping_ends_at_the_given_time_and_not_before() {
        let clock = Clock::new().unwrap();
        let at = clock.now_ns().unwrap() + 2_000_000;
        clock.sleep_until(at).unwrap();
        assert!(clock.now_ns().unwrap() >= at);
        clock.sleep_until(0).unwrap();
    }
}
