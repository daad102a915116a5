// SPDX-License-Identifier: Apache-2.0

//! An egress port: a bounded queue in front of a link with rate and delay.

use weft_topology::Change;

use super::loss::Loss;
use super::queue::Queue;
use crate::pipeline::{InFlight, QueueMetadata};
use crate::prefetch::prefetch;

/// Length of an Ethernet header. MTUs do not include it.
pub(super) const ETHERNET_BYTES: usize = 14;

/// The port to and from the control plane.
pub const CPU_PORT: u16 = 510;

/// What is at the far end of a port's link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Peer {
    /// A port of another switch of the network.
    Switch {
        /// The switch, by its place in the network.
        node: usize,
        /// Its port number.
        port: u16,
    },
    /// A host; the frame leaves the network at this place of
    /// [`Network::host_ports`](super::Network::host_ports).
    Host(usize),
    /// The control plane.
    Controller,
}

/// What a link does to the frames that are sent over it.
#[derive(Debug, Clone, Copy)]
pub(super) struct LinkProperties {
    /// Bits per second, at least 1.
    pub rate_bps: u64,
    /// Propagation delay in nanoseconds.
    pub delay_ns: u64,
    /// Packets that may wait, besides the one that is being sent.
    pub queue_packets: usize,
    /// Maximum length of a frame without its Ethernet header.
    pub mtu_bytes: usize,
    /// Bytes that may wait. Where this is given, it alone limits the queue.
    pub queue_bytes: Option<u64>,
}

/// The link to the control plane. It is fast but has a rate, so that time passes even if a program
/// floods it.
pub(super) const CPU_LINK: LinkProperties = LinkProperties {
    rate_bps: 10_000_000_000,
    delay_ns: 0,
    queue_packets: 1024,
    queue_bytes: None,
    mtu_bytes: usize::MAX - ETHERNET_BYTES,
};

/// The fastest link.
pub(super) const MAX_RATE_BPS: u64 = 10_000_000_000_000;

/// Counters of a port since the start, for `queues.csv`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PortStats {
    /// Packets that wait now.
    pub queue_packets: usize,
    /// The most that waited since [`Network::take_changes`](super::Network::take_changes)
    /// last reported this port.
    pub queue_max_packets: usize,
    /// Frames sent.
    pub tx_packets: u64,
    /// Bytes of these frames.
    pub tx_bytes: u64,
    /// Packets that found the queue full.
    pub dropped_packets: u64,
    /// Frames that were longer than the link's MTU, and not sent.
    pub oversize_packets: u64,
    /// Frames that came in here and were lost on their way, or on their way to a host.
    pub lost_packets: u64,
}

/// An egress port of a switch.
#[derive(Debug)]
pub(super) struct Port {
    pub number: u16,
    pub peer: Peer,
    pub stats: PortStats,
    pub changed: bool,
    /// Whether the event queue holds the next dequeue.
    pub armed: bool,
    /// Whether to record every arrival.
    pub observed: bool,
    /// The loss of the link: for frames that arrive here, and for those sent to a host.
    pub loss: Loss,
    link: LinkProperties,
    /// The link as described in the topology.
    original: LinkProperties,
    queue: Queue,
    /// When the link has sent everything that it has been given.
    free_ns: u64,
    /// The remainder from rounding `free_ns` down, in units of 1 / rate nanoseconds. Without it, a
    /// 100 Gbps link would have another rate.
    remainder: u64,
    /// When the last frame sent so far arrives.
    last_arrival_ns: u64,
}

impl Port {
    pub fn new(number: u16, peer: Peer, link: LinkProperties, loss: Loss, lowest_ppm: u32) -> Self {
        Self {
            number,
            peer,
            stats: PortStats::default(),
            changed: false,
            armed: false,
            observed: false,
            loss,
            link,
            original: link,
            queue: Queue::new(lowest_ppm),
            free_ns: 0,
            remainder: 0,
            last_arrival_ns: 0,
        }
    }

    /// Prefetches the part of the port that a packet needs.
    pub fn prefetch(&self) {
        prefetch(&self.armed);
        prefetch(&self.loss);
        self.queue.prefetch();
    }

    /// Changes the link from now on. Frames that are already on it are not affected. A queue that
    /// has shrunk keeps the packets that are in it.
    pub fn change(&mut self, change: &Change) {
        let link = &mut self.link;
        if let Some(rate_bps) = change.rate_bps {
            link.rate_bps = rate_bps;
            // The remainder is in units of the old rate.
            self.remainder = 0;
        }
        link.delay_ns = change.delay_ns.unwrap_or(link.delay_ns);
        if let Some(packets) = change.queue_packets {
            link.queue_packets = usize::try_from(packets).unwrap_or(usize::MAX);
            link.queue_bytes = None;
        }
    }

    /// Goes back to the link as described in the topology.
    pub fn restore(&mut self) {
        self.link = self.original;
        self.remainder = 0;
        self.loss.restore();
    }

    /// Queues `packet`. When the queue is full, packets of a lower priority make room; without
    /// any, the packet itself is dropped. `drop` gets what is dropped.
    ///
    /// Returns whether the packet is in the queue.
    pub fn enqueue(
        &mut self,
        packet: InFlight,
        priority: u8,
        now_ns: u64,
        mut drop: impl FnMut(InFlight),
    ) -> bool {
        self.changed = true;
        // A packet that can leave at once does not count as waiting.
        let waits = self.waiting() > 0 || !self.is_free(now_ns);
        while waits && self.has_no_room_for(&packet) {
            self.stats.dropped_packets += 1;
            let Some(last) = self.queue.pop_last_below(priority) else {
                drop(packet);
                self.stats.queue_packets = self.waiting();
                return false;
            };
            drop(last);
        }
        self.queue.push(packet, priority, now_ns);
        if waits {
            self.stats.queue_packets = self.waiting();
            self.stats.queue_max_packets = self.stats.queue_max_packets.max(self.waiting());
        }
        true
    }

    fn has_no_room_for(&self, packet: &InFlight) -> bool {
        match self.link.queue_bytes {
            Some(most) => self.queue.bytes() + packet.length_bytes() as u64 > most,
            None => self.waiting() >= self.link.queue_packets,
        }
    }

    /// Takes the next packet, with the queue's metadata for egress. `time` turns nanoseconds of the
    /// network into the pipeline's unit.
    pub fn dequeue(
        &mut self,
        now_ns: u64,
        time: impl Fn(u64) -> u64,
    ) -> Option<(InFlight, QueueMetadata)> {
        let (queued, left) = self.queue.pop()?;
        self.changed = true;
        self.stats.queue_packets = self.waiting();
        let metadata = QueueMetadata {
            enq_timestamp: time(queued.enqueued_ns),
            enq_qdepth: queued.depth,
            deq_timedelta: time(now_ns) - time(queued.enqueued_ns),
            deq_qdepth: left,
        };
        Some((queued.packet, metadata))
    }

    /// Whether a frame of `bytes` is longer than the link's MTU; counts it then.
    pub fn refuses(&mut self, bytes: usize) -> bool {
        let is_oversize = bytes > self.link.mtu_bytes + ETHERNET_BYTES;
        self.stats.oversize_packets += u64::from(is_oversize);
        is_oversize
    }

    /// Puts a frame of `bytes` on the link; returns when its last bit arrives.
    pub fn transmit(&mut self, bytes: usize, now_ns: u64) -> u64 {
        self.stats.tx_packets += 1;
        self.stats.tx_bytes += bytes as u64;
        if now_ns > self.free_ns {
            self.free_ns = now_ns;
            self.remainder = 0;
        }
        let work = bytes as u64 * 8 * 1_000_000_000 + self.remainder;
        self.free_ns += work / self.link.rate_bps;
        self.remainder = work % self.link.rate_bps;
        // Frames keep their order even if the delay has become shorter.
        self.last_arrival_ns = self.last_arrival_ns.max(self.free_ns + self.link.delay_ns);
        self.last_arrival_ns
    }

    /// Whether the link can take a frame now.
    pub fn is_free(&self, now_ns: u64) -> bool {
        now_ns >= self.free_ns
    }

    /// The link as described in the topology.
    pub fn original(&self) -> LinkProperties {
        self.original
    }

    /// Propagation delay of the link as described in the topology.
    pub fn delay_ns(&self) -> u64 {
        self.original.delay_ns
    }

    /// Whether the far end is this switch.
    pub fn leads_to(&self, switch: usize) -> bool {
        matches!(self.peer, Peer::Switch { node, .. } if node == switch)
    }

    /// When the link can take the next frame.
    pub fn free_ns(&self) -> u64 {
        self.free_ns
    }

    /// Whether the far end is one of the first `switches` nodes of the network, and so neither a
    /// host nor the NIC of one.
    pub fn is_between(&self, switches: usize) -> bool {
        matches!(self.peer, Peer::Switch { node, .. } if node < switches)
    }

    /// Counts a frame that was lost on the link.
    pub fn count_loss(&mut self) {
        self.changed = true;
        self.stats.lost_packets += 1;
    }

    /// Packets that wait.
    pub fn waiting(&self) -> usize {
        self.queue.packets()
    }

    /// Empties the queue, for example because the switch got a new program or failed.
    pub fn flush(&mut self) {
        self.changed |= self.waiting() > 0;
        self.stats.dropped_packets += self.waiting() as u64;
        self.stats.queue_packets = 0;
        self.queue.clear();
    }
}
