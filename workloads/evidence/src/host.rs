// SPDX-License-Identifier: Apache-2.0

//! Follows one host's capture: from segments to connections and their two directions.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{Ipv4Addr, SocketAddrV4};

use crate::mptcp::{Capable, Dss, Options};
use crate::receiver::{Packet, PacketOutcome, Received, Receiver};
use crate::segment::Segment;
use crate::sender::{Sender, Sent};
use crate::stream::{Mapping, PacketData, Stream};

/// Identifies a connection in every host's capture: the ends of its first subflow, and the
/// sequence number of its first SYN, because ports are reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId {
    /// The end that opened it.
    pub client: SocketAddrV4,
    /// The end that accepted it.
    pub server: SocketAddrV4,
    /// Sequence number of the SYN.
    pub syn: u32,
}

/// One direction of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Direction {
    /// The connection.
    pub connection: ConnectionId,
    /// Whether the data goes to the client.
    pub to_client: bool,
}

impl Direction {
    /// Sender and receiver of the data.
    #[must_use]
    pub fn ends(&self) -> (SocketAddrV4, SocketAddrV4) {
        let ConnectionId { client, server, .. } = self.connection;
        if self.to_client {
            (server, client)
        } else {
            (client, server)
        }
    }
}

/// Receives what the host does and gets.
pub trait Observer {
    /// A connection was opened.
    fn opened(&mut self, connection: ConnectionId);
    /// The outcome of a packet that the host received.
    fn packet(&mut self, direction: Direction, outcome: PacketOutcome);
    /// The host sent a Data ACK that advanced.
    fn data_ack(&mut self, direction: Direction, ack: DataAck);
    /// The host sent new data and skipped earlier data, left to other subflows.
    fn gap(&mut self, direction: Direction, gap: Gap);
}

/// Data that was sent before earlier data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// When the host sent it.
    pub at_ns: u64,
    /// Subflow that carried it.
    pub subflow: u32,
    /// Data sequence number of its first byte.
    pub data_sequence: u64,
    /// Earlier bytes that weren't sent yet.
    pub unsent_bytes: u64,
}

/// A Data ACK that advanced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataAck {
    /// When the host sent it.
    pub at_ns: u64,
    /// Subflow that carried it.
    pub subflow: u32,
    /// The first byte that it doesn't acknowledge.
    pub data_ack: u64,
    /// Packets that it newly acknowledges.
    pub leap_packets: u64,
}

/// A connection, as one of its hosts sees it.
#[derive(Debug)]
pub struct Connection {
    /// The connection's identity.
    pub id: ConnectionId,
    /// Whether this host opened it.
    pub opened_here: bool,
    /// Whether it uses MPTCP.
    pub mptcp: bool,
    /// Subflows that carried data.
    pub subflows: BTreeSet<u32>,
    /// Number of opened subflows.
    opened_subflows: u32,
    /// First data sequence number of what this host sends and of what it receives.
    first: Directions<Option<u64>>,
    /// The direction from this host.
    pub sender: Sender,
    /// The direction towards this host.
    pub receiver: Receiver,
}

impl Connection {
    /// The direction from this host (`outgoing`) or towards it.
    #[must_use]
    pub fn direction(&self, outgoing: bool) -> Direction {
        Direction {
            connection: self.id,
            to_client: self.opened_here != outgoing,
        }
    }
}

/// A value for each direction.
#[derive(Debug, Clone, Copy, Default)]
struct Directions<T> {
    outgoing: T,
    incoming: T,
}

impl<T> Directions<T> {
    fn of(&mut self, outgoing: bool) -> &mut T {
        if outgoing {
            &mut self.outgoing
        } else {
            &mut self.incoming
        }
    }
}

/// A subflow.
#[derive(Debug)]
struct Subflow {
    connection: usize,
    /// Its number within the connection.
    number: u32,
    /// Sequence number of the SYN that opened it.
    syn: u32,
    streams: Directions<Option<Stream>>,
}

/// Frames and segments that couldn't be used.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Ignored {
    /// Frames without TCP.
    pub other_frames: u64,
    /// Frames whose headers are truncated or inconsistent.
    pub malformed_frames: u64,
    /// Segments of subflows whose opening isn't in the capture.
    pub unknown_segments: u64,
    /// Packets with data that no mapping covers.
    pub unmapped_packets: u64,
}

/// Follows one host's capture.
///
/// Memory: one entry per connection and subflow, plus that of [`Receiver`], [`Sender`] and
/// [`Stream`].
#[derive(Debug)]
pub struct Host {
    addresses: Vec<Ipv4Addr>,
    start_ns: u64,
    connections: Vec<Connection>,
    subflows: HashMap<(SocketAddrV4, SocketAddrV4), Subflow>,
    tokens: BTreeMap<u32, usize>,
    /// What couldn't be used.
    pub ignored: Ignored,
}

impl Host {
    /// A host with these addresses. Data before `start_ns` belongs to no run: it's followed, but
    /// not counted.
    #[must_use]
    pub fn new(addresses: Vec<Ipv4Addr>, start_ns: u64) -> Self {
        Self {
            addresses,
            start_ns,
            connections: Vec::new(),
            subflows: HashMap::new(),
            tokens: BTreeMap::new(),
            ignored: Ignored::default(),
        }
    }

    /// Its connections in the order of their first SYN, and what couldn't be used.
    #[must_use]
    pub fn finish(mut self) -> (Vec<Connection>, Ignored) {
        for subflow in self.subflows.values_mut() {
            let streams = [&subflow.streams.outgoing, &subflow.streams.incoming];
            let waiting = streams.into_iter().flatten().map(Stream::held);
            self.ignored.unmapped_packets += waiting.sum::<u64>();
        }
        (self.connections, self.ignored)
    }

    /// Processes a segment that the host sent or received.
    pub fn segment(&mut self, at_ns: u64, segment: &Segment<'_>, observer: &mut impl Observer) {
        let outgoing = self.addresses.contains(segment.source.ip());
        if !outgoing && !self.addresses.contains(segment.destination.ip()) {
            self.ignored.unknown_segments += 1;
            return;
        }
        let ends = if outgoing {
            (segment.source, segment.destination)
        } else {
            (segment.destination, segment.source)
        };
        let options = Options::of(segment.options);
        if segment.syn && segment.acknowledgment.is_none() {
            self.open(ends, outgoing, segment, &options, observer);
        }
        let Some(subflow) = self.subflows.get_mut(&ends) else {
            self.ignored.unknown_segments += 1;
            return;
        };
        let Some(connection) = self.connections.get_mut(subflow.connection) else {
            return;
        };
        if segment.syn && subflow.streams.of(outgoing).is_none() {
            *subflow.streams.of(outgoing) = Some(Stream::new(segment.sequence));
        }
        if let Some(capable) = options.capable {
            let index = subflow.connection;
            for (token, known) in connection.learn_keys(outgoing, capable) {
                if known {
                    self.tokens.insert(token, index);
                }
            }
        } else if segment.syn && segment.acknowledgment.is_some() && subflow.number == 0 {
            // The answer to the first SYN shows whether both ends want MPTCP.
            connection.mptcp = false;
        }
        if segment.syn {
            return;
        }
        let mut exchange = Exchange {
            at_ns,
            start_ns: self.start_ns,
            outgoing,
            connection,
            subflow,
            ignored: &mut self.ignored,
        };
        exchange.data(segment, &options, observer);
        exchange.data_ack(segment, options.dss, observer);
    }

    /// Processes a SYN: opens a subflow, unless it's a retransmission.
    fn open(
        &mut self,
        ends: (SocketAddrV4, SocketAddrV4),
        outgoing: bool,
        segment: &Segment<'_>,
        options: &Options,
        observer: &mut impl Observer,
    ) {
        let known = self.subflows.get(&ends);
        if known.is_some_and(|subflow| subflow.syn == segment.sequence) {
            return;
        }
        let connection = match options.join_token {
            Some(token) => match self.tokens.get(&token) {
                Some(&connection) => connection,
                // Its segments will count as unknown.
                None => {
                    self.subflows.remove(&ends);
                    return;
                }
            },
            None => {
                let id = ConnectionId {
                    client: segment.source,
                    server: segment.destination,
                    syn: segment.sequence,
                };
                observer.opened(id);
                self.connections.push(Connection {
                    id,
                    opened_here: outgoing,
                    mptcp: options.capable.is_some(),
                    subflows: BTreeSet::new(),
                    opened_subflows: 0,
                    first: Directions::default(),
                    sender: Sender::default(),
                    receiver: Receiver::default(),
                });
                self.connections.len() - 1
            }
        };
        let number = self.connections[connection].opened_subflows;
        self.connections[connection].opened_subflows += 1;
        let subflow = Subflow {
            connection,
            number,
            syn: segment.sequence,
            streams: Directions::default(),
        };
        self.subflows.insert(ends, subflow);
    }
}

impl Connection {
    /// Learns where data begins. Returns the tokens of the keys, each with whether it's new.
    fn learn_keys(&mut self, outgoing: bool, capable: Capable) -> [(u32, bool); 2] {
        let keys = [
            (outgoing, capable.sender_key),
            (!outgoing, capable.receiver_key),
        ];
        keys.map(|(outgoing, key)| match key {
            Some(key) if self.first.of(outgoing).is_none() => {
                let (token, initial) = key.token_and_initial_sequence();
                *self.first.of(outgoing) = Some(initial.wrapping_add(1));
                (token, true)
            }
            _ => (0, false),
        })
    }
}

/// A segment of a known subflow.
struct Exchange<'a> {
    at_ns: u64,
    start_ns: u64,
    outgoing: bool,
    connection: &'a mut Connection,
    subflow: &'a mut Subflow,
    ignored: &'a mut Ignored,
}

impl Exchange<'_> {
    fn data(&mut self, segment: &Segment<'_>, options: &Options, observer: &mut impl Observer) {
        let outgoing = self.outgoing;
        let Some(stream) = self.subflow.streams.of(outgoing) else {
            // A refused subflow carries no data. With data, its opening is missing in the capture.
            self.ignored.unknown_segments += u64::from(segment.payload_bytes > 0);
            return;
        };
        if !self.connection.mptcp {
            stream.make_plain();
        }
        let Some(offset) = stream.offset(segment.sequence) else {
            return;
        };
        let first = *self.connection.first.of(outgoing);
        let expected = self.connection.expected(outgoing);
        let signalled = options.dss.and_then(|dss| dss.mapping);
        let mapping = match (signalled, options.capable.and_then(|c| c.data_bytes)) {
            (Some(signalled), _) => first
                .and_then(|first| signalled.data_sequence.offset(first, expected))
                .and_then(|place| Stream::mapping(signalled, place, offset)),
            // MP_CAPABLE comes with the connection's first data.
            (None, Some(bytes)) => Some(Mapping {
                offset: 0,
                data_sequence: 0,
                bytes: bytes.into(),
            }),
            (None, None) => None,
        };
        if let Some(mapping) = mapping {
            if mapping.offset != offset || mapping.bytes > segment.payload_bytes.into() {
                let mut found = Vec::new();
                stream.add_mapping(mapping, |payload, place| found.push((payload, place)));
                for (payload, place) in found {
                    self.place(payload, place, observer);
                }
            }
        }
        if segment.payload_bytes == 0 {
            return;
        }
        let Some(stream) = self.subflow.streams.of(outgoing) else {
            return;
        };
        let payload = PacketData {
            at_ns: self.at_ns,
            offset,
            bytes: segment.payload_bytes,
            late: stream.advance(offset, segment.payload_bytes),
        };
        let place = mapping.and_then(|mapping| mapping.data_sequence_of(offset));
        match place.or_else(|| stream.lookup(offset)) {
            Some(place) => self.place(payload, place, observer),
            None => self.ignored.unmapped_packets += u64::from(stream.hold(payload)),
        }
    }

    /// Passes data to its direction of the connection.
    fn place(&mut self, payload: PacketData, data_sequence: u64, observer: &mut impl Observer) {
        let connection = &mut *self.connection;
        let counts = payload.at_ns >= self.start_ns;
        let Some(end) = data_sequence.checked_add(payload.bytes.into()) else {
            return;
        };
        if counts {
            connection.subflows.insert(self.subflow.number);
        }
        if self.outgoing {
            let is_new = data_sequence >= connection.sender.highest();
            let unsent_bytes = connection.sender.unsent_before(data_sequence);
            connection.sender.data(data_sequence, end, payload.late);
            if !counts {
                connection.sender.totals = Sent::default();
            } else if is_new && unsent_bytes > 0 {
                let gap = Gap {
                    at_ns: payload.at_ns,
                    subflow: self.subflow.number,
                    data_sequence,
                    unsent_bytes,
                };
                observer.gap(connection.direction(true), gap);
            }
            return;
        }
        let packet = Packet {
            at_ns: payload.at_ns,
            subflow: self.subflow.number,
            retransmission: payload.late,
            data_sequence,
            bytes: payload.bytes,
        };
        let direction = connection.direction(false);
        if !counts {
            connection.receiver.data(packet, |_| {});
            connection.receiver.totals = Received::default();
            return;
        }
        let report = |outcome| observer.packet(direction, outcome);
        connection.receiver.data(packet, report);
    }

    /// Processes what the host acknowledges.
    fn data_ack(&mut self, segment: &Segment<'_>, dss: Option<Dss>, observer: &mut impl Observer) {
        if !self.outgoing {
            return;
        }
        let connection = &mut *self.connection;
        let expected = connection.expected(false);
        let data_ack = if connection.mptcp {
            let first = connection.first.incoming;
            let signalled = dss.and_then(|dss| dss.data_ack);
            first.and_then(|first| signalled?.offset(first, expected))
        } else {
            let stream = self.subflow.streams.incoming.as_ref();
            stream.and_then(|stream| stream.offset(segment.acknowledgment?))
        };
        let Some(data_ack) = data_ack else {
            return;
        };
        if self.at_ns < self.start_ns {
            connection.receiver.data_ack(self.at_ns, data_ack, |_| {});
            connection.receiver.totals = Received::default();
            return;
        }
        let direction = connection.direction(false);
        let report = |outcome| observer.packet(direction, outcome);
        if let Some(leap_packets) = connection.receiver.data_ack(self.at_ns, data_ack, report) {
            let ack = DataAck {
                at_ns: self.at_ns,
                subflow: self.subflow.number,
                data_ack,
                leap_packets,
            };
            observer.data_ack(direction, ack);
        }
    }
}

impl Connection {
    /// The expected position of its data, to which short numbers are extended.
    fn expected(&self, outgoing: bool) -> u64 {
        if outgoing {
            self.sender.highest()
        } else {
            self.receiver.next()
        }
    }
}
