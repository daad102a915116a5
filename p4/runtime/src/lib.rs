// SPDX-License-Identifier: Apache-2.0

//! P4Runtime messages and services, generated from the official Python package
//!
//! The modules mirror the protobuf packages: [`p4::v1`] has the service, its
//! client and its server, [`p4::config::v1`] the P4Info of a program. The crate
//! adds two things that both ends of the protocol need and that the generated
//! code lacks: [`p4info_from_text`] and [`bytestring`].

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod bytestring;
mod text;

pub use text::{TextError, p4info_from_text};

/// Version of the P4Runtime API that the descriptors belong to.
pub const API_VERSION: &str = "1.5.0";

/// Protobuf package `p4`.
pub mod p4 {
    /// Protobuf package `p4.v1`: the P4Runtime service.
    #[allow(missing_docs, clippy::all)]
    pub mod v1 {
        tonic::include_proto!("p4.v1");
    }

    /// Protobuf package `p4.config`.
    pub mod config {
        /// Protobuf package `p4.config.v1`: P4Info.
        #[allow(missing_docs, clippy::all)]
        pub mod v1 {
            tonic::include_proto!("p4.config.v1");
        }
    }
}

/// Protobuf package `google`.
pub mod google {
    /// Protobuf package `google.rpc`: the status of a failed call.
    #[allow(missing_docs, clippy::all)]
    pub mod rpc {
        tonic::include_proto!("google.rpc");
    }
}
