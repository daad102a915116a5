// SPDX-License-Identifier: Apache-2.0

//! The cost of a path, from its measurements.

use std::fmt;
use std::str::FromStr;

use crate::fabric::{LeafPair, RoutedFabric};
use crate::telemetry::Telemetry;

/// How long a queue sample is valid. Switches report a queue in use at least every 10 ms, so
/// an older one is no longer in use.
pub const QUEUE_FRESH_NS: u64 = 20_000_000;

/// What costs are computed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Input {
    /// Nothing from the network: kernels use their own smoothed RTT, as in MPTCP-RB.
    Srtt,
    /// The smoothed RTT that leaves measure.
    #[default]
    Rtt,
    /// The lowest recent RTT (at first, the configured one), plus the queueing delay in the
    /// data's direction. Queues in the ACKs' direction don't delay data.
    RttAndQueue,
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Srtt => "srtt",
            Self::Rtt => "rtt",
            Self::RttAndQueue => "rtt+queue",
        })
    }
}

impl FromStr for Input {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Srtt, Self::Rtt, Self::RttAndQueue]
            .into_iter()
            .find(|input| input.to_string() == text)
            .ok_or_else(|| format!("{text:?} is not one of srtt, rtt and rtt+queue"))
    }
}

/// The cost in nanoseconds of each path of `pair` at `now_ns`, 0 for paths not in
/// `carries`. `None` if the cost of a path is unknown, or for [`Input::Srtt`].
#[must_use]
pub fn costs_ns(
    input: Input,
    fabric: &RoutedFabric,
    telemetry: &Telemetry,
    now_ns: u64,
    pair: LeafPair,
    carries: &[bool],
) -> Option<Vec<u64>> {
    let path_cost = |path: u8| {
        if carries.get(usize::from(path)) == Some(&false) {
            return Some(0);
        }
        let stats = telemetry.path(pair, path);
        match input {
            Input::Srtt => None,
            Input::Rtt => stats?.rtt_ns(now_ns),
            Input::RttAndQueue => {
                let measured = stats.filter(|stats| stats.smoothed_ns.is_some());
                let base_ns = match measured {
                    Some(stats) => stats.min_ns,
                    None => fabric.configured_rtt_ns(pair, path)?,
                };
                let queue = telemetry.queue(fabric, now_ns, pair, path);
                let is_fresh = now_ns.saturating_sub(queue.at_ns) < QUEUE_FRESH_NS;
                Some(base_ns + if is_fresh { queue.delay_ns } else { 0 })
            }
        }
    };
    (0..fabric.paths()).map(path_cost).collect()
}

/// The cost without queues of the paths in `carries`, 0 for the others: the lowest recent
/// RTT, or the configured one.
#[must_use]
pub fn lowest_ns(
    fabric: &RoutedFabric,
    telemetry: &Telemetry,
    pair: LeafPair,
    carries: &[bool],
) -> Option<Vec<u64>> {
    let path_cost = |(path, &carries): (u8, &bool)| {
        if !carries {
            return Some(0);
        }
        let stats = telemetry.path(pair, path);
        let measured = stats.filter(|stats| stats.smoothed_ns.is_some());
        measured.map_or_else(
            || fabric.configured_rtt_ns(pair, path),
            |stats| Some(stats.min_ns),
        )
    };
    (0..).zip(carries).map(path_cost).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_read_as_they_are_written() {
        for input in [Input::Srtt, Input::Rtt, Input::RttAndQueue] {
            assert_eq!(input.to_string().parse(), Ok(input));
        }
        assert_eq!(
            "queue".parse::<Input>().unwrap_err(),
            "\"queue\" is not one of srtt, rtt and rtt+queue"
        );
    }
}
