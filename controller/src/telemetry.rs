// SPDX-License-Identifier: Apache-2.0

//! Measurements of the switches: RTTs of paths, and queues.
//!
//! An RTT sample is the time from a packet's arrival at its sender's leaf to the arrival of
//! its ACK there. The leaf normalizes the samples of a path to full-size packets, smooths
//! them, and reports changes. Here the delay of the sender's own link is added:
//!
//! ```text
//! rtt = smoothed of full-size packets + 2 * delay of the sender's own link
//! ```
//!
//! SmartNICs measure from NIC to NIC and do the same, each for its own host. A path's RTT is
//! then the mean of the NICs' recent reports.
//!
//! If a sample's queueing delay exceeds the capacity of all queues on the route, the receiver
//! delayed the ACK (Linux does so for 40 ms). The leaf drops such samples once it knows its
//! paths; earlier ones are dropped here.
//!
//! While samples arrive, a path's estimate is the smoothed RTT. When a path is idle, its queues
//! have drained, and the estimate is the lowest recent RTT. That minimum follows a shorter path
//! at once. It follows a longer path only after some milliseconds in which all digests are
//! longer and every queue on the route is reported empty.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use weft_topology::routes::EgressPort;

use crate::classes::CLASSES;
pub use crate::classes::ClassSample;
use crate::fabric::{LeafPair, RoutedFabric};
pub use crate::gray_failure::LossSample;

/// A path is idle after this time without a sample. It exceeds the time that queues take to
/// drain.
pub const IDLE_NS: u64 = 100_000_000;

/// How long a NIC's report is valid: twice its longest silence while it sends packets.
const SMOOTHED_FRESH_NS: u64 = 20_000_000;

/// Lifetime of the lowest RTT. Links change, so the next sample then replaces it.
const MIN_WINDOW_NS: u64 = 10_000_000_000;

/// An RTT is clearly longer if it exceeds the lowest by this share: a quarter. Where paths
/// merge, a packet or two always queue, in queues that are empty as often as not.
const CLEARLY_LONGER_SHIFT: u32 = 2;

/// How long all digests must show a longer path. By then switches have also reported queues
/// that are too short to be reported at once.
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
    /// The RTT of full-size packets between the two leaves, smoothed by the leaf.
    pub smoothed_ns: u64,
    /// The lowest of these RTTs since the leaf's last digest about the path.
    pub min_ns: u64,
    /// When the sample was taken, by the switch's clock.
    pub at_ns: u64,
}

/// A `queue_sample_t` digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueSample {
    /// Egress port.
    pub port: u16,
    /// Packets in the port's queue.
    pub depth_packets: u32,
    /// Queueing delay of the last packet that was sent; 0 if the queue is empty.
    pub delay_ns: u64,
    /// When the sample was taken, by the switch's clock.
    pub at_ns: u64,
    /// The link's busy period; in-band telemetry has none.
    pub busy_period: Option<BusyPeriod>,
    /// What waits in each class; `None` without classes, and from in-band telemetry.
    pub classes: Option<[Waiting; CLASSES]>,
}

/// What waits in one class of a queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Packets of this class.
    pub depth_packets: u32,
    /// Queueing delay of the last one that was sent; 0 if none waits.
    pub delay_ns: u64,
}

/// What a link has sent since it was last idle, up to its last packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BusyPeriod {
    /// When the link was last idle, by the switch's clock.
    pub since_ns: u64,
    /// Bytes sent since then, including Ethernet headers, modulo 2^32.
    pub sent_bytes: u32,
}

/// A decoded digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sample {
    /// A round-trip time.
    Rtt(RttSample),
    /// A queue.
    Queue(QueueSample),
    /// Losses on a link.
    Loss(LossSample),
    /// What a host has sent in each class.
    Classes(ClassSample),
}

/// The measurements of a path of a leaf pair.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathStats {
    /// Smoothed RTT of a full-size packet; `None` before the first sample.
    pub smoothed_ns: Option<u64>,
    /// Lowest recent RTT of a full-size packet.
    pub min_ns: u64,
    /// Number of samples that were used.
    pub samples: u64,
    /// Number of samples that were dropped because they measured a delayed ACK.
    pub rejected_samples: u64,
    /// Time of the last sample that was used.
    pub last_ns: u64,
    min_at_ns: u64,
    longer: Option<Longer>,
    /// The last report of each NIC, or of the leaf (`None`): smoothed RTT and time.
    smoothed_by_meter: BTreeMap<Option<usize>, (u64, u64)>,
}

/// A run of digests that all show a longer path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Longer {
    /// Lowest RTT of the run.
    min_ns: u64,
    /// Time of the first one.
    since_ns: u64,
}

impl PathStats {
    /// The RTT to use at `now_ns`; `None` before the first sample.
    #[must_use]
    pub fn rtt_ns(&self, now_ns: u64) -> Option<u64> {
        let smoothed = self.smoothed_ns?;
        Some(if self.is_idle(now_ns) {
            self.min_ns
        } else {
            smoothed
        })
    }

    /// Whether the last sample is too old to show queues.
    #[must_use]
    pub fn is_idle(&self, now_ns: u64) -> bool {
        now_ns >= self.idle_at_ns()
    }

    /// When the path becomes idle if no samples arrive.
    #[must_use]
    pub fn idle_at_ns(&self) -> u64 {
        self.last_ns.saturating_add(IDLE_NS)
    }

    /// `is_clear` says whether all queues on the route are empty.
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
        // A mean of u64 values fits a u64.
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

/// The last report about the queue of a port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Queue {
    /// Packets in the queue.
    pub depth_packets: u32,
    /// Queueing delay.
    pub delay_ns: u64,
    /// Time of the report.
    pub at_ns: u64,
    /// What waits in each class, by the last report that said.
    classes: [Waiting; CLASSES],
}

/// All measurements of a fabric.
#[derive(Debug, Default)]
pub struct Telemetry {
    paths: BTreeMap<(LeafPair, u8), PathStats>,
    queues: BTreeMap<EgressPort, Queue>,
    stray_samples: u64,
}

impl Telemetry {
    /// Records an RTT. Returns the pair whose path it belongs to, unless the sample is dropped.
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
        // Switches report changes, with hysteresis, so the last report stays valid.
        *queue = Queue {
            depth_packets: sample.depth_packets,
            delay_ns: sample.delay_ns,
            at_ns: now_ns,
            classes: sample.classes.unwrap_or(queue.classes),
        };
    }

    /// The measurements of `path` of `pair`.
    #[must_use]
    pub fn path(&self, pair: LeafPair, path: u8) -> Option<&PathStats> {
        self.paths.get(&(pair, path))
    }

    /// RTTs of the first `paths` paths of `pair`; `None` if one is unknown.
    #[must_use]
    pub fn rtts_ns(&self, now_ns: u64, pair: LeafPair, paths: u8) -> Option<Vec<u64>> {
        (0..paths)
            .map(|path| self.path(pair, path)?.rtt_ns(now_ns))
            .collect()
    }

    /// The queues in the data's direction between the leaves of `pair`, without the one to the
    /// receiving host, which is the same on every path. The depth is that of the deepest queue,
    /// the delay the sum of all.
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
                ..sum
            })
    }

    /// By class: the packets that wait in all queues of switches, and the longest queueing delay
    /// of one of them.
    #[must_use]
    pub fn waiting(&self, now_ns: u64) -> [Waiting; CLASSES] {
        let mut all = [Waiting::default(); CLASSES];
        let queues = self.queues.values();
        for queue in queues.filter(|queue| now_ns.saturating_sub(queue.at_ns) < IDLE_NS) {
            for (sum, class) in all.iter_mut().zip(queue.classes) {
                sum.depth_packets += class.depth_packets;
                sum.delay_ns = sum.delay_ns.max(class.delay_ns);
            }
        }
        all
    }

    /// Samples that no path of the topology can produce.
    #[must_use]
    pub fn stray_samples(&self) -> u64 {
        self.stray_samples
    }
}

/// Whether all queues on the route of the packet of `sample` and its ACK have recently been
/// reported empty. A missing report proves nothing, because digests can be lost.
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

/// RTTs of a path as its hosts see them.
struct RouteRtt {
    smoothed_ns: u64,
    min_ns: u64,
}

/// The pair that a sample belongs to, and its RTT (`None` for a delayed ACK). `None` if the
/// sample contradicts the topology.
fn normalise(fabric: &RoutedFabric, sample: &RttSample) -> Option<(LeafPair, Option<RouteRtt>)> {
    let (source, destination, path) = (sample.source, sample.destination, sample.path);
    let pair = fabric.pair_of(source, destination)?;
    let base = fabric.measured_base_ns(source, destination, path, sample.length_bytes)?;
    let queueing = sample.rtt_ns.saturating_sub(base);
    if queueing > fabric.queues_ns(source, destination, path)? {
        return Some((pair, None));
    }
    // Zero would mean "unknown"; only a broken clock measures that.
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
