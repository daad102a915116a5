//! Which flows there are: sizes, pairs and start times, all drawn from the seed.
//!
//! Sizes, arrivals and pairs come from separate random streams, so that a run
//! with another load sends the same flows between the same hosts.
//!
//! # Offered load
//!
//! Flows arrive as one Poisson process, whatever the fabric makes of them (an
//! open loop), with
//!
//! ```text
//! flows per second = load * sum of all host link rates / (8 * mean flow size)
//! ```
//!
//! so that at load 1 the hosts together would have to send payload at the rate
//! of all their links. The mean is that of the distribution, not of the flows
//! that were drawn.

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha12Rng;

use crate::distribution::Distribution;
use crate::fabric::Fabric;

/// A flow to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// Host that sends, as the fabric numbers them.
    pub source: usize,
    /// Host that receives.
    pub destination: usize,
    /// Size.
    pub bytes: u64,
    /// When it starts, counted from the start of the run.
    pub start_ns: u64,
}

/// Why no plan could be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Flows go between racks.
    #[error("flows run between racks: the topology needs at least 2 leaves with hosts")]
    OneRack,
}

/// `count` flows of sizes from `sizes`, as a Poisson process at `load` (see the
/// module), each between two random hosts of different racks: the source
/// uniform over all hosts, the destination over all hosts of other racks.
/// Ordered by start time.
///
/// # Errors
/// [`PlanError::OneRack`].
pub fn poisson(
    fabric: &Fabric,
    sizes: &Distribution,
    load: f64,
    count: usize,
    seed: u64,
) -> Result<Vec<Flow>, PlanError> {
    let others = hosts_of_other_racks(fabric)?;
    let mut size_rng = stream(seed, Stream::Sizes);
    let mut arrival_rng = stream(seed, Stream::Arrivals);
    let mut pair_rng = stream(seed, Stream::Pairs);
    let mean_gap_ns = sizes.mean_bytes() * 8e9 / (load * fabric.host_rate_sum_bps());
    let mut clock_ns = 0.0;
    let flows = (0..count)
        .map(|_| {
            clock_ns += exponential(&mut arrival_rng, mean_gap_ns);
            let source = pick(&mut pair_rng, fabric.hosts());
            let racks = &others[fabric.rack(source)];
            Flow {
                source,
                destination: racks[pick(&mut pair_rng, racks.len())],
                bytes: sizes.sample(&mut size_rng),
                start_ns: clock_ns as u64,
            }
        })
        .collect();
    Ok(flows)
}

/// `senders` flows of `bytes` each towards one receiver. The receiver is a
/// random host, the senders are hosts of other racks in random order; where
/// there are fewer than `senders`, each sends several flows, as evenly as
/// possible. They start at once, or as a Poisson process with
/// `interarrival_ns` between two starts in the mean, the first one at 0.
///
/// # Errors
/// [`PlanError::OneRack`].
pub fn incast(
    fabric: &Fabric,
    senders: usize,
    bytes: u64,
    interarrival_ns: u64,
    seed: u64,
) -> Result<Vec<Flow>, PlanError> {
    let others = hosts_of_other_racks(fabric)?;
    let mut arrival_rng = stream(seed, Stream::Arrivals);
    let mut clock_ns = 0.0;
    let mut rng = stream(seed, Stream::Pairs);
    let destination = pick(&mut rng, fabric.hosts());
    let mut sources = others[fabric.rack(destination)].clone();
    sources.shuffle(&mut rng);
    let flows = sources.iter().cycle().take(senders).map(|&source| {
        let start_ns = clock_ns as u64;
        clock_ns += exponential(&mut arrival_rng, interarrival_ns as f64);
        Flow {
            source,
            destination,
            bytes,
            start_ns,
        }
    });
    Ok(flows.collect())
}

/// Size of a flow that goes on until it is stopped: more than any can send.
pub const UNLIMITED_BYTES: u64 = 1 << 50;

/// A page: `objects` flows of `bytes` together, as equal as can be, from the
/// first host of the first rack, the server, to the first of the second. When
/// they start, the engine decides.
///
/// # Errors
/// [`PlanError::OneRack`].
pub fn page(fabric: &Fabric, objects: usize, bytes: u64) -> Result<Vec<Flow>, PlanError> {
    let mut flows = bulk(fabric, 1, bytes)?.repeat(objects);
    let count = objects as u64;
    for (flow, index) in flows.iter_mut().zip(0..) {
        flow.bytes = bytes * (index + 1) / count - bytes * index / count;
    }
    Ok(flows)
}

/// `count` flows of `bytes` each from the hosts of the first rack to those of
/// the second, all at once. Flow i goes from the i-th host to the i-th host;
/// where there are fewer hosts than flows, it starts over.
///
/// # Errors
/// [`PlanError::OneRack`].
pub fn bulk(fabric: &Fabric, count: usize, bytes: u64) -> Result<Vec<Flow>, PlanError> {
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

/// Random streams of a run; every one keeps its number for ever.
#[derive(Debug, Clone, Copy)]
enum Stream {
    Sizes = 1,
    Arrivals = 2,
    Pairs = 3,
}

fn stream(seed: u64, stream: Stream) -> ChaCha12Rng {
    let mut rng = ChaCha12Rng::seed_from_u64(seed);
    rng.set_stream(stream as u64);
    rng
}

/// A time between two events of a Poisson process.
fn exponential(rng: &mut ChaCha12Rng, mean: f64) -> f64 {
    // 1 - [0, 1) is never 0.
    -mean * (1.0 - rng.random::<f64>()).ln()
}

/// A number below `bound`, the same on machines of any word size.
fn pick(rng: &mut ChaCha12Rng, bound: usize) -> usize {
    rng.random_range(0..bound as u64) as usize
}

/// For every rack, the hosts of all others.
fn hosts_of_other_racks(fabric: &Fabric) -> Result<Vec<Vec<usize>>, PlanError> {
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
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fabric::tests::leaf_spine;

    const GBIT: u64 = 1_000_000_000;

    fn fabric(leaves: u8, hosts: u8) -> Fabric {
        Fabric::new(&leaf_spine(leaves, 2, hosts, GBIT, GBIT)).unwrap()
    }

    fn websearch() -> Distribution {
        Distribution::built_in("websearch").unwrap()
    }

    #[test]
    fn arrivals_offer_the_load_that_was_asked_for() {
        let fabric = fabric(2, 4);
        let flows = poisson(&fabric, &websearch(), 0.3, 100_000, 1).unwrap();
        let seconds = flows.last().unwrap().start_ns as f64 / 1e9;
        let rate = flows.len() as f64 / seconds;
        let expected = 0.3 * 8.0 * 1e9 / (8.0 * websearch().mean_bytes());
        assert!((rate / expected - 1.0).abs() < 0.02, "{rate} flows/s");
        let bps = flows
            .iter()
            .map(|flow| flow.bytes as f64 * 8.0)
            .sum::<f64>()
            / seconds;
        assert!((bps / (0.3 * 8e9) - 1.0).abs() < 0.04, "{bps} bit/s");
    }

    #[test]
    fn gaps_are_exponential() {
        let flows = poisson(&fabric(2, 4), &websearch(), 0.5, 50_000, 2).unwrap();
        let gaps: Vec<f64> = flows
            .windows(2)
            .map(|w| (w[1].start_ns - w[0].start_ns) as f64)
            .collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let deviation =
            (gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
        assert!((deviation / mean - 1.0).abs() < 0.03);
    }

    #[test]
    fn another_load_sends_the_same_flows_at_other_times() {
        let fabric = fabric(2, 4);
        let slow = poisson(&fabric, &websearch(), 0.1, 50, 7).unwrap();
        let fast = poisson(&fabric, &websearch(), 0.8, 50, 7).unwrap();
        let untimed = |flows: &[Flow]| {
            flows
                .iter()
                .map(|flow| Flow {
                    start_ns: 0,
                    ..*flow
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(untimed(&slow), untimed(&fast));
        assert!(slow[49].start_ns > fast[49].start_ns);
    }

    #[test]
    fn an_incast_spreads_over_other_racks_and_reuses_hosts_evenly() {
        let fabric = fabric(2, 4);
        let flows = incast(&fabric, 10, 225_000, 0, 3).unwrap();
        assert_eq!(flows.len(), 10);
        let receiver = flows[0].destination;
        let mut per_sender = vec![0; fabric.hosts()];
        for flow in &flows {
            assert_eq!((flow.destination, flow.start_ns), (receiver, 0));
            assert_ne!(fabric.rack(flow.source), fabric.rack(receiver));
            per_sender[flow.source] += 1;
        }
        per_sender.retain(|flows| *flows > 0);
        per_sender.sort_unstable();
        assert_eq!(per_sender, [2, 2, 3, 3]);
    }

    #[test]
    fn an_incasts_flows_may_start_as_a_poisson_process() {
        let at_once = incast(&fabric(2, 4), 20_000, 1, 0, 3).unwrap();
        let flows = incast(&fabric(2, 4), 20_000, 1, 100_000, 3).unwrap();
        assert_eq!(flows[0].start_ns, 0);
        assert!(flows.windows(2).all(|w| w[0].start_ns <= w[1].start_ns));
        let mean_ns = flows[19_999].start_ns as f64 / 19_999.0;
        assert!((mean_ns / 100_000.0 - 1.0).abs() < 0.03, "{mean_ns}");
        let pairs = |flows: &[Flow]| -> Vec<_> {
            let pair = |flow: &Flow| (flow.source, flow.destination);
            flows.iter().map(pair).collect()
        };
        assert_eq!(pairs(&at_once), pairs(&flows));
    }

    #[test]
    fn bulk_flows_have_hosts_of_their_own_while_there_are_some() {
        let flows = bulk(&fabric(3, 3), 5, 20_000_000).unwrap();
        let pairs: Vec<_> = flows.iter().map(|f| (f.source, f.destination)).collect();
        assert_eq!(pairs, [(0, 3), (1, 4), (2, 5), (0, 3), (1, 4)]);
        assert!(
            flows
                .iter()
                .all(|f| (f.bytes, f.start_ns) == (20_000_000, 0))
        );
    }

    #[test]
    fn the_objects_of_a_page_are_equal_and_add_up() {
        let flows = page(&fabric(2, 2), 7, 1_000).unwrap();
        assert_eq!(flows.iter().map(|flow| flow.bytes).sum::<u64>(), 1_000);
        for flow in flows {
            assert!((142..=143).contains(&flow.bytes));
            assert_eq!((flow.source, flow.destination), (0, 2));
        }
    }

    #[test]
    fn one_rack_is_not_enough() {
        let fabric = fabric(1, 4);
        assert_eq!(bulk(&fabric, 1, 1), Err(PlanError::OneRack));
        assert_eq!(incast(&fabric, 1, 1, 0, 1), Err(PlanError::OneRack));
        assert_eq!(
            poisson(&fabric, &websearch(), 0.1, 1, 1),
            Err(PlanError::OneRack)
        );
    }

    proptest! {
        #[test]
        fn flows_cross_racks_in_order_and_depend_on_the_seed_alone(
            seed: u64, leaves in 2u8..5, hosts in 1u8..5, load in 0.01..1.0f64,
        ) {
            let fabric = fabric(leaves, hosts);
            let flows = poisson(&fabric, &websearch(), load, 40, seed).unwrap();
            prop_assert_eq!(&flows, &poisson(&fabric, &websearch(), load, 40, seed).unwrap());
            for flow in &flows {
                prop_assert_ne!(fabric.rack(flow.source), fabric.rack(flow.destination));
                prop_assert!(flow.bytes > 0);
            }
            prop_assert!(flows.windows(2).all(|w| w[0].start_ns <= w[1].start_ns));
        }
    }
}
