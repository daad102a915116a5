// SPDX-License-Identifier: Apache-2.0

//! What the bytes in each class say about the sizes of flows.
//!
//! A flow of `s` bytes sends each of its bytes once, with `s` left, then one less, and so on. So
//! the bytes that are sent while between `x` and `x + dx` are left are as many as there are flows
//! of more than `x` bytes, times `dx`: the density of bytes over what is left is the share of
//! flows that are longer. A class gives its mean between two thresholds.

/// The steps of the first class end at its threshold, at half of that, and so on.
const FIRST_HALVINGS: u32 = 7;
/// The last class has steps that end at these multiples of the mean rest of its flows.
const LAST_ENDS: [f64; 4] = [0.5, 1.0, 2.0, LAST_END];
const LAST_END: f64 = 4.0;

/// Density of bytes over what is left to send; it falls in steps. All bytes together are 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Sizes {
    steps: Vec<Step>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Step {
    from: f64,
    to: f64,
    density: f64,
}

impl Sizes {
    /// From the bytes in class 1, 2, ... and the thresholds between these. `None` if there are no
    /// bytes.
    ///
    /// Within a class, nothing is known. In the middle ones, the density is taken to be even. In
    /// the first it falls as if sizes were distributed evenly by their logarithm. The rests of
    /// flows in the last one are taken to be distributed exponentially, and at its threshold as
    /// many go on as in the class before.
    pub fn of(bytes: &[f64], most_bytes: &[u64]) -> Option<Self> {
        let total: f64 = bytes.iter().sum();
        if total <= 0.0 {
            return None;
        }
        let bytes: Vec<f64> = bytes.iter().map(|bytes| bytes / total).collect();
        let ends: Vec<f64> = most_bytes.iter().map(|&bytes| bytes as f64).collect();
        let mut steps: Vec<Step> = Vec::new();
        let mut from = 0.0;
        for (index, &to) in ends.iter().enumerate() {
            if index == 0 {
                let next = match ends.get(1) {
                    Some(next) => bytes.get(1).map_or(0.0, |bytes| bytes / (next - to)),
                    None => 0.0,
                };
                first(&mut steps, to, bytes[0], next);
            } else {
                let density = bytes[index] / (to - from);
                push(&mut steps, Step { from, to, density });
            }
            from = to;
        }
        let open = bytes.get(ends.len()).copied().unwrap_or(0.0);
        if open > 0.0 {
            let before = steps.last().map_or(0.0, |step| step.density);
            last(&mut steps, from, open, before);
        }
        Some(Self { steps })
    }

    /// The mean of several, each with its weight. `None` without any.
    pub fn mean<'a>(all: impl Iterator<Item = (&'a Self, f64)> + Clone) -> Option<Self> {
        let total: f64 = all.clone().map(|(_, weight)| weight).sum();
        let steps = all.clone().flat_map(|(sizes, _)| &sizes.steps);
        let mut ends: Vec<f64> = steps.map(|step| step.to).collect();
        ends.sort_by(f64::total_cmp);
        ends.dedup();
        let mut from = 0.0;
        let step = |to: f64| {
            let at = std::mem::replace(&mut from, to);
            let density = all
                .clone()
                .map(|(sizes, weight)| weight / total * sizes.flows_above(at));
            Step {
                from: at,
                to,
                density: density.sum(),
            }
        };
        let steps: Vec<Step> = ends.into_iter().map(step).collect();
        (!steps.is_empty()).then_some(Self { steps })
    }

    /// How many bytes flows have left at most.
    pub fn most(&self) -> f64 {
        self.steps.last().map_or(0.0, |step| step.to)
    }

    /// The share of flows, by some constant, that have more left than `bytes`.
    pub fn flows_above(&self, bytes: f64) -> f64 {
        let mut steps = self.steps.iter();
        let step = steps.find(|step| bytes < step.to);
        step.map_or(0.0, |step| step.density)
    }

    /// Bytes that are sent while from `from` to `to` are left, and their sum times what is left
    /// beyond `from`.
    pub fn between(&self, from: f64, to: f64) -> (f64, f64) {
        let (mut bytes, mut moment) = (0.0, 0.0);
        for step in &self.steps {
            let (low, high) = (step.from.max(from), step.to.min(to));
            if high > low {
                let part = step.density * (high - low);
                bytes += part;
                moment += part * (f64::midpoint(low, high) - from);
            }
        }
        (bytes, moment)
    }

    /// The share of bytes in class 1, 2, ...
    pub fn shares(&self, most_bytes: &[u64]) -> Vec<f64> {
        let mut from = 0.0;
        let ends = most_bytes.iter().map(|&bytes| bytes as f64);
        let ends = ends.chain([f64::INFINITY]);
        ends.map(|to| self.between(std::mem::replace(&mut from, to), to).0)
            .collect()
    }
}

/// Adds the first class, which ends at `to`; in the next one, the density is `next`.
///
/// The density is `next + fall * ln(to / x)`, whose integral up to `x` is
/// `x * (next + fall * (ln(to / x) + 1))`.
fn first(steps: &mut Vec<Step>, to: f64, bytes: f64, next: f64) {
    let fall = (bytes / to - next).max(0.0);
    let next = bytes / to - fall;
    let below = |x: f64| match x {
        0.0 => 0.0,
        x => x * (next + fall * ((to / x).ln() + 1.0)),
    };
    let mut from = 0.0;
    for halvings in (0..=FIRST_HALVINGS).rev() {
        let end = to / f64::from(1 << halvings);
        let density = (below(end) - below(from)) / (end - from);
        push(
            steps,
            Step {
                from,
                to: end,
                density,
            },
        );
        from = end;
    }
}

/// Adds the last class, from `threshold` on; in the one before, the density is `before`.
fn last(steps: &mut Vec<Step>, threshold: f64, bytes: f64, before: f64) {
    // Nothing in the class before: then no threshold is near, and twice as far will do.
    let mean = if before > 0.0 {
        bytes / before
    } else {
        threshold.max(1.0)
    };
    let (mut from, mut left) = (threshold, 1.0);
    for end in LAST_ENDS {
        let to = threshold + end * mean;
        let beyond = if end == LAST_END { 0.0 } else { (-end).exp() };
        let density = bytes * (left - beyond) / (to - from);
        push(steps, Step { from, to, density });
        (from, left) = (to, beyond);
    }
}

/// Adds a step. No more flows are longer than a larger size: steps that rise become one.
fn push(steps: &mut Vec<Step>, mut step: Step) {
    while let Some(last) = steps.last().copied() {
        if last.density >= step.density {
            break;
        }
        steps.pop();
        let bytes = last.density * (last.to - last.from) + step.density * (step.to - step.from);
        step = Step {
            from: last.from,
            to: step.to,
            density: bytes / (step.to - last.from),
        };
    }
    steps.push(step);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-9
    }

    #[test]
    fn bytes_by_class_say_how_many_flows_are_longer() {
        // Flows of 60 kB, and as many of 30 kB.
        let sizes = Sizes::of(&[20.0, 40.0, 30.0], &[10_000, 30_000]).unwrap();
        let above = |bytes| sizes.flows_above(bytes);
        assert!(near(above(5_000.0), above(20_000.0)));
        let half = above(31_000.0) / above(20_000.0);
        assert!((0.5..1.0).contains(&half), "{half}");
        assert!(
            (60_000.0..120_000.0).contains(&sizes.most()),
            "{}",
            sizes.most()
        );
        assert!(near(above(sizes.most()), 0.0));
    }

    #[test]
    fn in_the_first_class_sizes_are_spread_over_orders_of_magnitude() {
        let sizes = Sizes::of(&[1.0, 0.0], &[1_000_000]).unwrap();
        let above = |bytes| sizes.flows_above(bytes);
        assert!(above(1_000.0) > 5.0 * above(600_000.0));
    }

    #[test]
    fn the_shares_of_the_same_thresholds_are_what_was_seen() {
        let thresholds = [10_000, 30_000, 100_000];
        let sizes = Sizes::of(&[40.0, 30.0, 20.0, 10.0], &thresholds).unwrap();
        let shares = sizes.shares(&thresholds);
        for (share, expected) in shares.iter().zip([0.4, 0.3, 0.2, 0.1]) {
            assert!(near(*share, expected), "{shares:?}");
        }
    }

    #[test]
    fn no_more_flows_are_longer_than_a_larger_size() {
        let sizes = Sizes::of(&[1.0, 8.0, 1.0], &[10_000, 20_000]).unwrap();
        let longer: Vec<f64> = [0.0, 5_000.0, 15_000.0, 25_000.0]
            .map(|bytes| sizes.flows_above(bytes))
            .into();
        assert!(longer.windows(2).all(|two| two[0] >= two[1]), "{longer:?}");
        assert!(near(sizes.shares(&[]).iter().sum(), 1.0));
    }

    #[test]
    fn a_mean_has_the_shares_in_between_by_weight() {
        let thresholds = [10_000, 30_000];
        let of = |bytes: [f64; 3]| Sizes::of(&bytes, &thresholds).unwrap();
        let (short, long) = (of([70.0, 20.0, 10.0]), of([10.0, 20.0, 70.0]));
        let mean = Sizes::mean([(&short, 3.0), (&long, 1.0)].into_iter()).unwrap();
        let shares = mean.shares(&thresholds);
        for (share, expected) in shares.iter().zip([0.55, 0.2, 0.25]) {
            assert!(near(*share, expected), "{shares:?}");
        }
        assert_eq!(Sizes::mean(std::iter::empty()), None);
    }

    #[test]
    fn without_bytes_nothing_is_known() {
        assert_eq!(Sizes::of(&[0.0, 0.0], &[10_000]), None);
        let all_long = Sizes::of(&[0.0, 5.0], &[10_000]).unwrap();
        assert!(near(all_long.shares(&[]).iter().sum(), 1.0));
    }
}
