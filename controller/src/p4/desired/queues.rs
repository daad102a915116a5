// SPDX-License-Identifier: Apache-2.0

//! What a switch does with packets because of its queues: the order in which it serves them, and
//! the marks that it puts on them.

use weft_p4runtime::p4::v1::TableEntry;
use weft_topology::{Switch, Topology};

use crate::fabric::{FULL_SIZE_BYTES, RoutedFabric};
use crate::p4::program::{Error, Key, Program};
use crate::p4::timestamps::TimestampUnit;

/// The greatest priority of a packet at a port: 3 bits.
const HIGHEST: u8 = 7;
/// The DSCP under which switches look up segments without data, p4/src/stages/priority.p4.
const DSCP_CS6: u8 = 48;

/// ECN marking thresholds of the ports of `switch`.
pub(super) fn ecn_thresholds(
    fabric: &RoutedFabric,
    switch: &Switch,
    program: &Program,
    unit: TimestampUnit,
) -> Result<Vec<TableEntry>, Error> {
    let mut entries = Vec::new();
    for port in &switch.ports {
        let link = &fabric.topology().links[port.link];
        // With priorities, what waits behind a packet does not delay it, and what is served first
        // does: so its own delay counts.
        let has_priorities = switch.priorities(fabric.topology()).is_some();
        // The time that the link takes to send them, rounded up to whole units.
        let above_delay = |bytes: u64| {
            let rate_bps = u128::from(link.rate_from_bps(&switch.name));
            let unit_bps = rate_bps * u128::from(unit.ns());
            let delay = (u128::from(bytes) * 8_000_000_000).div_ceil(unit_bps);
            ("ecn.above_delay", "delay", delay.min(u32::MAX.into()))
        };
        let (action, parameter, most) = match (link.ecn_packets, link.ecn_bytes) {
            (Some(packets), _) if !has_priorities => {
                ("ecn.above_packets", "packets", u128::from(packets))
            }
            (Some(packets), _) => above_delay(u64::from(packets) * u64::from(FULL_SIZE_BYTES)),
            (None, Some(bytes)) => above_delay(bytes),
            (None, None) => continue,
        };
        let number = Key::Exact(u128::from(port.number));
        entries.push(program.entry(
            "ecn.threshold",
            &[("standard_metadata.egress_port", number)],
            action,
            &[(parameter, most)],
        )?);
    }
    Ok(entries)
}

/// What DSCPs mean where hosts write classes into it: class 0 is served first. Segments without
/// data are of class 0. Packets of no class are in the last one; leaves give flows that claim
/// nothing an earlier class as long as they have sent little (`by_sent.rs`).
pub(super) fn priorities(
    topology: &Topology,
    switch: &Switch,
    program: &Program,
) -> Result<Vec<TableEntry>, Error> {
    let Some(classes) = switch.priorities(topology) else {
        return Ok(Vec::new());
    };
    let priority = |class: u8| [("priority", u128::from(HIGHEST.saturating_sub(class)))];
    let set = "priority.set_priority";
    let last = priority(classes - 1);
    let mut entries = vec![program.default_entry("priority.classes", set, &last)?];
    let of_classes = (0..classes).map(|class| (weft_topology::dscp_of_class(class), class));
    for (dscp, class) in of_classes.chain([(DSCP_CS6, 0)]) {
        let key = ("dscp", Key::Exact(dscp.into()));
        entries.push(program.entry("priority.classes", &[key], set, &priority(class))?);
    }
    Ok(entries)
}
