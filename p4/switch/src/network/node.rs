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
    /// Their numbers: to find a port among these touches no others.
    pub numbers: Box<[u16]>,
    /// What happens to frames that arrive.
    pub loss: Loss,
    /// Packets that came before there was a program, or for a port it lacks.
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

    /// Lets what an event will need come nearer.
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

    /// Decides, and counts, whether a frame is lost that arrives at a port.
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
