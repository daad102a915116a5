//! What switches have measured: RTT per path, packets in queues.
//!
//! A sample is the time between a packet's arrival at its sender's leaf and the
//! arrival of its ACK there. The leaf makes samples of one path comparable and
//! smooths them; it tells what has changed. Here the sender's own link is added:
//!
//! ```text
//! rtt = smoothed of full-size packets + 2 * delay of the sender's own link
//! ```
//!
//! Where hosts' network cards measure, from card to card, they do all that, each for its
//! host; a path's RTT is the mean of what they say who have spoken of late.
//!
//! A sample whose queueing is more than all queues on the way can hold did not
//! wait in queues: the receiver delayed its ACK (Linux does for 40 ms). The leaf
//! uses none of those once it knows its paths; before, they are sorted out here.
//!
//! A path's estimate is the smoothed RTT while samples come. The queues of a path
//! that is idle have drained; what remains is the lowest RTT of late. That follows a
//! path which becomes shorter at once; and one which becomes longer as soon as all
//! digests of some milliseconds say so, and every queue on the way that it is empty.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use weft_topology::routes::EgressPort;

use crate::fabric::{LeafPair, RoutedFabric};
pub use crate::gray_failure::LossSample;

/// After so long without a sample a path counts as idle: longer than queues
/// take to drain.
pub const IDLE_NS: u64 = 100_000_000;

/// So long the word of a card counts: twice as long as it is silent while packets come.
const SMOOTHED_FRESH_NS: u64 = 20_000_000;

/// A lowest RTT older than this gives way to the next sample: links change.
const MIN_WINDOW_NS: u64 = 10_000_000_000;

/// What is clearly more than the lowest RTT: a quarter. Where paths meet
/// again a packet or two queue all the time, in queues that are empty as often as not.
const CLEARLY_LONGER_SHIFT: u32 = 2;

/// So long all digests must say that a path is longer: by then switches have told of
/// queues that are too small to be told of at once.
const LONGER_CONFIRM_NS: u64 = 10_000_000;

/// An `rtt_sample_t` digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RttSample {
    /// Sender of the data.
    pub source: Ipv4Addr,
    /// Receiver of the data.
    pub destination: Ipv4Addr,
    /// TCP port of the sender.
    pub source_port: u16,
    /// TCP port of the receiver.
    pub destination_port: u16,
    /// Path that the leaf chose, from 0.
    pub path: u8,
    /// IPv4 total length of the data packet.
    pub length_bytes: u16,
    /// Time between packet and ACK at the leaf.
    pub rtt_ns: u64,
    /// The same of full-size packets between the two leaves, smoothed by the leaf.
    pub smoothed_ns: u64,
    /// Lowest of these since the leaf's last digest about them.
    pub min_ns: u64,
    /// When it was taken, by the switch's clock.
    pub at_ns: u64,
}

/// A `queue_sample_t` digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueSample {
    /// Egress port.
    pub port: u16,
    /// Packets in its queue.
    pub depth_packets: u32,
    /// Time that the packet waited which left last, 0 when the queue is empty.
    pub delay_ns: u64,
    /// When it was taken, by the switch's clock.
    pub at_ns: u64,
    /// What the link behind it has sent; in-band telemetry does not tell.
    pub busy_period: Option<BusyPeriod>,
}

/// What a link has sent since it was idle last, up to the packet that left last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BusyPeriod {
    /// When it was idle last, by the switch's clock.
    pub since_ns: u64,
    /// Sent since then, Ethernet headers included, modulo 2^32.
    pub sent_bytes: u32,
}

/// A digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sample {
    /// A round-trip time.
    Rtt(RttSample),
    /// A queue.
    Queue(QueueSample),
    /// What a link loses.
    Loss(LossSample),
}

/// What is known about a path of a leaf pair.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathStats {
    /// Smoothed RTT of a full-size packet; `None` before the first sample.
    pub smoothed_ns: Option<u64>,
    /// Lowest RTT of a full-size packet of late.
    pub min_ns: u64,
    /// Samples that were used.
    pub samples: u64,
    /// Samples that measured a delayed ACK and were not.
    pub rejected_samples: u64,
    /// When the last sample was used.
    pub last_ns: u64,
    min_at_ns: u64,
    longer: Option<Longer>,
    /// The last word of each who measures: smoothed RTT, and when.
    smoothed_by_meter: BTreeMap<Option<usize>, (u64, u64)>,
}

/// What digests say in a row that a path has become longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Longer {
    /// Lowest RTT of all of them.
    min_ns: u64,
    /// When the first one came.
    since_ns: u64,
}

impl PathStats {
    /// The RTT to plan with at `now_ns`; `None` before the first sample.
    #[must_use]
    pub fn rtt_ns(&self, now_ns: u64) -> Option<u64> {
        let smoothed = self.smoothed_ns?;
        Some(if self.is_idle(now_ns) {
            self.min_ns
        } else {
            smoothed
        })
    }

    /// Whether the last sample is too old to tell about queues.
    #[must_use]
    pub fn is_idle(&self, now_ns: u64) -> bool {
        now_ns >= self.idle_at_ns()
    }

    /// When the path becomes idle unless samples come.
    #[must_use]
    pub fn idle_at_ns(&self) -> u64 {
        self.last_ns.saturating_add(IDLE_NS)
    }

    /// `is_clear`: whether there is no queue on the way.
    fn record(
        &mut self,
        now_ns: u64,
        nic: Option<usize>,
        rtt: &RouteRtt,
        is_clear: impl FnOnce() -> bool,
    ) {
        self.smoothed_by_meter
            .insert(nic, (rtt.smoothed_ns, now_ns));
        self.smoothed_by_meter
            .retain(|_, (_, at_ns)| now_ns.saturating_sub(*at_ns) <= SMOOTHED_FRESH_NS);
        let sum: u128 = self
            .smoothed_by_meter
            .values()
            .map(|(ns, _)| u128::from(*ns))
            .sum();
        // The mean of u64s is one.
        self.smoothed_ns = Some((sum / self.smoothed_by_meter.len() as u128) as u64);
        let min_is_old = now_ns.saturating_sub(self.min_at_ns) > MIN_WINDOW_NS;
        let clearly_ns = self
            .min_ns
            .saturating_add(self.min_ns >> CLEARLY_LONGER_SHIFT);
        let before = self.longer.take();
        if self.samples == 0 || rtt.min_ns <= self.min_ns || min_is_old {
            self.min_ns = rtt.min_ns;
            self.min_at_ns = now_ns;
        } else if rtt.min_ns > clearly_ns {
            let longer = Longer {
                min_ns: before.map_or(rtt.min_ns, |before| before.min_ns.min(rtt.min_ns)),
                since_ns: before.map_or(now_ns, |before| before.since_ns),
            };
            if now_ns.saturating_sub(longer.since_ns) >= LONGER_CONFIRM_NS && is_clear() {
                self.min_ns = longer.min_ns;
                self.min_at_ns = now_ns;
            } else {
                self.longer = Some(longer);
            }
        }
        self.samples += 1;
        self.last_ns = now_ns;
    }
}

/// The queue in front of one port, as last reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Queue {
    /// Packets in it.
    pub depth_packets: u32,
    /// Time that packets wait in it.
    pub delay_ns: u64,
    /// When that was reported.
    pub at_ns: u64,
}

/// Everything that telemetry says about a fabric.
#[derive(Debug, Default)]
pub struct Telemetry {
    paths: BTreeMap<(LeafPair, u8), PathStats>,
    queues: BTreeMap<EgressPort, Queue>,
    stray_samples: u64,
}

impl Telemetry {
    /// Records an RTT; returns the pair whose path it is about, unless the
    /// sample is of no use.
    pub fn record_rtt(
        &mut self,
        fabric: &RoutedFabric,
        now_ns: u64,
        sample: &RttSample,
    ) -> Option<LeafPair> {
        let Some((pair, rtt)) = normalise(fabric, sample) else {
            self.stray_samples += 1;
            return None;
        };
        let stats = self.paths.entry((pair, sample.path)).or_default();
        let Some(rtt) = rtt else {
            stats.rejected_samples += 1;
            return None;
        };
        let is_clear = || is_clear(&self.queues, fabric, now_ns, sample);
        stats.record(now_ns, fabric.measuring_nic(sample.source), &rtt, is_clear);
        Some(pair)
    }

    /// Records the queue of a port of `switch`.
    pub fn record_queue(
        &mut self,
        fabric: &RoutedFabric,
        now_ns: u64,
        switch: &str,
        sample: &QueueSample,
    ) {
        let Some(port) = fabric.port(switch, sample.port) else {
            self.stray_samples += 1;
            return;
        };
        let queue = self.queues.entry(port).or_default();
        // Switches tell changes, with hysteresis: the last word holds.
        *queue = Queue {
            depth_packets: sample.depth_packets,
            delay_ns: sample.delay_ns,
            at_ns: now_ns,
        };
    }

    /// What is known about `path` of `pair`.
    #[must_use]
    pub fn path(&self, pair: LeafPair, path: u8) -> Option<&PathStats> {
        self.paths.get(&(pair, path))
    }

    /// RTTs of the first `paths` paths of `pair`; `None` while one is unknown.
    #[must_use]
    pub fn rtts_ns(&self, now_ns: u64, pair: LeafPair, paths: u8) -> Option<Vec<u64>> {
        (0..paths)
            .map(|path| self.path(pair, path)?.rtt_ns(now_ns))
            .collect()
    }

    /// The deepest queue on the data's way between the leaves of `pair`
    /// (that towards the receiving host is the same on every path), and how
    /// long a packet waits in all of them.
    #[must_use]
    pub fn queue(&self, fabric: &RoutedFabric, now_ns: u64, pair: LeafPair, path: u8) -> Queue {
        let queues = fabric.route(pair, path);
        queues
            .filter_map(|port| self.queues.get(&port))
            .filter(|queue| now_ns.saturating_sub(queue.at_ns) < IDLE_NS)
            .fold(Queue::default(), |sum, queue| Queue {
                depth_packets: sum.depth_packets.max(queue.depth_packets),
                delay_ns: sum.delay_ns + queue.delay_ns,
                at_ns: sum.at_ns.max(queue.at_ns),
            })
    }

    /// Samples that no path of the topology could have produced.
    #[must_use]
    pub fn stray_samples(&self) -> u64 {
        self.stray_samples
    }
}

/// Whether all queues that the packet of `sample` or its ACK could have met were empty by
/// the last word about them, of late. Silence tells nothing: digests may be lost.
fn is_clear(
    queues: &BTreeMap<EgressPort, Queue>,
    fabric: &RoutedFabric,
    now_ns: u64,
    sample: &RttSample,
) -> bool {
    let (source, destination) = (sample.source, sample.destination);
    let there = fabric.route_between(source, destination, sample.path);
    let back = fabric.route_between(destination, source, sample.path);
    there.chain(back).all(|port| {
        queues.get(&port).is_some_and(|queue| {
            queue.delay_ns == 0 && now_ns.saturating_sub(queue.at_ns) < IDLE_NS
        })
    })
}

/// RTTs of a pair's path as its hosts see them.
struct RouteRtt {
    smoothed_ns: u64,
    min_ns: u64,
}

/// The pair a sample is about and what it says, `None` in place of that for a
/// delayed ACK. `None` when the sample contradicts the topology.
fn normalise(fabric: &RoutedFabric, sample: &RttSample) -> Option<(LeafPair, Option<RouteRtt>)> {
    let (source, destination, path) = (sample.source, sample.destination, sample.path);
    let pair = fabric.pair_of(source, destination)?;
    let base = fabric.measured_base_ns(source, destination, path, sample.length_bytes)?;
    let queueing = sample.rtt_ns.saturating_sub(base);
    if queueing > fabric.queues_ns(source, destination, path)? {
        return Some((pair, None));
    }
    // A zero would mean "unknown"; only a broken clock measures so little.
    let rtt_ns = |measured_ns| {
        let rtt_ns = fabric.rtt_between_hosts_ns(source, destination, measured_ns)?;
        Some(rtt_ns.max(1))
    };
    let rtt = RouteRtt {
        smoothed_ns: rtt_ns(sample.smoothed_ns)?,
        min_ns: rtt_ns(sample.min_ns)?,
    };
    Some((pair, Some(rtt)))
}

#[cfg(test)]
mod tests;
