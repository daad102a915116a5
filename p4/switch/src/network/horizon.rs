// SPDX-License-Identifier: Apache-2.0

//! How far each place of the network is from the nearest host, in time.
//!
//! A frame that arrives at a switch cannot reach a host before it has crossed the links of the
//! fastest path to one. With slow links that takes long, and until then nobody needs to know where
//! the frame is.

use super::event_queue::{Action, Event};
use super::node::Node;
use super::port::{CPU_PORT, Peer, Port};
use super::schedule::Schedule;

/// Shortest propagation delays to a host. Serialisation and queues come on top.
#[derive(Debug, Default)]
pub(super) struct Horizon {
    /// For each switch, the delay from the arrival of a frame; for each of its ports, that from its
    /// departure.
    nodes: Vec<(u64, Vec<(u16, u64)>)>,
}

impl Horizon {
    /// The horizon of these switches. It takes the shortest delay that each link ever has.
    pub fn new(nodes: &[Node], schedule: &Schedule) -> Self {
        let delay_ns =
            |from: usize, port: &Port| port.delay_ns().min(schedule.least_delay_ns(from, port));
        // Over the port's link, and from there to the nearest host.
        let path_delay_ns = |from: usize, port: &Port, nearest_ns: &[u64]| match port.peer {
            Peer::Host(_) => delay_ns(from, port),
            Peer::Switch { node, .. } => delay_ns(from, port).saturating_add(nearest_ns[node]),
            Peer::Controller => 0,
        };
        // Bellman-Ford: shortest paths have at most as many links as there are switches.
        let mut nearest_ns = vec![u64::MAX; nodes.len()];
        for _ in nodes {
            for (index, node) in nodes.iter().enumerate() {
                let delays = data_ports(node).map(|port| path_delay_ns(index, port, &nearest_ns));
                nearest_ns[index] = delays.min().unwrap_or(u64::MAX);
            }
        }
        let of_node = |(index, node): (usize, &Node)| {
            let port = |port: &Port| (port.number, path_delay_ns(index, port, &nearest_ns));
            (nearest_ns[index], node.ports.iter().map(port).collect())
        };
        Self {
            nodes: nodes.iter().enumerate().map(of_node).collect(),
        }
    }

    /// Nanoseconds from an event to the first delivery that it can lead to.
    pub fn of(&self, event: &Event) -> u64 {
        let (arrival_ns, ports) = &self.nodes[event.node];
        match event.action {
            Action::Arrive(_) => *arrival_ns,
            Action::Dequeue => ports
                .binary_search_by_key(&event.port, |(number, _)| *number)
                .map_or(0, |place| ports[place].1),
        }
    }
}

fn data_ports(node: &Node) -> impl Iterator<Item = &Port> {
    node.ports.iter().filter(|port| port.number != CPU_PORT)
}
