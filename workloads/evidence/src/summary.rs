// SPDX-License-Identifier: Apache-2.0

//! `summary.json`: the summary of a run.

use serde::Serialize;
use weft_load::results::Results;

use crate::distribution::{self, ratio};
use crate::host::Ignored;
use crate::port::{Port, loss_rate};
use crate::run_totals::{PortInfo, RunTotals};

/// Version of the document's format.
const FORMAT: u32 = 1;

/// Summary of a run. Distributions are over all its packets, Data ACKs or arrivals.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Version of this document's format.
    pub format: u32,
    /// Scheduler of the run.
    pub scheduler: String,
    /// Seed of the run.
    pub seed: u64,
    /// From the start of the run to the end of its last flow.
    pub duration_ns: u64,
    /// Hosts that were captured.
    pub captured_hosts: Vec<String>,
    /// Frames in their captures.
    pub frames: u64,
    /// Connections that carried data; each direction counts.
    pub connections: usize,
    /// Bytes of data that arrived at captured hosts, each counted once.
    pub data_bytes: u64,
    /// Packets that carried this data.
    pub data_packets: u64,
    /// Packets all of whose data had arrived before.
    pub duplicate_packets: u64,
    /// Packets with an out-of-order delay above 0.
    pub out_of_order_packets: u64,
    /// Out-of-order delay of packets with new data.
    pub out_of_order_delay_ns: distribution::Summary,
    /// Out-of-order data after each packet with new data: mean.
    pub out_of_order_queue_mean_bytes: f64,
    /// The same: maximum of any connection.
    pub out_of_order_queue_max_bytes: u64,
    /// Packets newly acknowledged by each Data ACK.
    pub data_ack_leap_packets: distribution::Summary,
    /// Packets with data that captured hosts sent.
    pub sent_packets: u64,
    /// Of these, sent again on the same subflow.
    pub retransmitted_packets: u64,
    /// Of these, data that was sent before on another subflow.
    pub reinjected_packets: u64,
    /// Packets with data that did not arrive, where both hosts were captured.
    pub lost_packets: u64,
    /// Packets that came to observed queues.
    pub arrived_packets: u64,
    /// Of these, dropped.
    pub dropped_packets: u64,
    /// Part that was dropped.
    pub loss_rate: f64,
    /// Queue that packets met at the port where it was longest.
    pub queue_packets: distribution::Summary,
    /// Bursty strength at the port where it was highest.
    pub bursty_strength_packets: distribution::Summary,
    /// What could not be used.
    pub ignored: Ignored,
}

impl Summary {
    pub(crate) fn of(
        results: &Results,
        hosts: &[String],
        frames: u64,
        totals: &RunTotals,
        ports: &[(PortInfo, Port)],
    ) -> Self {
        let flows = || totals.directions.values();
        let sent = || flows().filter_map(|flow| flow.sent);
        let queue = totals.queue_bytes();
        let arrived_packets = ports.iter().map(|(_, port)| port.arrived_packets).sum();
        let dropped_packets = ports.iter().map(|(_, port)| port.dropped_packets).sum();
        Self {
            format: FORMAT,
            scheduler: results.info.workload.scheduler.clone(),
            seed: results.info.workload.seed,
            duration_ns: results.info.outcome.duration_ns,
            captured_hosts: hosts.to_vec(),
            frames,
            connections: totals.directions.len(),
            data_bytes: totals.received().map(|received| received.bytes).sum(),
            data_packets: totals.delay_ns.count(),
            duplicate_packets: totals.received().map(|r| r.duplicate_packets).sum(),
            out_of_order_packets: totals.out_of_order_packets,
            out_of_order_delay_ns: totals.delay_ns.summary(),
            out_of_order_queue_mean_bytes: ratio(queue.sum as f64, queue.count as f64),
            out_of_order_queue_max_bytes: queue.max,
            data_ack_leap_packets: totals.leap_packets.summary(),
            sent_packets: sent().map(|sent| sent.packets).sum(),
            retransmitted_packets: sent().map(|sent| sent.retransmitted_packets).sum(),
            reinjected_packets: sent().map(|sent| sent.reinjected_packets).sum(),
            lost_packets: flows().filter_map(|flow| flow.lost_packets()).sum(),
            arrived_packets,
            dropped_packets,
            loss_rate: loss_rate(dropped_packets, arrived_packets),
            queue_packets: worst(ports, |port| port.queue_packets.summary()),
            bursty_strength_packets: worst(ports, |port| port.strength_packets.summary()),
            ignored: totals.ignored,
        }
    }
}

/// The distribution with the highest maximum, then mean.
fn worst(
    ports: &[(PortInfo, Port)],
    of: impl Fn(&Port) -> distribution::Summary,
) -> distribution::Summary {
    let summaries = ports.iter().map(|(_, port)| of(port));
    summaries
        .max_by(|a, b| a.max.cmp(&b.max).then(a.mean.total_cmp(&b.mean)))
        .unwrap_or_default()
}
