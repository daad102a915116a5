// SPDX-License-Identifier: Apache-2.0

//! The flows of a run: sizes, pairs and start times, all drawn from the seed.
//!
//! Sizes, arrivals and pairs come from separate random streams, so that a run at another load
//! has the same flows between the same hosts.
//!
//! # Offered load
//!
//! Flows arrive as one Poisson process, regardless of the network's state (an open loop), with
//!
//! ```text
//! flows per second = load * sum of all host link rates / (8 * mean flow size)
//! ```
//!
//! At load 1, the hosts together would have to send payload at the total rate of their links.
//! The mean flow size is that of the distribution, not of the flows drawn.

mod background;
mod fixed_sizes;
mod replay;
mod traffic;

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha12Rng;

use crate::distribution::Distribution;
use crate::ideal_fabric::IdealFabric;
pub use background::{
    Background, BackgroundSpec, OnOff, UDP_OVER_IPV6_PAYLOAD_BYTES, UDP_PAYLOAD_BYTES,
};
pub use fixed_sizes::{Starts, all_to_all, bulk, incast, mixed, page, queries};
pub use replay::{Entry, parse as parse_flows, replay};
pub use traffic::{Extent, Mix, Pairs, Traffic, Volume};

/// A flow to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// Host that sends, numbered as in the fabric.
    pub source: usize,
    /// Host that receives.
    pub destination: usize,
    /// Size.
    pub bytes: u64,
    /// Start time, from the start of the run.
    pub start_ns: u64,
}

/// Why a plan is impossible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// There is only one rack; flows run between racks.
    #[error("flows run between racks: the topology needs at least 2 leaves with hosts")]
    OneRack,
    /// A permutation between racks of sizes that are too different.
    #[error("a permutation between racks needs no rack with more than half of the hosts")]
    LargeRack,
    /// A flow list names an unknown host.
    #[error("flow list, line {line}: the topology has no host {name}; there are {example}, ...")]
    NoHost {
        /// Line of the list.
        line: usize,
        /// The unknown name.
        name: String,
        /// A known name.
        example: String,
    },
}

/// The flows of `traffic` between hosts with these `names`, ordered by start time.
///
/// # Errors
/// See [`PlanError`].
pub fn build(
    fabric: &IdealFabric,
    names: &[&str],
    traffic: &Traffic,
    seed: u64,
) -> Result<Vec<Flow>, PlanError> {
    match traffic {
        Traffic::Random {
            pairs,
            sizes,
            load,
            extent,
            ..
        } => poisson(fabric, *pairs, sizes, *load, *extent, seed),
        Traffic::Incast {
            senders,
            bytes,
            starts,
        } => incast(fabric, *senders as usize, *bytes, *starts, seed),
        Traffic::Bulk { flows, volume } => {
            let bytes = match volume {
                Volume::Bytes(bytes) => *bytes,
                Volume::Duration(_) => UNLIMITED_BYTES,
            };
            bulk(fabric, *flows as usize, bytes)
        }
        Traffic::Page { objects, bytes, .. } => page(fabric, *objects as usize, *bytes),
        Traffic::AllToAll { bytes, starts } => all_to_all(fabric, *bytes, *starts, seed),
        Traffic::Mixed(mix) => mixed(fabric, mix, seed),
        Traffic::Queries {
            queries: count,
            fan_out,
            bytes,
            interarrival_ns,
            ..
        } => queries(
            fabric,
            *count as usize,
            *fan_out as usize,
            *bytes,
            *interarrival_ns,
            seed,
        ),
        Traffic::Replay { entries } => replay(entries, names),
    }
}

/// A Poisson process of flows with sizes from `sizes` at `load` (see the module), between hosts
/// of different racks:
///
/// - random: a uniformly random source, and a uniformly random destination in another rack;
/// - permutation: every host has one destination and is the destination of one host; the
///   source of a flow is uniformly random;
/// - many to one: one receiver, and a uniformly random source in another rack. The load is
///   relative to the receiver's link, not to all links.
///
/// Ordered by start time.
///
/// # Errors
/// [`PlanError::OneRack`], [`PlanError::LargeRack`].
pub fn poisson(
    fabric: &IdealFabric,
    pairs: Pairs,
    sizes: &Distribution,
    load: f64,
    extent: Extent,
    seed: u64,
) -> Result<Vec<Flow>, PlanError> {
    let others = hosts_of_other_racks(fabric)?;
    let mut size_rng = stream(seed, Stream::Sizes);
    let mut arrival_rng = stream(seed, Stream::Arrivals);
    let mut pair_rng = stream(seed, Stream::Pairs);
    let partners = match pairs {
        Pairs::Permutation => permutation(fabric, &mut pair_rng)?,
        _ => Vec::new(),
    };
    let receiver = match pairs {
        Pairs::ManyToOne => pick(&mut pair_rng, fabric.hosts()),
        _ => 0,
    };
    let rate_bps = match pairs {
        Pairs::ManyToOne => fabric.receive_rate_bps(receiver) as f64,
        _ => fabric.host_rate_sum_bps(),
    };
    let mean_gap_ns = sizes.mean_bytes() * 8e9 / (load * rate_bps);
    let (count, end_ns) = match extent {
        Extent::Flows(count) => (count as usize, f64::INFINITY),
        Extent::Time(ns) => (usize::MAX, ns as f64),
    };
    let mut clock_ns = 0.0;
    let mut flows = Vec::new();
    while flows.len() < count {
        clock_ns += exponential(&mut arrival_rng, mean_gap_ns);
        if clock_ns > end_ns {
            break;
        }
        let (source, destination) = match pairs {
            Pairs::Random => {
                let source = pick(&mut pair_rng, fabric.hosts());
                let racks = &others[fabric.rack(source)];
                (source, racks[pick(&mut pair_rng, racks.len())])
            }
            Pairs::Permutation => {
                let source = pick(&mut pair_rng, fabric.hosts());
                (source, partners[source])
            }
            Pairs::ManyToOne => {
                let senders = &others[fabric.rack(receiver)];
                (senders[pick(&mut pair_rng, senders.len())], receiver)
            }
        };
        flows.push(Flow {
            source,
            destination,
            bytes: sizes.sample(&mut size_rng),
            start_ns: clock_ns as u64,
        });
    }
    Ok(flows)
}

/// A random partner in another rack for every host, so that each host is the partner of one.
/// Racks and the hosts in them are shuffled and laid out in order. A host's partner is as many
/// places further as the largest rack has hosts.
fn permutation(fabric: &IdealFabric, rng: &mut ChaCha12Rng) -> Result<Vec<usize>, PlanError> {
    let count = fabric.hosts();
    let mut racks: Vec<Vec<usize>> = Vec::new();
    for host in 0..count {
        let rack = fabric.rack(host);
        racks.resize(racks.len().max(rack + 1), Vec::new());
        racks[rack].push(host);
    }
    racks.shuffle(rng);
    for rack in &mut racks {
        rack.shuffle(rng);
    }
    let largest = racks.iter().map(Vec::len).max().unwrap_or(0);
    if 2 * largest > count {
        return Err(PlanError::LargeRack);
    }
    let order = racks.concat();
    let mut partners = vec![0; count];
    for (place, &host) in order.iter().enumerate() {
        partners[host] = order[(place + largest) % count];
    }
    Ok(partners)
}

/// Size of a flow that runs until it is stopped: more than any flow can send.
pub const UNLIMITED_BYTES: u64 = 1 << 50;

/// Random streams of a run. Never renumber them: that would change results.
#[derive(Debug, Clone, Copy)]
enum Stream {
    Sizes = 1,
    Arrivals = 2,
    Pairs = 3,
    Starts = 4,
    Background = 5,
    OnOff = 6,
    Classes = 7,
}

/// The random numbers by which applications spread equal flows over classes.
pub fn classes(seed: u64) -> ChaCha12Rng {
    stream(seed, Stream::Classes)
}

fn stream(seed: u64, stream: Stream) -> ChaCha12Rng {
    let mut rng = ChaCha12Rng::seed_from_u64(seed);
    rng.set_stream(stream as u64);
    rng
}

/// A random interval of a Poisson process.
fn exponential(rng: &mut ChaCha12Rng, mean: f64) -> f64 {
    // 1 - [0, 1) is never 0.
    -mean * (1.0 - rng.random::<f64>()).ln()
}

/// A random number below `bound`, the same on machines of any word size.
fn pick(rng: &mut ChaCha12Rng, bound: usize) -> usize {
    rng.random_range(0..bound as u64) as usize
}

/// For every rack, the hosts of all other racks.
fn hosts_of_other_racks(fabric: &IdealFabric) -> Result<Vec<Vec<usize>>, PlanError> {
    let racks = (0..fabric.hosts())
        .map(|host| fabric.rack(host) + 1)
        .max()
        .unwrap_or(0);
    if racks < 2 {
        return Err(PlanError::OneRack);
    }
    let others = |rack| {
        (0..fabric.hosts())
            .filter(|&host| fabric.rack(host) != rack)
            .collect()
    };
    Ok((0..racks).map(others).collect())
}

#[cfg(test)]
mod tests;
