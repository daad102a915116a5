// SPDX-License-Identifier: Apache-2.0

//! The event loop: packets, queues and links on a clock of its own.

use weft_topology::Nic;

use super::event_queue::{Action, Event, EventQueue};
use super::horizon::Horizon;
use super::host_port::HostPort;
use super::messages::{Arrival, ControlContent, ControlMessage, Delivery};
use super::node::Node;
use super::port::{CPU_PORT, Peer, Port, PortStats};
use super::schedule::{Place, Schedule};
use super::timestamp::TimestampUnit;
use crate::pipeline::{Effects, Output, Pipeline};

/// The switches and links of a network.
#[derive(Debug)]
pub struct Network {
    pub(super) nodes: Vec<Node>,
    pub(super) host_ports: Vec<HostPort>,
    pub(super) horizon: Horizon,
    pub(super) schedule: Schedule,
    pub(super) events: EventQueue,
    /// Everything before this has happened.
    pub(super) now_ns: u64,
    /// Zero of the switches' timestamps.
    pub(super) epoch_ns: u64,
    pub(super) unit: TimestampUnit,
    pub(super) deliveries: Vec<Delivery>,
    pub(super) control_messages: Vec<ControlMessage>,
    pub(super) arrivals: Vec<Arrival>,
    pub(super) effects: Effects,
    pub(super) spare_frames: Vec<Vec<u8>>,
}

/// Maximum number of buffers kept for reuse.
const SPARE_FRAMES: usize = 4096;

impl Network {
    /// Names of the switches and then of the NICs, in the order of the topology.
    pub fn switches(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().map(|node| node.name.as_str())
    }

    /// The ports that lead to hosts.
    #[must_use]
    pub fn host_ports(&self) -> &[HostPort] {
        &self.host_ports
    }

    /// How far the network may run ahead of the packets handed over: the shortest delay from a host
    /// to its switch. The network reports a delivery at least this long before it is due.
    #[must_use]
    pub fn lookahead_ns(&self) -> u64 {
        let delays = self.host_ports.iter().map(|port| port.delay_ns);
        delays.min().unwrap_or(0)
    }

    /// The pipeline of a switch, if it has a program.
    #[must_use]
    pub fn pipeline(&self, switch: usize) -> Option<&Pipeline> {
        self.nodes.get(switch)?.pipeline.as_ref()
    }

    /// Like [`Network::pipeline`], to change its tables.
    pub fn pipeline_mut(&mut self, switch: usize) -> Option<&mut Pipeline> {
        self.nodes.get_mut(switch)?.pipeline.as_mut()
    }

    /// Gives a switch a program; packets in its queues are lost.
    pub fn install(&mut self, switch: usize, pipeline: Pipeline) {
        if let Some(node) = self.nodes.get_mut(switch) {
            node.ports.iter_mut().for_each(Port::flush);
            node.pipeline = Some(pipeline);
        }
    }

    /// Everything before this moment has happened, in nanoseconds.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Takes a frame whose last bit left the host at `host_port` at `sent_ns`.
    ///
    /// What should have reached its switch before [`Network::now_ns`] is late
    /// and reaches it now.
    pub fn receive(&mut self, host_port: usize, sent_ns: u64, frame: &[u8]) {
        let Some(from) = self.host_ports.get(host_port) else {
            return;
        };
        let (node, port) = match from.nic {
            Some(nic) => (nic, Nic::HOST_PORT),
            None => (from.switch, from.port),
        };
        let at_ns = (sent_ns + from.delay_ns).max(self.now_ns);
        let frame = self.copy(frame);
        self.events.add(at_ns, node, port, Action::Arrive(frame));
    }

    /// Takes a frame from the control plane of `switch`. It arrives at [`CPU_PORT`] at `at_ns`, or
    /// now if that has passed.
    pub fn packet_out(&mut self, switch: usize, at_ns: u64, frame: Vec<u8>) {
        if switch < self.nodes.len() {
            let at_ns = at_ns.max(self.now_ns);
            self.events
                .add(at_ns, switch, CPU_PORT, Action::Arrive(frame));
        }
    }

    /// Lets everything before `end_ns` happen.
    pub fn run(&mut self, end_ns: u64) {
        while let Some(event) = self.next_before(end_ns) {
            self.now_ns = self.now_ns.max(event.at_ns);
            if let Some(next) = self.events.next() {
                self.nodes[next.node].prefetch(next);
            }
            match event.action {
                Action::Arrive(frame) => self.arrive(event.node, event.port, frame),
                Action::Dequeue => {
                    if let Some(index) = self.nodes[event.node].index(event.port) {
                        self.nodes[event.node].ports[index].armed = false;
                        self.dequeue(event.node, index);
                    }
                }
            }
        }
        self.now_ns = self.now_ns.max(end_ns);
    }

    /// Takes the next event before `end_ns`. Changes that are due come first.
    fn next_before(&mut self, end_ns: u64) -> Option<Event> {
        while let Some(change_ns) = self.schedule.next_ns().filter(|at_ns| *at_ns < end_ns) {
            if self.events.next_ns().is_some_and(|at_ns| at_ns < change_ns) {
                break;
            }
            self.change();
        }
        self.events.pop_before(end_ns)
    }

    /// The unit of the timestamps that programs see.
    #[must_use]
    pub fn timestamp_unit(&self) -> TimestampUnit {
        self.unit
    }

    /// When the next event happens, in nanoseconds; `None` if there is none.
    #[must_use]
    pub fn next_event_ns(&self) -> Option<u64> {
        self.events.next_ns()
    }

    /// The earliest time at which a packet in the network could reach a host, if nothing delayed
    /// it; `None` if there are no packets. If it is before `soon_ns`, the result may be any time
    /// before `soon_ns`.
    ///
    /// With long links this is far ahead. Nobody needs to call [`Network::run`] until then, less
    /// [`Network::lookahead_ns`].
    #[must_use]
    pub fn next_delivery_ns(&self, soon_ns: u64) -> Option<u64> {
        self.events.earliest(soon_ns, |event| {
            event.at_ns.saturating_add(self.horizon.of(event))
        })
    }

    /// Moves the frames that left the network since the last call to `into`, by time for each port.
    pub fn take_deliveries(&mut self, into: &mut Vec<Delivery>) {
        into.append(&mut self.deliveries);
    }

    /// Moves the switches' messages to their control planes since the last call to `into`.
    pub fn take_control_messages(&mut self, into: &mut Vec<ControlMessage>) {
        into.append(&mut self.control_messages);
    }

    /// Records packets for this port from now on, for [`Network::take_arrivals`].
    pub fn observe(&mut self, switch: usize, port: u16) {
        if let Some(node) = self.nodes.get_mut(switch) {
            if let Some(index) = node.index(port) {
                node.ports[index].observed = true;
            }
        }
    }

    /// Calls `report` with every arrival at an observed port since the last call, by time.
    pub fn take_arrivals(&mut self, report: impl FnMut(&Arrival)) {
        self.arrivals.iter().for_each(report);
        self.arrivals.clear();
    }

    /// Takes back the buffer of a delivered frame.
    pub fn recycle(&mut self, mut frame: Vec<u8>) {
        if self.spare_frames.len() < SPARE_FRAMES {
            frame.clear();
            self.spare_frames.push(frame);
        }
    }

    /// Calls `report` with switch, port number and counters of every port that
    /// changed since the last call.
    pub fn take_changes(&mut self, mut report: impl FnMut(usize, u16, &PortStats)) {
        for (index, node) in self.nodes.iter_mut().enumerate() {
            for port in node.ports.iter_mut().filter(|port| port.changed) {
                report(index, port.number, &port.stats);
                port.changed = false;
                port.stats.queue_max_packets = port.waiting();
            }
        }
    }

    /// Packets that a switch dropped because it had no program, or because the port does not exist.
    #[must_use]
    pub fn discarded_packets(&self, switch: usize) -> u64 {
        self.nodes
            .get(switch)
            .map_or(0, |node| node.discarded_packets)
    }

    fn arrive(&mut self, node: usize, port: u16, mut frame: Vec<u8>) {
        if port != CPU_PORT && self.nodes[node].loses(port) {
            self.recycle(frame);
            return;
        }
        let now = self.timestamp(self.now_ns);
        match &mut self.nodes[node].pipeline {
            Some(pipeline) => pipeline.ingress(port, &mut frame, now, &mut self.effects),
            None => self.nodes[node].discarded_packets += 1,
        }
        self.recycle(frame);
        self.settle(node, true);
    }

    /// Queues a pipeline's output, and passes on its digests. A packet may leave its queue before
    /// the next event only if `at_once`; copies made in egress wait for that event.
    fn settle(&mut self, node: usize, at_once: bool) {
        if self.effects.outputs.is_empty() && self.effects.digests.is_empty() {
            return;
        }
        for digest in self.effects.digests.drain(..) {
            self.control_messages.push(ControlMessage {
                switch: node,
                at_ns: self.now_ns,
                content: ControlContent::Digest(digest),
            });
        }
        let mut outputs = std::mem::take(&mut self.effects.outputs);
        for output in outputs.drain(..) {
            self.enqueue(node, output, at_once);
        }
        // Give the buffer back. It is empty, because everything that egress appended has been
        // queued.
        outputs.append(&mut self.effects.outputs);
        self.effects.outputs = outputs;
    }

    fn enqueue(&mut self, node: usize, output: Output, at_once: bool) {
        let now_ns = self.now_ns;
        let place = &mut self.nodes[node];
        let Some(index) = place.index(output.port) else {
            place.discarded_packets += 1;
            self.effects.discard(output.packet);
            return;
        };
        let port = &mut place.ports[index];
        let (bytes, queue_packets) = (output.packet.length_bytes(), port.waiting());
        let effects = &mut self.effects;
        let mut dropped_packets = 0;
        let drop = |packet| {
            dropped_packets += 1;
            effects.discard(packet);
        };
        let is_queued = port.enqueue(output.packet, output.priority, now_ns, drop);
        if port.observed {
            self.arrivals.push(Arrival {
                at_ns: now_ns,
                switch: node,
                port: port.number,
                bytes,
                queue_packets,
                dropped_packets,
                priority: output.priority,
            });
        }
        if !is_queued || port.armed {
            return;
        }
        if at_once && port.is_free(now_ns) {
            self.dequeue(node, index);
        } else {
            self.arm(node, index);
        }
    }

    /// Adds the next dequeue of a port to the events.
    fn arm(&mut self, node: usize, index: usize) {
        let port = &mut self.nodes[node].ports[index];
        port.armed = true;
        let at_ns = port.free_ns().max(self.now_ns);
        self.events.add(at_ns, node, port.number, Action::Dequeue);
    }

    /// Sends from the queue of a port as long as the link is free.
    fn dequeue(&mut self, node: usize, index: usize) {
        let (unit, epoch_ns, now_ns) = (self.unit, self.epoch_ns, self.now_ns);
        let time = |ns: u64| unit.of(ns.saturating_sub(epoch_ns));
        while self.nodes[node].ports[index].is_free(now_ns) {
            let place = &mut self.nodes[node];
            let Some((packet, queue)) = place.ports[index].dequeue(now_ns, time) else {
                return;
            };
            let Some(pipeline) = &mut place.pipeline else {
                return;
            };
            let mut frame = self.spare_frames.pop().unwrap_or_default();
            let now = time(now_ns);
            if pipeline.egress(packet, queue, now, &mut frame, &mut self.effects) {
                self.transmit(node, index, frame);
            } else {
                self.recycle(frame);
            }
            self.settle(node, false);
        }
        let port = &self.nodes[node].ports[index];
        if port.waiting() > 0 && !port.armed {
            self.arm(node, index);
        }
    }

    /// Puts a frame on the link of a port.
    fn transmit(&mut self, node: usize, index: usize, frame: Vec<u8>) {
        let port = &mut self.nodes[node].ports[index];
        if port.refuses(frame.len()) {
            self.recycle(frame);
            return;
        }
        let at_ns = port.transmit(frame.len(), self.now_ns);
        match port.peer {
            Peer::Switch { node, port } => {
                self.events.add(at_ns, node, port, Action::Arrive(frame));
            }
            Peer::Host(_) if port.loss.strikes() => {
                port.count_loss();
                self.recycle(frame);
            }
            Peer::Host(host_port) => self.deliveries.push(Delivery {
                host_port,
                at_ns,
                frame,
            }),
            Peer::Controller => self.control_messages.push(ControlMessage {
                switch: node,
                at_ns,
                content: ControlContent::PacketIn(frame),
            }),
        }
    }

    fn timestamp(&self, ns: u64) -> u64 {
        self.unit.of(ns.saturating_sub(self.epoch_ns))
    }

    fn copy(&mut self, frame: &[u8]) -> Vec<u8> {
        let mut copy = self.spare_frames.pop().unwrap_or_default();
        copy.extend_from_slice(frame);
        copy
    }

    /// Starts the schedule: traffic begins at `start_ns`. Links go back to what the topology
    /// describes now, and change from then on as it says.
    pub fn start_schedule(&mut self, start_ns: u64) {
        for node in &mut self.nodes {
            node.loss.restore();
            node.ports.iter_mut().for_each(|port| port.restore());
        }
        let changes = self.schedule.changes.iter().enumerate();
        self.schedule.to_come = changes
            .map(|(place, (_, change))| (start_ns.saturating_add(change.at_ns), place))
            .collect();
    }

    /// Makes the next change.
    fn change(&mut self) {
        let Some((at_ns, place)) = self.schedule.to_come.pop_front() else {
            return;
        };
        self.now_ns = self.now_ns.max(at_ns);
        let (place, change) = self.schedule.changes[place].clone();
        if let Place::Switch(switch) = place {
            let node = &mut self.nodes[switch];
            if node.loss.change(&change) {
                node.ports.iter_mut().for_each(Port::flush);
            }
        }
        for (index, node) in self.nodes.iter_mut().enumerate() {
            for port in node
                .ports
                .iter_mut()
                .filter(|port| place.is_of(index, port))
            {
                if matches!(place, Place::Link(_)) && port.loss.change(&change) {
                    port.flush();
                }
                // A host relies on the delay of its link, and limits the rate at which it sends.
                if index < self.schedule.switches && port.is_between(self.schedule.switches) {
                    port.change(&change);
                }
            }
        }
    }
}
