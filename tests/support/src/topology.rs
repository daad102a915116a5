// SPDX-License-Identifier: Apache-2.0

//! Fabrics: names, numbers and addresses are those that `topology/weft_topology` gives.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use weft_topology::{
    End, Host, Link, Port, Role, Routing, Switch, Topology, USUAL_MTU_BYTES, VERSION,
};

/// The rate of every link.
pub const RATE_BPS: u64 = 1_000_000_000;
/// The propagation delay of every link, one way.
pub const DELAY_NS: u64 = 10_000;
/// The depth of every queue.
pub const QUEUE_PACKETS: u32 = 100;

/// A connection has at most this many subflows, and a host as many addresses.
const MAX_SUBFLOWS: u8 = 8;
/// The P4Runtime port of the first switch; the others follow.
const P4RUNTIME_PORT: usize = 9559;

/// `leaves` leaves with `hosts` hosts each, and `spines` spines.
#[must_use]
pub fn leaf_spine(leaves: u8, spines: u8, hosts: u8) -> Topology {
    let leaf = |index| format!("leaf{index}");
    let spine = |index| format!("spine{index}");
    let mut fabric = Builder::new("leaf-spine", spines.min(MAX_SUBFLOWS));
    for index in 1..=leaves {
        fabric.switch(&leaf(index), Role::Leaf, index);
    }
    for index in 1..=spines {
        fabric.switch(&spine(index), Role::Spine, index);
    }
    for (index, place) in pairs(leaves, hosts) {
        fabric.host(index, place, (&leaf(index), place.into()));
    }
    for (low, high) in pairs(leaves, spines) {
        let port = u16::from(hosts) + u16::from(high);
        fabric.link((&leaf(low), port), (&spine(high), low.into()));
    }
    fabric.build()
}

/// A `k`-ary fat-tree.
#[must_use]
pub fn fat_tree(k: u8) -> Topology {
    let half = k / 2;
    let edge = |pod: u8, place: u8| (pod - 1) * half + place;
    let edge_name = |pod, place| format!("edge{}", edge(pod, place));
    let aggregation = |pod: u8, place: u8| format!("agg{pod}_{place}");
    let mut fabric = Builder::new("fat-tree", (half * half).min(MAX_SUBFLOWS));
    for (pod, place) in pairs(k, half) {
        fabric.switch(&edge_name(pod, place), Role::Leaf, edge(pod, place));
    }
    for (pod, place) in pairs(k, half) {
        let role = Role::Aggregation;
        fabric.switch(&aggregation(pod, place), role, edge(pod, place));
    }
    for index in 1..=half * half {
        fabric.switch(&format!("core{index}"), Role::Core, index);
    }
    for (pod, place) in pairs(k, half) {
        for index in 1..=half {
            let port = (&*edge_name(pod, place), index.into());
            fabric.host(edge(pod, place), index, port);
        }
    }
    for (pod, place) in pairs(k, half) {
        for up in 1..=half {
            let port = (&*edge_name(pod, place), (half + up).into());
            fabric.link(port, (&aggregation(pod, up), place.into()));
        }
    }
    for (pod, place) in pairs(k, half) {
        for up in 1..=half {
            let port = (&*aggregation(pod, place), (half + up).into());
            let core = format!("core{}", (place - 1) * half + up);
            fabric.link(port, (&core, pod.into()));
        }
    }
    fabric.build()
}

/// One spine, `spine1`, with host `hL_1` at its port L for each L up to `hosts`.
#[must_use]
pub fn star(hosts: u8) -> Topology {
    let mut fabric = Builder::new("star", 1);
    fabric.switch("spine1", Role::Spine, 1);
    for leaf in 1..=hosts {
        fabric.host(leaf, 1, ("spine1", leaf.into()));
    }
    fabric.build()
}

/// Two spines in a row with a host at each: `h1_1 - spine1 - spine2 - h2_1`.
/// Port 1 leads to the host, port 2 to the other spine.
#[must_use]
pub fn row() -> Topology {
    let mut fabric = Builder::new("row", 1);
    for index in 1..=2 {
        fabric.switch(&format!("spine{index}"), Role::Spine, index);
    }
    for leaf in 1..=2 {
        fabric.host(leaf, 1, (&format!("spine{leaf}"), 1));
    }
    fabric.link(("spine1", 2), ("spine2", 2));
    fabric.build()
}

/// A fabric without anything.
#[must_use]
pub fn empty() -> Topology {
    Builder::new("empty", 1).build()
}

/// The links that end at `node`.
///
/// # Panics
/// If there is none, because a test that changes no link tests nothing.
pub fn links_of<'a>(topology: &'a mut Topology, node: &str) -> Vec<&'a mut Link> {
    let links: Vec<_> = topology
        .links
        .iter_mut()
        .filter(|link| link.a.node == node || link.b.node == node)
        .collect();
    assert!(!links.is_empty(), "no link ends at {node}");
    links
}

/// Builds a topology node by node.
#[derive(Debug)]
struct Builder(Topology);

impl Builder {
    fn new(name: &str, paths: u8) -> Self {
        Self(Topology {
            version: VERSION,
            name: name.into(),
            paths,
            routing: Routing::Subflow,
            flowlet_timeout_ns: None,
            priorities: None,
            lowest_share_ppm: weft_topology::LOWEST_SHARE_PPM,
            hosts: Vec::new(),
            switches: Vec::new(),
            links: Vec::new(),
            int_md: false,
            ipv6: false,
            schedule: None,
        })
    }

    fn switch(&mut self, name: &str, role: Role, index: u8) {
        let first_id = match role {
            Role::Leaf => 0,
            Role::Spine => 256,
            Role::Aggregation => 512,
            Role::Core => 768,
            Role::Nic => unreachable!("a NIC is part of its host"),
        };
        self.0.switches.push(Switch {
            name: name.into(),
            role,
            index,
            device_id: first_id + u64::from(index),
            grpc: format!("127.0.0.1:{}", P4RUNTIME_PORT + self.0.switches.len()),
            ports: Vec::new(),
            loss_ppm: 0,
            first_come: false,
        });
    }

    /// Adds a host and its link to a switch.
    fn host(&mut self, leaf: u8, index: u8, to: (&str, u16)) {
        let name = format!("h{leaf}_{index}");
        self.0.hosts.push(Host {
            name: name.clone(),
            leaf,
            index,
            netns: format!("/run/netns/{name}").into(),
            interface: format!("{name}-eth0"),
            mac: format!("02:00:00:00:{leaf:02x}:{index:02x}"),
            addresses: (1..=self.0.paths)
                .map(|path| Ipv4Addr::new(10, leaf, index, path))
                .collect(),
            prefix_len: 24,
            jitter_ns: 0,
            nic: None,
            classes_cleared: false,
        });
        self.link((&name, 0), to);
    }

    fn link(&mut self, a: (&str, u16), b: (&str, u16)) {
        let [a, b] = [a, b].map(|(node, port)| End {
            node: node.into(),
            port,
        });
        self.0.links.push(Link {
            a,
            b,
            rate_bps: RATE_BPS,
            rate_from_a_bps: None,
            delay_ns: DELAY_NS,
            queue_packets: QUEUE_PACKETS,
            queue_bytes: None,
            ecn_packets: None,
            ecn_bytes: None,
            mtu_bytes: USUAL_MTU_BYTES,
        });
    }

    /// The topology, with its links in Mininet's order: node by node in the order in which
    /// nodes got their first link. A link counts to the end whose name comes first.
    fn build(self) -> Topology {
        fn ends(link: &Link) -> [&String; 2] {
            let mut names = [&link.a.node, &link.b.node];
            names.sort();
            names
        }
        let mut topology = self.0;
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        for name in topology.links.iter().flat_map(ends) {
            let next = places.len();
            places.entry(name.clone()).or_insert(next);
        }
        topology.links.sort_by_key(|link| places[ends(link)[0]]);
        for switch in &mut topology.switches {
            for (number, link) in topology.links.iter().enumerate() {
                let ends = [&link.a, &link.b].into_iter();
                switch
                    .ports
                    .extend(ends.filter(|end| end.node == switch.name).map(|end| Port {
                        number: end.port,
                        interface: format!("{}-eth{}", end.node, end.port),
                        link: number,
                    }));
            }
            switch.ports.sort_by_key(|port| port.number);
        }
        topology
    }
}

/// All pairs of a number up to `first` and one up to `second`, from 1.
fn pairs(first: u8, second: u8) -> impl Iterator<Item = (u8, u8)> {
    (1..=first).flat_map(move |one| (1..=second).map(move |other| (one, other)))
}
