//! The compiled P4 programs on the pipeline, packet by packet and on invented time.

#![allow(clippy::unwrap_used)]

mod bench;
mod fabric;
mod nic;
mod packet;
mod queue;
mod routing;
mod rtt;
mod rtt_hosts;
