//! Which links a packet crosses on its way from leaf to leaf.
//!
//! Every fabric is a tree of tiers (leaves, spines; or leaves, aggregation, core): a
//! packet goes up until a switch has the destination's leaf below it, and then down by
//! the only way there. What differs between paths is the way up. A switch's uplinks
//! count from 0, in the order of their port numbers. Of a path, numbered from 0,
//!
//! ```text
//! leaf         takes uplink   path                 mod its uplinks
//! aggregation  takes uplink  (path / leaf uplinks) mod its uplinks
//! ```
//!
//! so that (k/2)² paths lead from pod to pod of a fat-tree, and k/2 through a pod. Where
//! there are more ways than paths ([`Topology::paths`]), the tiers whose uplinks they do
//! not cover add crc16 of the two leaves: each pair of leaves has ways of its own. Where
//! that is both tiers, the aggregation goes by the crc16 mod 251, or it would choose as the
//! leaf did, and most cores be nobody's. The P4 programs do the same
//! (`p4/src/stages/uplink.p4`).

use std::collections::BTreeMap;

use crate::{Link, Port, Role, Switch, Topology};

/// CRC-16/ARC, which v1model calls `HashAlgorithm.crc16`.
const CRC16: crc::Crc<u16> = crc::Crc::<u16>::new(&crc::CRC_16_ARC);

/// A prime, so that what is left of a number says little of what another divisor leaves.
/// The largest that programs can number.
const SHARES: usize = 251;

/// No switch forwards a packet more often.
const MOST_HOPS: usize = 8;

/// The ways through a fabric.
#[derive(Debug, Clone)]
pub struct Ways {
    /// In the order of [`Topology::switches`].
    nodes: Vec<Node>,
    /// Number of a leaf -> its place among the switches.
    leaves: BTreeMap<u8, usize>,
}

/// A port that a packet leaves by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Step {
    /// The switch, by its place in [`Topology::switches`].
    pub switch: usize,
    /// The port, by its place in [`Switch::ports`].
    pub port: usize,
}

impl Step {
    /// The switch in `topology`, which [`Ways`] were made from.
    #[must_use]
    pub fn switch(self, topology: &Topology) -> &Switch {
        &topology.switches[self.switch]
    }

    /// The port.
    #[must_use]
    pub fn port(self, topology: &Topology) -> &Port {
        &self.switch(topology).ports[self.port]
    }

    /// The link behind it.
    #[must_use]
    pub fn link(self, topology: &Topology) -> &Link {
        &topology.links[self.port(topology).link]
    }
}

/// How a switch turns a path into one of its uplinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uplink {
    /// This one, by its place in [`Switch::ports`].
    Fixed(usize),
    /// The sum of this and the spread of the two leaves chooses among [`Ways::spread_over`].
    Spread(u8),
}

/// Why a topology has no ways.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WaysError {
    /// Two switches that should have the same number of uplinks.
    #[error("{one} has {ups} links up, {other} has {other_ups}; those of a tier have as many")]
    Uneven {
        /// A switch.
        one: String,
        /// Its uplinks.
        ups: usize,
        /// Another one of the same tier.
        other: String,
        /// Its uplinks.
        other_ups: usize,
    },
    /// Leaves that do not reach each other.
    #[error("no path {path} from {from} to {to}")]
    NoWay {
        /// A leaf.
        from: String,
        /// Another.
        to: String,
        /// The path, from 0.
        path: u8,
    },
    /// More uplinks than programs can number.
    #[error("{switch} has {ups} links up; 255 are the most")]
    Uplinks {
        /// The switch.
        switch: String,
        /// Its uplinks.
        ups: usize,
    },
}

#[derive(Debug, Clone)]
struct Node {
    /// Ports up, by number.
    up: Vec<usize>,
    /// Number of a leaf below -> the port towards it.
    below: BTreeMap<u8, usize>,
    /// Place of the switch behind each port, if there is one.
    peers: Vec<Option<usize>>,
    /// What a path is divided by before it chooses an uplink.
    divisor: usize,
    /// Whether uplinks are spread by pairs of leaves.
    spreads: bool,
    /// Whether those of the tier below are, too; then a path says nothing of the uplink.
    follows_spread: bool,
}

impl Ways {
    /// The ways through `topology`.
    ///
    /// # Errors
    /// See [`WaysError`].
    pub fn new(topology: &Topology) -> Result<Self, WaysError> {
        let places: BTreeMap<&str, usize> = topology
            .switches
            .iter()
            .enumerate()
            .map(|(place, switch)| (switch.name.as_str(), place))
            .collect();
        let mut ways = Self {
            nodes: topology
                .switches
                .iter()
                .map(|switch| Node::new(topology, switch, &places))
                .collect(),
            leaves: BTreeMap::new(),
        };
        for (place, switch) in topology.switches.iter().enumerate() {
            if switch.role == Role::Leaf {
                ways.leaves.insert(switch.index, place);
            }
        }
        ways.number_uplinks(topology)?;
        ways.find_what_is_below();
        ways.check(topology)?;
        Ok(ways)
    }

    /// The ports that a packet leaves by on `path` (from 0), from the leaf `source` to
    /// the leaf `destination`; none when a leaf is unknown or both are the same.
    pub fn steps(&self, source: u8, destination: u8, path: u8) -> impl Iterator<Item = Step> + '_ {
        let spread = spread(source, destination);
        let target = self.leaf(destination);
        let mut here = self.leaf(source).filter(|_| target.is_some());
        std::iter::from_fn(move || {
            let switch = here.filter(|_| here != target)?;
            let node = &self.nodes[switch];
            let down = node.below.get(&destination).copied();
            let port = down.or_else(|| node.uplink(path, spread))?;
            here = node.peers[port];
            Some(Step { switch, port })
        })
        .take(MOST_HOPS)
    }

    /// How the switch at `place` turns `path` into an uplink; `None` if it has none.
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

    /// The ports up of the switch at `place`, by their place in [`Switch::ports`], in
    /// order.
    #[must_use]
    pub fn uplinks(&self, place: usize) -> &[usize] {
        self.nodes.get(place).map_or(&[], |node| &node.up)
    }

    /// What the switch at `place` chooses from where it spreads pairs of leaves: ports up, by
    /// their place in [`Switch::ports`].
    pub fn spread_over(&self, place: usize) -> impl Iterator<Item = usize> + '_ {
        let node = self.nodes.get(place);
        node.into_iter()
            .flat_map(|node| (0..node.shares()).map(|share| node.of_share(share)))
    }

    /// The leaves below the switch at `place`, with the port towards each, by its place
    /// in [`Switch::ports`].
    pub fn below(&self, place: usize) -> impl Iterator<Item = (u8, usize)> + '_ {
        let node = self.nodes.get(place);
        node.into_iter()
            .flat_map(|node| &node.below)
            .map(|(&leaf, &port)| (leaf, port))
    }

    /// Place of a leaf among the switches.
    #[must_use]
    pub fn leaf(&self, number: u8) -> Option<usize> {
        self.leaves.get(&number).copied()
    }

    /// Checks that tiers are regular, and says how they divide paths among uplinks.
    fn number_uplinks(&mut self, topology: &Topology) -> Result<(), WaysError> {
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
                    return Err(WaysError::Uneven {
                        one: name(first),
                        ups,
                        other: name(place),
                        other_ups: node.up.len(),
                    });
                }
                if ups > usize::from(u8::MAX) {
                    return Err(WaysError::Uplinks {
                        switch: name(place),
                        ups,
                    });
                }
                node.divisor = divisor;
                node.spreads = usize::from(topology.paths) < divisor * ups;
                node.follows_spread = spreads;
            }
            divisor *= ups.max(1);
            spreads = usize::from(topology.paths) < divisor;
        }
        Ok(())
    }

    /// Tier by tier, upwards.
    fn find_what_is_below(&mut self) {
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
                            if self.nodes[to].below.insert(number, back).is_none() {
                                next.push(to);
                            }
                        }
                    }
                }
                above = next;
            }
        }
    }

    fn check(&self, topology: &Topology) -> Result<(), WaysError> {
        for (&source, &from) in &self.leaves {
            for (&destination, &to) in &self.leaves {
                for path in 0..topology.paths {
                    let last = self.steps(source, destination, path).last();
                    let end = last.map_or(from, |last| {
                        self.nodes[last.switch].peers[last.port].unwrap_or(from)
                    });
                    if end != to {
                        return Err(WaysError::NoWay {
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
            below: BTreeMap::new(),
            peers,
            divisor: 1,
            spreads: false,
            follows_spread: false,
        }
    }

    /// The uplink of a path, from 0, before it is spread.
    fn first(&self, path: u8) -> Option<usize> {
        (usize::from(path) / self.divisor).checked_rem(self.up.len())
    }

    fn uplink(&self, path: u8, spread: u16) -> Option<usize> {
        let first = self.first(path)?;
        if !self.spreads {
            return Some(self.up[first]);
        }
        let share = (first + usize::from(spread)).checked_rem(self.shares())?;
        Some(self.of_share(share))
    }

    /// Number of shares that the spread of two leaves chooses from.
    fn shares(&self) -> usize {
        match self.up.len() {
            0 => 0,
            _ if self.follows_spread => SHARES,
            ups => ups,
        }
    }

    /// The uplink that gets a share.
    fn of_share(&self, share: usize) -> usize {
        self.up[share * self.up.len() / self.shares()]
    }
}

/// What two leaves add where uplinks are spread; the same both ways.
#[must_use]
pub fn spread(source: u8, destination: u8) -> u16 {
    let [high, low] = (u16::from(source) + u16::from(destination)).to_be_bytes();
    CRC16.checksum(&[high, low, source ^ destination])
}

#[cfg(test)]
mod tests;
