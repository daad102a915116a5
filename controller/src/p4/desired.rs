// SPDX-License-Identifier: Apache-2.0

//! The desired state of a switch or SmartNIC: its table entries and digest subscriptions.

pub mod by_sent;
pub mod policing;
mod queues;
mod uplinks;

use std::collections::BTreeMap;

use weft_p4runtime::p4::v1::{DigestEntry, TableEntry};
use weft_topology::{Host, Port, Role, Switch, Topology};

use self::by_sent::BySent;
use super::digest::{CLASS_DIGEST, INT_DIGEST, LOSS_DIGEST, QUEUE_DIGEST, RTT_DIGEST};
use super::program::{Error, Key, Program};
use super::subscription::subscriptions;
use super::timestamps::TimestampUnit;
use crate::fabric::{FULL_SIZE_BYTES, LeafPair, RoutedFabric};
use crate::probe;

/// Bounds on the time between two samples of a path or a queue. Within them it is a quarter
/// of the shortest RTT: hosts feel nothing sooner, and a message costs as much as many
/// packets.
const SAMPLE_INTERVAL_NS: (u64, u64) = (1_000_000, 10_000_000);

/// A path or a queue that doesn't change is reported this often.
const LONGEST_INTERVAL_NS: u64 = 10_000_000;

/// Bytes that a switch forwards per digest that it sends, to keep digests below 1% of the
/// traffic. A digest sent alone takes some 300 bytes with its acknowledgement, and a packet
/// crosses three switches, which may all report: 3 * 300 / 131072.
const DIGEST_BYTES: u128 = 131_072;

/// The same for a SmartNIC. A packet crosses two of them, so together it is
/// 3 * 300 / 131072 + 2 * 300 / 262144, still below 1%.
const NIC_DIGEST_BYTES: u128 = 262_144;

/// Fixed-point fraction bits of the leaf's transmission time per byte.
const PER_BYTE_SHIFT: u32 = 16;

/// The desired state of a switch.
#[derive(Debug, Clone, PartialEq)]
pub struct Desired {
    /// Table entries, including default entries.
    pub entries: Vec<TableEntry>,
    /// Digest subscriptions.
    pub digests: Vec<DigestEntry>,
    /// Makes those of them that depend on the thresholds between classes.
    pub by_sent: BySent,
}

/// The desired state of `switch` when it runs `program`.
///
/// # Errors
/// If the program lacks a table, action or digest that is needed.
pub fn desired(
    fabric: &RoutedFabric,
    switch: &Switch,
    program: &Program,
    unit: TimestampUnit,
) -> Result<Desired, Error> {
    let (mut entries, digests) = match switch.role {
        Role::Leaf => (
            leaf_entries(fabric, switch, program, unit)?,
            &[
                RTT_DIGEST,
                QUEUE_DIGEST,
                LOSS_DIGEST,
                INT_DIGEST,
                CLASS_DIGEST,
            ][..],
        ),
        Role::Aggregation | Role::Spine | Role::Core | Role::Nic => (
            spine_entries(fabric, switch, program, unit)?,
            &[QUEUE_DIGEST, LOSS_DIGEST][..],
        ),
    };
    entries.extend(loss_watched_ports(fabric, switch, program)?);
    if fabric.topology().int_md {
        entries.extend(in_band(fabric, switch, program, unit)?);
    }
    entries.extend(queues::ecn_thresholds(fabric, switch, program, unit)?);
    entries.extend(queues::priorities(fabric.topology(), switch, program)?);
    let by_sent = BySent::of(fabric, switch, unit);
    if switch.role == Role::Leaf {
        entries.extend(policing::claims(fabric.topology(), switch, program)?);
        let classes = fabric.topology().priorities.unwrap_or(2);
        let built_in = weft_topology::thresholds_of(classes);
        entries.extend(by_sent.entries(program, &built_in)?);
    }
    entries.extend(ack_delays(fabric, switch, program, unit)?);
    let desired = with_telemetry(fabric, program, unit, entries, DIGEST_BYTES, digests)?;
    Ok(Desired { by_sent, ..desired })
}

/// Makes ACKs carry their queueing time, starting at the ports of hosts.
fn ack_delays(
    fabric: &RoutedFabric,
    switch: &Switch,
    program: &Program,
    unit: TimestampUnit,
) -> Result<Vec<TableEntry>, Error> {
    let shift = [("shift", u128::from(unit.wait_shift()))];
    let mut entries = vec![program.default_entry("ack_delay.ports", "ack_delay.carry", &shift)?];
    for (port, _) in host_ports(fabric.topology(), switch) {
        let number = Key::Exact(port.number.into());
        let key = ("standard_metadata.ingress_port", number);
        entries.push(program.entry("ack_delay.ports", &[key], "ack_delay.start", &shift)?);
    }
    Ok(entries)
}

/// The ports of `switch` to hosts, and the hosts.
fn host_ports<'a>(
    topology: &'a Topology,
    switch: &'a Switch,
) -> impl Iterator<Item = (&'a Port, &'a Host)> {
    let host_at = |port| topology.host(&topology.peer(switch, port).node);
    let ports = switch.ports.iter();
    ports.filter_map(move |port| Some((port, host_at(port)?)))
}

/// Marks packets on links to other switches, so that losses there are counted.
fn loss_watched_ports(
    fabric: &RoutedFabric,
    switch: &Switch,
    program: &Program,
) -> Result<Vec<TableEntry>, Error> {
    let topology = fabric.topology();
    let ports = switch.ports.iter();
    ports
        .filter(|port| fabric.place(&topology.peer(switch, port).node).is_some())
        .map(|port| {
            let number = Key::Exact(port.number.into());
            let key = ("standard_metadata.egress_port", number);
            program.entry("loss.links", &[key], "loss.mark", &[])
        })
        .collect()
}

/// Makes packets carry in-band telemetry of `switch`.
fn in_band(
    fabric: &RoutedFabric,
    switch: &Switch,
    program: &Program,
    unit: TimestampUnit,
) -> Result<Vec<TableEntry>, Error> {
    let id = [("switch_id", u128::from(switch.device_id))];
    let mut entries = vec![program.default_entry("int.node", "int.be", &id)?];
    if switch.role == Role::Leaf {
        let between = [(
            "between",
            u128::from(sample_interval_ns(fabric) / unit.ns()),
        )];
        entries.push(program.default_entry("int.source", "int.start_every", &between)?);
    }
    Ok(entries)
}

/// The desired state of the SmartNIC of `host` when it runs `program`.
///
/// # Errors
/// If the program lacks a table, action or digest that is needed.
pub fn desired_of_nic(
    fabric: &RoutedFabric,
    host: &Host,
    program: &Program,
    unit: TimestampUnit,
) -> Result<Desired, Error> {
    let entries = nic_entries(fabric, host, program, unit)?;
    let digest_bytes = NIC_DIGEST_BYTES;
    with_telemetry(fabric, program, unit, entries, digest_bytes, &[RTT_DIGEST])
}

/// Adds the telemetry policy and the digest subscriptions.
fn with_telemetry(
    fabric: &RoutedFabric,
    program: &Program,
    unit: TimestampUnit,
    mut entries: Vec<TableEntry>,
    digest_bytes: u128,
    digests: &[&str],
) -> Result<Desired, Error> {
    let interval_ns = sample_interval_ns(fabric);
    let interval = u128::from(interval_ns / unit.ns());
    entries.push(program.default_entry(
        "telemetry.policy",
        "telemetry.sample_every",
        &[
            ("rtt_interval", interval),
            ("queue_interval", interval),
            (
                "longest_interval",
                u128::from(LONGEST_INTERVAL_NS / unit.ns()),
            ),
            ("digest_bytes", digest_bytes),
        ],
    )?);
    let digests = subscriptions(program, digests, unit)?;
    Ok(Desired {
        entries,
        digests,
        by_sent: BySent::default(),
    })
}

fn sample_interval_ns(fabric: &RoutedFabric) -> u64 {
    let (least, most) = SAMPLE_INTERVAL_NS;
    let shortest_ns = fabric.shortest_rtt_ns();
    shortest_ns.map_or(least, |rtt_ns| (rtt_ns / 4).clamp(least, most))
}

fn leaf_entries(
    fabric: &RoutedFabric,
    leaf: &Switch,
    program: &Program,
    unit: TimestampUnit,
) -> Result<Vec<TableEntry>, Error> {
    let topology = fabric.topology();
    let mut entries = Vec::new();
    for (port, host) in host_ports(topology, leaf) {
        let number = u128::from(port.number);
        entries.push(program.entry(
            "routing.ipv4_lpm",
            &[("dst_addr", host_prefix(host))],
            "routing.to_host",
            &[("port", number), ("dst_mac", mac(&host.mac))],
        )?);
        // Where a SmartNIC measures, the leaf doesn't.
        let action = match host.nic {
            None => "rtt.measure",
            Some(_) => "rtt.leave_to_nic",
        };
        entries.push(program.entry(
            "rtt.host_port",
            &[("standard_metadata.ingress_port", Key::Exact(number))],
            action,
            &[],
        )?);
    }
    for (index, key) in leaf_prefixes(fabric) {
        if index != leaf.index {
            entries.push(program.entry(
                "routing.ipv4_lpm",
                &[("dst_addr", key)],
                "routing.to_fabric",
                &[("leaf", u128::from(index))],
            )?);
        }
    }
    entries.extend(rtt_bounds(fabric, leaf.index, program, unit)?);
    if let Some(address) = probe::address(fabric, leaf.index) {
        entries.push(program.entry(
            "routing.ipv4_lpm",
            &[("dst_addr", prefix(address.into(), 32))],
            "routing.to_controller",
            &[],
        )?);
    }
    entries.extend(uplinks::entries(fabric, leaf, program, unit)?);
    Ok(entries)
}

fn nic_entries(
    fabric: &RoutedFabric,
    host: &Host,
    program: &Program,
    unit: TimestampUnit,
) -> Result<Vec<TableEntry>, Error> {
    let mut entries = rtt_bounds(fabric, host.leaf, program, unit)?;
    for (leaf, key) in leaf_prefixes(fabric).filter(|&(leaf, _)| leaf != host.leaf) {
        entries.push(program.entry(
            "rtt.leaves",
            &[("src_addr", key)],
            "rtt.to_leaf",
            &[("leaf", u128::from(leaf))],
        )?);
    }
    Ok(entries)
}

/// Bounds on RTTs from hosts of `leaf` to every other leaf, over every path.
fn rtt_bounds(
    fabric: &RoutedFabric,
    leaf: u8,
    program: &Program,
    unit: TimestampUnit,
) -> Result<Vec<TableEntry>, Error> {
    let mut entries = Vec::new();
    for pair in fabric.pairs_from(leaf) {
        for path in 0..fabric.paths() {
            let Some(bound) = rtt_bound(fabric, pair, path) else {
                continue;
            };
            let per_byte = u128::from(bound.full_size_ns) << PER_BYTE_SHIFT;
            let full_size = u128::from(FULL_SIZE_BYTES) * u128::from(unit.ns());
            let longest = bound.longest_ns.div_ceil(unit.ns());
            entries.push(program.entry(
                "rtt.paths",
                &[
                    ("leaf", Key::Exact(u128::from(pair.destination))),
                    ("path", Key::Exact(u128::from(path))),
                ],
                "rtt.expect",
                &[
                    ("per_byte", per_byte / full_size),
                    ("longest", u128::from(longest)),
                ],
            )?);
        }
    }
    Ok(entries)
}

/// Bounds on the RTTs that a leaf or SmartNIC measures to another on one path.
#[derive(Debug, PartialEq, Eq)]
struct RttBound {
    /// Total transmission time of a full-size packet on all links.
    full_size_ns: u64,
    /// RTT with all queues full, to the farthest host.
    longest_ns: u64,
}

fn rtt_bound(fabric: &RoutedFabric, pair: LeafPair, path: u8) -> Option<RttBound> {
    let source = *fabric.hosts_of(pair.source).next()?.addresses.first()?;
    let hosts = fabric.hosts_of(pair.destination);
    let destinations = hosts.filter_map(|host| host.addresses.first());
    destinations
        .filter_map(|&destination| {
            let base_ns = |bytes| fabric.measured_base_ns(source, destination, path, bytes);
            let queues_ns = fabric.queues_ns(source, destination, path)?;
            Some(RttBound {
                full_size_ns: base_ns(FULL_SIZE_BYTES)? - base_ns(0)?,
                longest_ns: base_ns(FULL_SIZE_BYTES)?.saturating_add(queues_ns),
            })
        })
        .max_by_key(|bound| bound.longest_ns)
}

fn spine_entries(
    fabric: &RoutedFabric,
    spine: &Switch,
    program: &Program,
    unit: TimestampUnit,
) -> Result<Vec<TableEntry>, Error> {
    let place = fabric.place(&spine.name);
    let of_place = place
        .into_iter()
        .flat_map(|place| fabric.routes().downlinks(place));
    let downlinks: BTreeMap<u8, usize> = of_place.collect();
    let mut entries = Vec::new();
    for (leaf, key) in leaf_prefixes(fabric) {
        if let Some(&port) = downlinks.get(&leaf) {
            let number = spine.ports[port].number;
            entries.push(program.entry(
                "routing.ipv4_lpm",
                &[("dst_addr", key)],
                "routing.to_port",
                &[("port", u128::from(number))],
            )?);
        }
    }
    if place.is_some_and(|place| !fabric.routes().uplinks(place).is_empty()) {
        entries.push(program.entry(
            "routing.ipv4_lpm",
            &[("dst_addr", fabric_prefix(fabric))],
            "routing.up",
            &[],
        )?);
        entries.extend(uplinks::entries(fabric, spine, program, unit)?);
    }
    Ok(entries)
}

/// The longest prefix that covers all hosts.
fn fabric_prefix(fabric: &RoutedFabric) -> Key {
    let hosts = fabric.topology().hosts.iter();
    let addresses = hosts.filter_map(|host| host.addresses.first());
    let mut addresses = addresses.map(|&address| u32::from(address));
    let first = addresses.next().unwrap_or(0);
    let shared = addresses.map(|other| (first ^ other).leading_zeros()).min();
    // P4Runtime has no entries for prefixes of zero bits. The result is at most 32.
    prefix(first, shared.unwrap_or(32).max(1) as u8)
}

/// Every leaf with hosts, and the /16 of its hosts.
fn leaf_prefixes(fabric: &RoutedFabric) -> impl Iterator<Item = (u8, Key)> + '_ {
    fabric
        .topology()
        .switches
        .iter()
        .filter(|switch| switch.role == Role::Leaf)
        .filter_map(|leaf| {
            let address = *fabric.hosts_of(leaf.index).next()?.addresses.first()?;
            Some((leaf.index, prefix(address.into(), 16)))
        })
}

/// The prefix of a host's own addresses.
fn host_prefix(host: &Host) -> Key {
    let address = host.addresses.first().map_or(0, |&address| address.into());
    prefix(address, host.prefix_len)
}

fn prefix(address: u32, length: u8) -> Key {
    let mask = weft_p4runtime::bytestring::prefix_mask(length.into(), 32);
    Key::Prefix(u128::from(address) & mask, length.into())
}

/// `02:00:00:00:01:02` as a number.
fn mac(text: &str) -> u128 {
    text.split(':').fold(0, |mac, byte| {
        (mac << 8) | u128::from_str_radix(byte, 16).unwrap_or(0)
    })
}

#[cfg(test)]
mod tests;
