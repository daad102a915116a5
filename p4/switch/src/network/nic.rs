// SPDX-License-Identifier: Apache-2.0

//! NICs that run a program, between hosts and their leaves.
//!
//! ```text
//!  host ==bus==> [NIC] -> queue --rate, delay of the host's link--> leaf
//! ```
//!
//! The delay of the bus is a part of the link's delay, so the delay from host to leaf is the same
//! as without a NIC. NICs drop nothing: the host limits how much waits in its NIC.

use weft_topology::{Nic, Topology};

use super::error::BuildError;
use super::host_port::HostPort;
use super::loss::Loss;
use super::node::Node;
use super::port::{CPU_LINK, CPU_PORT, LinkProperties, MAX_RATE_BPS, Peer, Port};

/// More than a host ever has in flight.
const QUEUE_PACKETS: usize = 1 << 20;

/// Puts the NICs of `topology` in front of their hosts' leaf ports: as nodes behind those of
/// the switches, in the order of [`Topology::nics`].
pub(super) fn add_nics(
    topology: &Topology,
    nodes: &mut Vec<Node>,
    host_ports: &mut [HostPort],
    seed: u64,
) -> Result<(), BuildError> {
    for host in &topology.hosts {
        let Some(nic) = &host.nic else {
            continue;
        };
        if nic.rate_bps == 0 || nic.rate_bps > MAX_RATE_BPS {
            return Err(BuildError::Rate {
                switch: nic.name.clone(),
                port: Nic::HOST_PORT,
                rate_bps: nic.rate_bps,
            });
        }
        let node = nodes.len();
        let place = host_ports.iter().position(|port| port.host == host.name);
        let lowest_ppm = topology.lowest_share_ppm;
        let port_of = |number, peer, link| {
            let loss = Loss::of_port(seed, node, number);
            Port::new(number, peer, link, loss, lowest_ppm)
        };
        let mut ports = vec![port_of(CPU_PORT, Peer::Controller, CPU_LINK)];
        if let Some(place) = place {
            let host_port = &mut host_ports[place];
            let leaf = &nodes[host_port.switch];
            let mtu_bytes = leaf.index(host_port.port).map_or(0, |index| {
                let link = leaf.ports[index].original();
                link.mtu_bytes
            });
            let to_leaf = LinkProperties {
                rate_bps: host_port.rate_bps,
                delay_ns: host_port.delay_ns.saturating_sub(nic.delay_ns),
                queue_packets: QUEUE_PACKETS,
                queue_bytes: None,
                mtu_bytes,
            };
            let to_host = LinkProperties {
                rate_bps: nic.rate_bps,
                delay_ns: nic.delay_ns,
                queue_packets: QUEUE_PACKETS,
                queue_bytes: None,
                mtu_bytes,
            };
            let leaf = &mut nodes[host_port.switch];
            if let Some(index) = leaf.index(host_port.port) {
                let from_leaf = LinkProperties {
                    delay_ns: to_leaf.delay_ns,
                    ..leaf.ports[index].original()
                };
                let peer = Peer::Switch {
                    node,
                    port: Nic::NETWORK_PORT,
                };
                let loss = Loss::of_port(seed, host_port.switch, host_port.port);
                leaf.ports[index] = Port::new(host_port.port, peer, from_leaf, loss, lowest_ppm);
            }
            let leaf = Peer::Switch {
                node: host_port.switch,
                port: host_port.port,
            };
            ports.push(port_of(Nic::NETWORK_PORT, leaf, to_leaf));
            ports.push(port_of(Nic::HOST_PORT, Peer::Host(place), to_host));
            host_port.nic = Some(node);
            host_port.delay_ns = nic.delay_ns;
            host_port.rate_bps = nic.rate_bps;
        }
        nodes.push(Node::new(nic.name.clone(), ports, Loss::new(0, 0, node)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::tests::{
        DELAY_NS, FULL_BYTES, FULL_NS, GBPS, frame, network_of, settle, topology,
    };
    use super::super::{Network, TimestampUnit};
    use super::*;
    use crate::pipeline::{Pipeline, Program};

    /// So fast that its time does not show.
    const BUS_BPS: u64 = MAX_RATE_BPS;

    fn with_nics(delay_ns: u64) -> Topology {
        let mut topology = topology(GBPS, 100);
        for (host, device_id) in topology.hosts.iter_mut().zip(1001..) {
            host.nic = Some(Nic {
                name: format!("nic_{}", host.name),
                device_id,
                grpc: String::new(),
                rate_bps: BUS_BPS,
                delay_ns,
            });
        }
        topology
    }

    fn network(delay_ns: u64) -> Network {
        let mut network = network_of(&with_nics(delay_ns));
        let program = include_bytes!("../../../compiled/smartnic.json");
        let program = Arc::new(Program::load(program).unwrap());
        for nic in [2, 3] {
            network.install(nic, Pipeline::new(program.clone(), 1));
        }
        network
    }

    #[test]
    fn a_host_is_as_far_from_its_leaf_as_without_a_nic_wherever_that_is() {
        for delay_ns in [0, DELAY_NS / 2, DELAY_NS] {
            let mut network = network(delay_ns);
            assert_eq!(network.lookahead_ns(), delay_ns);
            network.receive(0, 0, &frame(2, FULL_BYTES, 7));
            // Three wires: that of the NIC and of both switches. The bus takes 1 ns.
            let wires_ns = 3 * FULL_NS;
            let expected_ns = 3 * DELAY_NS + wires_ns + 1;
            assert_eq!(settle(&mut network), [(expected_ns, 7)], "{delay_ns}");
        }
    }

    #[test]
    fn nics_are_named_after_the_switches() {
        let network = network(0);
        let names: Vec<_> = network.switches().collect();
        assert_eq!(names, ["spine1", "spine2", "nic_h1_1", "nic_h2_1"]);
        assert_eq!(network.host_ports()[1].nic, Some(3));
    }

    #[test]
    fn a_nic_drops_nothing() {
        let mut network = network(DELAY_NS);
        for tag in 0..=255 {
            network.receive(0, 0, &frame(2, FULL_BYTES, tag));
        }
        assert_eq!(settle(&mut network).len(), 256);
    }

    #[test]
    fn a_bus_without_a_rate_is_refused() {
        let mut topology = with_nics(0);
        topology.hosts[0].nic.as_mut().unwrap().rate_bps = 0;
        let built = Network::new(&topology, TimestampUnit::Nanoseconds, 0, 1);
        let error = built.unwrap_err().to_string();
        assert_eq!(
            error,
            "nic_h1_1 port 1: rate 0 bps is out of range 1 to 10^13"
        );
    }
}
