//! Topologies for tests.

use std::net::Ipv4Addr;
use std::path::Path;

use weft_topology::{End, Host, Link, Port, Role, Routing, Switch, Topology, VERSION};

use crate::fabric::RoutedFabric;
use crate::p4::program::Program;
use crate::telemetry::RttSample;

/// A leaf-spine with 1 Gbps links of 10 us delay and queues of 100 packets.
pub(crate) fn leaf_spine(leaves: u8, spines: u8, hosts: u8) -> Topology {
    let mut topology = Topology {
        version: VERSION,
        name: "leaf-spine".into(),
        paths: spines,
        routing: Routing::Weft,
        hosts: Vec::new(),
        switches: Vec::new(),
        links: Vec::new(),
        int_md: false,
        ipv6: false,
        schedule: None,
    };
    for leaf in 1..=leaves {
        topology.switches.push(switch(Role::Leaf, leaf));
        for index in 1..=hosts {
            topology.hosts.push(host(leaf, index, spines));
        }
    }
    for spine in 1..=spines {
        topology.switches.push(switch(Role::Spine, spine));
    }
    for leaf in 1..=leaves {
        for index in 1..=hosts {
            let name = format!("h{leaf}_{index}");
            connect(&mut topology, (&format!("leaf{leaf}"), index), (&name, 0));
        }
        for spine in 1..=spines {
            let up = (&*format!("leaf{leaf}"), hosts + spine);
            connect(&mut topology, up, (&format!("spine{spine}"), leaf));
        }
    }
    topology
}

/// The links of a leaf-spine to `spine`.
pub(crate) fn links_of<'a>(
    topology: &'a mut Topology,
    spine: &'a str,
) -> impl Iterator<Item = &'a mut Link> {
    topology
        .links
        .iter_mut()
        .filter(move |link| link.b.node == spine)
}

/// A fat-tree with the same kind of links; its hosts have at most eight addresses.
pub(crate) fn fat_tree(k: u8) -> Topology {
    let half = k / 2;
    let mut topology = leaf_spine(k * half, 0, half);
    topology.name = "fat-tree".into();
    topology.paths = (half * half).min(8);
    for host in &mut topology.hosts {
        *host = self::host(host.leaf, host.index, topology.paths);
    }
    for aggregation in 1..=k * half {
        topology
            .switches
            .push(switch(Role::Aggregation, aggregation));
    }
    for core in 1..=half * half {
        topology.switches.push(switch(Role::Core, core));
    }
    for pod in 0..k {
        for (one, other) in (1..=half).flat_map(|one| (1..=half).map(move |other| (one, other))) {
            let aggregation = format!("agg{}", pod * half + one);
            let leaf = format!("leaf{}", pod * half + other);
            connect(&mut topology, (&leaf, half + one), (&aggregation, other));
            let core = format!("core{}", (one - 1) * half + other);
            connect(
                &mut topology,
                (&aggregation, half + other),
                (&core, pod + 1),
            );
        }
    }
    topology
}

pub(crate) fn fabric(leaves: u8, spines: u8, hosts: u8) -> RoutedFabric {
    RoutedFabric::new(leaf_spine(leaves, spines, hosts)).unwrap()
}

/// The sample of leaf `leaf` for a full-size packet from its first host to h2_1 over `path`,
/// with this queueing delay.
pub(crate) fn rtt_sample(fabric: &RoutedFabric, leaf: u8, path: u8, queueing_ns: u64) -> RttSample {
    let source = Ipv4Addr::new(10, leaf, 1, 1);
    let destination = Ipv4Addr::new(10, 2, 1, 1);
    let base = fabric.measured_base_ns(source, destination, path, 1500);
    let rtt_ns = base.unwrap() + queueing_ns;
    RttSample {
        source,
        destination,
        source_port: 1,
        destination_port: 2,
        path,
        length_bytes: 1500,
        rtt_ns,
        smoothed_ns: rtt_ns,
        min_ns: rtt_ns,
        at_ns: 0,
    }
}

fn switch(role: Role, index: u8) -> Switch {
    let (word, first) = match role {
        Role::Leaf => ("leaf", 0),
        Role::Aggregation => ("agg", 512),
        Role::Spine => ("spine", 256),
        Role::Core => ("core", 768),
        Role::Nic => unreachable!("no switch is a nic"),
    };
    let device_id = first + u64::from(index);
    Switch {
        name: format!("{word}{index}"),
        role,
        index,
        device_id,
        grpc: format!("127.0.0.1:{}", 9559 + device_id),
        ports: Vec::new(),
        loss_ppm: 0,
    }
}

fn host(leaf: u8, index: u8, paths: u8) -> Host {
    Host {
        name: format!("h{leaf}_{index}"),
        leaf,
        index,
        netns: format!("/run/netns/h{leaf}_{index}").into(),
        interface: format!("h{leaf}_{index}-eth0"),
        mac: format!("02:00:00:00:{leaf:02x}:{index:02x}"),
        addresses: (1..=paths)
            .map(|path| Ipv4Addr::new(10, leaf, index, path))
            .collect(),
        prefix_len: 24,
        jitter_ns: 0,
        nic: None,
    }
}

fn connect(topology: &mut Topology, a: (&str, u8), b: (&str, u8)) {
    let link = topology.links.len();
    let ends = [a, b].map(|(node, port)| End {
        node: node.to_owned(),
        port: u16::from(port),
    });
    for end in &ends {
        if let Some(switch) = topology
            .switches
            .iter_mut()
            .find(|switch| switch.name == end.node)
        {
            switch.ports.push(Port {
                number: end.port,
                interface: format!("{}-eth{}", end.node, end.port),
                link,
            });
        }
    }
    let [a, b] = ends;
    topology.links.push(Link {
        a,
        b,
        rate_bps: 1_000_000_000,
        rate_from_a_bps: None,
        delay_ns: 10_000,
        queue_packets: 100,
        queue_bytes: None,
        ecn_packets: None,
        ecn_bytes: None,
        mtu_bytes: weft_topology::USUAL_MTU_BYTES,
    });
}

/// The compiled program of switches with this role.
pub(crate) fn program(role: Role) -> Program {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../p4/compiled");
    Program::read(&folder, role).unwrap()
}
