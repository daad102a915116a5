// SPDX-License-Identifier: Apache-2.0

//! One direction of a link: how long a packet takes over it.

use weft_topology::routes::EgressPort;
use weft_topology::{Change, End, Host, Link, Nic, Topology};

use super::FULL_SIZE_BYTES;

/// Ethernet header. A frame adds it to the IPv4 packet; between SmartNICs, the header `nic_t`
/// comes on top.
const ETHERNET_HEADER_BYTES: u64 = 14;

/// IPv4 length of a bare MPTCP ACK: IPv4 20, TCP 20, timestamps 12, Data ACK 12.
pub(super) const ACK_BYTES: u16 = 64;

/// Bytes that a frame in `topology` adds to its IPv4 packet.
pub(super) fn header_bytes(topology: &Topology) -> u64 {
    let has_nics = topology.nics().next().is_some();
    ETHERNET_HEADER_BYTES + if has_nics { Nic::HEADER_BYTES } else { 0 }
}

/// One direction of a link, with the queue in front of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hop {
    pub rate_bps: u64,
    pub delay_ns: u64,
    queue_packets: u64,
    /// Queue limit in bytes, where that applies instead of packets.
    queue_bytes: Option<u64>,
    /// Bytes that a frame adds to its IPv4 packet.
    header_bytes: u64,
}

impl Hop {
    /// The direction in which node `from` sends.
    pub fn of(link: &Link, from: &str, header_bytes: u64) -> Self {
        Self {
            rate_bps: link.rate_from_bps(from).max(1),
            delay_ns: link.delay_ns,
            queue_packets: u64::from(link.queue_packets),
            queue_bytes: link.queue_bytes,
            header_bytes,
        }
    }

    /// This hop with the worst rate, delay and queue of itself and `change`.
    pub fn at_worst(self, change: &Change) -> Self {
        let queue = change.queue_packets.map_or(0, u64::from);
        Self {
            rate_bps: self.rate_bps.min(change.rate_bps.unwrap_or(u64::MAX)),
            delay_ns: self.delay_ns.max(change.delay_ns.unwrap_or(0)),
            queue_packets: self.queue_packets.max(queue),
            ..self
        }
    }

    /// Transmission time of an IPv4 packet of `length_bytes`.
    pub fn serialisation_ns(&self, length_bytes: u16) -> u64 {
        let bits = u128::from(u64::from(length_bytes) + self.header_bytes) * 8;
        u64::try_from(bits * 1_000_000_000 / u128::from(self.rate_bps)).unwrap_or(u64::MAX)
    }

    /// Time through an empty queue and over the link.
    pub fn crossing_ns(&self, length_bytes: u16) -> u64 {
        self.serialisation_ns(length_bytes) + self.delay_ns
    }

    /// Longest wait in the queue.
    pub fn queue_ns(&self) -> u64 {
        let full_size_ns = self.serialisation_ns(FULL_SIZE_BYTES);
        let frame_bytes = u64::from(FULL_SIZE_BYTES) + self.header_bytes;
        let by_bytes = self.queue_bytes.map(|bytes| bytes.div_ceil(frame_bytes));
        self.queue_packets
            .max(by_bytes.unwrap_or(0))
            .saturating_mul(full_size_ns)
    }
}

/// The leaf's end of a host's `link`.
pub(super) fn leaf_end<'a>(host: &Host, link: &'a Link) -> &'a End {
    if link.a.node == host.name {
        &link.b
    } else {
        &link.a
    }
}

/// The link between a host and its leaf.
#[derive(Debug, Clone, Copy)]
pub(super) struct Access {
    pub leaf: u8,
    /// Index of the host in the topology.
    pub host: usize,
    /// The leaf's port to the host, if the leaf is a switch of the topology.
    pub leaf_port: Option<EgressPort>,
    /// From the leaf to the host.
    pub down: Hop,
    /// From the host to the leaf.
    pub up: Hop,
    /// The part of the link's delay between kernel and SmartNIC, if there is one.
    pub nic_ns: Option<u64>,
}

impl Access {
    pub fn of(
        place: usize,
        host: &Host,
        link: &Link,
        leaf_port: Option<EgressPort>,
        header_bytes: u64,
    ) -> Self {
        Self {
            leaf: host.leaf,
            host: place,
            leaf_port,
            down: Hop::of(link, &leaf_end(host, link).node, header_bytes),
            up: Hop::of(link, &host.name, header_bytes),
            nic_ns: host.nic.as_ref().map(|nic| nic.delay_ns),
        }
    }

    /// Transmission time of a full-size packet on the host's link, and of the ACK in return.
    pub fn own_wire_ns(&self) -> u64 {
        self.up.serialisation_ns(FULL_SIZE_BYTES) + self.down.serialisation_ns(ACK_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use weft_topology::Nic;

    use crate::fabric::{FULL_SIZE_BYTES, RoutedFabric};
    use crate::testing::leaf_spine;

    const SOURCE: Ipv4Addr = Ipv4Addr::new(10, 1, 1, 1);
    const DESTINATION: Ipv4Addr = Ipv4Addr::new(10, 2, 1, 1);

    /// Links of 10 us and 1 Gbps; 4 us of each host link lie between kernel and NIC.
    fn fabric_with_nics() -> RoutedFabric {
        let mut topology = leaf_spine(2, 2, 1);
        for (host, device_id) in topology.hosts.iter_mut().zip(1001..) {
            host.nic = Some(Nic {
                name: format!("nic_{}", host.name),
                device_id,
                grpc: String::new(),
                rate_bps: 252_000_000_000,
                delay_ns: 4_000,
            });
        }
        RoutedFabric::new(topology).unwrap()
    }

    #[test]
    fn nics_measure_all_wires_and_no_bus() {
        let fabric = fabric_with_nics();
        let base_ns = fabric.measured_base_ns(SOURCE, DESTINATION, 0, FULL_SIZE_BYTES);
        // Frames of 1532 and 96 bytes, each on four links.
        let wires_ns = 4 * (12_256 + 768);
        let delays_ns = 2 * (6_000 + 10_000 + 10_000 + 6_000);
        assert_eq!(base_ns, Some(wires_ns + delays_ns));
    }

    #[test]
    fn hosts_find_the_configured_rtt_where_nics_measure_the_least() {
        let fabric = fabric_with_nics();
        let pair = fabric.pair_of(SOURCE, DESTINATION).unwrap();
        let base_ns = fabric.measured_base_ns(SOURCE, DESTINATION, 1, FULL_SIZE_BYTES);
        let rtt_ns = fabric.rtt_between_hosts_ns(SOURCE, DESTINATION, base_ns.unwrap());
        assert_eq!(rtt_ns, fabric.configured_rtt_ns(pair, 1));
    }

    #[test]
    fn every_nic_measures_for_its_host_and_a_leaf_for_all() {
        let fabric = fabric_with_nics();
        assert_eq!(fabric.measuring_nic(SOURCE), Some(0));
        assert_eq!(fabric.measuring_nic(DESTINATION), Some(1));
        let plain = crate::testing::fabric(2, 2, 1);
        assert_eq!(plain.measuring_nic(SOURCE), None);
    }
}
