// SPDX-License-Identifier: Apache-2.0

//! The event queue of the network: what happens next, in an order that does not
//! depend on when it was queued.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Something that happens at a port of a switch.
#[derive(Debug)]
pub(super) enum Action {
    /// The link of the port is free, and packets wait for it.
    Dequeue,
    /// A frame comes in.
    Arrive(Vec<u8>),
}

/// An entry of the queue.
///
/// Events are ordered by time, then kind (a queue makes room before a frame comes in), then switch,
/// then port: an order that follows from the simulated network alone. Frames that reach the same
/// port in the same nanosecond keep the order in which the caller handed them over, which is their
/// order on the cable. So the result does not depend on how many real packets are read at a time.
#[derive(Debug)]
pub(super) struct Event {
    pub at_ns: u64,
    pub node: usize,
    pub port: u16,
    sequence: u64,
    pub action: Action,
}

impl Event {
    fn key(&self) -> (u64, bool, usize, u16, u64) {
        let arrives = matches!(self.action, Action::Arrive(_));
        (self.at_ns, arrives, self.node, self.port, self.sequence)
    }
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    /// Reversed, because the heap returns the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

/// All events to come.
#[derive(Debug, Default)]
pub(super) struct EventQueue {
    events: BinaryHeap<Event>,
    sequence: u64,
}

impl EventQueue {
    pub fn add(&mut self, at_ns: u64, node: usize, port: u16, action: Action) {
        self.sequence += 1;
        self.events.push(Event {
            at_ns,
            node,
            port,
            sequence: self.sequence,
            action,
        });
    }

    /// The first event.
    pub fn next(&self) -> Option<&Event> {
        self.events.peek()
    }

    /// The time of the first event.
    pub fn next_ns(&self) -> Option<u64> {
        self.next().map(|event| event.at_ns)
    }

    /// The smallest `due` of all events, or any `due` before `soon_ns`.
    pub fn earliest(&self, soon_ns: u64, due: impl Fn(&Event) -> u64) -> Option<u64> {
        let mut least = None;
        // The heap is nearly sorted by time, so early events come first.
        for event in &self.events {
            let due_ns = due(event);
            least = Some(least.map_or(due_ns, |least: u64| least.min(due_ns)));
            if due_ns < soon_ns {
                break;
            }
        }
        least
    }

    /// Takes the first event if it is before `end_ns`.
    pub fn pop_before(&mut self, end_ns: u64) -> Option<Event> {
        if self.next_ns()? >= end_ns {
            return None;
        }
        self.events.pop()
    }
}
