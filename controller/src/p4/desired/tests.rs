// SPDX-License-Identifier: Apache-2.0

//! Tests of the desired state of switches and SmartNICs.

use weft_topology::{Routing, Topology};

use super::*;
use crate::testing::{fabric, fat_tree, leaf_spine, links_of, program};

fn desired_of(role: Role) -> Desired {
    desired_in(&fabric(3, 2, 4), role)
}

fn desired_in(fabric: &RoutedFabric, role: Role) -> Desired {
    let switch = fabric
        .topology()
        .switches
        .iter()
        .find(|switch| switch.role == role)
        .unwrap();
    desired(fabric, switch, &program(role), TimestampUnit::Nanoseconds).unwrap()
}

#[test]
fn a_leaf_reaches_its_hosts_the_other_leaves_and_every_spine() {
    let desired = desired_of(Role::Leaf);
    // 4 hosts (route, RTT, ACK delays), 2 leaves, probes, 2 uplinks (port, losses) and 2 paths
    // to each leaf; path policy, telemetry and ACK delays.
    assert_eq!(desired.entries.len(), 4 * 3 + 2 + 1 + 2 * 2 + 2 * 2 + 3);
    let defaults = desired
        .entries
        .iter()
        .filter(|entry| entry.is_default_action);
    assert_eq!(defaults.count(), 3);
    assert_eq!(desired.digests.len(), 5);
}

#[test]
fn a_nic_knows_the_other_leaves_and_what_to_expect_of_them() {
    let mut topology = leaf_spine(3, 2, 4);
    let host = topology.hosts[0].clone();
    topology.hosts[0].nic = Some(weft_topology::Nic {
        name: "nic1_1".into(),
        device_id: 1257,
        grpc: String::new(),
        rate_bps: 252_000_000_000,
        delay_ns: 5_000,
    });
    let fabric = RoutedFabric::new(topology).unwrap();
    let unit = TimestampUnit::Nanoseconds;
    let nic = desired_of_nic(&fabric, &host, &program(Role::Nic), unit).unwrap();
    // Two leaves, two paths to each; telemetry.
    assert_eq!(nic.entries.len(), 2 + 2 * 2 + 1);
    assert_eq!(nic.digests.len(), 1);
    // Its leaf does not measure for it.
    let leaf = &fabric.topology().switches[0];
    let leaf = desired(&fabric, leaf, &program(Role::Leaf), unit).unwrap();
    let program = program(Role::Leaf);
    let key = [("standard_metadata.ingress_port", Key::Exact(1))];
    let entry = program.entry("rtt.host_port", &key, "rtt.leave_to_nic", &[]);
    assert!(leaf.entries.contains(&entry.unwrap()));
}

#[test]
fn a_spine_reaches_every_leaf() {
    let desired = desired_of(Role::Spine);
    // Three leaves (route, losses); telemetry and ACK delays.
    assert_eq!(desired.entries.len(), 3 * 2 + 2);
    assert_eq!(desired.digests.len(), 2);
}

#[test]
fn aggregation_knows_its_pod_and_sends_the_rest_up_by_path() {
    let tree = RoutedFabric::new(fat_tree(4)).unwrap();
    let aggregation = desired_in(&tree, Role::Aggregation);
    // Two leaves, the rest, four paths; losses on four links; path policy, telemetry and
    // ACK delays.
    assert_eq!(aggregation.entries.len(), 2 + 1 + 4 + 4 + 3);
    assert_eq!(desired_in(&tree, Role::Core).entries.len(), 8 + 4 + 2);
    // Leaves 1 to 8: 10.0.0.0/12.
    assert!(matches!(fabric_prefix(&tree), Key::Prefix(0x0a00_0000, 12)));
}

#[test]
fn where_ways_are_more_than_paths_they_are_spread_over_all_uplinks() {
    let tree = RoutedFabric::new(fat_tree(8)).unwrap();
    // Four leaves, the rest, eight paths, four uplinks; eight links; policies.
    let aggregation = desired_in(&tree, Role::Aggregation);
    assert_eq!(aggregation.entries.len(), 4 + 1 + 8 + 4 + 8 + 3);
    let mut wide = leaf_spine(2, 20, 1);
    wide.paths = 8;
    for host in &mut wide.hosts {
        host.addresses.truncate(8);
    }
    let wide = RoutedFabric::new(wide).unwrap();
    // A host (route, RTT, ACK delays), a leaf, probes, 8 paths to it, 20 links; policies.
    let leaf = desired_in(&wide, Role::Leaf);
    assert_eq!(leaf.entries.len(), 3 + 1 + 1 + 8 + 8 + 2 * 20 + 3);
}

/// The action of the path policy with its arguments, and the ports of `routing.path_select`.
fn uplinks_of(topology: weft_topology::Topology, role: Role) -> (TableEntry, usize) {
    let fabric = RoutedFabric::new(topology).unwrap();
    let switch = fabric.topology().switches.iter();
    let switch = switch.clone().find(|switch| switch.role == role).unwrap();
    let program = program(role);
    let unit = TimestampUnit::Microseconds;
    let entries = uplinks::entries(&fabric, switch, &program, unit).unwrap();
    let (policy, others): (Vec<_>, Vec<_>) = entries
        .into_iter()
        .partition(|entry| entry.is_default_action);
    (policy.into_iter().next().unwrap(), others.len())
}

#[test]
fn flowlets_and_packets_are_drawn_over_all_uplinks_of_a_switch_also_beyond_the_paths() {
    let mut wide = leaf_spine(2, 20, 1);
    wide.paths = 8;
    for host in &mut wide.hosts {
        host.addresses.truncate(8);
    }
    for (mut topology, role, uplinks) in [
        (leaf_spine(2, 3, 1), Role::Leaf, 3),
        (wide, Role::Leaf, 20),
        (fat_tree(4), Role::Leaf, 2),
        (fat_tree(8), Role::Aggregation, 4),
    ] {
        let program = program(role);
        let default = |action: &str, arguments: &[(&str, u128)]| {
            program.default_entry("routing.path_policy", action, arguments)
        };
        topology.routing = Routing::Spray;
        let spray = default("routing.spray_uplinks", &[("uplinks", uplinks)]).unwrap();
        let expected = (spray, uplinks as usize);
        assert_eq!(uplinks_of(topology.clone(), role), expected);

        topology.routing = Routing::Flowlet;
        topology.flowlet_timeout_ns = Some(300_000);
        let arguments = [("uplinks", uplinks), ("timeout", 300)];
        let flowlet = default("routing.flowlet_uplinks", &arguments).unwrap();
        assert_eq!(uplinks_of(topology, role), (flowlet, uplinks as usize));
    }
}

#[test]
fn a_flowlet_ends_after_four_of_the_longest_rtts_without_queues() {
    let mut topology = leaf_spine(2, 2, 1);
    let slow = topology.links.iter_mut().last().unwrap();
    slow.delay_ns += 30_000;
    let fabric = RoutedFabric::new(topology.clone()).unwrap();
    let (shortest, longest) = (fabric.shortest_rtt_ns(), fabric.longest_rtt_ns());
    assert_eq!(longest.unwrap() - shortest.unwrap(), 60_000);
    assert_eq!(uplinks::flowlet_timeout_ns(&fabric), 4 * longest.unwrap());
}

#[test]
fn acks_tell_their_waits_in_microseconds_from_the_ports_of_hosts_on() {
    let fabric = fabric(2, 2, 1);
    let leaf = &fabric.topology().switches[0];
    let program = program(Role::Leaf);
    for (unit, shift, wait_ns) in [
        (TimestampUnit::Nanoseconds, 10, 1024),
        (TimestampUnit::Microseconds, 0, 1000),
    ] {
        let shift = [("shift", shift)];
        let host = [("standard_metadata.ingress_port", Key::Exact(1))];
        let wanted = [
            program.default_entry("ack_delay.ports", "ack_delay.carry", &shift),
            program.entry("ack_delay.ports", &host, "ack_delay.start", &shift),
        ];
        let entries = ack_delays(&fabric, leaf, &program, unit).unwrap();
        assert_eq!(entries, wanted.map(Result::unwrap));
        assert_eq!(unit.wait_ns(), wait_ns);
    }
}

#[test]
fn a_leaf_expects_the_base_rtt_and_six_full_queues_at_most() {
    let fabric = fabric(2, 2, 4);
    let pair = fabric.pairs().next().unwrap();
    // 1 Gbps: three links, 12 us for 1500 bytes and 12.112 us for a frame.
    let base_ns = fabric.configured_rtt_ns(pair, 0).unwrap() - 20_000;
    let wanted = RttBound {
        full_size_ns: 3 * 12_000,
        longest_ns: base_ns + 6 * 100 * 12_112,
    };
    assert_eq!(rtt_bound(&fabric, pair, 0), Some(wanted));
}

#[test]
fn thresholds_in_bytes_are_the_time_in_which_the_port_sends_them() {
    let mut topology = leaf_spine(2, 2, 1);
    for link in &mut topology.links {
        link.ecn_bytes = Some(30_000);
    }
    topology.links[0].ecn_bytes = None;
    topology.links[0].ecn_packets = Some(20);
    let fabric = RoutedFabric::new(topology).unwrap();
    let leaf = &fabric.topology().switches[0];
    for (unit, bytes_time) in [
        (TimestampUnit::Nanoseconds, 240_000_u32),
        (TimestampUnit::Microseconds, 240),
    ] {
        let program = program(Role::Leaf);
        let entries = queues::ecn_thresholds(&fabric, leaf, &program, unit).unwrap();
        let packets = program.entry(
            "ecn.threshold",
            &[("standard_metadata.egress_port", Key::Exact(1))],
            "ecn.above_packets",
            &[("packets", 20)],
        );
        assert_eq!(entries.len(), 3);
        assert_eq!(entries[0], packets.unwrap());
        let delay = program.entry(
            "ecn.threshold",
            &[("standard_metadata.egress_port", Key::Exact(2))],
            "ecn.above_delay",
            &[("delay", bytes_time.into())],
        );
        assert_eq!(entries[1], delay.unwrap());
    }
    assert!(
        queues::ecn_thresholds(
            &self::fabric(2, 2, 1),
            leaf,
            &program(Role::Leaf),
            TimestampUnit::Nanoseconds
        )
        .unwrap()
        .is_empty()
    );
}

/// Two leaves and two spines with eight classes, which mark packets behind more than 20.
fn with_classes_and_marks() -> Topology {
    let mut topology = leaf_spine(2, 2, 1);
    topology.priorities = Some(8);
    for link in &mut topology.links {
        link.ecn_packets = Some(20);
    }
    topology
}

#[test]
fn with_priorities_a_packet_is_marked_for_its_own_wait() {
    let topology = with_classes_and_marks();
    let fabric = RoutedFabric::new(topology).unwrap();
    let leaf = &fabric.topology().switches[0];
    let program = program(Role::Leaf);
    let unit = TimestampUnit::Nanoseconds;
    let entries = queues::ecn_thresholds(&fabric, leaf, &program, unit).unwrap();
    // 20 packets of 1500 bytes at 1 Gbps.
    let expected = program.entry(
        "ecn.threshold",
        &[("standard_metadata.egress_port", Key::Exact(1))],
        "ecn.above_delay",
        &[("delay", 240_000)],
    );
    assert_eq!(entries[0], expected.unwrap());
}

#[test]
fn class_0_has_the_highest_priority_and_packets_of_no_class_are_in_the_last() {
    let program = program(Role::Spine);
    let mut topology = leaf_spine(2, 2, 1);
    let spine = topology.switches[2].clone();
    let priorities = |topology: &Topology| queues::priorities(topology, &spine, &program).unwrap();
    assert_eq!(priorities(&topology), []);
    for (classes, last) in [(2, 6), (4, 4), (8, 0)] {
        topology.priorities = Some(classes);
        let entries = priorities(&topology);
        let set = |priority| ("priority.set_priority", [("priority", priority)]);
        let of = |dscp: u8, priority| {
            let (action, parameter) = set(priority);
            let key = ("dscp", Key::Exact(dscp.into()));
            program.entry("priority.classes", &[key], action, &parameter)
        };
        let (action, parameter) = set(last);
        let default = program.default_entry("priority.classes", action, &parameter);
        assert!(entries.contains(&default.unwrap()));
        assert!(entries.contains(&of(weft_topology::dscp_of_class(0), 7).unwrap()));
        let last_dscp = weft_topology::dscp_of_class(classes - 1);
        assert!(entries.contains(&of(last_dscp, last).unwrap()));
        // Segments without data.
        assert!(entries.contains(&of(48, 7).unwrap()));
        assert_eq!(entries.len(), usize::from(classes) + 2);
    }
}

#[test]
fn a_switch_whose_queues_are_first_in_first_out_knows_no_classes() {
    let mut topology = with_classes_and_marks();
    topology.switches[2].first_come = true;
    let fabric = RoutedFabric::new(topology).unwrap();
    let [_, _, blind, other] = &fabric.topology().switches[..] else {
        panic!("two leaves and two spines");
    };
    let program = program(Role::Spine);
    let of = |switch| queues::priorities(fabric.topology(), switch, &program).unwrap();
    assert_eq!(of(blind), []);
    assert!(!of(other).is_empty());
    // What waits there waits for all that came before, so packets are counted.
    let unit = TimestampUnit::Nanoseconds;
    let entries = queues::ecn_thresholds(&fabric, blind, &program, unit).unwrap();
    let key = ("standard_metadata.egress_port", Key::Exact(1));
    let packets = [("packets", 20)];
    let expected = program.entry("ecn.threshold", &[key], "ecn.above_packets", &packets);
    assert_eq!(entries[0], expected.unwrap());
}

#[test]
fn a_host_whose_classes_are_cleared_claims_none() {
    let mut topology = leaf_spine(2, 2, 2);
    topology.priorities = Some(2);
    topology.hosts[1].classes_cleared = true;
    let program = program(Role::Leaf);
    let entries = policing::claims(&topology, &topology.switches[0], &program).unwrap();
    let of = |port, class| {
        let dscp = Key::Exact(weft_topology::dscp_of_class(class).into());
        let port = ("standard_metadata.ingress_port", Key::Exact(port));
        let number = [("number", class.into())];
        let (action, parameters) = match port.1 {
            Key::Exact(1) => ("policing.claim_class", &number[..]),
            _ => ("policing.clear_class", &[][..]),
        };
        let key = [port, ("dscp", dscp)];
        program.entry("policing.claims", &key, action, parameters)
    };
    let expected = [of(1, 0), of(1, 1), of(2, 0), of(2, 1)].map(Result::unwrap);
    assert_eq!(entries, expected);
}

/// The entry that classifies the flows of a host by what they have sent.
fn classified(
    program: &Program,
    port: u16,
    short_bytes: u128,
    long: (u128, u8),
    idle: u64,
) -> TableEntry {
    let dscp = |class| u128::from(weft_topology::dscp_of_class(class));
    let parameters = [
        ("short_bytes", short_bytes),
        ("short_dscp", dscp(1)),
        ("long_bytes", long.0),
        ("long_dscp", dscp(long.1)),
        ("idle", idle.into()),
    ];
    let key = [(
        "standard_metadata.ingress_port",
        Key::Exact(u128::from(port)),
    )];
    let entry = program.entry("by_sent.hosts", &key, "by_sent.classify", &parameters);
    entry.unwrap()
}

#[test]
fn flows_that_claim_nothing_are_in_class_1_and_in_the_last_but_one_until_they_have_sent_much() {
    let program = program(Role::Leaf);
    let unit = TimestampUnit::Microseconds;
    let entries = |classes: Option<u8>, switch: usize| {
        let mut topology = leaf_spine(2, 2, 2);
        topology.priorities = classes;
        let fabric = RoutedFabric::new(topology).unwrap();
        let by_sent = BySent::of(&fabric, &fabric.topology().switches[switch], unit);
        let most_bytes = weft_topology::thresholds_of(classes.unwrap_or(2));
        by_sent.entries(&program, &most_bytes).unwrap()
    };
    let of_both = |short, long| [1, 2].map(|port| classified(&program, port, short, long, 100_000));
    assert_eq!(entries(Some(8), 0), of_both(130_000, (5_000_000, 6)));
    assert_eq!(entries(Some(5), 0), of_both(130_000, (1_000_000, 3)));
    // None is between these.
    assert_eq!(entries(Some(4), 0), of_both(250_000, (250_000, 1)));
    assert_eq!(entries(Some(3), 0), of_both(1_000_000, (1_000_000, 1)));
    for (classes, switch) in [(Some(2), 0), (None, 0), (Some(8), 2)] {
        assert_eq!(entries(classes, switch), [], "{classes:?} {switch}");
    }
}

#[test]
fn a_flow_that_waits_for_full_queues_does_not_pause() {
    let mut topology = leaf_spine(2, 1, 1);
    topology.priorities = Some(8);
    for link in links_of(&mut topology, "spine1") {
        link.delay_ns = 50_000_000;
    }
    let fabric = RoutedFabric::new(topology).unwrap();
    let leaf = &fabric.topology().switches[0];
    let pair = fabric.pairs_from(leaf.index).next().unwrap();
    let longest_ns = rtt_bound(&fabric, pair, 0).unwrap().longest_ns;
    assert!(longest_ns > 200_000_000);
    let program = program(Role::Leaf);
    let by_sent = BySent::of(&fabric, leaf, TimestampUnit::Nanoseconds);
    assert_eq!(
        by_sent.entries(&program, &[1, 2]).unwrap(),
        [classified(&program, 1, 1, (1, 1), longest_ns)]
    );
}

#[test]
fn addresses_are_numbers_in_network_order() {
    assert_eq!(mac("02:00:00:00:01:0a"), 0x0200_0000_010a);
}
