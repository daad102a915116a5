// SPDX-License-Identifier: Apache-2.0

//! `topology.json`: the description of a fabric.
//!
//! `topology/` (Python) writes it and all other programs read it. No program derives names or
//! addresses itself. [`Topology`] documents the format.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod classes;
mod ip;
mod nic;
pub mod routes;
mod schedule;

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use classes::{
    CLASSES_MAX, SPREAD_PERCENT, class_of, dscp_of_class, spread_left, thresholds_of,
};
pub use ip::{ipv4_in, ipv6_of};
pub use nic::{Device, Nic};
pub use schedule::{Change, Schedule, Target};

/// The version of the document that this crate supports.
pub const VERSION: u32 = 1;

/// A whole fabric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Topology {
    /// Version of the document, see [`VERSION`].
    pub version: u32,
    /// Kind of fabric, such as `leaf-spine` or `fat-tree`.
    pub name: String,
    /// Number of paths between two hosts of different leaves, which is also the number of addresses
    /// per host. [`routes`] computes their links.
    pub paths: u8,
    /// How leaves select a path.
    pub routing: Routing,
    /// Gap in a flow after which its next packet begins a flowlet, with `flowlet` routing. Without
    /// it the controller derives one from the RTTs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flowlet_timeout_ns: Option<u64>,
    /// Number of classes that hosts write into DSCP and switches serve in order, from 2 to
    /// [`CLASSES_MAX`]. `None` where every queue is first in, first out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priorities: Option<u8>,
    /// Share of a link that switches leave to the lowest priority that waits for it, in millionths.
    #[serde(default = "lowest_share", skip_serializing_if = "is_usual")]
    pub lowest_share_ppm: u32,
    /// Hosts, ordered by leaf, then by index.
    pub hosts: Vec<Host>,
    /// Switches, ordered by tier from the leaves up.
    pub switches: Vec<Switch>,
    /// All links. Their properties hold for both directions.
    pub links: Vec<Link>,
    /// Whether packets carry in-band telemetry (INT-MD) between leaves.
    #[serde(default, skip_serializing_if = "is_not")]
    pub int_md: bool,
    /// Whether connections use IPv6; [`ipv6_of`] gives the addresses.
    #[serde(default, skip_serializing_if = "is_not")]
    pub ipv6: bool,
    /// Scheduled changes of links while traffic runs, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
}

/// A tenth, so that nothing starves.
pub const LOWEST_SHARE_PPM: u32 = 100_000;

fn lowest_share() -> u32 {
    LOWEST_SHARE_PPM
}

// serde passes references.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_usual(lowest_share_ppm: &u32) -> bool {
    *lowest_share_ppm == LOWEST_SHARE_PPM
}

// serde passes references.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_not(flag: &bool) -> bool {
    !*flag
}

/// How a leaf selects the path of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Routing {
    /// By addresses: `(src path + dst path + crc16(src24 ^ dst24)) mod paths`.
    Subflow,
    /// By a hash of the 5-tuple (ECMP).
    Ecmp,
    /// At random for each flowlet (`LetFlow`).
    Flowlet,
    /// At random for each packet (random packet spraying).
    Spray,
}

/// A host. It has one network interface with one address per path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Name, `h1_2` for the second host of leaf 1.
    pub name: String,
    /// Number of its leaf, from 1.
    pub leaf: u8,
    /// Number of the host at its leaf, from 1.
    pub index: u8,
    /// Path of its network namespace, for `setns`.
    pub netns: PathBuf,
    /// Its interface in that namespace.
    pub interface: String,
    /// Ethernet address of that interface, `02:00:...`.
    pub mac: String,
    /// One address per path: `addresses[p - 1]` is `10.L.H.p`.
    pub addresses: Vec<Ipv4Addr>,
    /// Length of the host's own prefix (24).
    pub prefix_len: u8,
    /// Scheduling noise between its kernel and its NIC, as a hypervisor causes it: the mean time for
    /// which packets are delayed in each direction.
    #[serde(default, skip_serializing_if = "is_none")]
    pub jitter_ns: u64,
    /// Its SmartNIC, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nic: Option<Nic>,
    /// Whether its leaf clears the classes that it writes.
    #[serde(default, skip_serializing_if = "is_not")]
    pub classes_cleared: bool,
}

// serde passes references.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_none(number: &u64) -> bool {
    *number == 0
}

/// The role of a switch. Roles are ordered by tier, from the leaves up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Top of rack (the edge of a fat-tree); has hosts.
    Leaf,
    /// Connects the leaves of a pod with each other and with the core.
    Aggregation,
    /// Connects all leaves.
    Spine,
    /// Connects pods.
    Core,
    /// A host's SmartNIC, see [`Host::nic`]; no [`Switch`] has this role.
    Nic,
}

impl Role {
    /// Name of the compiled program for this role.
    #[must_use]
    pub fn program(self) -> &'static str {
        match self {
            Self::Leaf => "leaf",
            Self::Aggregation | Self::Spine | Self::Core => "spine",
            Self::Nic => "smartnic",
        }
    }
}

/// A P4 switch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Switch {
    /// Name, `leaf1`.
    pub name: String,
    /// Its role.
    pub role: Role,
    /// Number within its role, from 1.
    pub index: u8,
    /// P4Runtime device id, unique in the fabric.
    pub device_id: u64,
    /// `address:port` of its P4Runtime server.
    pub grpc: String,
    /// Its ports.
    pub ports: Vec<Port>,
    /// Random, independent loss of frames that arrive here, in frames per million: the loss of a
    /// noisy path. Every path crosses one spine. So with a lossy spine, data and ACKs are each
    /// exposed to its loss once.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub loss_ppm: u32,
    /// Whether its queues are first in, first out even where hosts write classes.
    #[serde(default, skip_serializing_if = "is_not")]
    pub first_come: bool,
}

impl Switch {
    /// The classes that this switch of `topology` serves in order; `None` if it knows none.
    #[must_use]
    pub fn priorities(&self, topology: &Topology) -> Option<u8> {
        topology.priorities.filter(|_| !self.first_come)
    }
}

// serde passes references.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A switch port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Port {
    /// Data-plane number, from 1.
    pub number: u16,
    /// Interface name, `leaf1-eth1`. A host-facing port is a real interface in the switches'
    /// namespace. A port between switches exists only in the switch process, unless another
    /// target (BMv2) runs the switches.
    pub interface: String,
    /// Index into [`Topology::links`].
    pub link: usize,
}

/// A link between two ports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// One end.
    pub a: End,
    /// The other end.
    pub b: End,
    /// Rate of each direction, unless [`Link::rate_from_a_bps`] is given.
    pub rate_bps: u64,
    /// Rate from `a` to `b`, if it differs from the other direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_from_a_bps: Option<u64>,
    /// One-way propagation delay.
    pub delay_ns: u64,
    /// Limit of the egress queue in each direction, in packets.
    pub queue_packets: u32,
    /// Limit of the queue in bytes of frames. If given, it replaces the limit in packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_bytes: Option<u64>,
    /// Marking threshold (ECN) of switch queues, in packets: above it, ECN-capable packets are
    /// marked. Without this and `ecn_bytes` none are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn_packets: Option<u32>,
    /// The same threshold in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn_bytes: Option<u64>,
    /// Maximum payload of a frame after its Ethernet header. Longer frames are dropped at the
    /// sender's port.
    #[serde(default = "usual_mtu")]
    pub mtu_bytes: u32,
}

/// MTU of links for which the document gives none: Ethernet's.
pub const USUAL_MTU_BYTES: u32 = 1500;

fn usual_mtu() -> u32 {
    USUAL_MTU_BYTES
}

impl Link {
    /// Rate at which `node`, one of its ends, sends.
    #[must_use]
    pub fn rate_from_bps(&self, node: &str) -> u64 {
        match self.rate_from_a_bps {
            Some(rate_bps) if self.a.node == node => rate_bps,
            _ => self.rate_bps,
        }
    }
}

/// All frames, in the unit of [`Switch::loss_ppm`].
pub const ALL_PPM: u32 = 1_000_000;

/// An end of a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Name of the host or switch.
    pub node: String,
    /// Port number of a switch; 0 for a host.
    pub port: u16,
}

/// Why a document cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The I/O error.
        source: std::io::Error,
    },
    /// The file isn't JSON, or isn't a topology.
    #[error("{path}: not a topology: {source}")]
    Parse {
        /// The file.
        path: PathBuf,
        /// The parse error.
        source: serde_json::Error,
    },
    /// The document has another version.
    #[error("{path}: topology of version {found}, this program reads {VERSION}")]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// The document contradicts itself.
    #[error("{path}: {what}")]
    Inconsistent {
        /// The file.
        path: PathBuf,
        /// The contradiction.
        what: String,
    },
}

impl Topology {
    /// Reads and checks the document at `path`.
    ///
    /// # Errors
    /// See [`Error`]; its text names the file.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let owned = || path.to_owned();
        let text = std::fs::read_to_string(path).map_err(|source| Error::Read {
            path: owned(),
            source,
        })?;
        let topology: Self = serde_json::from_str(&text).map_err(|source| Error::Parse {
            path: owned(),
            source,
        })?;
        if topology.version != VERSION {
            return Err(Error::Version {
                path: owned(),
                found: topology.version,
            });
        }
        topology.check().map_err(|what| Error::Inconsistent {
            path: owned(),
            what,
        })?;
        Ok(topology)
    }

    /// The host called `name`.
    #[must_use]
    pub fn host(&self, name: &str) -> Option<&Host> {
        self.hosts.iter().find(|host| host.name == name)
    }

    /// The host that owns `address`.
    #[must_use]
    pub fn host_of(&self, address: Ipv4Addr) -> Option<&Host> {
        self.hosts
            .iter()
            .find(|host| host.addresses.contains(&address))
    }

    /// The switch called `name`.
    #[must_use]
    pub fn switch(&self, name: &str) -> Option<&Switch> {
        self.switches.iter().find(|switch| switch.name == name)
    }

    /// The far end of `switch`'s `port`.
    #[must_use]
    pub fn peer(&self, switch: &Switch, port: &Port) -> &End {
        let link = &self.links[port.link];
        if link.a.node == switch.name && link.a.port == port.number {
            &link.b
        } else {
            &link.a
        }
    }

    /// The link of `host`.
    #[must_use]
    pub fn host_link(&self, host: &Host) -> Option<&Link> {
        self.links
            .iter()
            .find(|link| link.a.node == host.name || link.b.node == host.name)
    }

    /// Checks that indices are in range and that names exist.
    fn check(&self) -> Result<(), String> {
        for switch in &self.switches {
            if switch.role == Role::Nic {
                return Err(format!("{}: a nic belongs to a host", switch.name));
            }
            if switch.loss_ppm > ALL_PPM {
                return Err(format!(
                    "{}: loss_ppm {} exceeds {ALL_PPM}",
                    switch.name, switch.loss_ppm
                ));
            }
            for port in &switch.ports {
                let link = self.links.get(port.link).ok_or_else(|| {
                    format!(
                        "{} port {}: link {} of {}",
                        switch.name,
                        port.number,
                        port.link,
                        self.links.len()
                    )
                })?;
                let here = End {
                    node: switch.name.clone(),
                    port: port.number,
                };
                if link.a != here && link.b != here {
                    return Err(format!(
                        "{} port {}: link {} ends elsewhere",
                        here.node, here.port, port.link
                    ));
                }
            }
        }
        for change in self.schedule.iter().flat_map(|s| &s.changes) {
            change.check()?;
            match &change.target {
                Target::Switch(name) if self.switch(name).is_none() => {
                    return Err(format!("a change of unknown switch {name}"));
                }
                Target::Link(link) if *link >= self.links.len() => {
                    let links = self.links.len();
                    return Err(format!("a change of link {link} of {links}"));
                }
                Target::Switch(_) | Target::Link(_) => {}
            }
        }
        for end in self.links.iter().flat_map(|link| [&link.a, &link.b]) {
            if self.host(&end.node).is_none() && self.switch(&end.node).is_none() {
                return Err(format!("a link ends at unknown node {}", end.node));
            }
        }
        for host in &self.hosts {
            if host.addresses.len() != usize::from(self.paths) {
                return Err(format!(
                    "{} has {} addresses for {} paths",
                    host.name,
                    host.addresses.len(),
                    self.paths
                ));
            }
            let link_ns = self.host_link(host).map_or(0, |link| link.delay_ns);
            if let Some(nic) = host.nic.as_ref().filter(|nic| nic.delay_ns > link_ns) {
                return Err(format!(
                    "{}: delay_ns {} exceeds that of its host's link, {link_ns}",
                    nic.name, nic.delay_ns
                ));
            }
        }
        Ok(())
    }
}
