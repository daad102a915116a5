// SPDX-License-Identifier: Apache-2.0

//! Traffic of fixed flow sizes.

use rand::Rng;
use rand::seq::SliceRandom;

use super::Mix;
use super::{Flow, PlanError, Stream, exponential, hosts_of_other_racks, pick, stream};
use crate::ideal_fabric::IdealFabric;

/// When the flows of a pattern start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Starts {
    /// All at time 0.
    AtOnce,
    /// As a Poisson process with this mean interval in nanoseconds; the first at time 0.
    Poisson(u64),
    /// At independent times, uniform below this number of nanoseconds.
    Within(u64),
}

impl Starts {
    /// `count` start times in order.
    fn times(self, count: usize, seed: u64) -> Vec<u64> {
        match self {
            Self::AtOnce => vec![0; count],
            Self::Poisson(mean_ns) => {
                let mut rng = stream(seed, Stream::Arrivals);
                let mut clock_ns = 0.0;
                let next = || {
                    let start_ns = clock_ns as u64;
                    clock_ns += exponential(&mut rng, mean_ns as f64);
                    start_ns
                };
                std::iter::repeat_with(next).take(count).collect()
            }
            Self::Within(ns) => {
                let mut rng = stream(seed, Stream::Starts);
                let mut times: Vec<u64> = (0..count).map(|_| rng.random_range(0..ns)).collect();
                times.sort_unstable();
                times
            }
        }
    }
}

/// `senders` flows of `bytes` each to one receiver. The receiver is a random host; the
/// senders are hosts of other racks in random order. If there are fewer hosts than `senders`,
/// they send several flows each, as evenly as possible.
///
/// # Errors
/// [`PlanError::OneRack`].
pub fn incast(
    fabric: &IdealFabric,
    senders: usize,
    bytes: u64,
    starts: Starts,
    seed: u64,
) -> Result<Vec<Flow>, PlanError> {
    let others = hosts_of_other_racks(fabric)?;
    let mut rng = stream(seed, Stream::Pairs);
    let destination = pick(&mut rng, fabric.hosts());
    let mut sources = others[fabric.rack(destination)].clone();
    sources.shuffle(&mut rng);
    let times = starts.times(senders, seed);
    let flows = sources.iter().cycle().zip(times);
    let flow = |(&source, start_ns)| Flow {
        source,
        destination,
        bytes,
        start_ns,
    };
    Ok(flows.map(flow).collect())
}

/// A flow of `bytes` in each direction between every two hosts of different racks, in random
/// order.
///
/// # Errors
/// [`PlanError::OneRack`].
pub fn all_to_all(
    fabric: &IdealFabric,
    bytes: u64,
    starts: Starts,
    seed: u64,
) -> Result<Vec<Flow>, PlanError> {
    let others = hosts_of_other_racks(fabric)?;
    let mut pairs: Vec<(usize, usize)> = (0..fabric.hosts())
        .flat_map(|source| {
            let destinations = others[fabric.rack(source)].iter();
            destinations.map(move |&destination| (source, destination))
        })
        .collect();
    pairs.shuffle(&mut stream(seed, Stream::Pairs));
    let times = starts.times(pairs.len(), seed);
    let flow = |((source, destination), start_ns)| Flow {
        source,
        destination,
        bytes,
        start_ns,
    };
    Ok(pairs.into_iter().zip(times).map(flow).collect())
}

/// Long and short flows to one receiver, in random order (MPTCP-RB, section 7.2). The number of
/// long flows is exactly their share, rounded.
///
/// # Errors
/// [`PlanError::OneRack`].
pub fn mixed(fabric: &IdealFabric, mix: &Mix, seed: u64) -> Result<Vec<Flow>, PlanError> {
    let count = mix.flows as usize;
    let long = (mix.long_share * f64::from(mix.flows)).round() as usize;
    let mut flows = incast(fabric, count, mix.short_bytes, mix.starts, seed)?;
    let mut places: Vec<usize> = (0..count).collect();
    places.shuffle(&mut stream(seed, Stream::Sizes));
    for &place in &places[..long.min(count)] {
        flows[place].bytes = mix.long_bytes;
    }
    Ok(flows)
}

/// `count` queries: a random host asks `fan_out` hosts of other racks at once, and each answers
/// with `bytes`. Queries are a Poisson process with a mean interval of `interarrival_ns`. The
/// flows of a query are adjacent in the plan.
///
/// # Errors
/// [`PlanError::OneRack`].
pub fn queries(
    fabric: &IdealFabric,
    count: usize,
    fan_out: usize,
    bytes: u64,
    interarrival_ns: u64,
    seed: u64,
) -> Result<Vec<Flow>, PlanError> {
    let others = hosts_of_other_racks(fabric)?;
    let mut rng = stream(seed, Stream::Pairs);
    let times = Starts::Poisson(interarrival_ns).times(count, seed);
    let mut flows = Vec::with_capacity(count * fan_out);
    for start_ns in times {
        let destination = pick(&mut rng, fabric.hosts());
        let mut servers = others[fabric.rack(destination)].clone();
        servers.shuffle(&mut rng);
        flows.extend(servers.iter().cycle().take(fan_out).map(|&source| Flow {
            source,
            destination,
            bytes,
            start_ns,
        }));
    }
    Ok(flows)
}

/// A page: `objects` flows of nearly equal size, `bytes` in total, from the first host of the
/// first rack (the server) to the first host of the second. The engine decides when they
/// start.
///
/// # Errors
/// [`PlanError::OneRack`].
pub fn page(fabric: &IdealFabric, objects: usize, bytes: u64) -> Result<Vec<Flow>, PlanError> {
    let mut flows = bulk(fabric, 1, bytes)?.repeat(objects);
    let count = objects as u64;
    for (flow, index) in flows.iter_mut().zip(0..) {
        flow.bytes = bytes * (index + 1) / count - bytes * index / count;
    }
    Ok(flows)
}

/// `count` flows of `bytes` each from hosts of the first rack to hosts of the second, all at
/// once. Flow i goes from the i-th host to the i-th host, modulo the number of hosts.
///
/// # Errors
/// [`PlanError::OneRack`].
pub fn bulk(fabric: &IdealFabric, count: usize, bytes: u64) -> Result<Vec<Flow>, PlanError> {
    let of_rack = |rack| (0..fabric.hosts()).filter(move |&host| fabric.rack(host) == rack);
    if of_rack(1).next().is_none() {
        return Err(PlanError::OneRack);
    }
    let pairs = of_rack(0).cycle().zip(of_rack(1).cycle());
    let flows = pairs.take(count).map(|(source, destination)| Flow {
        source,
        destination,
        bytes,
        start_ns: 0,
    });
    Ok(flows.collect())
}
