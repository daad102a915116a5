// SPDX-License-Identifier: Apache-2.0

//! The fabric without contention: which rack each host is in, link rates, and how long a
//! flow takes at best.
//!
//! # Ideal flow completion time
//!
//! The time that a flow needs alone in the fabric, over an open connection whose window
//! never limits it. No schedule of its packets is faster:
//!
//! ```text
//! ideal = propagation + first / rate, summed over the links of the fastest path
//!       + max((wire - first) / host rate, (wire - paths * first) / rate of all paths)
//! ```
//!
//! `wire` is the number of bytes of all frames, including headers. `first` is the first frame,
//! which is full unless the flow is smaller than a packet. It crosses one link after another
//! (store and forward). The other frames follow at the lower of two rates: that of the hosts'
//! links, and that of all paths together. The handshake isn't included; where a flow needs
//! one, it shows in the slowdown.

use std::collections::{BTreeMap, BTreeSet};

use weft_topology::routes::{EgressPort, Routes, RoutesError};
use weft_topology::{Link, Switch, Topology};

/// IP packet size every link carries.
const MTU_BYTES: u64 = 1500;
/// Ethernet header. Links count it as part of a frame, but not preamble and checksum.
const ETHERNET_BYTES: u64 = 14;
const IPV4_HEADER_BYTES: u64 = 20;
const IPV6_HEADER_BYTES: u64 = 40;
/// TCP header with the timestamps option.
const TCP_HEADER_BYTES: u64 = 20 + 12;
/// The least that MPTCP adds to a data packet: Linux's DSS option with a 64-bit mapping and a
/// 32-bit Data ACK, padded (28 bytes with a 64-bit Data ACK).
const DSS_BYTES: u64 = 24;

/// The transport protocol of flows.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// Multipath TCP.
    Mptcp,
    /// Plain TCP, for comparison and for kernels without MPTCP.
    Tcp,
}

impl Protocol {
    /// Bytes of the transport headers of a full data packet.
    #[must_use]
    pub fn header_bytes(self) -> u64 {
        match self {
            Self::Mptcp => TCP_HEADER_BYTES + DSS_BYTES,
            Self::Tcp => TCP_HEADER_BYTES,
        }
    }
}

/// Hosts, and the paths between their leaves.
#[derive(Debug, Clone)]
pub struct IdealFabric {
    hosts: Vec<HostPort>,
    /// Paths between leaves: `between[source][destination]`.
    between: Vec<Vec<LeafPaths>>,
    ip_header_bytes: u64,
}

/// A host's rack and link.
#[derive(Debug, Clone)]
struct HostPort {
    rack: usize,
    /// The direction from the host.
    up: Hop,
    /// The direction to the host.
    down: Hop,
}

#[derive(Debug, Clone, Copy)]
struct Hop {
    rate_bps: u64,
    delay_ns: u64,
}

/// The links of a path between two leaves.
type Hops = Vec<Hop>;

/// All paths between two leaves.
#[derive(Debug, Clone)]
struct LeafPaths {
    paths: Vec<Hops>,
    /// Total rate of all paths; `None` within a leaf.
    rate_bps: Option<u64>,
}

/// Why a topology cannot carry traffic.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdealFabricError {
    /// A host without a link to a switch.
    #[error("topology: {0} has no link to a switch")]
    Unconnected(String),
    /// Leaves that cannot reach each other.
    #[error("topology: {0}")]
    Routes(#[from] RoutesError),
    /// A link with rate 0.
    #[error("topology: a link of {0} has rate 0")]
    NoRate(String),
}

impl IdealFabric {
    /// Computes the paths and rates of `topology`.
    ///
    /// # Errors
    /// See [`IdealFabricError`].
    pub fn new(topology: &Topology) -> Result<Self, IdealFabricError> {
        let mut leaves: Vec<&Switch> = Vec::new();
        let mut hosts = Vec::with_capacity(topology.hosts.len());
        for host in &topology.hosts {
            let unconnected = || IdealFabricError::Unconnected(host.name.clone());
            let link = topology.host_link(host).ok_or_else(unconnected)?;
            let far = if link.a.node == host.name {
                &link.b
            } else {
                &link.a
            };
            let leaf = topology.switch(&far.node).ok_or_else(unconnected)?;
            let rack = leaves
                .iter()
                .position(|known| known.name == leaf.name)
                .unwrap_or_else(|| {
                    leaves.push(leaf);
                    leaves.len() - 1
                });
            hosts.push(HostPort {
                rack,
                up: Hop::of(link, &host.name)?,
                down: Hop::of(link, &leaf.name)?,
            });
        }
        let routes = Routes::new(topology)?;
        let mut between = Vec::with_capacity(leaves.len());
        for source in &leaves {
            let mut row = Vec::with_capacity(leaves.len());
            for destination in &leaves {
                row.push(paths(topology, &routes, source, destination)?);
            }
            between.push(row);
        }
        Ok(Self {
            hosts,
            between,
            ip_header_bytes: if topology.ipv6 {
                IPV6_HEADER_BYTES
            } else {
                IPV4_HEADER_BYTES
            },
        })
    }

    /// Number of hosts. They are numbered from 0, in the topology's order.
    #[must_use]
    pub fn hosts(&self) -> usize {
        self.hosts.len()
    }

    /// The rack (leaf) of `host`, numbered from 0.
    #[must_use]
    pub fn rack(&self, host: usize) -> usize {
        self.hosts[host].rack
    }

    /// Sum of the rates of all host links, each in its slower direction.
    #[must_use]
    pub fn host_rate_sum_bps(&self) -> f64 {
        let slower = |host: &HostPort| host.up.rate_bps.min(host.down.rate_bps) as f64;
        self.hosts.iter().map(slower).sum()
    }

    /// Rate of the link towards `host`.
    #[must_use]
    pub fn receive_rate_bps(&self, host: usize) -> u64 {
        self.hosts[host].down.rate_bps
    }

    /// Propagation to the farthest host and back, over the longest path.
    #[must_use]
    pub fn longest_rtt_ns(&self) -> u64 {
        let of_path = |hops: &Hops| hops.iter().map(|hop| hop.delay_ns).sum::<u64>();
        let paths = self.between.iter().flatten().flat_map(|way| &way.paths);
        let between = paths.map(of_path).max().unwrap_or(0);
        let ends = self.hosts.iter().map(|host| host.up.delay_ns).max();
        2 * (between + 2 * ends.unwrap_or(0))
    }

    /// Ideal flow completion time of `bytes`, see the module.
    #[must_use]
    pub fn ideal_fct_ns(
        &self,
        source: usize,
        destination: usize,
        bytes: u64,
        protocol: Protocol,
    ) -> u64 {
        let bytes = bytes.max(1);
        let header = self.ip_header_bytes + protocol.header_bytes();
        let payload = MTU_BYTES - header;
        let frame = |payload: u64| payload + header + ETHERNET_BYTES;
        let wire = bytes + bytes.div_ceil(payload) * (header + ETHERNET_BYTES);
        let first = frame(bytes.min(payload));

        let (source, destination) = (&self.hosts[source], &self.hosts[destination]);
        let ends = [source.up, destination.down];
        let LeafPaths { paths, rate_bps } = &self.between[source.rack][destination.rack];
        let fastest = paths
            .iter()
            .map(|hops| hops.iter().map(|hop| hop.crossing_ns(first)).sum::<u64>())
            .min()
            .unwrap_or(0);
        let ends_ns: u64 = ends.iter().map(|end| end.crossing_ns(first)).sum();

        let narrow_host = ends[0].rate_bps.min(ends[1].rate_bps);
        let by_host = serialisation_ns(wire - first, narrow_host);
        let by_paths = rate_bps.map_or(0, |rate_bps| {
            let beyond_first = wire.saturating_sub(paths.len() as u64 * first);
            serialisation_ns(beyond_first, rate_bps)
        });
        ends_ns + fastest + by_host.max(by_paths)
    }
}

impl Hop {
    /// The direction of `link` in which `node` sends.
    fn of(link: &Link, node: &str) -> Result<Self, IdealFabricError> {
        let rate_bps = link.rate_from_bps(node);
        if rate_bps == 0 {
            return Err(IdealFabricError::NoRate(node.to_owned()));
        }
        Ok(Self {
            rate_bps,
            delay_ns: link.delay_ns,
        })
    }

    /// Time from the first bit sent at one end to the last bit received at the other.
    fn crossing_ns(self, frame_bytes: u64) -> u64 {
        self.delay_ns + serialisation_ns(frame_bytes, self.rate_bps)
    }
}

fn serialisation_ns(bytes: u64, rate_bps: u64) -> u64 {
    let ns = u128::from(bytes) * 8_000_000_000 / u128::from(rate_bps);
    u64::try_from(ns).unwrap_or(u64::MAX)
}

/// The distinct paths between two leaves; within a leaf, one without links.
fn paths(
    topology: &Topology,
    routes: &Routes,
    from: &Switch,
    to: &Switch,
) -> Result<LeafPaths, IdealFabricError> {
    if from.name == to.name {
        return Ok(LeafPaths {
            paths: vec![Vec::new()],
            rate_bps: None,
        });
    }
    let route = |path| routes.route(from.index, to.index, path).collect();
    let found: BTreeSet<Vec<EgressPort>> = (0..topology.paths).map(route).collect();
    let mut paths = Vec::with_capacity(found.len());
    // Paths may share links. In each tier, every link counts once.
    let mut tiers: Vec<BTreeMap<EgressPort, u64>> = Vec::new();
    for route in &found {
        let mut hops = Vec::with_capacity(route.len());
        for (tier, &port) in route.iter().enumerate() {
            let hop = Hop::of(port.link(topology), &port.switch(topology).name)?;
            if tiers.len() <= tier {
                tiers.push(BTreeMap::new());
            }
            tiers[tier].insert(port, hop.rate_bps);
            hops.push(hop);
        }
        paths.push(hops);
    }
    let narrowest = paths.iter().filter_map(|hops| {
        let rates = hops.iter().map(|hop| hop.rate_bps);
        rates.min()
    });
    let of_tiers = tiers.iter().map(|links| links.values().sum());
    let rate_bps = of_tiers.chain([narrowest.sum()]).min();
    Ok(LeafPaths { paths, rate_bps })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A leaf-spine with these rates between switches and to hosts.
    pub(crate) fn leaf_spine(
        leaves: u8,
        spines: u8,
        hosts: u8,
        rate_bps: u64,
        host_rate_bps: u64,
    ) -> Topology {
        let mut topology = weft_testing::topology::leaf_spine(leaves, spines, hosts);
        for link in &mut topology.links {
            let to_host = link.a.node.starts_with('h');
            link.rate_bps = if to_host { host_rate_bps } else { rate_bps };
        }
        topology
    }

    const GBIT: u64 = 1_000_000_000;

    fn ideal(rate: u64, bytes: u64, protocol: Protocol) -> u64 {
        IdealFabric::new(&leaf_spine(2, 2, 2, rate, GBIT))
            .unwrap()
            .ideal_fct_ns(0, 2, bytes, protocol)
    }

    #[test]
    fn a_single_packet_is_stored_and_forwarded_four_times() {
        // 100 B + 76 B headers + 14 B Ethernet = 190 B: 1520 ns at 1 Gbps.
        assert_eq!(ideal(GBIT, 100, Protocol::Mptcp), 4 * (10_000 + 1_520));
    }

    #[test]
    fn a_packet_over_ipv6_is_20_bytes_longer() {
        let mut topology = leaf_spine(2, 2, 2, GBIT, GBIT);
        topology.ipv6 = true;
        let fabric = IdealFabric::new(&topology).unwrap();
        let ideal_ns = fabric.ideal_fct_ns(0, 2, 100, Protocol::Mptcp);
        assert_eq!(ideal_ns, ideal(GBIT, 120, Protocol::Mptcp));
    }

    #[test]
    fn equal_links_are_paced_by_the_host_link() {
        // Three full packets of 1424 B: 3 * 1514 B back to back; the last one crosses three
        // more links.
        let packet = 12_112;
        assert_eq!(
            ideal(GBIT, 3 * 1_424, Protocol::Mptcp),
            4 * 10_000 + 6 * packet
        );
    }

    #[test]
    fn tcp_carries_more_per_packet() {
        assert_eq!(ideal(GBIT, 1_448, Protocol::Tcp), 4 * (10_000 + 12_112));
        assert!(ideal(GBIT, 1_000_000, Protocol::Tcp) < ideal(GBIT, 1_000_000, Protocol::Mptcp));
    }

    #[test]
    fn slow_paths_add_up() {
        // Two paths of 0.4 Gbps carry 0.8 Gbps.
        let wire_bits = 1_000.0 * 1_514.0 * 8.0;
        let found = ideal(GBIT * 4 / 10, 1_424_000, Protocol::Mptcp) as f64;
        assert!((found / (wire_bits / 0.8) - 1.0).abs() < 0.01, "{found}");
    }

    #[test]
    fn a_flow_is_paced_by_its_senders_way_up_and_its_receivers_way_down() {
        let mut topology = leaf_spine(2, 2, 2, GBIT, GBIT);
        for link in &mut topology.links {
            if link.a.node.starts_with('h') {
                link.rate_from_a_bps = Some(2 * GBIT);
            }
        }
        let fabric = IdealFabric::new(&topology).unwrap();
        assert_eq!(fabric.host_rate_sum_bps(), 4e9);
        // Half of a packet's transmission time on the sender's link, all of it on three more.
        assert_eq!(
            fabric.ideal_fct_ns(0, 2, 2 * 1_424, Protocol::Mptcp),
            4 * 10_000 + 12_112 / 2 + 4 * 12_112
        );
    }

    #[test]
    fn the_longest_rtt_crosses_the_slowest_links_there_and_back() {
        let mut topology = leaf_spine(2, 2, 2, GBIT, GBIT);
        for link in &mut topology.links {
            if link.b.node == "spine2" {
                link.delay_ns = 75_000_000;
            }
        }
        let fabric = IdealFabric::new(&topology).unwrap();
        assert_eq!(fabric.longest_rtt_ns(), 300_000_000 + 40_000);
    }

    #[test]
    fn hosts_of_one_leaf_need_no_spine() {
        let fabric = IdealFabric::new(&leaf_spine(2, 2, 2, GBIT, GBIT)).unwrap();
        assert_eq!(
            fabric.ideal_fct_ns(0, 1, 1_424, Protocol::Mptcp),
            2 * (10_000 + 12_112)
        );
        assert_eq!((fabric.rack(1), fabric.rack(2)), (0, 1));
    }

    #[test]
    fn leaves_without_a_common_spine_are_refused() {
        let mut topology = leaf_spine(2, 1, 1, GBIT, GBIT);
        topology.switches[2].ports.truncate(1);
        assert_eq!(
            IdealFabric::new(&topology).unwrap_err().to_string(),
            "topology: no path 0 from leaf1 to leaf2"
        );
    }
}
