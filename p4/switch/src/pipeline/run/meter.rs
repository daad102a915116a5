// SPDX-License-Identifier: Apache-2.0

//! Meters: what colour a packet has by the rate of those before it.
//!
//! A cell is two token buckets in colour-blind mode, which are full at first:
//!
//! - **two rates, three colours** (RFC 2698): both buckets fill at their own rate, committed and
//!   peak. A packet that finds too few peak tokens is red, one that only finds too few committed
//!   tokens yellow.
//! - **one rate, three colours** (RFC 2697): both fill at the committed rate, the excess bucket
//!   only while the committed one is full. A packet that finds too few tokens in both is red, one
//!   that takes them from the excess bucket yellow.
//!
//! A packet takes tokens only from the buckets that decide its colour. Tokens are counted exactly,
//! so the colours of a run depend on its packets and their times alone.

use super::api::{MeterConfig, MeterRates};

/// The colours as v1model numbers them (`enum MeterColor_t`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Color {
    Green = 0,
    Yellow = 1,
    Red = 2,
}

/// A cell that has been configured.
#[derive(Debug, Clone)]
pub(crate) struct Meter {
    pub config: MeterConfig,
    committed: Bucket,
    /// The peak bucket of two rates, the excess bucket of one.
    second: Bucket,
    filled_at: u64,
}

/// A token bucket. Tokens are multiplied by the clock's ticks in a second, so that a tick adds a
/// whole number of them.
#[derive(Debug, Clone)]
struct Bucket {
    tokens: u128,
    most: u128,
}

impl Bucket {
    fn full(burst: u64, ticks_per_s: u64) -> Self {
        let most = u128::from(burst) * u128::from(ticks_per_s);
        Self { tokens: most, most }
    }

    /// Adds tokens, and returns those that do not fit.
    fn fill(&mut self, tokens: u128) -> u128 {
        let fits = tokens.min(self.most - self.tokens);
        self.tokens += fits;
        tokens - fits
    }

    fn take(&mut self, tokens: u128) -> bool {
        let enough = self.tokens >= tokens;
        if enough {
            self.tokens -= tokens;
        }
        enough
    }
}

impl Meter {
    /// A cell with full buckets at `now`, in ticks of the clock.
    pub fn new(config: MeterConfig, ticks_per_s: u64, now: u64) -> Self {
        let second = match config.rates {
            MeterRates::Two { peak_burst, .. } => peak_burst,
            MeterRates::One { excess_burst } => excess_burst,
        };
        Self {
            committed: Bucket::full(config.committed_burst, ticks_per_s),
            second: Bucket::full(second, ticks_per_s),
            config,
            filled_at: now,
        }
    }

    /// The colour of a packet at `now` that is worth `units`: bytes, or 1.
    pub fn color(&mut self, units: u64, ticks_per_s: u64, now: u64) -> Color {
        let ticks = u128::from(now.saturating_sub(self.filled_at));
        self.filled_at = self.filled_at.max(now);
        let spilt = self
            .committed
            .fill(ticks * u128::from(self.config.committed_rate));
        let units = u128::from(units) * u128::from(ticks_per_s);
        match self.config.rates {
            MeterRates::Two { peak_rate, .. } => {
                self.second.fill(ticks * u128::from(peak_rate));
                if !self.second.take(units) {
                    Color::Red
                } else if !self.committed.take(units) {
                    Color::Yellow
                } else {
                    Color::Green
                }
            }
            MeterRates::One { .. } => {
                self.second.fill(spilt);
                if self.committed.take(units) {
                    Color::Green
                } else if self.second.take(units) {
                    Color::Yellow
                } else {
                    Color::Red
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Color::{Green, Red, Yellow};
    use super::*;

    const TICKS_PER_S: u64 = 1_000_000_000;
    const MS: u64 = 1_000_000;

    fn two_rates() -> Meter {
        let config = MeterConfig {
            committed_rate: 1_000_000,
            committed_burst: 2000,
            rates: MeterRates::Two {
                peak_rate: 2_000_000,
                peak_burst: 4000,
            },
        };
        Meter::new(config, TICKS_PER_S, 0)
    }

    fn one_rate() -> Meter {
        let config = MeterConfig {
            committed_rate: 1_000_000,
            committed_burst: 2000,
            rates: MeterRates::One { excess_burst: 1000 },
        };
        Meter::new(config, TICKS_PER_S, 0)
    }

    fn colors(meter: &mut Meter, now: u64, packets: usize) -> Vec<Color> {
        let color = |_| meter.color(1000, TICKS_PER_S, now);
        (0..packets).map(color).collect()
    }

    #[test]
    fn of_a_burst_the_committed_part_is_green_the_peak_part_yellow_and_the_rest_red() {
        let seen = colors(&mut two_rates(), 0, 6);
        assert_eq!(seen, [Green, Green, Yellow, Yellow, Red, Red]);
    }

    #[test]
    fn each_bucket_fills_at_its_own_rate() {
        let mut meter = two_rates();
        colors(&mut meter, 0, 4);
        // A millisecond brings one packet of committed tokens, and two of peak tokens.
        assert_eq!(colors(&mut meter, MS, 3), [Green, Yellow, Red]);
    }

    #[test]
    fn a_red_packet_takes_no_tokens() {
        let mut meter = two_rates();
        colors(&mut meter, 0, 100);
        assert_eq!(colors(&mut meter, MS, 2), [Green, Yellow]);
    }

    #[test]
    fn a_bucket_never_holds_more_than_its_burst() {
        let mut meter = two_rates();
        colors(&mut meter, 0, 4);
        let seen = colors(&mut meter, 3600 * TICKS_PER_S, 5);
        assert_eq!(seen, [Green, Green, Yellow, Yellow, Red]);
    }

    #[test]
    fn with_one_rate_the_excess_burst_is_yellow_and_fills_last() {
        let mut meter = one_rate();
        assert_eq!(colors(&mut meter, 0, 5), [Green, Green, Yellow, Red, Red]);
        // Two milliseconds fill the committed bucket, and nothing spills.
        assert_eq!(colors(&mut meter, 2 * MS, 3), [Green, Green, Red]);
        // Two more fill it again, and the third the excess bucket.
        let seen = colors(&mut meter, 5 * MS, 4);
        assert_eq!(seen, [Green, Green, Yellow, Red]);
    }

    #[test]
    fn rates_hold_on_a_slow_clock_too() {
        let ticks_per_s = 1_000_000;
        let config = MeterConfig {
            committed_rate: 1_500_000,
            committed_burst: 1000,
            rates: MeterRates::One { excess_burst: 0 },
        };
        let mut meter = Meter::new(config, ticks_per_s, 0);
        // A packet of 100 bytes every 50 us is 2 MB/s, of which three quarters are green.
        let greens = (0..4000).map(|packet| meter.color(100, ticks_per_s, packet * 50));
        let greens = greens.filter(|color| *color == Green).count();
        // And the burst at first.
        assert_eq!(greens, 3000 + 10 - 1);
    }

    #[test]
    fn time_that_goes_back_fills_nothing() {
        let mut meter = one_rate();
        colors(&mut meter, 10 * MS, 3);
        assert_eq!(colors(&mut meter, 5 * MS, 1), [Red]);
        assert_eq!(colors(&mut meter, 11 * MS, 1), [Green]);
    }
}
