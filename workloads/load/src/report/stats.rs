// SPDX-License-Identifier: Apache-2.0

//! Means and quantiles.

/// Summary of a set of values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Number of values.
    pub count: usize,
    /// Mean.
    pub mean: f64,
    /// 0.5 quantile.
    pub median: f64,
    /// 0.95 quantile.
    pub p95: f64,
    /// 0.99 quantile.
    pub p99: f64,
}

impl Summary {
    /// Names of [`Summary::values`].
    pub const NAMES: [&'static str; 4] = ["mean", "median", "p95", "p99"];

    /// Summary of `values`; `None` if there are none.
    #[must_use]
    pub fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.collect();
        if values.is_empty() {
            return None;
        }
        values.sort_by(f64::total_cmp);
        Some(Self {
            count: values.len(),
            mean: values.iter().sum::<f64>() / values.len() as f64,
            median: quantile(&values, 0.5),
            p95: quantile(&values, 0.95),
            p99: quantile(&values, 0.99),
        })
    }

    /// Mean, median, 95th and 99th percentile.
    #[must_use]
    pub fn values(&self) -> [f64; 4] {
        [self.mean, self.median, self.p95, self.p99]
    }
}

/// The quantile of `sorted`, which must not be empty, with linear interpolation between ranks (the
/// default of pandas and NumPy).
#[must_use]
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let rank = share.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let (low, high) = (rank.floor() as usize, rank.ceil() as usize);
    sorted[low] + (sorted[high] - sorted[low]) * rank.fract()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantiles_are_those_of_pandas() {
        let values = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(quantile(&values, 0.5), 2.5);
        assert!((quantile(&values, 0.95) - 3.85).abs() < 1e-12);
        assert_eq!(quantile(&[7.0], 0.99), 7.0);
    }

    #[test]
    fn nothing_has_no_summary() {
        assert_eq!(Summary::of(std::iter::empty()), None);
    }

    proptest! {
        #[test]
        fn quantiles_are_ordered_and_within_the_values(
            values in prop::collection::vec(0.0..1e12f64, 1..100),
        ) {
            let summary = Summary::of(values.iter().copied()).unwrap();
            let low = values.iter().copied().fold(f64::INFINITY, f64::min);
            let high = values.iter().copied().fold(0.0, f64::max);
            prop_assert!(low <= summary.median && summary.median <= summary.p95);
            prop_assert!(summary.p95 <= summary.p99 && summary.p99 <= high);
            prop_assert!(summary.mean >= low * 0.999_999 && summary.mean <= high * 1.000_001);
        }
    }
}
