// SPDX-License-Identifier: Apache-2.0

//! Turns the kernel's counters of a path's subflows into measurements for decisions.

use std::collections::BTreeMap;
use std::net::SocketAddrV4;

use serde::Serialize;

use super::model;

/// Losses needed, among those remembered, to know the loss rate.
const LOSSES_MIN: f64 = 2.0;
/// Weight of the past when a new window begins.
const MEMORY: f64 = 0.5;

/// The kernel's state of one subflow at a moment. Counters start with the subflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Sample {
    /// Local end.
    pub local: SocketAddrV4,
    /// Remote end.
    pub remote: SocketAddrV4,
    /// MPTCP's ID of the local address.
    pub address_id: u8,
    /// Whether its handshake is done.
    pub established: bool,
    /// Smoothed RTT.
    pub rtt_ns: u64,
    /// Lowest RTT.
    pub rtt_min_ns: u64,
    /// Retransmission timeout.
    pub rto_ns: u64,
    /// Maximum segment size.
    pub mss_bytes: u32,
    /// Bytes acknowledged.
    pub acked_bytes: u64,
    /// Data packets sent, including retransmissions.
    pub sent_packets: u64,
    /// Packets retransmitted.
    pub retransmitted_packets: u64,
    /// Time with unacknowledged data.
    pub busy_ns: u64,
}

impl Sample {
    /// The first subflow of a new connection.
    #[must_use]
    pub fn first(local: SocketAddrV4, remote: SocketAddrV4, address_id: u8) -> Self {
        Self {
            local,
            remote,
            address_id,
            established: true,
            rtt_ns: 0,
            rtt_min_ns: 0,
            rto_ns: 0,
            mss_bytes: 0,
            acked_bytes: 0,
            sent_packets: 0,
            retransmitted_packets: 0,
            busy_ns: 0,
        }
    }
}

/// A window of measurement of one path.
#[derive(Debug, Clone, Default)]
pub struct Window {
    start_ns: u64,
    last: BTreeMap<(SocketAddrV4, SocketAddrV4), Sample>,
    acked_bytes: u64,
    sent_packets: u64,
    retransmitted_packets: u64,
    busy_ns: u64,
    samples: u32,
    rtt_ns: u64,
    rto_ns: u64,
    queueing: f64,
    rtt_min_ns: Option<u64>,
    mss_bytes: u32,
    remembered_sent: f64,
    remembered_lost: f64,
}

/// The measurements of a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Acknowledged data of all subflows of the path, in bits per second.
    pub throughput_bps: f64,
    /// Length of the window.
    pub elapsed_ns: u64,
    /// Packets retransmitted in it.
    pub lost_packets: u64,
    /// Share of packets retransmitted, over this window and, with decreasing weight, those before;
    /// 0 if there were too few losses.
    pub loss: f64,
    /// Relative queueing delay: mean RTT divided by the path's lowest RTT, minus 1.
    pub queueing: f64,
    /// Share of time with data in flight, averaged over the subflows.
    pub busy: f64,
    /// Throughput that the law allows one subflow at this loss, in bits per second.
    pub subflow_bps: f64,
}

impl Window {
    /// Adds samples of the path's established subflows. A subflow counts from its second sample
    /// on.
    pub fn add<'a>(&mut self, samples: impl Iterator<Item = &'a Sample>) {
        let mut now = BTreeMap::new();
        for sample in samples {
            now.insert((sample.local, sample.remote), *sample);
        }
        for (key, sample) in &now {
            let Some(before) = self.last.get(key) else {
                continue;
            };
            self.acked_bytes += sample.acked_bytes.saturating_sub(before.acked_bytes);
            self.sent_packets += sample.sent_packets.saturating_sub(before.sent_packets);
            self.retransmitted_packets += sample
                .retransmitted_packets
                .saturating_sub(before.retransmitted_packets);
            self.busy_ns += sample.busy_ns.saturating_sub(before.busy_ns);
            if sample.rtt_min_ns > 0 && sample.sent_packets > before.sent_packets {
                let lowest = self
                    .rtt_min_ns
                    .map_or(sample.rtt_min_ns, |lowest| lowest.min(sample.rtt_min_ns));
                self.rtt_min_ns = Some(lowest);
                self.samples += 1;
                self.rtt_ns += sample.rtt_ns;
                self.rto_ns += sample.rto_ns;
                self.queueing += sample.rtt_ns as f64 / lowest as f64 - 1.0;
                self.mss_bytes = sample.mss_bytes;
            }
        }
        self.last = now;
    }

    /// Ends the window and starts the next.
    pub fn finish(&mut self, now_ns: u64) -> Summary {
        let window_ns = now_ns.saturating_sub(self.start_ns).max(1);
        let elapsed_ns = window_ns as f64;
        let subflows = self.last.len().max(1) as f64;
        self.remembered_sent = self.remembered_sent * MEMORY + self.sent_packets as f64;
        self.remembered_lost = self.remembered_lost * MEMORY + self.retransmitted_packets as f64;
        let loss = if self.remembered_lost >= LOSSES_MIN {
            (self.remembered_lost / self.remembered_sent.max(1.0)).min(1.0)
        } else {
            0.0
        };
        let samples = f64::from(self.samples.max(1));
        let summary = Summary {
            throughput_bps: self.acked_bytes as f64 * 8e9 / elapsed_ns,
            elapsed_ns: window_ns,
            lost_packets: self.retransmitted_packets,
            loss,
            queueing: self.queueing / samples,
            busy: self.busy_ns as f64 / elapsed_ns / subflows,
            subflow_bps: model::subflow_bps(
                loss,
                self.rtt_ns as f64 / samples / 1e9,
                self.rto_ns as f64 / samples / 1e9,
                f64::from(self.mss_bytes),
            ),
        };
        self.restart(now_ns);
        summary
    }

    /// Discards the current window, but not the loss of earlier ones.
    pub fn restart(&mut self, now_ns: u64) {
        *self = Self {
            start_ns: now_ns,
            last: std::mem::take(&mut self.last),
            rtt_min_ns: self.rtt_min_ns,
            mss_bytes: self.mss_bytes,
            remembered_sent: self.remembered_sent,
            remembered_lost: self.remembered_lost,
            ..Self::default()
        };
    }
}
