// SPDX-License-Identifier: Apache-2.0

//! Adds up the results of all hosts' captures.

use std::collections::BTreeMap;

use crate::distribution::Distribution;
use crate::error::Error;
use crate::host::{Connection, ConnectionId, DataAck, Direction, Gap, Ignored, Observer};
use crate::packet_tables::PacketTables;
use crate::receiver::{PacketOutcome, QueueBytes, Received};
use crate::sender::Sent;

/// A switch port and its link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PortInfo {
    pub switch: String,
    pub port: u16,
    pub peer: String,
    pub rate_bps: u64,
    pub queue_limit_packets: u32,
}

/// Totals over all connections.
#[derive(Debug)]
pub(crate) struct RunTotals {
    numbers: BTreeMap<ConnectionId, usize>,
    pub directions: BTreeMap<(usize, bool), Flow>,
    pub delay_ns: Distribution<u64>,
    pub out_of_order_packets: u64,
    pub leap_packets: Distribution<u64>,
    /// Number of Data ACKs by the number of packets that they newly acknowledge.
    pub leaps: BTreeMap<u64, u64>,
    pub ignored: Ignored,
    packets: Option<PacketTables>,
}

/// One direction of a connection, as its two hosts saw it.
#[derive(Debug)]
pub(crate) struct Flow {
    pub direction: Direction,
    pub mptcp: bool,
    pub subflows: usize,
    pub received: Option<Received>,
    pub sent: Option<Sent>,
}

impl Flow {
    /// Packets that were sent and didn't arrive, including those in flight at the end.
    pub fn lost_packets(&self) -> Option<u64> {
        let arrived = self.received.as_ref()?.arrived_packets;
        Some(self.sent?.packets.saturating_sub(arrived))
    }
}

impl RunTotals {
    pub fn new(packets: Option<PacketTables>) -> Self {
        Self {
            numbers: BTreeMap::new(),
            directions: BTreeMap::new(),
            delay_ns: Distribution::new(3),
            out_of_order_packets: 0,
            leap_packets: Distribution::new(3),
            leaps: BTreeMap::new(),
            ignored: Ignored::default(),
            packets,
        }
    }

    /// Adds the results of one host's capture.
    pub fn add_host(&mut self, seen: (Vec<Connection>, Ignored)) -> Result<(), Error> {
        let (connections, ignored) = seen;
        self.ignored.other_frames += ignored.other_frames;
        self.ignored.malformed_frames += ignored.malformed_frames;
        self.ignored.unknown_segments += ignored.unknown_segments;
        self.ignored.unmapped_packets += ignored.unmapped_packets;
        for connection in connections {
            let (incoming, outgoing) = (connection.direction(false), connection.direction(true));
            let (mptcp, subflows) = (connection.mptcp, connection.subflows.len());
            let (received, sent) = (connection.receiver.totals, connection.sender.totals);
            if received.arrived_packets > 0 {
                self.flow(incoming, mptcp, subflows).received = Some(received);
            }
            if sent.packets > 0 {
                self.flow(outgoing, mptcp, subflows).sent = Some(sent);
            }
        }
        match &mut self.packets {
            Some(packets) => packets.check(),
            None => Ok(()),
        }
    }

    fn flow(&mut self, direction: Direction, mptcp: bool, subflows: usize) -> &mut Flow {
        let number = self.number(direction.connection);
        let flow = self
            .directions
            .entry((number, direction.to_client))
            .or_insert(Flow {
                direction,
                mptcp,
                subflows,
                received: None,
                sent: None,
            });
        flow.subflows = flow.subflows.max(subflows);
        flow
    }

    fn number(&mut self, connection: ConnectionId) -> usize {
        let next = self.numbers.len();
        *self.numbers.entry(connection).or_insert(next)
    }

    /// Out-of-order bytes over all connections.
    pub fn queue_bytes(&self) -> QueueBytes {
        let mut all = QueueBytes::default();
        for received in self.received() {
            all.sum += received.queue_bytes.sum;
            all.count += received.queue_bytes.count;
            all.max = all.max.max(received.queue_bytes.max);
        }
        all
    }

    pub fn received(&self) -> impl Iterator<Item = &Received> {
        let flows = self.directions.values();
        flows.filter_map(|flow| flow.received.as_ref())
    }

    /// Closes the packet tables.
    pub fn finish(self) -> Result<(), Error> {
        match self.packets {
            Some(packets) => packets.finish(),
            None => Ok(()),
        }
    }
}

impl Observer for RunTotals {
    fn opened(&mut self, connection: ConnectionId) {
        self.number(connection);
    }

    fn packet(&mut self, direction: Direction, outcome: PacketOutcome) {
        if let Some(delay_ns) = outcome.out_of_order_delay_ns {
            self.delay_ns.record(delay_ns);
            self.out_of_order_packets += u64::from(delay_ns > 0);
        }
        if self.packets.is_some() {
            let number = self.number(direction.connection);
            if let Some(packets) = &mut self.packets {
                packets.packet(number, direction, outcome);
            }
        }
    }

    fn gap(&mut self, direction: Direction, gap: Gap) {
        if self.packets.is_some() {
            let number = self.number(direction.connection);
            if let Some(packets) = &mut self.packets {
                packets.gap(number, direction, gap);
            }
        }
    }

    fn data_ack(&mut self, direction: Direction, ack: DataAck) {
        self.leap_packets.record(ack.leap_packets);
        *self.leaps.entry(ack.leap_packets).or_default() += 1;
        if self.packets.is_some() {
            let number = self.number(direction.connection);
            if let Some(packets) = &mut self.packets {
                packets.data_ack(number, direction, ack);
            }
        }
    }
}
