//! The data plane's I/O: real packets in and out of a [`World`](crate::server::World).
//!
//! Packets from hosts come through one memory-mapped ring for all interfaces
//! (`ring`), with the kernel's timestamps. Packets to hosts leave by one
//! `sendmmsg` with a departure time each (`send`); the `fq` queueing
//! discipline of their interface (`qdisc`) lets them go at that nanosecond.
//!
//! So the process need not be there when anything happens, only before: a
//! packet sent at `t` by a host that is `D` away reaches its switch at
//! `t + D` and the next host not before `t + 2 D`. Waking up every `2 D` while
//! packets are under way is enough, and there are two system calls in each
//! round, a sleep and a send. When nothing is under way, the thread waits for
//! a packet. See `plane`.
//!
//! Between a host's kernel and its NIC (`nic`) there may be noise (`jitter`). It is no
//! part of the network: cables begin behind it, and so do captures.

mod clock;
mod jitter;
mod nic;
mod plane;
mod qdisc;
mod ring;
mod send;

pub use clock::Clock;
pub use plane::{DataPlane, Error, Stop};
