//! Network cards that run P4 programs, and all that speaks P4Runtime.

use serde::{Deserialize, Serialize};

use crate::Topology;

/// A network card that runs a P4 program, between the kernel of a host and its leaf.
///
/// It is at the host's end of the host's link; `Link::delay_ns` covers both its sides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nic {
    /// Name, `nic1_2` for that of host `h1_2`.
    pub name: String,
    /// P4Runtime device id, unique in the fabric.
    pub device_id: u64,
    /// `address:port` of its P4Runtime server.
    pub grpc: String,
    /// Rate of the bus between kernel and card, both ways.
    pub rate_bps: u64,
    /// How much of the delay of the host's link lies between kernel and card, one way.
    pub delay_ns: u64,
}

impl Nic {
    /// The port that leads to its host.
    pub const HOST_PORT: u16 = 1;
    /// The port that leads to its leaf.
    pub const NETWORK_PORT: u16 = 2;
    /// What a frame is longer by from card to card: the header `nic_t` of `p4/src`.
    pub const HEADER_BYTES: u64 = 18;
}

/// A P4Runtime server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Device<'a> {
    /// Name of the switch or card.
    pub name: &'a str,
    /// Its P4Runtime device id.
    pub device_id: u64,
    /// Where it listens.
    pub grpc: &'a str,
}

impl Topology {
    /// The cards that run P4 programs, in the order of their hosts.
    pub fn nics(&self) -> impl Iterator<Item = &Nic> {
        self.hosts.iter().filter_map(|host| host.nic.as_ref())
    }

    /// All that runs a P4 program: the switches, then the cards.
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
