// SPDX-License-Identifier: Apache-2.0

//! `weft.v1`: the API of the controller, for agents and for users.
//!
//! Everything here is generated from `weft/v1/weft.proto`, which documents it.
//! All times are nanoseconds of the controller's monotonic clock.

/// Messages, client and server of `weft.v1`.
#[allow(missing_docs, clippy::all)]
pub mod v1 {
    tonic::include_proto!("weft.v1");
}
