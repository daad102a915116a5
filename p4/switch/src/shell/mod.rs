// SPDX-License-Identifier: Apache-2.0

//! The data plane's I/O: real packets in and out of a [`World`](crate::server::World).
//!
//! Packets from hosts come through one memory-mapped ring for all interfaces
//! (`ring`), with the kernel's timestamps. Packets to hosts leave by one
//! `sendmmsg` with a departure time each (`send`); the `fq` queueing
//! discipline of their interface (`qdisc`) lets them go at that nanosecond.
//!
//! So the process does not have to run at the moment when something happens, only before it. A
//! packet sent at `t` by a host with a link delay of `D` reaches its switch at `t + D`, and the
//! next host not before `t + 2 D`. So it is enough to wake up every `2 D` while packets are in
//! flight. Each round takes two system calls, a sleep and a send. While no packets are in flight,
//! the thread waits for one. See `plane`.
//!
//! Between a host's kernel and its NIC (`nic`) there may be scheduling noise (`jitter`). It is not
//! part of the network, and captures see packets after it.

mod clock;
mod jitter;
mod nic;
mod plane;
mod qdisc;
mod ring;
mod send;

pub use clock::Clock;
pub use plane::{DataPlane, Error, Stop};
