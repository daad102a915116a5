// SPDX-License-Identifier: Apache-2.0

//! P4Runtime: one server per switch, over the state of one network.
//!
//! [`World`] is the network and the control planes of its switches, without I/O. The data plane
//! calls [`World::advance`], and [`serve`] runs a gRPC server per switch. Both share the world by a
//! mutex. Nobody waits for anything while holding it, so it costs nothing when there is no
//! contention.

mod arbitration;
mod config;
mod device;
mod digest;
mod entity;
mod packet;
mod pipeline_config;
mod read;
mod schedule;
mod service;
mod world;
mod write;

pub use schedule::serve_schedule;
pub use service::{ServeError, serve};
pub use world::{DigestRecord, Shared, World};
