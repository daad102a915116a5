// SPDX-License-Identifier: Apache-2.0

//! The virtual-time lab: a whole network in one unprivileged User-Mode Linux, and the clock that
//! controls its time.
//!
//! A [`Lab`] stays up. [`run_batch`] runs one command in a lab and stops it. A [`LabSpec`]
//! specifies a lab.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod batch;
pub mod clock;
mod control;
pub mod error;
pub mod exec;
pub mod guest;
mod kernel;
pub mod lab;
mod line;
mod machine;
mod mux;
mod native;
mod rundir;
pub mod spec;
mod starter;
pub mod supervisor;
mod tty;
mod watch;

pub use batch::{BatchOptions, BatchOutcome, BatchProgress, run_batch};
pub use clock::ClockPolicy;
pub use control::{State, Status, Step};
pub use error::{Error, Result};
pub use exec::ExecRequest;
pub use lab::{Lab, UpOptions};
pub use spec::{
    ArrivalsSpec, BatchSpec, CaptureSpec, ChangeSpec, ClockMode, CommonSpec, FatTreeSpec,
    HostsSpec, InBandSpec, LabSpec, LeafSpineSpec, MAX_SUBFLOWS, ManyToOneSpec, NicSpec, Paths,
    RoutingSpec, TopologySpec, TwoPathSpec,
};
