// SPDX-License-Identifier: Apache-2.0

//! From `topology.json` to a network.

use weft_topology::{Link, Switch, Topology};

use super::error::BuildError;
use super::horizon::Horizon;
use super::host_port::HostPort;
use super::loss::Loss;
use super::nic::add_nics;
use super::node::Node;
use super::port::{CPU_LINK, CPU_PORT, ETHERNET_BYTES, LinkProperties, MAX_RATE_BPS, Peer, Port};
use super::schedule::Schedule;
use super::simulation::Network;
use super::timestamp::TimestampUnit;
use crate::pipeline::DROP_PORT;

impl Network {
    /// Builds the network of `topology`, with switches that have no programs yet. Their timestamps
    /// count in `unit` from `epoch_ns`, which is also the present. `seed` decides which frames are
    /// lost at random.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn new(
        topology: &Topology,
        unit: TimestampUnit,
        epoch_ns: u64,
        seed: u64,
    ) -> Result<Self, BuildError> {
        let mut nodes = Vec::new();
        let mut host_ports = Vec::new();
        for (index, switch) in topology.switches.iter().enumerate() {
            let port_of = |number, peer, link| {
                Port::new(
                    number,
                    peer,
                    link,
                    Loss::of_port(seed, index, number),
                    topology.lowest_share_ppm,
                )
            };
            let mut ports = vec![port_of(CPU_PORT, Peer::Controller, CPU_LINK)];
            for port in &switch.ports {
                let (name, number) = (switch.name.clone(), port.number);
                if number == 0 || number >= CPU_PORT.min(DROP_PORT) {
                    return Err(BuildError::PortNumber {
                        switch: name,
                        port: number,
                    });
                }
                let link = &topology.links[port.link];
                let end = topology.peer(switch, port);
                let rate_in_bps = link.rate_from_bps(&end.node);
                for rate_bps in [link.rate_from_bps(&name), rate_in_bps] {
                    if rate_bps == 0 || rate_bps > MAX_RATE_BPS {
                        return Err(BuildError::Rate {
                            switch: name,
                            port: number,
                            rate_bps,
                        });
                    }
                }
                let peer = if let Some(host) = topology.host(&end.node) {
                    host_ports.push(HostPort {
                        switch: index,
                        port: number,
                        interface: port.interface.clone(),
                        host: end.node.clone(),
                        nic: None,
                        delay_ns: link.delay_ns,
                        rate_bps: rate_in_bps,
                        jitter_ns: host.jitter_ns,
                    });
                    Peer::Host(host_ports.len() - 1)
                } else {
                    switch_peer(topology, &end.node, end.port).ok_or(BuildError::NoPeer {
                        switch: name,
                        port: number,
                        peer: end.node.clone(),
                        peer_port: end.port,
                    })?
                };
                ports.push(port_of(number, peer, properties(link, switch)));
            }
            let loss = Loss::new(switch.loss_ppm, seed, index);
            let node = Node::new(switch.name.clone(), ports, loss);
            if let Some(pair) = node.numbers.windows(2).find(|pair| pair[0] == pair[1]) {
                return Err(BuildError::Twice {
                    switch: node.name,
                    port: pair[0],
                });
            }
            nodes.push(node);
        }
        add_nics(topology, &mut nodes, &mut host_ports, seed)?;
        let schedule = Schedule::of(topology);
        Ok(Self {
            horizon: Horizon::new(&nodes, &schedule),
            schedule,
            nodes,
            host_ports,
            events: Default::default(),
            now_ns: epoch_ns,
            epoch_ns,
            unit,
            deliveries: Vec::new(),
            control_messages: Vec::new(),
            arrivals: Vec::new(),
            effects: Default::default(),
            spare_frames: Vec::new(),
        })
    }
}

fn properties(link: &Link, from: &Switch) -> LinkProperties {
    LinkProperties {
        rate_bps: link.rate_from_bps(&from.name),
        delay_ns: link.delay_ns,
        queue_packets: usize::try_from(link.queue_packets).unwrap_or(usize::MAX),
        queue_bytes: link.queue_bytes,
        mtu_bytes: usize::try_from(link.mtu_bytes).unwrap_or(usize::MAX - ETHERNET_BYTES),
    }
}

fn switch_peer(topology: &Topology, name: &str, port: u16) -> Option<Peer> {
    let node = topology
        .switches
        .iter()
        .position(|switch| switch.name == name)?;
    let mut ports = topology.switches[node].ports.iter();
    ports
        .any(|candidate| candidate.number == port)
        .then_some(Peer::Switch { node, port })
}
