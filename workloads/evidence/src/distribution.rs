// SPDX-License-Identifier: Apache-2.0

//! Mean, percentiles and maximum of many values, in little memory.

use hdrhistogram::{Counter, Histogram};
use serde::Serialize;

/// A distribution of values from 0. Percentiles are exact to `digits` decimal digits, and for all
/// values below 10^`digits`. Mean, minimum and maximum are exact.
#[derive(Debug, Clone)]
pub struct Distribution<C: Counter = u64> {
    histogram: Option<Histogram<C>>,
    digits: u8,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

/// Summary of a distribution; all 0 if it is empty.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Default)]
pub struct Summary {
    /// Number of values.
    pub count: u64,
    /// Smallest value.
    pub min: u64,
    /// Mean, rounded to a thousandth.
    pub mean: f64,
    /// Median.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p999: u64,
    /// Largest value.
    pub max: u64,
}

impl<C: Counter> Distribution<C> {
    /// An empty distribution; `digits` is 1 to 5.
    #[must_use]
    pub fn new(digits: u8) -> Self {
        Self {
            histogram: None,
            digits,
            count: 0,
            sum: 0,
            min: u64::MAX,
            max: 0,
        }
    }

    /// Adds a value.
    pub fn record(&mut self, value: u64) {
        let digits = self.digits;
        if self.histogram.is_none() {
            self.histogram = Histogram::new(digits.clamp(1, 5)).ok();
        }
        if let Some(histogram) = &mut self.histogram {
            // It resizes itself up to 2^63.
            let _ = histogram.record(value.min(i64::MAX as u64));
        }
        self.count += 1;
        self.sum += u128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Mean; 0 if empty.
    #[must_use]
    pub fn mean(&self) -> f64 {
        ratio(self.sum as f64, self.count as f64)
    }

    /// Largest value; 0 if empty.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The value that `percentile` percent of the values don't exceed; up to two decimal places
    /// count.
    #[must_use]
    pub fn percentile(&self, percentile: f64) -> u64 {
        let Some(histogram) = &self.histogram else {
            return 0;
        };
        // In integers, because 99.9% of 1000 is slightly more than 999 in floating point.
        let hundredths = (percentile * 100.0).round() as u128;
        let rank = (u128::from(self.count) * hundredths)
            .div_ceil(10_000)
            .max(1);
        let quantile = (rank as f64 - 0.5) / self.count as f64;
        histogram
            .value_at_quantile(quantile)
            .clamp(self.min, self.max)
    }

    /// Summary of the distribution.
    #[must_use]
    pub fn summary(&self) -> Summary {
        if self.count == 0 {
            return Summary::default();
        }
        Summary {
            count: self.count,
            min: self.min,
            mean: self.mean(),
            p50: self.percentile(50.0),
            p90: self.percentile(90.0),
            p99: self.percentile(99.0),
            p999: self.percentile(99.9),
            max: self.max,
        }
    }
}

/// A ratio rounded to a thousandth; 0 if `count` is 0.
pub(crate) fn ratio(sum: f64, count: f64) -> f64 {
    if count == 0.0 {
        return 0.0;
    }
    (sum / count * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nothing_is_all_zero() {
        assert_eq!(Distribution::<u64>::new(3).summary(), Summary::default());
    }

    #[test]
    fn small_values_are_exact() {
        let mut distribution = Distribution::<u32>::new(3);
        (1..=1_000).for_each(|value| distribution.record(value));
        let summary = distribution.summary();
        assert_eq!(
            (
                summary.min,
                summary.p50,
                summary.p99,
                summary.p999,
                summary.max
            ),
            (1, 500, 990, 999, 1_000)
        );
        assert_eq!(summary.mean, 500.5);
    }

    proptest! {
        #[test]
        fn percentiles_are_right_to_a_thousandth(
            mut values in proptest::collection::vec(0_u64..1 << 40, 1..300),
            percentile in 1_usize..=100,
        ) {
            let mut distribution = Distribution::<u64>::new(3);
            values.iter().for_each(|value| distribution.record(*value));
            values.sort_unstable();
            let rank = (values.len() * percentile).div_ceil(100);
            let exact = values[rank - 1];
            let found = distribution.percentile(percentile as f64);
            prop_assert!(found.abs_diff(exact) as f64 <= exact as f64 * 1e-3, "{found} {exact}");
        }
    }
}
