// SPDX-License-Identifier: Apache-2.0

//! Intrinsic metadata: what program and target exchange (`standard_metadata`).

use super::slot::Slot;

/// The egress port that drops a packet (`mark_to_drop` sets it).
pub const DROP_PORT: u16 = 511;

/// Values of `instance_type`: why a packet is in the pipeline.
pub mod instance_type {
    pub const NORMAL: u64 = 0;
    pub const INGRESS_CLONE: u64 = 1;
    pub const EGRESS_CLONE: u64 = 2;
    pub const RECIRCULATED: u64 = 4;
    pub const REPLICATION: u64 = 5;
    pub const RESUBMITTED: u64 = 6;
}

/// Where the intrinsic fields are. A field that the program lacks is a word that nobody reads.
#[derive(Debug, Clone)]
pub struct Intrinsics {
    pub ingress_port: Slot,
    pub egress_spec: Slot,
    pub egress_port: Slot,
    pub priority: Slot,
    pub instance_type: Slot,
    pub packet_length: Slot,
    pub enq_timestamp: Slot,
    pub enq_qdepth: Slot,
    pub deq_timedelta: Slot,
    pub deq_qdepth: Slot,
    pub ingress_global_timestamp: Slot,
    pub egress_global_timestamp: Slot,
    pub mcast_grp: Slot,
    pub egress_rid: Slot,
    pub checksum_error: Slot,
    pub parser_error: Slot,
}
