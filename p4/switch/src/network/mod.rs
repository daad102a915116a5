// SPDX-License-Identifier: Apache-2.0

//! All switches of a network and the links between them, as a discrete-event
//! simulation without I/O.
//!
//! ```text
//!  host --delay--> [ingress] -> queue -> [egress] --rate, delay--> next switch or host
//! ```
//!
//! A [`Network`] owns rate, queue limit and propagation delay of every switch port, and the
//! propagation delay (not the rate) of the cables from hosts. NICs that run programs are switches
//! too. Queues are drop-tail, and the packet being sent does not count. A frame longer than the MTU
//! of its link is dropped when it would be sent. Egress runs when a packet leaves its queue. A
//! switch may lose frames that arrive.
//!
//! Time is an argument, in nanoseconds of any clock that does not go back. A packet that a host
//! sends at `t` reaches its switch at `t + delay`. So a caller that has handed over every packet
//! sent before `now` may run the network up to `now + `[`Network::lookahead_ns`], and gets each
//! delivery before it is due. [`Network::run`] gives the same deliveries however the caller divides
//! the time into calls.
//!
//! | file                                  | what                                               |
//! |---------------------------------------|----------------------------------------------------|
//! | `simulation`                          | the event loop: [`Network`]                        |
//! | `build`, `nic`                        | from `topology.json` to a network                  |
//! | `node`, `port`, `loss`                | a switch; its queues and links; what links lose    |
//! | `event_queue`, `schedule`, `horizon`  | what happens next; link changes; how far hosts are |
//! | `messages`, `host_port`, `timestamp`  | what callers meet                                  |

mod build;
mod error;
mod event_queue;
mod horizon;
mod host_port;
mod loss;
mod messages;
mod nic;
mod node;
mod port;
mod queue;
mod schedule;
mod simulation;
#[cfg(test)]
mod tests;
mod timestamp;

pub use error::BuildError;
pub use host_port::HostPort;
pub use messages::{Arrival, ControlContent, ControlMessage, Delivery};
pub use port::{CPU_PORT, PortStats};
pub use simulation::Network;
pub use timestamp::TimestampUnit;
