// SPDX-License-Identifier: Apache-2.0

//! The compiled P4 programs on the pipeline, packet by packet, with invented times.

#![allow(clippy::unwrap_used)]

mod ack_delay;
mod bench;
mod by_sent;
mod ecn;
mod in_band_path;
mod ingress_filter;
mod int_md;
mod ipv6;
mod leaf_spine;
mod loss;
mod nic;
mod policing;
mod priority;
mod queue;
mod routing;
mod rtt;
mod rtt_hosts;
