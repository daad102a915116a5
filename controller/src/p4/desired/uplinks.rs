// SPDX-License-Identifier: Apache-2.0

//! How a switch chooses among its uplinks.

use weft_p4runtime::p4::v1::TableEntry;
use weft_topology::routes::Uplink;
use weft_topology::{Routing, Switch};

use crate::fabric::RoutedFabric;
use crate::p4::program::{Error, Key, Program};
use crate::p4::timestamps::TimestampUnit;

/// The default flowlet timeout in RTTs without queues. A flowlet that takes another path must not
/// overtake the one before it, so the gap has to be longer than paths differ, queues included. In
/// the lab's default fabric this is 470 us, close to the 500 us of `LetFlow`'s authors. There,
/// mean FCTs over DCTCP are 15% longer with 1 RTT, and 7% with 2 or 8 RTTs.
const FLOWLET_RTTS: u64 = 4;

/// The default flowlet timeout of a fabric without pairs of leaves, where nothing uses it.
const FLOWLET_TIMEOUT_NS: u64 = 500_000;

/// Uplink selection.
pub(super) fn entries(
    fabric: &RoutedFabric,
    switch: &Switch,
    program: &Program,
    unit: TimestampUnit,
) -> Result<Vec<TableEntry>, Error> {
    let by_path = |policy, spread| path_entries(fabric, switch, program, policy, spread);
    match fabric.topology().routing {
        Routing::Subflow => by_path("routing.subflow_paths", "routing.spread_leaves"),
        Routing::Ecmp => by_path("routing.ecmp_paths", "routing.spread_flows"),
        Routing::Flowlet => {
            let timeout = (
                "timeout",
                u128::from(flowlet_timeout_ns(fabric) / unit.ns()),
            );
            drawn_entries(
                fabric,
                switch,
                program,
                "routing.flowlet_uplinks",
                &[timeout],
            )
        }
        Routing::Spray => drawn_entries(fabric, switch, program, "routing.spray_uplinks", &[]),
    }
}

pub(super) fn flowlet_timeout_ns(fabric: &RoutedFabric) -> u64 {
    let of_rtts = fabric.longest_rtt_ns().map(|rtt_ns| FLOWLET_RTTS * rtt_ns);
    let given = fabric.topology().flowlet_timeout_ns;
    given.or(of_rtts).unwrap_or(FLOWLET_TIMEOUT_NS)
}

/// The switch draws one of its uplinks, whatever paths there are: the port of every uplink.
fn drawn_entries(
    fabric: &RoutedFabric,
    switch: &Switch,
    program: &Program,
    policy: &str,
    arguments: &[(&str, u128)],
) -> Result<Vec<TableEntry>, Error> {
    let place = fabric.place(&switch.name);
    let uplinks = place.map_or(&[][..], |place| fabric.routes().uplinks(place));
    // A leaf on its own has none; its policy stays the program's.
    if uplinks.is_empty() {
        return Ok(Vec::new());
    }
    let mut entries = Vec::new();
    for (uplink, &port) in uplinks.iter().enumerate() {
        entries.push(program.entry(
            "routing.path_select",
            &[("meta.path", Key::Exact(uplink as u128))],
            "routing.set_uplink",
            &[("port", u128::from(switch.ports[port].number))],
        )?);
    }
    let arguments = [&[("uplinks", uplinks.len() as u128)], arguments].concat();
    entries.push(program.default_entry("routing.path_policy", policy, &arguments)?);
    Ok(entries)
}

/// The path of a packet, and the port of the path.
fn path_entries(
    fabric: &RoutedFabric,
    switch: &Switch,
    program: &Program,
    policy: &str,
    spread: &str,
) -> Result<Vec<TableEntry>, Error> {
    let place = fabric.place(&switch.name);
    let routes = fabric.routes();
    let hash_targets: Vec<usize> =
        place.map_or_else(Vec::new, |place| routes.hash_targets(place).collect());
    let number = |port: usize| u128::from(switch.ports[port].number);
    let mut entries = Vec::new();
    let mut is_spread = false;
    for path in 0..fabric.paths() {
        let (action, arguments) = match place.and_then(|place| routes.uplink(place, path)) {
            None => continue,
            Some(Uplink::Fixed(port)) => ("routing.set_uplink", vec![("port", number(port))]),
            Some(Uplink::Spread(first)) => {
                is_spread = true;
                let uplinks = hash_targets.len() as u128;
                (spread, vec![("first", first.into()), ("uplinks", uplinks)])
            }
        };
        let key = ("meta.path", Key::Exact(u128::from(path)));
        entries.push(program.entry("routing.path_select", &[key], action, &arguments)?);
    }
    for (uplink, &port) in hash_targets.iter().enumerate().filter(|_| is_spread) {
        entries.push(program.entry(
            "routing.uplink_select",
            &[("meta.uplink", Key::Exact(uplink as u128))],
            "routing.set_uplink",
            &[("port", number(port))],
        )?);
    }
    let paths = u128::from(fabric.paths());
    entries.push(program.default_entry("routing.path_policy", policy, &[("paths", paths)])?);
    Ok(entries)
}
