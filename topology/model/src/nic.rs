// SPDX-License-Identifier: Apache-2.0

//! SmartNICs, and the list of all P4Runtime devices.

use serde::{Deserialize, Serialize};

use crate::Topology;

/// A SmartNIC: a NIC that runs a P4 program between a host's kernel and its leaf.
///
/// It sits at the host's end of the host link; `Link::delay_ns` includes both of its sides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nic {
    /// Name, `nic1_2` for the NIC of host `h1_2`.
    pub name: String,
    /// P4Runtime device id, unique in the fabric.
    pub device_id: u64,
    /// `address:port` of its P4Runtime server.
    pub grpc: String,
    /// Rate of the bus between kernel and NIC, in each direction.
    pub rate_bps: u64,
    /// The part of the host link's one-way delay that lies between kernel and NIC.
    pub delay_ns: u64,
}

impl Nic {
    /// The port that leads to its host.
    pub const HOST_PORT: u16 = 1;
    /// The port that leads to its leaf.
    pub const NETWORK_PORT: u16 = 2;
    /// Extra bytes of a frame between two NICs: the header `nic_t` of `p4/src`.
    pub const HEADER_BYTES: u64 = 18;
}

/// A device with a P4Runtime server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Device<'a> {
    /// Name of the switch or NIC.
    pub name: &'a str,
    /// Its P4Runtime device id.
    pub device_id: u64,
    /// `address:port` that it listens on.
    pub grpc: &'a str,
}

impl Topology {
    /// The SmartNICs, in the order of their hosts.
    pub fn nics(&self) -> impl Iterator<Item = &Nic> {
        self.hosts.iter().filter_map(|host| host.nic.as_ref())
    }

    /// Every device that runs a P4 program: switches first, then SmartNICs.
    pub fn devices(&self) -> impl Iterator<Item = Device<'_>> {
        let switches = self.switches.iter().map(|switch| Device {
            name: &switch.name,
            device_id: switch.device_id,
            grpc: &switch.grpc,
        });
        switches.chain(self.nics().map(|nic| Device {
            name: &nic.name,
            device_id: nic.device_id,
            grpc: &nic.grpc,
        }))
    }
}
