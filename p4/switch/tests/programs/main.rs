//! The compiled P4 programs on the pipeline, packet by packet and on invented time.

#![allow(missing_docs)]

mod bench;
mod fabric;
mod packet;
mod queue;
mod routing;
mod rtt;
