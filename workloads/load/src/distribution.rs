// SPDX-License-Identifier: Apache-2.0

//! Flow-size distributions, given by points of the cumulative distribution function.
//!
//! Between two points the size is interpolated linearly. Two points of the same size are a
//! point mass. Between two points of the same probability there are no flows.

use rand::Rng;

/// The built-in distributions, by name.
const BUILT_IN: [(&str, &str); 5] = [
    (
        "websearch",
        include_str!("../../distributions/websearch.csv"),
    ),
    (
        "datamining",
        include_str!("../../distributions/datamining.csv"),
    ),
    (
        "cachefollower",
        include_str!("../../distributions/cachefollower.csv"),
    ),
    (
        "webserver",
        include_str!("../../distributions/webserver.csv"),
    ),
    ("hadoop", include_str!("../../distributions/hadoop.csv")),
];

/// A distribution of flow sizes.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    points: Vec<Point>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Point {
    bytes: f64,
    probability: f64,
}

/// Why a text is not a distribution.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ParseError {
    /// A line that is neither a comment nor a point.
    #[error("line {line}: {text:?} is not `bytes,probability`, such as `9000,0.15`")]
    Line {
        /// Line number, from 1.
        line: usize,
        /// Text of the line.
        text: String,
    },
    /// A size or a probability smaller than the one before.
    #[error("line {line}: sizes and probabilities may not decrease")]
    Decreasing {
        /// Line number, from 1.
        line: usize,
    },
    /// The probabilities don't span 0 to 1, or all sizes are 0.
    #[error("probabilities must go from 0 to 1, up to a size above 0")]
    Incomplete,
}

impl Distribution {
    /// Names of the built-in distributions.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// The built-in distribution with this name.
    #[must_use]
    pub fn built_in(name: &str) -> Option<Self> {
        let (_, text) = BUILT_IN.iter().find(|(known, _)| *known == name)?;
        Self::parse(text).ok()
    }

    /// Parses points, one `bytes,probability` per line. Empty lines, lines that start with `#`
    /// and the header line `bytes,probability` are skipped.
    ///
    /// # Errors
    /// See [`ParseError`].
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut points: Vec<Point> = Vec::new();
        for (line, content) in (1..).zip(text.lines().map(str::trim)) {
            if content.is_empty() || content.starts_with('#') || content == "bytes,probability" {
                continue;
            }
            let point = parse_point(content).ok_or_else(|| ParseError::Line {
                line,
                text: content.to_owned(),
            })?;
            let decreases = points.last().is_some_and(|last| {
                point.bytes < last.bytes || point.probability < last.probability
            });
            if decreases {
                return Err(ParseError::Decreasing { line });
            }
            points.push(point);
        }
        let whole = points.first().is_some_and(|first| first.probability == 0.0)
            && points
                .last()
                .is_some_and(|last| last.probability == 1.0 && last.bytes > 0.0);
        if whole {
            Ok(Self { points })
        } else {
            Err(ParseError::Incomplete)
        }
    }

    /// The distribution with all sizes multiplied by `factor`.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        let point = |point: &Point| Point {
            bytes: point.bytes * factor,
            ..*point
        };
        Self {
            points: self.points.iter().map(point).collect(),
        }
    }

    /// Mean size in bytes, exact for the interpolated distribution.
    #[must_use]
    pub fn mean_bytes(&self) -> f64 {
        self.points
            .windows(2)
            .map(|w| (w[1].probability - w[0].probability) * (w[0].bytes + w[1].bytes) / 2.0)
            .sum()
    }

    /// The quantile at `probability` (0 to 1): the inverse of the distribution function, rounded up
    /// to a whole byte, at least 1.
    #[must_use]
    pub fn quantile(&self, probability: f64) -> u64 {
        let above = self
            .points
            .partition_point(|point| point.probability < probability)
            .clamp(1, self.points.len() - 1);
        let (low, high) = (self.points[above - 1], self.points[above]);
        let width = high.probability - low.probability;
        let share = if width > 0.0 {
            ((probability - low.probability) / width).clamp(0.0, 1.0)
        } else {
            0.0
        };
        let bytes = low.bytes + share * (high.bytes - low.bytes);
        ((bytes - ROUNDING_BYTES).ceil() as u64).max(1)
    }

    /// Draws a random size in bytes.
    pub fn sample(&self, rng: &mut impl Rng) -> u64 {
        self.quantile(rng.random::<f64>())
    }
}

fn parse_point(text: &str) -> Option<Point> {
    let (bytes, probability) = text.split_once(',')?;
    let point = Point {
        bytes: bytes.trim().parse().ok()?,
        probability: probability.trim().parse().ok()?,
    };
    let sound = point.bytes.is_finite()
        && point.bytes >= 0.0
        && point.bytes <= MAX_FLOW_BYTES
        && (0.0..=1.0).contains(&point.probability);
    sound.then_some(point)
}

/// Floating-point error allowed on a whole size.
const ROUNDING_BYTES: f64 = 1e-6;

/// Larger sizes (above 2^50) are taken for mistakes.
const MAX_FLOW_BYTES: f64 = 1_125_899_906_842_624.0;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha12Rng;

    use super::*;

    fn built_in(name: &str) -> Distribution {
        Distribution::built_in(name).unwrap()
    }

    #[test]
    fn every_built_in_distribution_has_its_published_mean() {
        let published = [
            ("websearch", 1_710_004.0),
            ("datamining", 7_487_884.0),
            ("cachefollower", 712_574.0),
            ("webserver", 66_121.0),
            ("hadoop", 120_421.0),
        ];
        assert_eq!(published.len(), Distribution::names().count());
        for (name, mean) in published {
            let found = built_in(name).mean_bytes();
            assert!((found - mean).abs() < 1.0, "{name}: {found} is not {mean}");
        }
    }

    #[test]
    fn samples_average_to_the_analytic_mean() {
        for name in Distribution::names() {
            let distribution = built_in(name);
            let mut rng = ChaCha12Rng::seed_from_u64(1);
            let count = 400_000;
            let sum: u64 = (0..count).map(|_| distribution.sample(&mut rng)).sum();
            let ratio = sum as f64 / f64::from(count) / distribution.mean_bytes();
            assert!((ratio - 1.0).abs() < 0.03, "{name}: {ratio} of the mean");
        }
    }

    #[test]
    fn quantiles_meet_the_points_and_lie_between_them() {
        let websearch = built_in("websearch");
        assert_eq!(websearch.quantile(0.0), 9_000);
        assert_eq!(websearch.quantile(0.15), 9_000);
        assert_eq!(websearch.quantile(0.65), 600_000);
        assert_eq!(websearch.quantile(1.0), 30_000_000);
    }

    #[test]
    fn a_range_without_flows_is_never_drawn() {
        let webserver = built_in("webserver");
        assert_eq!(webserver.quantile(0.2), 300);
        assert!(webserver.quantile(0.200_001) > 600);
    }

    #[test]
    fn sizes_are_rounded_up_and_never_zero() {
        let hadoop = built_in("hadoop");
        assert_eq!(hadoop.quantile(0.0), 1);
        assert_eq!(hadoop.quantile(0.000_001), 1);
        assert_eq!(hadoop.quantile(0.010_5), 105);
    }

    #[test]
    fn broken_texts_are_refused_with_their_line() {
        let parse = |text| Distribution::parse(text).unwrap_err().to_string();
        assert_eq!(
            parse("bytes,probability\n1,0\nten,1\n"),
            "line 3: \"ten,1\" is not `bytes,probability`, such as `9000,0.15`"
        );
        assert_eq!(
            Distribution::parse("5,0\n4,1\n"),
            Err(ParseError::Decreasing { line: 2 })
        );
        for incomplete in ["", "1,0\n", "1,0.1\n2,1\n", "1,0\n2,0.9\n", "0,0\n0,1\n"] {
            assert_eq!(
                Distribution::parse(incomplete),
                Err(ParseError::Incomplete),
                "{incomplete:?}"
            );
        }
        assert!(matches!(
            Distribution::parse("1,0\nNaN,1\n"),
            Err(ParseError::Line { line: 2, .. })
        ));
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in "[0-9,.eN#\n-]{0,60}") {
            let _ = Distribution::parse(&text);
        }

        #[test]
        fn quantiles_never_decrease(a in 0.0..=1.0f64, b in 0.0..=1.0f64) {
            let (low, high) = if a <= b { (a, b) } else { (b, a) };
            for name in Distribution::names() {
                let distribution = built_in(name);
                prop_assert!(distribution.quantile(low) <= distribution.quantile(high));
            }
        }
    }
}
