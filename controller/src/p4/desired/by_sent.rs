// SPDX-License-Identifier: Apache-2.0

//! Classes of flows whose hosts claim none: leaves give them one by what they have sent.

use weft_p4runtime::p4::v1::{Entity, TableEntry, Update, entity, update};
use weft_topology::{Role, Switch};

use super::{host_ports, rtt_bound};
use crate::classes::{SentClass, by_sent};
use crate::fabric::RoutedFabric;
use crate::p4::program::{Error, Key, Program};
use crate::p4::timestamps::TimestampUnit;

/// A flow that has paused for longer sends another message. Where an RTT with all queues full is
/// longer, that counts instead: to wait for ACKs is no pause. Nor is it one to be starved for a
/// moment. With 10 ms, CUBIC flows began again and again, and two of `weft` beside three of them
/// got 28 MB instead of 38.
const IDLE_LEAST_NS: u64 = 100_000_000;

/// Where a leaf classifies flows by what they have sent, and after which pause they begin again.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BySent {
    /// Of the hosts.
    ports: Vec<u16>,
    /// In clock units of the leaf.
    idle: u64,
}

impl BySent {
    /// For a `switch` of a fabric: for the hosts of a leaf, if hosts write classes.
    #[must_use]
    pub fn of(fabric: &RoutedFabric, switch: &Switch, unit: TimestampUnit) -> Self {
        if switch.role != Role::Leaf || fabric.topology().priorities.is_none() {
            return Self::default();
        }
        let ports = host_ports(fabric.topology(), switch).map(|(port, _)| port.number);
        let routes = fabric
            .pairs_from(switch.index)
            .flat_map(|pair| (0..fabric.paths()).map(move |path| (pair, path)));
        let longest_rtt_ns = routes
            .filter_map(|(pair, path)| Some(rtt_bound(fabric, pair, path)?.longest_ns))
            .max();
        let idle_ns = longest_rtt_ns.unwrap_or(0).max(IDLE_LEAST_NS);
        Self {
            ports: ports.collect(),
            idle: idle_ns.div_ceil(unit.ns()),
        }
    }

    /// The entries for thresholds of class 1, 2, ...
    ///
    /// # Errors
    /// If the program lacks the table.
    pub fn entries(&self, program: &Program, thresholds: &[u64]) -> Result<Vec<TableEntry>, Error> {
        let classes = by_sent(thresholds);
        // The program has two of them; both may be the same.
        let (Some(short), Some(long)) = (classes.first(), classes.last()) else {
            return Ok(Vec::new());
        };
        let bytes =
            |step: &SentClass| u128::from(u32::try_from(step.most_bytes).unwrap_or(u32::MAX));
        let dscp = |step: &SentClass| u128::from(weft_topology::dscp_of_class(step.class));
        let entry = |&port: &u16| {
            let number = Key::Exact(port.into());
            program.entry(
                "by_sent.hosts",
                &[("standard_metadata.ingress_port", number)],
                "by_sent.classify",
                &[
                    ("short_bytes", bytes(short)),
                    ("short_dscp", dscp(short)),
                    ("long_bytes", bytes(long)),
                    ("long_dscp", dscp(long)),
                    ("idle", self.idle.into()),
                ],
            )
        };
        self.ports.iter().map(entry).collect()
    }

    /// The writes that replace the thresholds.
    ///
    /// # Errors
    /// If the program lacks the table.
    pub fn updates(&self, program: &Program, thresholds: &[u64]) -> Result<Vec<Update>, Error> {
        let entries = self.entries(program, thresholds)?.into_iter();
        let updates = entries.map(|entry| Update {
            r#type: update::Type::Modify.into(),
            entity: Some(Entity {
                entity: Some(entity::Entity::TableEntry(entry)),
            }),
        });
        Ok(updates.collect())
    }
}
