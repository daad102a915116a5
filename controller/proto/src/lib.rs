// SPDX-License-Identifier: Apache-2.0

//! `weft.v1`: the API of the controller, for agents and for users.
//!
//! Everything here but the limits is generated from `weft/v1/weft.proto`, which documents it.
//! All times are nanoseconds of the controller's monotonic clock.

/// Longest time to live of a pattern that kernels accept (`TTL_NS` in
/// `host/kernel/mptcp_pattern.yaml`).
pub const TIME_TO_LIVE_MAX_NS: u64 = 60_000_000_000;

/// Messages, client and server of `weft.v1`.
#[allow(missing_docs, clippy::all)]
pub mod v1 {
    tonic::include_proto!("weft.v1");
}
