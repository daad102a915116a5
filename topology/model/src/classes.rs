// SPDX-License-Identifier: Apache-2.0

//! Classes of packets, by what their connection has left to send.

/// The most classes that there are: a switch has so many priorities.
pub const CLASSES_MAX: u8 = 8;

/// The DSCP that stands for a class, from a pool for local use (xxxx11, RFC 2474 section 6).
/// `host/kernel/priority.c` writes it.
#[must_use]
pub fn dscp_of_class(class: u8) -> u8 {
    class << 2 | 3
}
