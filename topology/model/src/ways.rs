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
//! there are more ways than paths ([`Topology::paths`]), the tier whose uplinks they do
//! not cover adds crc16 of the two leaves: each pair of leaves has ways of its own. The
//! P4 programs do the same (`p4/src/stages/uplink.p4`).

use std::collections::BTreeMap;

use crate::{Link, Port, Role, Switch, Topology};

/// CRC-16/ARC, which v1model calls `HashAlgorithm.crc16`.
const CRC16: crc::Crc<u16> = crc::Crc::<u16>::new(&crc::CRC_16_ARC);

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
    /// The one that follows this (counted from 0) by the spread of the two leaves.
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
        let mut divisor = 1;
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
            }
            divisor *= ups.max(1);
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
        }
    }

    /// The uplink of a path, from 0, before it is spread.
    fn first(&self, path: u8) -> Option<usize> {
        (usize::from(path) / self.divisor).checked_rem(self.up.len())
    }

    fn uplink(&self, path: u8, spread: u16) -> Option<usize> {
        let spread = if self.spreads { usize::from(spread) } else { 0 };
        let uplink = (self.first(path)? + spread).checked_rem(self.up.len())?;
        self.up.get(uplink).copied()
    }
}

/// What two leaves add where uplinks are spread; the same both ways.
#[must_use]
pub fn spread(source: u8, destination: u8) -> u16 {
    let [high, low] = (u16::from(source) + u16::from(destination)).to_be_bytes();
    CRC16.checksum(&[high, low, source ^ destination])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{End, Routing, VERSION};

    /// Switches only: `(name, role, number)`, and links between them by name, the lower
    /// one first.
    fn topology(
        paths: u8,
        switches: &[(String, Role, u8)],
        links: &[(String, String)],
    ) -> Topology {
        let mut topology = Topology {
            version: VERSION,
            name: "test".into(),
            paths,
            routing: Routing::Weft,
            int_md: false,
            hosts: Vec::new(),
            switches: Vec::new(),
            links: Vec::new(),
            schedule: None,
        };
        for (name, role, index) in switches {
            topology.switches.push(Switch {
                name: name.clone(),
                role: *role,
                index: *index,
                device_id: 1,
                grpc: String::new(),
                ports: Vec::new(),
                loss_ppm: 0,
            });
        }
        for (link, (a, b)) in links.iter().enumerate() {
            let [a, b] = [a, b].map(|name| {
                let mut switches = topology.switches.iter_mut();
                let switch = switches.find(|switch| switch.name == *name).unwrap();
                let number = switch.ports.len() as u16 + 1;
                switch.ports.push(Port {
                    number,
                    interface: String::new(),
                    link,
                });
                End {
                    node: name.clone(),
                    port: number,
                }
            });
            topology.links.push(Link {
                a,
                b,
                rate_bps: 1,
                rate_from_a_bps: None,
                delay_ns: 0,
                queue_packets: 1,
                queue_bytes: None,
                ecn_packets: None,
                ecn_bytes: None,
                mtu_bytes: crate::USUAL_MTU_BYTES,
            });
        }
        topology
    }

    fn leaf_spine(leaves: u8, spines: u8) -> Topology {
        let leaf = |n| (format!("leaf{n}"), Role::Leaf, n);
        let spine = |n| (format!("spine{n}"), Role::Spine, n);
        let switches: Vec<_> = (1..=leaves)
            .map(leaf)
            .chain((1..=spines).map(spine))
            .collect();
        let links: Vec<_> = (1..=leaves)
            .flat_map(|l| (1..=spines).map(move |s| (format!("leaf{l}"), format!("spine{s}"))))
            .collect();
        topology(spines.min(8), &switches, &links)
    }

    fn fat_tree(k: u8) -> Topology {
        let half = k / 2;
        let edge = |n| (format!("edge{n}"), Role::Leaf, n);
        let aggregation = |n| (format!("agg{n}"), Role::Aggregation, n);
        let core = |n| (format!("core{n}"), Role::Core, n);
        let switches: Vec<_> = (1..=k * half)
            .map(edge)
            .chain((1..=k * half).map(aggregation))
            .chain((1..=half * half).map(core))
            .collect();
        let mut links = Vec::new();
        for pod in 0..k {
            for (a, b) in (1..=half).flat_map(|a| (1..=half).map(move |b| (a, b))) {
                links.push((
                    format!("edge{}", pod * half + a),
                    format!("agg{}", pod * half + b),
                ));
            }
        }
        for pod in 0..k {
            for (a, c) in (0..half).flat_map(|a| (1..=half).map(move |c| (a, c))) {
                let aggregation = format!("agg{}", pod * half + a + 1);
                links.push((aggregation, format!("core{}", a * half + c)));
            }
        }
        topology((half * half).min(8), &switches, &links)
    }

    /// Names of the switches after the first leaf.
    fn names(topology: &Topology, ways: &Ways, source: u8, destination: u8, path: u8) -> String {
        let steps = ways.steps(source, destination, path).skip(1);
        let names: Vec<_> = steps.map(|step| &*step.switch(topology).name).collect();
        names.join(" ")
    }

    #[test]
    fn a_path_of_a_leaf_spine_crosses_the_spine_of_its_number() {
        let topology = leaf_spine(3, 4);
        let ways = Ways::new(&topology).unwrap();
        let via = [0, 1, 2, 3].map(|path| names(&topology, &ways, 3, 1, path));
        assert_eq!(via, ["spine1", "spine2", "spine3", "spine4"]);
        assert_eq!(ways.steps(2, 2, 0).count(), 0);
        assert_eq!(ways.steps(2, 9, 0).count(), 0);
    }

    #[test]
    fn four_paths_lead_from_pod_to_pod_of_the_smallest_fat_tree_and_two_through_a_pod() {
        let topology = fat_tree(4);
        let ways = Ways::new(&topology).unwrap();
        let via = [0, 1, 2, 3].map(|path| names(&topology, &ways, 1, 8, path));
        assert_eq!(
            via,
            [
                "agg1 core1 agg7",
                "agg2 core3 agg8",
                "agg1 core2 agg7",
                "agg2 core4 agg8"
            ]
        );
        let via = [0, 1, 2, 3].map(|path| names(&topology, &ways, 3, 4, path));
        assert_eq!(via, ["agg3", "agg4", "agg3", "agg4"]);
    }

    #[test]
    fn data_and_acks_cross_the_same_switches_on_every_path() {
        for topology in [leaf_spine(5, 20), fat_tree(4), fat_tree(6), fat_tree(8)] {
            let ways = Ways::new(&topology).unwrap();
            for (source, destination) in (1..=5).flat_map(|a| (1..=5).map(move |b| (a, b))) {
                for path in 0..topology.paths {
                    let there: Vec<_> = ways
                        .steps(source, destination, path)
                        .map(|step| step.port(&topology).link)
                        .collect();
                    let mut back: Vec<_> = ways
                        .steps(destination, source, path)
                        .map(|step| step.port(&topology).link)
                        .collect();
                    back.reverse();
                    assert_eq!(there, back);
                }
            }
        }
    }

    #[test]
    fn the_paths_of_a_pair_are_distinct_and_all_pairs_together_use_every_link() {
        let fabrics = [
            (leaf_spine(20, 20), 20, 2),
            (fat_tree(6), 18, 4),
            (fat_tree(8), 32, 4),
        ];
        for (topology, leaves, farthest) in fabrics {
            let ways = Ways::new(&topology).unwrap();
            let mut used = BTreeSet::new();
            let pairs = (1..=leaves).flat_map(|a| (1..=leaves).map(move |b| (a, b)));
            for (source, destination) in pairs {
                let paths: BTreeSet<Vec<Step>> = (0..topology.paths)
                    .map(|path| ways.steps(source, destination, path).collect())
                    .collect();
                if paths.iter().any(|steps| steps.len() == farthest) {
                    assert_eq!(paths.len(), usize::from(topology.paths));
                }
                used.extend(paths.iter().flatten().map(|step| step.port(&topology).link));
            }
            assert_eq!(used.len(), topology.links.len());
        }
    }

    #[test]
    fn what_is_no_regular_tree_is_refused() {
        let mut uneven = leaf_spine(2, 2);
        uneven.switches[1].ports.pop();
        assert_eq!(
            Ways::new(&uneven).unwrap_err().to_string(),
            "leaf1 has 2 links up, leaf2 has 1; those of a tier have as many"
        );
        let mut apart = leaf_spine(2, 1);
        apart.switches[2].ports.pop();
        assert_eq!(
            Ways::new(&apart).unwrap_err().to_string(),
            "no path 0 from leaf1 to leaf2"
        );
    }

    #[test]
    fn the_largest_fat_tree_has_its_ways_in_no_time() {
        let ways = Ways::new(&fat_tree(16)).unwrap();
        assert_eq!(ways.steps(1, 128, 7).count(), 4);
        assert_eq!(ways.below(255).count(), 8);
    }
}
