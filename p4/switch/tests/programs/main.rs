//! The compiled P4 programs on the pipeline, packet by packet, with invented times.

#![allow(clippy::unwrap_used)]

mod bench;
mod ecn;
mod guard;
mod in_band_path;
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
