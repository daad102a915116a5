// SPDX-License-Identifier: Apache-2.0

//! P4Runtime as a controller meets it: a tonic client over TCP, Weft's own
//! programs, real packets on virtual time.

#![allow(clippy::unwrap_used, missing_docs)]

mod p4runtime {
    mod client;
    mod config;
    mod entries;
    mod packets;
    mod streams;
    mod updates;
}
