// SPDX-License-Identifier: Apache-2.0

//! What `topology.json` implies: where hosts are attached, which path a pair of addresses
//! takes, and its RTT over empty queues.

mod hop;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use weft_topology::routes::{EgressPort, Routes, RoutesError};
use weft_topology::{Host, Link, Target, Topology};

use crate::pattern::PATHS_MAX;

use hop::{ACK_BYTES, Access, Hop, header_bytes, leaf_end};

/// IPv4 length of a full-size packet. Paths are compared by packets of this length.
pub const FULL_SIZE_BYTES: u16 = 1500;

/// CRC-16/ARC, which v1model calls `HashAlgorithm.crc16`.
const CRC16: crc::Crc<u16> = crc::Crc::<u16>::new(&crc::CRC_16_ARC);

/// An ordered pair of different leaves, in the direction of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeafPair {
    /// Leaf of the senders, from 1.
    pub source: u8,
    /// Leaf of the receivers, from 1.
    pub destination: u8,
}

/// Why a topology cannot be controlled.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// The topology has no paths, or more than a pattern can hold.
    #[error("topology has {paths} paths; patterns serve 1 to {PATHS_MAX}")]
    Paths {
        /// Number of paths in the topology.
        paths: u8,
    },
    /// Leaves that cannot reach each other.
    #[error(transparent)]
    Routes(#[from] RoutesError),
    /// A host without a link.
    #[error("host {0} has no link")]
    NoHostLink(String),
}

/// A topology with its routes and the RTTs that follow from its links.
#[derive(Debug)]
pub struct RoutedFabric {
    topology: Topology,
    routes: Routes,
    /// Switch name -> index in the topology.
    switches: BTreeMap<String, usize>,
    /// Both directions of every link, in the topology's order: from end `a`, then from end `b`.
    hops: Vec<[Hop; 2]>,
    /// The same in the worst case, if the schedule changes links.
    worst_hops: Vec<[Hop; 2]>,
    /// Address -> the link of its host.
    addresses: BTreeMap<Ipv4Addr, Access>,
    /// Leaf -> the link of its first host.
    host_links: BTreeMap<u8, Access>,
    /// Leaf -> indices of its hosts in the topology.
    hosts: BTreeMap<u8, Vec<usize>>,
    /// Egress port -> the pairs whose data crosses it.
    through: BTreeMap<EgressPort, Vec<LeafPair>>,
    /// See [`RoutedFabric::shortest_rtt_ns`].
    shortest_rtt_ns: Option<u64>,
    /// See [`RoutedFabric::longest_rtt_ns`].
    longest_rtt_ns: Option<u64>,
}

impl RoutedFabric {
    /// Computes routes and RTTs of `topology`.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn new(topology: Topology) -> Result<Self, Error> {
        if topology.paths == 0 || usize::from(topology.paths) > PATHS_MAX {
            return Err(Error::Paths {
                paths: topology.paths,
            });
        }
        let names = topology.switches.iter().map(|switch| switch.name.clone());
        let mut fabric = Self {
            routes: Routes::new(&topology)?,
            switches: names.zip(0..).collect(),
            hops: hops(&topology),
            worst_hops: worst_hops(&topology),
            addresses: BTreeMap::new(),
            host_links: BTreeMap::new(),
            hosts: BTreeMap::new(),
            through: BTreeMap::new(),
            shortest_rtt_ns: None,
            longest_rtt_ns: None,
            topology,
        };
        fabric.find_hosts()?;
        fabric.find_pairs();
        let rtts_ns: Vec<u64> = fabric
            .pairs()
            .flat_map(|pair| (0..fabric.paths()).map(move |path| (pair, path)))
            .filter_map(|(pair, path)| fabric.configured_rtt_ns(pair, path))
            .collect();
        fabric.shortest_rtt_ns = rtts_ns.iter().min().copied();
        fabric.longest_rtt_ns = rtts_ns.iter().max().copied();
        Ok(fabric)
    }

    /// The topology itself.
    #[must_use]
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Number of paths between hosts of different leaves.
    #[must_use]
    pub fn paths(&self) -> u8 {
        self.topology.paths
    }

    /// The routes of all paths.
    #[must_use]
    pub fn routes(&self) -> &Routes {
        &self.routes
    }

    /// The egress ports of data of `pair` on `path`, without the last one, to the host.
    pub fn route(&self, pair: LeafPair, path: u8) -> impl Iterator<Item = EgressPort> + '_ {
        self.routes.route(pair.source, pair.destination, path)
    }

    /// All egress ports of data between two addresses on `path`; empty if no path leads there.
    pub fn route_between(
        &self,
        source: Ipv4Addr,
        destination: Ipv4Addr,
        path: u8,
    ) -> impl Iterator<Item = EgressPort> + '_ {
        let pair = self.pair_of(source, destination);
        let route = pair
            .into_iter()
            .flat_map(move |pair| self.route(pair, path));
        let last = self.addresses.get(&destination).filter(|_| pair.is_some());
        route.chain(last.and_then(|access| access.leaf_port))
    }

    /// Names of the switches between the leaves of `pair` on `path`: `spine1`, or
    /// `agg1_1-core1-agg2_1`.
    #[must_use]
    pub fn via(&self, pair: LeafPair, path: u8) -> String {
        let between = self.route(pair, path).skip(1);
        let names: Vec<&str> = between
            .map(|port| &*port.switch(&self.topology).name)
            .collect();
        names.join("-")
    }

    /// Every ordered pair of different leaves that have hosts.
    pub fn pairs(&self) -> impl Iterator<Item = LeafPair> + '_ {
        self.host_links
            .keys()
            .flat_map(move |&leaf| self.pairs_from(leaf))
    }

    /// Name of a leaf.
    #[must_use]
    pub fn leaf_name(&self, leaf: u8) -> &str {
        let place = self.routes.leaf(leaf);
        place.map_or("", |place| &self.topology.switches[place].name)
    }

    /// Every pair whose data comes from `leaf`.
    pub fn pairs_from(&self, leaf: u8) -> impl Iterator<Item = LeafPair> + '_ {
        let others = self.host_links.keys().filter(move |other| **other != leaf);
        others
            .filter(move |_| self.host_links.contains_key(&leaf))
            .map(move |&destination| LeafPair {
                source: leaf,
                destination,
            })
    }

    /// The hosts of `leaf`.
    pub fn hosts_of(&self, leaf: u8) -> impl Iterator<Item = &Host> {
        let places = self.hosts.get(&leaf).into_iter().flatten();
        places.map(|&place| &self.topology.hosts[place])
    }

    /// The leaf pair that data from `source` to `destination` crosses; `None` if an address is
    /// unknown or both are on one leaf.
    #[must_use]
    pub fn pair_of(&self, source: Ipv4Addr, destination: Ipv4Addr) -> Option<LeafPair> {
        let pair = LeafPair {
            source: self.addresses.get(&source)?.leaf,
            destination: self.addresses.get(&destination)?.leaf,
        };
        (pair.source != pair.destination).then_some(pair)
    }

    /// Index of a switch in the topology.
    #[must_use]
    pub fn place(&self, switch: &str) -> Option<usize> {
        self.switches.get(switch).copied()
    }

    /// Port number `port` of the switch named `switch`.
    #[must_use]
    pub fn port(&self, switch: &str, port: u16) -> Option<EgressPort> {
        let switch = self.place(switch)?;
        let mut ports = self.topology.switches[switch].ports.iter();
        let port = ports.position(|known| known.number == port)?;
        Some(EgressPort { switch, port })
    }

    /// The egress port of the neighbor that sends to this port.
    #[must_use]
    pub fn sender_to(&self, at: EgressPort) -> Option<EgressPort> {
        let peer = self
            .topology
            .peer(at.switch(&self.topology), at.port(&self.topology));
        self.port(&peer.node, peer.port)
    }

    /// The pairs whose data crosses an egress port, on any path.
    #[must_use]
    pub fn pairs_through(&self, at: EgressPort) -> &[LeafPair] {
        self.through.get(&at).map_or(&[], Vec::as_slice)
    }

    /// The path (from 0) between two addresses, as leaves with `routing.subflow_paths` select it.
    /// The same in both directions.
    #[must_use]
    pub fn path_of(&self, source: Ipv4Addr, destination: Ipv4Addr) -> u8 {
        let (source, destination) = (source.octets(), destination.octets());
        let networks = [
            source[0] ^ destination[0],
            source[1] ^ destination[1],
            source[2] ^ destination[2],
        ];
        let sum =
            u32::from(source[3]) + u32::from(destination[3]) + u32::from(CRC16.checksum(&networks));
        // Less than `paths`, which is a u8.
        (sum % u32::from(self.topology.paths)) as u8
    }

    /// The address of `host` whose subflow to the first address of `peer` takes `path`.
    #[must_use]
    pub fn local_address(&self, host: &Host, peer: &Host, path: u8) -> Option<Ipv4Addr> {
        let remote = *peer.addresses.first()?;
        host.addresses
            .iter()
            .copied()
            .find(|&local| self.path_of(local, remote) == path)
    }

    /// The RTT over empty queues that the leaf of `source` would measure: from the arrival of
    /// a packet of `length_bytes` to the arrival of its ACK. If `source` has a SmartNIC, the
    /// RTT that the NIC would measure, to the other NIC and back.
    #[must_use]
    pub fn measured_base_ns(
        &self,
        source: Ipv4Addr,
        destination: Ipv4Addr,
        path: u8,
        length_bytes: u16,
    ) -> Option<u64> {
        let (near, far) = (
            self.addresses.get(&source)?,
            self.addresses.get(&destination)?,
        );
        let pair = self.pair_of(source, destination)?;
        let leaf_ns = self.base_ns(pair, path, length_bytes, far.down)?;
        let (Some(near_nic_ns), Some(far_nic_ns)) = (near.nic_ns, far.nic_ns) else {
            return Some(leaf_ns);
        };
        let wires_ns = near.up.serialisation_ns(length_bytes)
            + near.down.serialisation_ns(ACK_BYTES)
            + far.up.serialisation_ns(ACK_BYTES);
        let near_ns = 2 * (near.up.delay_ns - near_nic_ns);
        Some((leaf_ns + wires_ns + near_ns).saturating_sub(2 * far_nic_ns))
    }

    /// Rate of an egress port.
    #[must_use]
    pub fn rate_bps(&self, at: EgressPort) -> u64 {
        let switch = &at.switch(&self.topology).name;
        at.link(&self.topology).rate_from_bps(switch)
    }

    /// RTT over empty queues between hosts of `pair`, for full-size packets.
    #[must_use]
    pub fn configured_rtt_ns(&self, pair: LeafPair, path: u8) -> Option<u64> {
        let near = self.host_links.get(&pair.source)?;
        let far = self.host_links.get(&pair.destination)?;
        Some(self.base_ns(pair, path, FULL_SIZE_BYTES, far.down)? + 2 * near.up.delay_ns)
    }

    /// The shortest configured RTT of all pairs and paths.
    #[must_use]
    pub fn shortest_rtt_ns(&self) -> Option<u64> {
        self.shortest_rtt_ns
    }

    /// The longest RTT between leaves without queueing, over all pairs and paths.
    #[must_use]
    pub fn longest_rtt_ns(&self) -> Option<u64> {
        self.longest_rtt_ns
    }

    /// What measures the RTTs of data from `source`: its own SmartNIC (the index of the host), or
    /// `None` for the leaf, which measures for all its hosts.
    #[must_use]
    pub fn measuring_nic(&self, source: Ipv4Addr) -> Option<usize> {
        let near = self.addresses.get(&source)?;
        near.nic_ns.map(|_| near.host)
    }

    /// The RTT between two hosts when the leaf or NIC of `source` measures `measured_ns` for a
    /// full-size packet.
    ///
    /// Leaves don't see the propagation delay to `source`, which is added. NICs don't see the
    /// delay between them and the kernels, which is added, but they see the transmission time on
    /// host links, which is subtracted: it's the same on every path, so no RTT here includes it.
    #[must_use]
    pub fn rtt_between_hosts_ns(
        &self,
        source: Ipv4Addr,
        destination: Ipv4Addr,
        measured_ns: u64,
    ) -> Option<u64> {
        let near = self.addresses.get(&source)?;
        let far = self.addresses.get(&destination)?;
        let (Some(near_nic_ns), Some(far_nic_ns)) = (near.nic_ns, far.nic_ns) else {
            return Some(measured_ns.saturating_add(2 * near.up.delay_ns));
        };
        let wires_ns = near.own_wire_ns() + far.up.serialisation_ns(ACK_BYTES);
        let hidden_ns = 2 * (near_nic_ns + far_nic_ns);
        Some(
            measured_ns
                .saturating_add(hidden_ns)
                .saturating_sub(wires_ns),
        )
    }

    /// The longest time that a packet and its ACK can spend in queues on the measured route
    /// together, plus what scheduled changes of links can add.
    #[must_use]
    pub fn queues_ns(&self, source: Ipv4Addr, destination: Ipv4Addr, path: u8) -> Option<u64> {
        let pair = self.pair_of(source, destination)?;
        let far = self.addresses.get(&destination)?.down;
        let round_ns = |hops: &[Hop; 2], from: usize| {
            hops[from].crossing_ns(FULL_SIZE_BYTES) + hops[1 - from].crossing_ns(ACK_BYTES)
        };
        let mut links = self.links(pair, path).peekable();
        links.peek()?;
        // Both queues of each link: data there, the ACK back. The host's own queue doesn't
        // count. With a NIC that measures, the leaf's queue towards the host counts as well.
        Some(links.fold(2 * far.queue_ns(), |sum: u64, (link, from)| {
            let (usual, worst) = (&self.hops[link], &self.worst_hops[link]);
            let longer_ns = round_ns(worst, from).saturating_sub(round_ns(usual, from));
            let queues_ns = worst.iter().map(Hop::queue_ns);
            queues_ns.fold(sum.saturating_add(longer_ns), u64::saturating_add)
        }))
    }

    /// Hosts' own interfaces add nothing: they don't delay a single packet.
    fn base_ns(&self, pair: LeafPair, path: u8, length_bytes: u16, far: Hop) -> Option<u64> {
        let mut links = self.links(pair, path).peekable();
        links.peek()?;
        let ends_ns = far.crossing_ns(length_bytes) + far.delay_ns;
        Some(links.fold(ends_ns, |sum, (link, from)| {
            let hops = &self.hops[link];
            sum + hops[from].crossing_ns(length_bytes) + hops[1 - from].crossing_ns(ACK_BYTES)
        }))
    }

    /// The links between the leaves of `pair` on `path`, and from which end data enters them.
    /// Empty if there is no such path.
    fn links(&self, pair: LeafPair, path: u8) -> impl Iterator<Item = (usize, usize)> + '_ {
        let route = self.route(pair, path);
        route
            .filter(move |_| path < self.topology.paths)
            .map(|port| {
                let link = port.port(&self.topology).link;
                let is_first = self.topology.links[link].a.node == port.switch(&self.topology).name;
                (link, usize::from(!is_first))
            })
    }

    fn find_pairs(&mut self) {
        let mut through: BTreeMap<EgressPort, Vec<LeafPair>> = BTreeMap::new();
        for pair in self.pairs() {
            for port in (0..self.paths()).flat_map(|path| self.route(pair, path)) {
                let pairs = through.entry(port).or_default();
                // All ports of a pair come in a row.
                if pairs.last() != Some(&pair) {
                    pairs.push(pair);
                }
            }
        }
        self.through = through;
    }

    fn find_hosts(&mut self) -> Result<(), Error> {
        let header_bytes = header_bytes(&self.topology);
        let mut links = BTreeMap::new();
        for link in &self.topology.links {
            for end in [&link.a, &link.b] {
                links.entry(&*end.node).or_insert(link);
            }
        }
        for (place, host) in self.topology.hosts.iter().enumerate() {
            let link = links
                .get(&*host.name)
                .ok_or_else(|| Error::NoHostLink(host.name.clone()))?;
            let leaf = leaf_end(host, link);
            let port = self.port(&leaf.node, leaf.port);
            let access = Access::of(place, host, link, port, header_bytes);
            self.hosts.entry(host.leaf).or_default().push(place);
            self.host_links.entry(host.leaf).or_insert(access);
            for &address in &host.addresses {
                self.addresses.insert(address, access);
            }
        }
        Ok(())
    }
}

/// Both directions of every link.
fn hops(topology: &Topology) -> Vec<[Hop; 2]> {
    let header_bytes = header_bytes(topology);
    let links = topology.links.iter();
    links
        .map(|link| [&link.a, &link.b].map(|end| Hop::of(link, &end.node, header_bytes)))
        .collect()
}

/// The same in the worst case of the schedule.
fn worst_hops(topology: &Topology) -> Vec<[Hop; 2]> {
    let mut hops = hops(topology);
    for change in topology.schedule.iter().flat_map(|known| &known.changes) {
        let is_of = |place: usize, link: &Link| match &change.target {
            Target::Switch(name) => [&link.a.node, &link.b.node].contains(&name),
            Target::Link(changed) => *changed == place,
        };
        for (place, link) in topology.links.iter().enumerate() {
            if is_of(place, link) {
                hops[place] = hops[place].map(|hop| hop.at_worst(change));
            }
        }
    }
    hops
}

#[cfg(test)]
mod tests;
