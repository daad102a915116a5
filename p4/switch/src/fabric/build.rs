//! From `topology.json` to a fabric.

use weft_topology::{Link, Switch, Topology};

use super::card::add_cards;
use super::horizon::Horizon;
use super::loss::Loss;
use super::port::{ETHERNET_BYTES, LinkProperties, Peer, Port};
use super::schedule::Schedule;
use super::{CPU_PORT, Fabric, Node};
use crate::pipeline::DROP_PORT;

/// A switch port where a host hangs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPort {
    /// The switch, by its place in [`Fabric::switches`].
    pub switch: usize,
    /// The port's number.
    pub port: u16,
    /// The switch's end of the cable, an interface of this network namespace.
    pub interface: String,
    /// The host.
    pub host: String,
    /// Its network card, if that runs a program: a place in [`Fabric::switches`].
    pub card: Option<usize>,
    /// Propagation delay of the cable, or of the bus to the card.
    pub delay_ns: u64,
    /// Rate of that, from the host.
    pub rate_bps: u64,
    /// Scheduling noise between the host's kernel and the cable, see [`weft_topology::Host`].
    pub jitter_ns: u64,
}

/// What the switches' timestamps count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimestampUnit {
    /// Nanoseconds: at 10 Gbps a packet takes 1200 of them.
    Nanoseconds,
    /// Microseconds, as BMv2 counts.
    Microseconds,
}

impl TimestampUnit {
    /// `ns` in this unit, rounded down.
    #[must_use]
    pub fn of(self, ns: u64) -> u64 {
        match self {
            Self::Nanoseconds => ns,
            Self::Microseconds => ns / 1000,
        }
    }
}

/// Why a topology makes no fabric.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// A port number that the data plane keeps for itself.
    #[error("{switch} port {port}: ports are numbered 1 to {}", CPU_PORT - 1)]
    PortNumber {
        /// The switch.
        switch: String,
        /// The number.
        port: u16,
    },
    /// Two ports of one number.
    #[error("{switch} has two ports {port}")]
    Twice {
        /// The switch.
        switch: String,
        /// The number.
        port: u16,
    },
    /// A cable ends at a switch port that does not exist.
    #[error("{switch} port {port}: its cable ends at {peer} port {peer_port}, which is none")]
    NoPeer {
        /// The switch.
        switch: String,
        /// The number.
        port: u16,
        /// The far end.
        peer: String,
        /// The far end's port.
        peer_port: u16,
    },
    /// A rate of 0, or one that arithmetic cannot hold.
    #[error("{switch} port {port}: rate {rate_bps} bps is not in 1 to 10^13")]
    Rate {
        /// The switch.
        switch: String,
        /// The number.
        port: u16,
        /// The rate.
        rate_bps: u64,
    },
}

/// The link to the control plane: fast, but not free, so that a program that
/// floods it moves time on.
pub(super) const CPU_LINK: LinkProperties = LinkProperties {
    rate_bps: 10_000_000_000,
    delay_ns: 0,
    queue_packets: 1024,
    queue_bytes: None,
    mtu_bytes: usize::MAX - ETHERNET_BYTES,
};

pub(super) const MAX_RATE_BPS: u64 = 10_000_000_000_000;

impl Fabric {
    /// The fabric of `topology`, its switches without programs. Their
    /// timestamps count in `unit` from `epoch_ns`, which is the present too.
    /// `seed` starts what is lost at random.
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
                Port::new(number, peer, link, Loss::of_port(seed, index, number))
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
                        card: None,
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
        add_cards(topology, &mut nodes, &mut host_ports, seed)?;
        let schedule = Schedule::of(topology);
        Ok(Self {
            horizon: Horizon::new(&nodes, &schedule),
            schedule,
            nodes,
            host_ports,
            agenda: Default::default(),
            now_ns: epoch_ns,
            epoch_ns,
            unit,
            deliveries: Vec::new(),
            notices: Vec::new(),
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
