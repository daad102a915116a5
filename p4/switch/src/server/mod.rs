//! P4Runtime: one server per switch, over the state of one network.
//!
//! [`World`] is the network and the control planes of its switches, without
//! I/O; whoever runs the data plane calls [`World::advance`]. [`serve`] gives
//! it a gRPC server per switch. Both share it by a mutex: the holder never
//! waits for anything, so that it costs nothing when nobody else wants it.

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
