// SPDX-License-Identifier: Apache-2.0
//! Numbers and attributes of the generic netlink family `mptcp_pattern`.
//!
//! Generated from host/kernel/mptcp_pattern.yaml by `make -C host/kernel netlink`;
//! do not edit.

use netlink_bindings::utils::parse_u8;
use serde::Serialize;

use crate::netlink::Type;

/// Name of the family.
pub const NAME: &str = "mptcp_pattern";
/// Version of its messages.
pub const VERSION: u8 = 1;
/// Local addresses in a pattern.
pub const PATHS_MAX: usize = 8;
/// Positions in a pattern.
pub const SEQUENCE_MAX: usize = 256;
/// Largest WAIT_UNIT_NS.
pub const WAIT_UNIT_NS_MAX: usize = 10000;
/// Largest TTL_NS, a minute; so no mistake lasts.
pub const TTL_NS_MAX: u64 = 60_000_000_000;
/// Largest VERSION; there is always a higher number.
pub const VERSION_MAX: u64 = 9_223_372_036_854_775_807;
/// Thresholds between classes; class 0 has none, and the last is open.
pub const THRESHOLDS_MAX: usize = 6;
/// Largest THRESHOLD, a terabyte.
pub const THRESHOLD_BYTES_MAX: u64 = 1_000_000_000_000;

/// What a message is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Command {
    /// Adds the pattern of a destination prefix, or replaces it atomically.
    PatternSet = 1,
    /// Removes one pattern (with PREFIX and PREFIX_LEN) or all patterns.
    PatternDel = 2,
    /// Dumps all patterns.
    PatternGet = 3,
    /// Dumps the MPTCP connections that use a scheduler of Weft; needs privileges, because a token
    /// is enough to join a connection.
    FlowGet = 4,
    /// Restarts the time to live of all patterns.
    PatternRenew = 5,
    /// Replaces the thresholds between classes; the built-in ones hold before and after.
    ThresholdsSet = 6,
    /// The built-in thresholds hold again.
    ThresholdsDel = 7,
    /// Dumps the thresholds that were set last, if any.
    ThresholdsGet = 8,
}

/// Where the pattern that a flow uses comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum Source {
    /// An RTT is unknown: per-packet round robin.
    None = 0,
    /// The kernel's own RTTs.
    Local = 1,
    /// A PATTERN_SET that has not expired.
    Controller = 2,
}

impl Type for Source {
    type Value<'a> = Self;

    fn read(bytes: &[u8]) -> Option<Self> {
        match parse_u8(bytes)? {
            0 => Some(Self::None),
            1 => Some(Self::Local),
            2 => Some(Self::Controller),
            _ => None,
        }
    }
}

/// Attributes of a message.
pub mod message {
    use std::net::Ipv4Addr;

    use crate::netlink::{Attribute, Nest};

    /// The set that these attributes belong to.
    #[derive(Debug)]
    pub enum Set {}

    /// IPv4 destination.
    pub const PREFIX: Attribute<Set, Ipv4Addr> = Attribute::new(1);
    /// Length of the prefix in bits.
    pub const PREFIX_LEN: Attribute<Set, u8> = Attribute::new(2);
    /// Version of the pattern or of the thresholds; in FLOW_GET, of the pattern that the flow uses.
    pub const VERSION: Attribute<Set, u64> = Attribute::new(3);
    /// Time to live, from the last SET or RENEW.
    pub const TTL_NS: Attribute<Set, u64> = Attribute::new(4);
    /// Time since the last SET or RENEW; GET only.
    pub const AGE_NS: Attribute<Set, u64> = Attribute::new(5);
    /// Local addresses of the pattern.
    pub const PATHS: Attribute<Set, Nest<Set>> = Attribute::new(6);
    /// One local address, in PATHS.
    pub const PATH: Attribute<Set, Nest<super::path::Set>> = Attribute::new(7);
    /// A u8 for each position, an index into PATHS, or into SUBFLOWS in the answer to FLOW_GET.
    pub const SEQUENCE: Attribute<Set, [u8]> = Attribute::new(8);
    /// MPTCP token of the connection.
    pub const TOKEN: Attribute<Set, u32> = Attribute::new(9);
    /// Where the pattern in use comes from.
    pub const SOURCE: Attribute<Set, super::Source> = Attribute::new(10);
    /// Name of the scheduler.
    pub const SCHEDULER: Attribute<Set, str> = Attribute::new(11);
    /// Subflows of the connection.
    pub const SUBFLOWS: Attribute<Set, Nest<Set>> = Attribute::new(12);
    /// One subflow, in SUBFLOWS.
    pub const SUBFLOW: Attribute<Set, Nest<super::subflow::Set>> = Attribute::new(13);
    /// Unit of the times that switches write into ACKs: how long the ACK waited, in IPv4's
    /// identification or IPv6's flow label; absent if they write none.
    pub const WAIT_UNIT_NS: Attribute<Set, u32> = Attribute::new(15);
    /// Thresholds between classes, rising.
    pub const THRESHOLDS: Attribute<Set, Nest<Set>> = Attribute::new(16);
    /// The most bytes left to send with which a packet is in class 1, 2, ..., in THRESHOLDS; one
    /// class more has the packets with more left.
    pub const THRESHOLD: Attribute<Set, u64> = Attribute::new(17);
}

/// One local address of a pattern.
pub mod path {
    use std::net::Ipv4Addr;

    use crate::netlink::Attribute;

    /// The set that these attributes belong to.
    #[derive(Debug)]
    pub enum Set {}

    /// Local IPv4 address.
    pub const LOCAL: Attribute<Set, Ipv4Addr> = Attribute::new(1);
    /// Packets per pattern; 0 if the path is not to be used.
    pub const GAP: Attribute<Set, u32> = Attribute::new(2);
    /// RTT that the network measured.
    pub const RTT_NS: Attribute<Set, u64> = Attribute::new(3);
    /// RTT without queues; 0 if unknown.
    pub const LOWEST_RTT_NS: Attribute<Set, u64> = Attribute::new(5);
}

/// One subflow of a connection.
pub mod subflow {
    use std::net::Ipv4Addr;

    use crate::netlink::Attribute;

    /// The set that these attributes belong to.
    #[derive(Debug)]
    pub enum Set {}

    /// Local address, zero over IPv6.
    pub const LOCAL: Attribute<Set, Ipv4Addr> = Attribute::new(1);
    /// Remote address, zero over IPv6.
    pub const REMOTE: Attribute<Set, Ipv4Addr> = Attribute::new(2);
    /// Packets per pattern, in the pattern that the flow uses.
    pub const GAP: Attribute<Set, u32> = Attribute::new(3);
    /// The kernel's own smoothed RTT.
    pub const RTT_NS: Attribute<Set, u64> = Attribute::new(4);
    /// Packets scheduled.
    pub const PACKETS: Attribute<Set, u64> = Attribute::new(5);
    /// Bytes scheduled.
    pub const BYTES: Attribute<Set, u64> = Attribute::new(6);
}
