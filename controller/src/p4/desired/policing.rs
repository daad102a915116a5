// SPDX-License-Identifier: Apache-2.0

//! What hosts may claim: classes, and how much of each.

use weft_p4runtime::p4::v1::{
    Entity, Index, MeterConfig, MeterEntry, TableEntry, Update, entity, update,
};
use weft_topology::{Role, Switch, Topology};

use super::host_ports;
use crate::classes::CLASSES;
use crate::p4::program::{Error, Key, Program};

/// What a host may send at once in a class, on top of a millisecond's worth: a few short flows.
const BURST_BYTES: i64 = 65_536;

/// The DSCPs with which packets from hosts claim a class.
pub(super) fn claims(
    topology: &Topology,
    leaf: &Switch,
    program: &Program,
) -> Result<Vec<TableEntry>, Error> {
    let mut entries = Vec::new();
    for (port, host) in host_ports(topology, leaf) {
        for class in 0..topology.priorities.unwrap_or(0) {
            let dscp = weft_topology::dscp_of_class(class);
            let number = [("number", class.into())];
            let (action, parameters) = match host.classes_cleared {
                true => ("policing.clear_class", &[][..]),
                false => ("policing.claim_class", &number[..]),
            };
            let key = [
                (
                    "standard_metadata.ingress_port",
                    Key::Exact(port.number.into()),
                ),
                ("dscp", Key::Exact(dscp.into())),
            ];
            entries.push(program.entry("policing.claims", &key, action, parameters)?);
        }
    }
    Ok(entries)
}

/// Where to write how much each host of a leaf may send in a class.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Limits {
    meter_id: u32,
    hosts: Vec<HostLimit>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct HostLimit {
    port: u16,
    link_bytes_per_s: f64,
}

impl Limits {
    /// The limits of `switch`: of its hosts, if it is a leaf and hosts write classes.
    ///
    /// # Errors
    /// If the program lacks the meter.
    pub fn of(topology: &Topology, switch: &Switch, program: &Program) -> Result<Self, Error> {
        if switch.role != Role::Leaf || topology.priorities.is_none() {
            return Ok(Self::default());
        }
        let hosts = host_ports(topology, switch).map(|(port, host)| {
            let rate_bps = topology.links[port.link].rate_from_bps(&host.name);
            HostLimit {
                port: port.number,
                link_bytes_per_s: rate_bps as f64 / 8.0,
            }
        });
        Ok(Self {
            meter_id: program.meter_id("policing.rates")?,
            hosts: hosts.collect(),
        })
    }

    /// The writes that let every host send `rates` in class 0, 1, ..., as shares of its link.
    #[must_use]
    pub fn updates(&self, rates: &[f64]) -> Vec<Update> {
        let of_host = |host: &HostLimit| {
            let host = *host;
            let rates = rates.iter().enumerate();
            rates.map(move |(class, share)| self.update(host, class, *share))
        };
        self.hosts.iter().flat_map(of_host).collect()
    }

    fn update(&self, host: HostLimit, class: usize, share: f64) -> Update {
        let rate = (host.link_bytes_per_s * share) as i64;
        let burst = BURST_BYTES + rate / 1000;
        let entry = MeterEntry {
            meter_id: self.meter_id,
            index: Some(Index {
                index: i64::from(host.port) * CLASSES as i64 + class as i64,
            }),
            // Nothing is yellow: what is not red keeps its class.
            config: Some(MeterConfig {
                cir: rate,
                cburst: burst,
                pir: rate,
                pburst: burst,
                eburst: 0,
            }),
            counter_data: None,
        };
        Update {
            r#type: update::Type::Modify.into(),
            entity: Some(Entity {
                entity: Some(entity::Entity::MeterEntry(entry)),
            }),
        }
    }
}
