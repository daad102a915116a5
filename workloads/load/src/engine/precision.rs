// SPDX-License-Identifier: Apache-2.0

//! Decides when the mean FCT of a run is known precisely enough.
//!
//! Successive FCTs are correlated, because the flows met the same queues. So the confidence
//! interval uses batch means (Law and Carson, 1979): the mean of each of several equal
//! batches is one observation, and Student's t gives the interval.

/// Number of batches.
const BATCHES: usize = 20;
/// 0.975 quantile of Student's t with 19 degrees of freedom.
const T_975: f64 = 2.093;
/// Flows per batch at first.
const FIRST_BATCH: usize = 10;

/// The precision of a mean.
#[derive(Debug)]
pub(super) struct Precision {
    wanted: f64,
    /// Sums of full batches.
    sums: Vec<f64>,
    /// Values per batch.
    size: usize,
    /// Sum of the batch that is being filled.
    sum: f64,
    count: usize,
}

impl Precision {
    /// `wanted` is half the width of the interval, relative to the mean.
    pub(super) fn new(wanted: f64) -> Self {
        Self {
            wanted,
            sums: Vec::new(),
            size: FIRST_BATCH,
            sum: 0.0,
            count: 0,
        }
    }

    /// Adds a value. Returns whether the mean is now precise enough. That is checked when all
    /// batches are full; if it isn't, pairs of batches are merged.
    pub(super) fn is_reached_by(&mut self, value: f64) -> bool {
        self.sum += value;
        self.count += 1;
        if self.count < self.size {
            return false;
        }
        self.sums.push(std::mem::take(&mut self.sum));
        self.count = 0;
        if self.sums.len() < BATCHES {
            return false;
        }
        if self.half_share() <= self.wanted {
            return true;
        }
        self.sums = self.sums.chunks(2).map(|pair| pair.iter().sum()).collect();
        self.size *= 2;
        false
    }

    fn half_share(&self) -> f64 {
        let count = self.sums.len() as f64;
        let mean = self.sums.iter().sum::<f64>() / count;
        let squares: f64 = self.sums.iter().map(|sum| (sum - mean).powi(2)).sum();
        let deviation = (squares / (count - 1.0)).sqrt();
        T_975 * deviation / count.sqrt() / mean
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha12Rng;

    use super::*;

    /// Draws exponential values of mean 1 until their mean is known.
    fn mean_and_count(wanted: f64, seed: u64) -> (f64, usize) {
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        let mut precision = Precision::new(wanted);
        let (mut sum, mut count) = (0.0, 0);
        loop {
            let value = -(1.0 - rng.random::<f64>()).ln();
            sum += value;
            count += 1;
            if precision.is_reached_by(value) {
                return (sum / count as f64, count);
            }
        }
    }

    #[test]
    fn the_mean_is_as_near_as_was_asked_for_in_most_runs() {
        let near = |seed: &u64| (mean_and_count(0.05, *seed).0 - 1.0).abs() <= 0.05;
        let count = (0..200).filter(near).count();
        assert!(count >= 175, "{count} of 200");
    }

    #[test]
    fn half_the_interval_takes_about_four_times_the_flows() {
        let flows = |wanted| (0..50).map(|s| mean_and_count(wanted, s).1).sum::<usize>();
        let ratio = flows(0.03) as f64 / flows(0.06) as f64;
        assert!((2.0..8.0).contains(&ratio), "{ratio}");
    }
}
