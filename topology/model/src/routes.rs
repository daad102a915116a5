// SPDX-License-Identifier: Apache-2.0

//! The links that a packet crosses between two leaves.
//!
//! Every fabric is a tree of tiers: leaves and spines, or leaves, aggregation and core. A
//! packet goes up until it reaches a switch above the destination leaf. From there only
//! one route leads down. So paths differ only in the uplinks they take. A switch numbers
//! its uplinks from 0, in the order of their port numbers. For a path, numbered from 0:
//!
//! ```text
//! leaf         takes uplink   path                 mod its uplinks
//! aggregation  takes uplink  (path / leaf uplinks) mod its uplinks
//! ```
//!
//! A fat-tree thus has (k/2)² paths between pods and k/2 within a pod.
//!
//! A fabric can have more routes than paths ([`Topology::paths`]). The tiers whose uplinks
//! the paths don't cover then add crc16 of the two leaves, so that each pair of leaves uses
//! routes of its own. If that applies to both tiers, the aggregation tier uses crc16 mod
//! 251. With the plain crc16 it would repeat the leaf's choice and leave most core switches
//! unused. The P4 programs do the same (`p4/src/stages/uplink.p4`).

use std::collections::BTreeMap;

use crate::{Link, Port, Role, Switch, Topology};

/// CRC-16/ARC, which v1model calls `HashAlgorithm.crc16`.
const CRC16: crc::Crc<u16> = crc::Crc::<u16>::new(&crc::CRC_16_ARC);

/// Hash buckets of an aggregation switch. A prime, so that the bucket doesn't correlate with
/// the leaf's choice; the largest prime that fits the programs' 8 bits.
const HASH_BUCKETS: usize = 251;

/// Limit on the hops of a route, so that a malformed topology can't cause a loop.
const HOPS_MAX: usize = 8;

/// All routes through a fabric.
#[derive(Debug, Clone)]
pub struct Routes {
    /// In the order of [`Topology::switches`].
    nodes: Vec<Node>,
    /// Leaf number -> index of the switch.
    leaves: BTreeMap<u8, usize>,
}

/// The port through which a switch sends a packet on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EgressPort {
    /// The switch, as an index into [`Topology::switches`].
    pub switch: usize,
    /// The port, as an index into [`Switch::ports`].
    pub port: usize,
}

impl EgressPort {
    /// The switch in `topology`, which must be the one that the [`Routes`] were built from.
    #[must_use]
    pub fn switch(self, topology: &Topology) -> &Switch {
        &topology.switches[self.switch]
    }

    /// The port.
    #[must_use]
    pub fn port(self, topology: &Topology) -> &Port {
        &self.switch(topology).ports[self.port]
    }

    /// The link that the port sends to.
    #[must_use]
    pub fn link(self, topology: &Topology) -> &Link {
        &topology.links[self.port(topology).link]
    }
}

/// How a switch maps a path to an uplink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uplink {
    /// Always this uplink, an index into [`Switch::ports`].
    Fixed(usize),
    /// By hash: this value plus the [`spread`] of the two leaves, modulo the number of
    /// [`Routes::hash_targets`], selects one of them.
    Spread(u8),
}

/// Why a topology has no usable routes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RoutesError {
    /// Two switches of one tier have different numbers of uplinks.
    #[error(
        "{one} has {ups} uplinks, {other} has {other_ups}; switches of a tier must have equal numbers"
    )]
    Uneven {
        /// A switch.
        one: String,
        /// Its uplinks.
        ups: usize,
        /// Another switch of the same tier.
        other: String,
        /// Its uplinks.
        other_ups: usize,
    },
    /// A leaf cannot reach another.
    #[error("no path {path} from {from} to {to}")]
    NoRoute {
        /// The leaf that sends.
        from: String,
        /// The leaf that should receive.
        to: String,
        /// The path, from 0.
        path: u8,
    },
    /// The switch has more uplinks than the P4 programs can number.
    #[error("{switch} has {ups} uplinks; at most 255 are supported")]
    Uplinks {
        /// The switch.
        switch: String,
        /// Its uplinks.
        ups: usize,
    },
}

#[derive(Debug, Clone)]
struct Node {
    /// Uplink ports, ordered by port number.
    up: Vec<usize>,
    /// Leaf number -> the port that leads down to it.
    downlinks: BTreeMap<u8, usize>,
    /// For each port, the index of the switch behind it, if it is a switch.
    peers: Vec<Option<usize>>,
    /// The path number is divided by this before it selects an uplink.
    divisor: usize,
    /// Whether a hash of the leaf pair selects the uplink.
    spreads: bool,
    /// Whether the tier below hashes too. Then the path number doesn't determine the uplink.
    lower_tier_spreads: bool,
}

impl Routes {
    /// Computes the routes through `topology`.
    ///
    /// # Errors
    /// See [`RoutesError`].
    pub fn new(topology: &Topology) -> Result<Self, RoutesError> {
        let places: BTreeMap<&str, usize> = topology
            .switches
            .iter()
            .enumerate()
            .map(|(place, switch)| (switch.name.as_str(), place))
            .collect();
        let mut routes = Self {
            nodes: topology
                .switches
                .iter()
                .map(|switch| Node::new(topology, switch, &places))
                .collect(),
            leaves: BTreeMap::new(),
        };
        for (place, switch) in topology.switches.iter().enumerate() {
            if switch.role == Role::Leaf {
                routes.leaves.insert(switch.index, place);
            }
        }
        routes.number_uplinks(topology)?;
        routes.find_downlinks();
        routes.check(topology)?;
        Ok(routes)
    }

    /// The egress ports of a packet on `path` (from 0) from leaf `source` to leaf
    /// `destination`. Empty if a leaf is unknown or both are the same.
    pub fn route(
        &self,
        source: u8,
        destination: u8,
        path: u8,
    ) -> impl Iterator<Item = EgressPort> + '_ {
        let spread = spread(source, destination);
        let target = self.leaf(destination);
        let mut here = self.leaf(source).filter(|_| target.is_some());
        std::iter::from_fn(move || {
            let switch = here.filter(|_| here != target)?;
            let node = &self.nodes[switch];
            let down = node.downlinks.get(&destination).copied();
            let port = down.or_else(|| node.uplink(path, spread))?;
            here = node.peers[port];
            Some(EgressPort { switch, port })
        })
        .take(HOPS_MAX)
    }

    /// How the switch with index `place` maps `path` to an uplink; `None` if it has none.
    #[must_use]
    pub fn uplink(&self, place: usize, path: u8) -> Option<Uplink> {
        let node = self.nodes.get(place)?;
        let first = node.first(path)?;
        Some(if node.spreads {
            // Below the number of uplinks, at most 255.
            Uplink::Spread(first as u8)
        } else {
            Uplink::Fixed(node.up[first])
        })
    }

    /// The uplinks of the switch with index `place`, as indices into [`Switch::ports`], ordered
    /// by port number.
    #[must_use]
    pub fn uplinks(&self, place: usize) -> &[usize] {
        self.nodes.get(place).map_or(&[], |node| &node.up)
    }

    /// The uplinks that the switch with index `place` hashes leaf pairs over, one entry per
    /// hash bucket, as indices into [`Switch::ports`].
    pub fn hash_targets(&self, place: usize) -> impl Iterator<Item = usize> + '_ {
        let node = self.nodes.get(place);
        node.into_iter()
            .flat_map(|node| (0..node.buckets()).map(|bucket| node.uplink_of_bucket(bucket)))
    }

    /// The leaves below the switch with index `place`. Each comes with the port that leads to
    /// it, as an index into [`Switch::ports`].
    pub fn downlinks(&self, place: usize) -> impl Iterator<Item = (u8, usize)> + '_ {
        let node = self.nodes.get(place);
        node.into_iter()
            .flat_map(|node| &node.downlinks)
            .map(|(&leaf, &port)| (leaf, port))
    }

    /// Index of the switch that is this leaf.
    #[must_use]
    pub fn leaf(&self, number: u8) -> Option<usize> {
        self.leaves.get(&number).copied()
    }

    /// Checks that each tier is regular, and sets how its switches map paths to uplinks.
    fn number_uplinks(&mut self, topology: &Topology) -> Result<(), RoutesError> {
        let (mut divisor, mut spreads) = (1, false);
        for role in [Role::Leaf, Role::Aggregation] {
            let of_role = |place: &usize| topology.switches[*place].role == role;
            let places: Vec<usize> = (0..self.nodes.len()).filter(of_role).collect();
            let Some(&first) = places.first() else {
                continue;
            };
            let ups = self.nodes[first].up.len();
            for &place in &places {
                let node = &mut self.nodes[place];
                let name = |place: usize| topology.switches[place].name.clone();
                if node.up.len() != ups {
                    return Err(RoutesError::Uneven {
                        one: name(first),
                        ups,
                        other: name(place),
                        other_ups: node.up.len(),
                    });
                }
                if ups > usize::from(u8::MAX) {
                    return Err(RoutesError::Uplinks {
                        switch: name(place),
                        ups,
                    });
                }
                node.divisor = divisor;
                node.spreads = usize::from(topology.paths) < divisor * ups;
                node.lower_tier_spreads = spreads;
            }
            divisor *= ups.max(1);
            spreads = usize::from(topology.paths) < divisor;
        }
        Ok(())
    }

    /// Walks up from each leaf, tier by tier.
    fn find_downlinks(&mut self) {
        for (&number, &place) in &self.leaves {
            let mut above = vec![place];
            while !above.is_empty() {
                let mut next = Vec::new();
                for from in above {
                    for &port in &self.nodes[from].up.clone() {
                        let Some(to) = self.nodes[from].peers[port] else {
                            continue;
                        };
                        let back = self.nodes[to].peers.iter().position(|p| *p == Some(from));
                        if let Some(back) = back {
                            if self.nodes[to].downlinks.insert(number, back).is_none() {
                                next.push(to);
                            }
                        }
                    }
                }
                above = next;
            }
        }
    }

    fn check(&self, topology: &Topology) -> Result<(), RoutesError> {
        for (&source, &from) in &self.leaves {
            for (&destination, &to) in &self.leaves {
                for path in 0..topology.paths {
                    let last = self.route(source, destination, path).last();
                    let end = last.map_or(from, |last| {
                        self.nodes[last.switch].peers[last.port].unwrap_or(from)
                    });
                    if end != to {
                        return Err(RoutesError::NoRoute {
                            from: topology.switches[from].name.clone(),
                            to: topology.switches[to].name.clone(),
                            path,
                        });
                    }
                }
            }
        }
        Ok(())
    }
}

impl Node {
    fn new(topology: &Topology, switch: &Switch, places: &BTreeMap<&str, usize>) -> Self {
        let peers: Vec<Option<usize>> = switch
            .ports
            .iter()
            .map(|port| places.get(&*topology.peer(switch, port).node).copied())
            .collect();
        let mut up: Vec<usize> = (0..peers.len())
            .filter(|&port| {
                peers[port].is_some_and(|peer| topology.switches[peer].role > switch.role)
            })
            .collect();
        up.sort_by_key(|&port| switch.ports[port].number);
        Self {
            up,
            downlinks: BTreeMap::new(),
            peers,
            divisor: 1,
            spreads: false,
            lower_tier_spreads: false,
        }
    }

    /// Index of the uplink that `path` selects, before the hash is added.
    fn first(&self, path: u8) -> Option<usize> {
        (usize::from(path) / self.divisor).checked_rem(self.up.len())
    }

    fn uplink(&self, path: u8, spread: u16) -> Option<usize> {
        let first = self.first(path)?;
        if !self.spreads {
            return Some(self.up[first]);
        }
        let bucket = (first + usize::from(spread)).checked_rem(self.buckets())?;
        Some(self.uplink_of_bucket(bucket))
    }

    /// Number of buckets that the hash of a leaf pair selects from.
    fn buckets(&self) -> usize {
        match self.up.len() {
            0 => 0,
            _ if self.lower_tier_spreads => HASH_BUCKETS,
            ups => ups,
        }
    }

    /// Index of the uplink that a hash bucket maps to.
    fn uplink_of_bucket(&self, bucket: usize) -> usize {
        self.up[bucket * self.up.len() / self.buckets()]
    }
}

/// Hash of two leaves that spreads leaf pairs over uplinks; the same in both directions.
#[must_use]
pub fn spread(source: u8, destination: u8) -> u16 {
    let [high, low] = (u16::from(source) + u16::from(destination)).to_be_bytes();
    CRC16.checksum(&[high, low, source ^ destination])
}

#[cfg(test)]
mod tests;
