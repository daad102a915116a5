//! What `topology.json` implies: who sits where, which path a pair of
//! addresses takes, and how long it takes over empty queues.

mod hop;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use weft_topology::{Host, Role, Switch, Topology};

use crate::pattern::PATHS_MAX;

use hop::{ACK_BYTES, Access, Hop, header_bytes};

/// IPv4 length of a full-size packet, what paths are compared with.
pub const FULL_SIZE_BYTES: u16 = 1500;

/// CRC-16/ARC, which v1model calls `HashAlgorithm.crc16`.
const CRC16: crc::Crc<u16> = crc::Crc::<u16>::new(&crc::CRC_16_ARC);

/// Two different leaves, in the direction of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeafPair {
    /// Leaf of the senders, from 1.
    pub source: u8,
    /// Leaf of the receivers, from 1.
    pub destination: u8,
}

/// What stands at the far end of a switch port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortUse {
    /// A host of this leaf.
    Host,
    /// From this leaf up to the spine of this path.
    Up {
        /// Leaf the port is on.
        leaf: u8,
        /// Path the port belongs to.
        path: u8,
    },
    /// From the spine of this path down to this leaf.
    Down {
        /// Path the spine serves.
        path: u8,
        /// Leaf at the far end.
        leaf: u8,
    },
}

/// Why a topology cannot be controlled.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// Patterns hold so many paths and no more.
    #[error("topology has {paths} paths; patterns serve 1 to {PATHS_MAX}")]
    Paths {
        /// Paths of the topology.
        paths: u8,
    },
    /// A leaf lacks the uplink of a path.
    #[error("{leaf} has no link to {spine}, the spine of path {path}")]
    NoUplink {
        /// The leaf.
        leaf: String,
        /// The spine.
        spine: String,
        /// The path, from 0.
        path: u8,
    },
    /// There is no spine for a path.
    #[error("no spine has index {index}, path {path} needs one")]
    NoSpine {
        /// Index the spine would have, from 1.
        index: u8,
        /// The path, from 0.
        path: u8,
    },
    /// A host without a cable.
    #[error("host {0} hangs on no link")]
    NoHostLink(String),
}

/// A topology, prepared for the questions that telemetry asks.
#[derive(Debug)]
pub struct Fabric {
    topology: Topology,
    /// Leaf and path -> the cable between the leaf and the path's spine.
    uplinks: BTreeMap<(u8, u8), Hop>,
    /// The same at their worst, if links change while traffic runs.
    worst_uplinks: BTreeMap<(u8, u8), Hop>,
    /// Address -> how its host is reached.
    addresses: BTreeMap<Ipv4Addr, Access>,
    /// Leaf -> how its first host is.
    host_links: BTreeMap<u8, Access>,
    /// Switch name and port -> what is there.
    ports: BTreeMap<(String, u16), PortUse>,
    /// Name of the spine of each path.
    via: Vec<String>,
}

impl Fabric {
    /// Prepares `topology`.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn new(topology: Topology) -> Result<Self, Error> {
        if topology.paths == 0 || usize::from(topology.paths) > PATHS_MAX {
            return Err(Error::Paths {
                paths: topology.paths,
            });
        }
        let mut fabric = Self {
            uplinks: BTreeMap::new(),
            worst_uplinks: BTreeMap::new(),
            addresses: BTreeMap::new(),
            host_links: BTreeMap::new(),
            ports: BTreeMap::new(),
            via: Vec::new(),
            topology,
        };
        fabric.find_ports();
        fabric.find_paths()?;
        fabric.find_hosts()?;
        Ok(fabric)
    }

    /// The document itself.
    #[must_use]
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Number of paths between hosts of different leaves.
    #[must_use]
    pub fn paths(&self) -> u8 {
        self.topology.paths
    }

    /// Name of the spine that `path` crosses.
    #[must_use]
    pub fn via(&self, path: u8) -> &str {
        self.via.get(usize::from(path)).map_or("", String::as_str)
    }

    /// Every ordered pair of different leaves with hosts.
    pub fn pairs(&self) -> impl Iterator<Item = LeafPair> + '_ {
        self.host_links.keys().flat_map(move |&source| {
            self.host_links
                .keys()
                .filter(move |&&destination| destination != source)
                .map(move |&destination| LeafPair {
                    source,
                    destination,
                })
        })
    }

    /// The hosts of `leaf`.
    pub fn hosts_of(&self, leaf: u8) -> impl Iterator<Item = &Host> {
        self.topology
            .hosts
            .iter()
            .filter(move |host| host.leaf == leaf)
    }

    /// The pair of leaves that data from `source` to `destination` crosses;
    /// `None` when an address is nobody's or both are on one leaf.
    #[must_use]
    pub fn pair_of(&self, source: Ipv4Addr, destination: Ipv4Addr) -> Option<LeafPair> {
        let pair = LeafPair {
            source: self.addresses.get(&source)?.leaf,
            destination: self.addresses.get(&destination)?.leaf,
        };
        (pair.source != pair.destination).then_some(pair)
    }

    /// What stands behind `port` of `switch`.
    #[must_use]
    pub fn port_use(&self, switch: &str, port: u16) -> Option<PortUse> {
        self.ports.get(&(switch.to_owned(), port)).copied()
    }

    /// The port of `switch` with this use.
    #[must_use]
    pub fn port_with(&self, switch: &str, wanted: PortUse) -> Option<u16> {
        let first = (switch.to_owned(), 0);
        self.ports
            .range(first..)
            .take_while(|((name, _), _)| name == switch)
            .find(|(_, port_use)| **port_use == wanted)
            .map(|((_, port), _)| *port)
    }

    /// The path (from 0) that packets between two addresses take, as leaves
    /// with `routing.weft_paths` choose it. The same both ways.
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

    /// The address of `host` whose subflow to the first address of `peer`
    /// takes `path`.
    #[must_use]
    pub fn local_address(&self, host: &Host, peer: &Host, path: u8) -> Option<Ipv4Addr> {
        let remote = *peer.addresses.first()?;
        host.addresses
            .iter()
            .copied()
            .find(|&local| self.path_of(local, remote) == path)
    }

    /// RTT over empty queues as the leaf of `source` measures it: from the
    /// arrival of a packet of `length_bytes` to the arrival of its ACK. Or as
    /// its card does, if that runs a program: from card to card and back.
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
        let (Some(near_card_ns), Some(far_card_ns)) = (near.card_ns, far.card_ns) else {
            return Some(leaf_ns);
        };
        let wires_ns = near.up.serialisation_ns(length_bytes)
            + near.down.serialisation_ns(ACK_BYTES)
            + far.up.serialisation_ns(ACK_BYTES);
        let near_ns = 2 * (near.up.delay_ns - near_card_ns);
        Some((leaf_ns + wires_ns + near_ns).saturating_sub(2 * far_card_ns))
    }

    /// RTT over empty queues between hosts of `pair`, for a full-size packet.
    #[must_use]
    pub fn configured_rtt_ns(&self, pair: LeafPair, path: u8) -> Option<u64> {
        let near = self.host_links.get(&pair.source)?;
        let far = self.host_links.get(&pair.destination)?;
        Some(self.base_ns(pair, path, FULL_SIZE_BYTES, far.down)? + 2 * near.up.delay_ns)
    }

    /// Who measures the RTTs of data from `source`: its own card, or (`None`) the leaf,
    /// one for all its hosts.
    #[must_use]
    pub fn measuring_card(&self, source: Ipv4Addr) -> Option<usize> {
        let near = self.addresses.get(&source)?;
        near.card_ns.map(|_| near.host)
    }

    /// RTT between two hosts if what measures at `source` says `measured_ns` of a
    /// full-size packet.
    ///
    /// Leaves do not see the propagation to `source`. Cards do not see that between
    /// them and the kernels on both sides, but what hosts' own wires take, which counts
    /// in no RTT here: it is the same on every path.
    #[must_use]
    pub fn rtt_between_hosts_ns(
        &self,
        source: Ipv4Addr,
        destination: Ipv4Addr,
        measured_ns: u64,
    ) -> Option<u64> {
        let near = self.addresses.get(&source)?;
        let far = self.addresses.get(&destination)?;
        let (Some(near_card_ns), Some(far_card_ns)) = (near.card_ns, far.card_ns) else {
            return Some(measured_ns.saturating_add(2 * near.up.delay_ns));
        };
        let wires_ns = near.own_wire_ns() + far.up.serialisation_ns(ACK_BYTES);
        let hidden_ns = 2 * (near_card_ns + far_card_ns);
        Some(
            measured_ns
                .saturating_add(hidden_ns)
                .saturating_sub(wires_ns),
        )
    }

    /// The longest time that all queues between `source`, or its leaf if that
    /// measures, and `destination` can hold a packet and its ACK together, and
    /// links that change can keep them longer.
    #[must_use]
    pub fn queues_ns(&self, source: Ipv4Addr, destination: Ipv4Addr, path: u8) -> Option<u64> {
        let pair = self.pair_of(source, destination)?;
        let up = self.uplinks.get(&(pair.source, path))?;
        let down = self.uplinks.get(&(pair.destination, path))?;
        let far = self.addresses.get(&destination)?.down;
        let worst_up = self.worst_uplinks.get(&(pair.source, path))?;
        let worst_down = self.worst_uplinks.get(&(pair.destination, path))?;
        let round_ns = |hop: &Hop| hop.crossing_ns(FULL_SIZE_BYTES) + hop.crossing_ns(ACK_BYTES);
        let longer_ns = |worst, usual| round_ns(worst).saturating_sub(round_ns(usual));
        let longer_ns = longer_ns(worst_up, up) + longer_ns(worst_down, down);
        // Both ends of each cable: there with the data, back with the ACK. A host's own
        // end counts nowhere; where its card measures, the leaf's end does.
        Some(
            [worst_up, worst_down, &far]
                .iter()
                .fold(longer_ns, |sum: u64, hop| {
                    sum.saturating_add(2 * hop.queue_ns())
                }),
        )
    }

    /// Hosts' own interfaces add nothing: they delay no lone packet.
    fn base_ns(&self, pair: LeafPair, path: u8, length_bytes: u16, far: Hop) -> Option<u64> {
        let up = self.uplinks.get(&(pair.source, path))?;
        let down = self.uplinks.get(&(pair.destination, path))?;
        let data: u64 = [up, down, &far]
            .iter()
            .map(|hop| hop.crossing_ns(length_bytes))
            .sum();
        let ack = far.delay_ns + down.crossing_ns(ACK_BYTES) + up.crossing_ns(ACK_BYTES);
        Some(data + ack)
    }

    fn find_ports(&mut self) {
        for switch in &self.topology.switches {
            for port in &switch.ports {
                let peer = self.topology.switch(&self.topology.peer(switch, port).node);
                let port_use = match (switch.role, peer.map(|peer| (peer.role, peer.index))) {
                    (Role::Leaf, None) => PortUse::Host,
                    (Role::Leaf, Some((Role::Spine, spine))) if spine > 0 => PortUse::Up {
                        leaf: switch.index,
                        path: spine - 1,
                    },
                    (Role::Spine, Some((Role::Leaf, leaf))) if switch.index > 0 => PortUse::Down {
                        path: switch.index - 1,
                        leaf,
                    },
                    _ => continue,
                };
                self.ports
                    .insert((switch.name.clone(), port.number), port_use);
            }
        }
    }

    fn find_paths(&mut self) -> Result<(), Error> {
        let header_bytes = header_bytes(&self.topology);
        let leaves: Vec<&Switch> = self
            .topology
            .switches
            .iter()
            .filter(|switch| switch.role == Role::Leaf)
            .collect();
        for path in 0..self.topology.paths {
            let spine = self
                .topology
                .switches
                .iter()
                .find(|switch| switch.role == Role::Spine && switch.index == path + 1)
                .ok_or(Error::NoSpine {
                    index: path + 1,
                    path,
                })?;
            self.via.push(spine.name.clone());
            for leaf in &leaves {
                let wanted = PortUse::Up {
                    leaf: leaf.index,
                    path,
                };
                let link = leaf
                    .ports
                    .iter()
                    .find(|port| self.port_use(&leaf.name, port.number) == Some(wanted))
                    .map(|port| &self.topology.links[port.link])
                    .ok_or_else(|| Error::NoUplink {
                        leaf: leaf.name.clone(),
                        spine: spine.name.clone(),
                        path,
                    })?;
                let hop = Hop::of(link, header_bytes);
                let schedule = self.topology.schedule.iter().flat_map(|s| &s.changes);
                let changes = schedule.filter(|change| change.switch == spine.name);
                let worst = changes.fold(hop, Hop::at_worst);
                self.uplinks.insert((leaf.index, path), hop);
                self.worst_uplinks.insert((leaf.index, path), worst);
            }
        }
        Ok(())
    }

    fn find_hosts(&mut self) -> Result<(), Error> {
        let header_bytes = header_bytes(&self.topology);
        for (place, host) in self.topology.hosts.iter().enumerate() {
            let link = self
                .topology
                .host_link(host)
                .ok_or_else(|| Error::NoHostLink(host.name.clone()))?;
            let access = Access::of(place, host, link, header_bytes);
            self.host_links.entry(host.leaf).or_insert(access);
            for &address in &host.addresses {
                self.addresses.insert(address, access);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{fabric, leaf_spine};

    const H1_1: Ipv4Addr = Ipv4Addr::new(10, 1, 1, 1);
    const H2_1: Ipv4Addr = Ipv4Addr::new(10, 2, 1, 1);

    #[test]
    fn crc16_is_the_one_that_bmv2_calls_crc16() {
        // The check value of CRC-16/ARC.
        assert_eq!(CRC16.checksum(b"123456789"), 0xbb3d);
    }

    #[test]
    fn data_and_acks_of_a_subflow_share_a_path() {
        let fabric = fabric(2, 3, 4);
        for local in 1..=3 {
            let source = Ipv4Addr::new(10, 1, 2, local);
            assert_eq!(fabric.path_of(source, H2_1), fabric.path_of(H2_1, source));
        }
    }

    #[test]
    fn the_subflows_of_a_connection_take_every_path_once() {
        let fabric = fabric(2, 4, 2);
        let topology = fabric.topology();
        let (host, peer) = (&topology.hosts[0], &topology.hosts[3]);
        let mut locals: Vec<_> = (0..4)
            .map(|path| fabric.local_address(host, peer, path).unwrap())
            .collect();
        locals.sort();
        assert_eq!(locals, host.addresses);
    }

    #[test]
    fn a_default_path_takes_eighty_microseconds_of_propagation_and_its_serialisation() {
        let fabric = fabric(2, 2, 4);
        let pair = fabric.pair_of(H1_1, H2_1).unwrap();
        // Three full-size frames of 12.112 us, two ACKs of 0.624 us at 1 Gbps.
        assert_eq!(
            fabric.configured_rtt_ns(pair, 0),
            Some(80_000 + 3 * 12_112 + 2 * 624)
        );
    }

    #[test]
    fn a_slow_spine_slows_its_path_only() {
        let mut topology = leaf_spine(2, 2, 1);
        for link in &mut topology.links {
            if link.b.node == "spine2" {
                link.delay_ns = 40_000;
            }
        }
        let fabric = Fabric::new(topology).unwrap();
        let pair = fabric.pair_of(H1_1, H2_1).unwrap();
        let rtt = |path| fabric.configured_rtt_ns(pair, path).unwrap();
        assert_eq!(rtt(1) - rtt(0), 4 * 30_000);
    }

    #[test]
    fn hosts_of_one_leaf_are_no_pair() {
        let fabric = fabric(2, 2, 2);
        assert_eq!(fabric.pair_of(H1_1, Ipv4Addr::new(10, 1, 2, 1)), None);
        assert_eq!(fabric.pair_of(H1_1, Ipv4Addr::new(10, 9, 1, 1)), None);
        assert_eq!(fabric.pairs().count(), 2);
    }

    #[test]
    fn a_topology_without_a_spine_for_a_path_is_refused_by_name() {
        let mut topology = leaf_spine(2, 2, 1);
        topology.switches.retain(|switch| switch.name != "spine2");
        for switch in &mut topology.switches {
            switch.ports.retain(|port| port.number != 3);
        }
        assert_eq!(
            Fabric::new(topology).unwrap_err().to_string(),
            "no spine has index 2, path 1 needs one"
        );
    }
}
