// SPDX-License-Identifier: Apache-2.0

//! `arrivals.csv`: every packet that came to an egress queue.
//!
//! It is text, which every tool reads, and small compared with the captures: 37 bytes a packet.

use std::io::Write as _;

use weft_topology::Topology;

use crate::network::Arrival;

pub(super) const HEADER: &str = "time_ns,switch,port,peer,bytes,queue_packets,dropped,priority\n";

/// Makes rows.
#[derive(Debug)]
pub(super) struct Rows {
    /// For each switch, for each port number, the columns that name them.
    places: Vec<Vec<String>>,
}

impl Rows {
    pub fn new(topology: &Topology) -> Self {
        let place = |switch: &weft_topology::Switch| {
            let highest = switch.ports.iter().map(|port| port.number).max();
            let mut places = vec![String::new(); usize::from(highest.unwrap_or(0)) + 1];
            for port in &switch.ports {
                let peer = &topology.peer(switch, port).node;
                places[usize::from(port.number)] =
                    format!("{},{},{peer}", switch.name, port.number);
            }
            places
        };
        Self {
            places: topology.switches.iter().map(place).collect(),
        }
    }

    /// Appends a row to `file`.
    pub fn encode(&self, arrival: &Arrival, file: &mut Vec<u8>) {
        let place = &self.places[arrival.switch][usize::from(arrival.port)];
        // Writing to memory cannot fail.
        let _ = writeln!(
            file,
            "{},{place},{},{},{},{}",
            arrival.at_ns,
            arrival.bytes,
            arrival.queue_packets,
            arrival.dropped_packets,
            arrival.priority,
        );
    }
}
