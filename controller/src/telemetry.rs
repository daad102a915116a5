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
//! that is idle have drained; what remains is the lowest RTT of late.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use weft_topology::ways::Step;

use crate::fabric::{Fabric, LeafPair, PortUse};
pub use crate::loss::LossSample;

/// After so long without a sample a path counts as idle: longer than queues
/// take to drain.
pub const IDLE_NS: u64 = 100_000_000;

/// So long the word of a card counts: twice as long as it is silent while packets come.
const WORD_NS: u64 = 20_000_000;

/// A lowest RTT older than this gives way to the next sample: links change.
const MIN_WINDOW_NS: u64 = 10_000_000_000;

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
    /// The last word of each who measures: smoothed RTT, and when.
    words: BTreeMap<Option<usize>, (u64, u64)>,
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

    fn record(&mut self, now_ns: u64, card: Option<usize>, rtt: RouteRtt) {
        self.words.insert(card, (rtt.smoothed_ns, now_ns));
        self.words
            .retain(|_, (_, at_ns)| now_ns.saturating_sub(*at_ns) <= WORD_NS);
        let sum: u128 = self.words.values().map(|(ns, _)| u128::from(*ns)).sum();
        // The mean of u64s is one.
        self.smoothed_ns = Some((sum / self.words.len() as u128) as u64);
        let min_is_old = now_ns.saturating_sub(self.min_at_ns) > MIN_WINDOW_NS;
        if self.samples == 0 || rtt.min_ns <= self.min_ns || min_is_old {
            self.min_ns = rtt.min_ns;
            self.min_at_ns = now_ns;
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
    /// Queues between switches.
    queues: BTreeMap<Step, Queue>,
    stray_samples: u64,
}

impl Telemetry {
    /// Records an RTT; returns the pair whose path it is about, unless the
    /// sample is of no use.
    pub fn record_rtt(
        &mut self,
        fabric: &Fabric,
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
        stats.record(now_ns, fabric.measuring_card(sample.source), rtt);
        Some(pair)
    }

    /// Records the queue of a port of `switch`. Queues towards hosts belong to
    /// no path and are not kept.
    pub fn record_queue(
        &mut self,
        fabric: &Fabric,
        now_ns: u64,
        switch: &str,
        sample: &QueueSample,
    ) {
        let Some(port) = fabric.port(switch, sample.port) else {
            self.stray_samples += 1;
            return;
        };
        if fabric.port_use(port) == PortUse::Host {
            return;
        }
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
    pub fn queue(&self, fabric: &Fabric, now_ns: u64, pair: LeafPair, path: u8) -> Queue {
        let queues = fabric.steps(pair, path);
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

/// RTTs of a pair's path as its hosts see them.
struct RouteRtt {
    smoothed_ns: u64,
    min_ns: u64,
}

/// The pair a sample is about and what it says, `None` in place of that for a
/// delayed ACK. `None` when the sample contradicts the topology.
fn normalise(fabric: &Fabric, sample: &RttSample) -> Option<(LeafPair, Option<RouteRtt>)> {
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
mod tests {
    use super::*;
    use crate::fabric::FULL_SIZE_BYTES;
    use crate::testing::{fabric, leaf_spine};

    const MS: u64 = 1_000_000;
    const PAIR: LeafPair = LeafPair {
        source: 1,
        destination: 2,
    };

    /// What a leaf tells of the first full-size packet on a path.
    fn sample(path: u8, rtt_ns: u64) -> RttSample {
        RttSample {
            source: Ipv4Addr::new(10, 1, 1, 1),
            destination: Ipv4Addr::new(10, 2, 1, 1),
            source_port: 40_000,
            destination_port: 5_001,
            path,
            length_bytes: FULL_SIZE_BYTES,
            rtt_ns,
            smoothed_ns: rtt_ns,
            min_ns: rtt_ns,
            at_ns: 0,
        }
    }

    /// The same, with so much queueing.
    fn queued(fabric: &Fabric, path: u8, queueing_ns: u64) -> RttSample {
        let sample = sample(path, 0);
        let base =
            fabric.measured_base_ns(sample.source, sample.destination, path, FULL_SIZE_BYTES);
        self::sample(path, base.unwrap() + queueing_ns)
    }

    #[test]
    fn a_lone_packet_measures_the_configured_rtt() {
        let fabric = fabric(2, 2, 4);
        let mut telemetry = Telemetry::default();
        let sample = queued(&fabric, 1, 0);
        assert_eq!(telemetry.record_rtt(&fabric, MS, &sample), Some(PAIR));
        assert_eq!(
            telemetry.path(PAIR, 1).unwrap().smoothed_ns,
            fabric.configured_rtt_ns(PAIR, 1)
        );
    }

    #[test]
    fn the_leaf_smooths_and_finds_the_minimum() {
        let fabric = fabric(2, 2, 4);
        let mut telemetry = Telemetry::default();
        telemetry.record_rtt(&fabric, 0, &queued(&fabric, 0, 5_000));
        let sample = RttSample {
            smoothed_ns: queued(&fabric, 0, 10_000).rtt_ns,
            min_ns: queued(&fabric, 0, 0).rtt_ns,
            ..queued(&fabric, 0, 80_000)
        };
        telemetry.record_rtt(&fabric, MS, &sample);
        let stats = telemetry.path(PAIR, 0).unwrap();
        let configured = fabric.configured_rtt_ns(PAIR, 0).unwrap();
        assert_eq!(stats.smoothed_ns, Some(configured + 10_000));
        assert_eq!(stats.min_ns, configured);
    }

    #[test]
    fn a_delayed_ack_is_counted_and_not_used() {
        let fabric = fabric(2, 2, 4);
        let mut telemetry = Telemetry::default();
        assert_eq!(telemetry.record_rtt(&fabric, MS, &sample(0, 40 * MS)), None);
        let stats = telemetry.path(PAIR, 0).unwrap();
        assert_eq!((stats.rejected_samples, stats.samples), (1, 0));
        assert_eq!(stats.rtt_ns(MS), None);
    }

    #[test]
    fn full_queues_are_no_delayed_ack() {
        let fabric = fabric(2, 2, 4);
        let mut telemetry = Telemetry::default();
        // All of three queues on the way there.
        let sample = queued(&fabric, 0, 3 * 100 * 12_112);
        assert_eq!(telemetry.record_rtt(&fabric, MS, &sample), Some(PAIR));
    }

    #[test]
    fn an_idle_path_falls_back_to_its_lowest_rtt() {
        let fabric = fabric(2, 2, 4);
        let mut telemetry = Telemetry::default();
        telemetry.record_rtt(&fabric, 0, &queued(&fabric, 0, 0));
        telemetry.record_rtt(&fabric, MS, &queued(&fabric, 0, 800_000));
        let stats = telemetry.path(PAIR, 0).unwrap();
        assert!(stats.rtt_ns(2 * MS) > Some(stats.min_ns));
        assert_eq!(stats.rtt_ns(MS + IDLE_NS), Some(stats.min_ns));
    }

    #[test]
    fn a_path_has_the_mean_of_what_cards_say_of_late() {
        let mut topology = leaf_spine(2, 2, 4);
        for host in &mut topology.hosts {
            host.nic = Some(weft_topology::Nic {
                name: format!("nic_{}", host.name),
                device_id: 0,
                grpc: String::new(),
                rate_bps: 252_000_000_000,
                delay_ns: 5_000,
            });
        }
        let fabric = Fabric::new(topology).unwrap();
        let configured = fabric.configured_rtt_ns(PAIR, 0).unwrap();
        let of_host = |host: u8, queueing_ns| RttSample {
            source: Ipv4Addr::new(10, 1, host, 1),
            ..queued(&fabric, 0, queueing_ns)
        };
        let mut telemetry = Telemetry::default();
        let mut smoothed = |now_ns, sample| {
            telemetry.record_rtt(&fabric, now_ns, &sample);
            telemetry.path(PAIR, 0).unwrap().smoothed_ns.unwrap()
        };
        assert_eq!(smoothed(0, of_host(1, 90_000)), configured + 90_000);
        assert_eq!(smoothed(MS, of_host(2, 30_000)), configured + 60_000);
        assert_eq!(smoothed(2 * MS, of_host(1, 10_000)), configured + 20_000);
        let later_ns = 2 * MS + WORD_NS;
        assert_eq!(smoothed(later_ns, of_host(3, 40_000)), configured + 25_000);
    }

    #[test]
    fn a_path_that_became_slower_is_believed_after_a_while() {
        let fabric = fabric(2, 2, 4);
        let mut telemetry = Telemetry::default();
        telemetry.record_rtt(&fabric, 0, &queued(&fabric, 0, 0));
        telemetry.record_rtt(&fabric, MIN_WINDOW_NS + 1, &queued(&fabric, 0, MS));
        let configured = fabric.configured_rtt_ns(PAIR, 0).unwrap();
        let stats = telemetry.path(PAIR, 0).unwrap();
        assert_eq!(stats.min_ns, configured + MS);
        assert_eq!(stats.smoothed_ns, Some(configured + MS));
    }

    #[test]
    fn strangers_are_counted_and_not_used() {
        let fabric = fabric(2, 2, 4);
        let mut telemetry = Telemetry::default();
        let mut stranger = sample(0, 100_000);
        stranger.source = Ipv4Addr::new(192, 0, 2, 1);
        assert_eq!(telemetry.record_rtt(&fabric, MS, &stranger), None);
        let far_path = sample(7, 100_000);
        assert_eq!(telemetry.record_rtt(&fabric, MS, &far_path), None);
        assert_eq!(telemetry.stray_samples(), 2);
    }

    #[test]
    fn the_last_word_about_each_queue_on_the_way_is_shown_until_it_is_old() {
        let fabric = fabric(2, 2, 4);
        let mut telemetry = Telemetry::default();
        let queue = |port, depth_packets, delay_ns| QueueSample {
            port,
            depth_packets,
            delay_ns,
            at_ns: 0,
        };
        // Port 6 of leaf1 leads to spine2, port 2 of spine2 to leaf2.
        telemetry.record_queue(&fabric, MS, "leaf1", &queue(6, 10, 120_000));
        telemetry.record_queue(&fabric, MS, "spine2", &queue(2, 40, 480_000));
        let seen = telemetry.queue(&fabric, MS, PAIR, 1);
        assert_eq!((seen.depth_packets, seen.delay_ns), (40, 600_000));
        telemetry.record_queue(&fabric, 2 * MS, "spine2", &queue(2, 3, 36_000));
        let seen = telemetry.queue(&fabric, 2 * MS, PAIR, 1);
        assert_eq!((seen.depth_packets, seen.delay_ns), (10, 156_000));
        assert_eq!(telemetry.queue(&fabric, 2 * MS, PAIR, 0), Queue::default());
        assert_eq!(
            telemetry.queue(&fabric, 2 * MS + IDLE_NS, PAIR, 1),
            Queue::default()
        );
    }
}
