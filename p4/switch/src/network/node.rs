// SPDX-License-Identifier: Apache-2.0

//! A switch of the network: a pipeline and its ports.

use super::event_queue::{Action, Event};
use super::loss::Loss;
use super::port::Port;
use crate::pipeline::Pipeline;
use crate::prefetch::prefetch;

/// A switch.
#[derive(Debug)]
pub(super) struct Node {
    pub name: String,
    pub pipeline: Option<Pipeline>,
    /// Ordered by number.
    pub ports: Vec<Port>,
    /// The numbers of the ports, so that a search for a port reads only this.
    pub numbers: Box<[u16]>,
    /// What happens to frames that arrive.
    pub loss: Loss,
    /// Packets dropped because the switch had no program, or because the port does not exist.
    pub discarded_packets: u64,
}

impl Node {
    /// A switch without a program.
    pub fn new(name: String, mut ports: Vec<Port>, loss: Loss) -> Self {
        ports.sort_by_key(|port| port.number);
        Self {
            name,
            pipeline: None,
            numbers: ports.iter().map(|port| port.number).collect(),
            ports,
            loss,
            discarded_packets: 0,
        }
    }

    /// Prefetches what an event will need.
    pub fn prefetch(&self, event: &Event) {
        if let Some(pipeline) = &self.pipeline {
            pipeline.prefetch(event.port);
        }
        if let Some(index) = self.index(event.port) {
            self.ports[index].prefetch();
        }
        if let Action::Arrive(frame) = &event.action {
            // Two lines: headers.
            frame.iter().step_by(64).take(2).for_each(prefetch);
        }
    }

    pub fn index(&self, number: u16) -> Option<usize> {
        self.numbers.binary_search(&number).ok()
    }

    /// Decides whether a frame that arrives at a port is lost, and counts it then.
    pub fn loses(&mut self, number: u16) -> bool {
        let of_switch = self.loss.strikes();
        let Some(index) = self.index(number) else {
            return of_switch;
        };
        let port = &mut self.ports[index];
        let lost = port.loss.strikes() || of_switch;
        if lost {
            port.count_loss();
        }
        lost
    }
}
