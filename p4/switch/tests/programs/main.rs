//! The compiled P4 programs on the pipeline, packet by packet and on invented time.

#![allow(clippy::unwrap_used)]

mod bench;
mod ecn;
mod guard;
mod int_md;
mod ipv6;
mod leaf_spine;
mod loss;
mod nic;
mod queue;
mod routing;
mod rtt;
mod rtt_hosts;
mod waits;
