// SPDX-License-Identifier: Apache-2.0

//! Forwarding, paths, drops, and the controller's packets.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use weft_testing::packet::{
    GATEWAY_MAC, Tcp, address, checksum_is_right, edit_ipv4, expected_path, ping, ping_with_ttl,
    ttl, udp,
};
use weft_topology::routes::spread;

use crate::bench::{Bench, CPU_PORT, HOSTS, PATHS, drops, mac_of, uplink};

#[test]
fn a_packet_to_a_host_of_the_leaf_gets_its_port_and_mac() {
    let mut leaf = Bench::leaf(1);
    let sent = leaf
        .send(1, &ping(address(1, 1, 1), address(1, 2, 3)), 0)
        .sent;
    let (port, frame) = sent.unwrap();
    assert_eq!(port, 2);
    assert_eq!(frame[0..6], mac_of(1, 2));
    assert_eq!(frame[6..12], GATEWAY_MAC);
}

#[test]
fn a_hop_takes_one_from_the_ttl_and_corrects_the_checksum() {
    let frame = ping(address(1, 1, 1), address(2, 1, 1));
    for mut switch in [Bench::leaf(1), Bench::spine()] {
        let (_, sent) = switch.send(1, &frame, 0).sent.unwrap();
        assert_eq!(ttl(&sent), ttl(&frame) - 1);
        assert!(checksum_is_right(&sent));
        assert_eq!(sent.len(), frame.len());
        assert_eq!(sent[34..], frame[34..]);
    }
}

#[test]
fn the_path_is_the_one_the_design_computes() {
    let mut leaf = Bench::leaf(1);
    for (host, remote_leaf, remote_host) in [(1, 2, 1), (2, 2, 1), (1, 3, 2), (2, 3, 2)] {
        for (path, remote_path) in [(1, 1), (2, 1), (3, 1), (4, 2)] {
            let src = address(1, host, path);
            let dst = address(remote_leaf, remote_host, remote_path);
            let expected = uplink(expected_path(src, dst, PATHS.into()));
            let outcome = leaf.send(host.into(), &ping(src, dst), 0);
            assert_eq!(outcome.port(), Some(expected), "{src} to {dst}");
        }
    }
}

#[test]
fn both_directions_of_a_subflow_take_the_same_spine() {
    let (mut here, mut there) = (Bench::leaf(1), Bench::leaf(2));
    for path in 1..=PATHS as u8 {
        for host in 1..=HOSTS as u8 {
            let data = Tcp::subflow(address(1, 1, path), address(2, host, 1)).data(1, 1000);
            let out = here.send(1, &data.frame(), 0).port();
            let back = there
                .send(host.into(), &data.ack_of(1001).frame(), 0)
                .port();
            assert_eq!(out, back, "from address {path} to host {host}");
        }
    }
}

#[test]
fn subflows_of_a_connection_take_different_paths() {
    let mut leaf = Bench::leaf(1);
    let uplinks: BTreeSet<u16> = (1..=PATHS as u8)
        .map(|path| Tcp::subflow(address(1, 1, path), address(2, 1, 1)).frame())
        .filter_map(|frame| leaf.send(1, &frame, 0).port())
        .collect();
    assert_eq!(uplinks.len(), usize::from(PATHS));
}

#[test]
fn aggregation_sends_down_what_is_for_its_pod_and_the_rest_up_by_the_leafs_path() {
    let (mut leaf, mut aggregation) = (Bench::leaf(1), Bench::aggregation());
    let down = ping(address(2, 1, 1), address(1, 2, 1));
    assert_eq!(aggregation.send(9, &down, 0).port(), Some(1));
    for path in 1..=PATHS as u8 {
        let up = Tcp::subflow(address(1, 1, path), address(2, 2, 1)).frame();
        let (port, sent) = aggregation.send(1, &up, 0).sent.unwrap();
        assert_eq!(Some(port), leaf.send(1, &up, 0).port());
        assert_eq!(ttl(&sent), ttl(&up) - 1);
        assert!(checksum_is_right(&sent));
    }
    assert_eq!(
        aggregation.counted("routing.path_select"),
        u64::from(PATHS),
        "each path has counted its packet"
    );
}

#[test]
fn ways_beyond_the_paths_are_spread_by_pairs_of_leaves_the_same_both_ways() {
    const UPLINKS: u16 = 7;
    let mut switch = Bench::spreading(UPLINKS, "routing.spread_leaves");
    let mut uplinks = BTreeSet::new();
    for (one, other) in (1..20).flat_map(|one| (1..20).map(move |other| (one, other))) {
        let data = Tcp::subflow(address(one, 1, 2), address(other, 3, 1)).data(1, 1000);
        let there = switch.send(1, &data.frame(), 0).port().unwrap();
        let back = switch.send(1, &data.ack_of(1001).frame(), 0).port();
        assert_eq!(back, Some(there));
        let path = expected_path(address(one, 1, 2), address(other, 3, 1), PATHS.into());
        let expected = (u16::from(path) + spread(one, other) % UPLINKS) % UPLINKS;
        assert_eq!(there, uplink(expected as u8));
        uplinks.insert(there);
    }
    assert_eq!(uplinks.len(), usize::from(UPLINKS));
}

#[test]
fn ecmp_spreads_by_flows() {
    const UPLINKS: u16 = 7;
    let mut switch = Bench::spreading(UPLINKS, "routing.spread_flows");
    let uplinks: BTreeSet<_> = (0..256)
        .map(|port| udp(address(1, 1, 1), address(2, 1, 1), port))
        .map(|frame| switch.send(1, &frame, 0).port())
        .collect();
    assert_eq!(uplinks.len(), usize::from(UPLINKS));
}

#[test]
fn without_a_policy_there_is_one_path() {
    let mut leaf = Bench::leaf(1);
    leaf.reset_path_policy();
    for path in 1..=PATHS as u8 {
        let frame = ping(address(1, 1, path), address(2, 1, 1));
        assert_eq!(leaf.send(1, &frame, 0).port(), Some(uplink(0)));
    }
}

#[test]
fn ecmp_keeps_a_flow_on_its_path_and_uses_all_paths() {
    let mut leaf = Bench::leaf(1);
    leaf.path_policy("routing.ecmp_paths");
    let mut uplinks = BTreeSet::new();
    for src_port in 40_000..40_064 {
        let flow = Tcp {
            src_port,
            ..Tcp::subflow(address(1, 1, 1), address(2, 1, 1))
        };
        let first = leaf.send(1, &flow.syn(0).frame(), 0).port();
        let second = leaf.send(1, &flow.data(1, 1000).frame(), 0).port();
        assert_eq!(first, second);
        uplinks.extend(first);
    }
    assert_eq!(uplinks.len(), usize::from(PATHS));
}

/// The flowlet timeout, and a time at which no flow has sent anything for longer.
const TIMEOUT: u64 = 500_000;
const START: u64 = 1_000_000_000;

fn flowlet_switches() -> [Bench; 2] {
    [Bench::leaf(1), Bench::aggregation()].map(|mut switch| {
        switch.draw_uplinks("routing.flowlet_uplinks", &[TIMEOUT]);
        switch
    })
}

fn flow(src_port: u16) -> Vec<u8> {
    let subflow = Tcp::subflow(address(1, 1, 1), address(2, 1, 1));
    let flow = Tcp {
        src_port,
        ..subflow
    };
    flow.data(1, 1000).frame()
}

#[test]
fn packets_of_a_flowlet_stay_on_its_uplink_however_long_it_lasts() {
    for mut switch in flowlet_switches() {
        let mut first_ports = BTreeSet::new();
        for src_port in 40_000..40_032 {
            let frame = flow(src_port);
            let ports: BTreeSet<_> = (0..50)
                .map(|number| switch.send(1, &frame, START + number * TIMEOUT).port())
                .collect();
            assert_eq!(ports.len(), 1, "a gap of exactly the timeout continues");
            first_ports.extend(ports);
        }
        assert_eq!(first_ports.len(), usize::from(PATHS), "flows differ");
    }
}

#[test]
fn other_flows_in_between_change_nothing_for_a_flowlet() {
    for mut switch in flowlet_switches() {
        let first: Vec<_> = (0..16)
            .map(|number| switch.send(1, &flow(40_000 + number), START).port())
            .collect();
        for round in 1..20 {
            let at = START + round * TIMEOUT / 2;
            let ports = (0..16).map(|number| switch.send(1, &flow(40_000 + number), at).port());
            assert_eq!(ports.collect::<Vec<_>>(), first);
        }
    }
}

#[test]
fn after_a_gap_longer_than_the_timeout_any_uplink_may_be_next() {
    const FLOWLETS: u64 = 1000;
    for mut switch in flowlet_switches() {
        let frame = flow(40_000);
        let mut flowlets = vec![0; usize::from(PATHS)];
        let mut moved = 0;
        let mut last = None;
        for number in 0..FLOWLETS {
            let at = START + number * (TIMEOUT + 1);
            let port = switch.send(1, &frame, at).port();
            flowlets[usize::from(port.unwrap() - uplink(0))] += 1;
            moved += u64::from(port != last);
            last = port;
        }
        // 250 each; the standard deviation is below 14. A draw moves in three of four cases.
        assert!(
            flowlets.iter().all(|count| (195..=305).contains(count)),
            "{flowlets:?}"
        );
        assert!((695..=805).contains(&moved), "{moved}");
    }
}

#[test]
fn spraying_uses_all_uplinks_alike_for_the_packets_of_one_flow() {
    const PACKETS: u64 = 4000;
    for mut switch in [Bench::leaf(1), Bench::aggregation()] {
        switch.draw_uplinks("routing.spray_uplinks", &[]);
        let frame = flow(40_000);
        let mut packets = vec![0; usize::from(PATHS)];
        for number in 0..PACKETS {
            let port = switch.send(1, &frame, START + number).port().unwrap();
            packets[usize::from(port - uplink(0))] += 1;
        }
        // 1000 each; the standard deviation is below 28.
        assert!(
            packets.iter().all(|count| (890..=1110).contains(count)),
            "{packets:?}"
        );
    }
}

#[test]
fn ecmp_sees_the_ports_of_udp() {
    let mut leaf = Bench::leaf(1);
    leaf.path_policy("routing.ecmp_paths");
    let uplinks: BTreeSet<_> = (0..64)
        .map(|port| udp(address(1, 1, 1), address(2, 1, 1), port))
        .map(|frame| leaf.send(1, &frame, 0).port())
        .collect();
    assert_eq!(uplinks.len(), usize::from(PATHS));
}

#[test]
fn fragments_of_a_packet_take_one_path() {
    let mut leaf = Bench::leaf(1);
    leaf.path_policy("routing.ecmp_paths");
    for src_port in 0..16 {
        let mut first = udp(address(1, 1, 1), address(2, 1, 1), src_port);
        let mut last = first.clone();
        edit_ipv4(&mut first, |header| header[6] = 0x20);
        edit_ipv4(&mut last, |header| header[7] = 1);
        let first = leaf.send(1, &first, 0).port();
        assert_eq!(leaf.send(1, &last, 0).port(), first);
    }
}

#[test]
fn ttl_one_is_dropped_and_counted() {
    for mut switch in [Bench::leaf(1), Bench::spine()] {
        for (ttl, expired) in [(2, 0), (1, 1), (0, 2)] {
            let frame = ping_with_ttl(address(1, 1, 1), address(2, 1, 1), ttl);
            let outcome = switch.send(1, &frame, 0);
            assert_eq!(outcome.sent.is_some(), expired == 0);
            assert_eq!(switch.dropped(drops::TTL_EXPIRED), expired);
        }
    }
}

#[test]
fn what_has_no_route_is_dropped_and_counted() {
    for mut switch in [Bench::leaf(1), Bench::spine()] {
        let frame = ping(address(1, 1, 1), Ipv4Addr::new(224, 0, 0, 251));
        assert!(switch.send(1, &frame, 0).sent.is_none());
        assert_eq!(switch.dropped(drops::NO_ROUTE), 1);
    }
}

#[test]
fn a_path_without_uplink_is_dropped_and_counted() {
    let mut leaf = Bench::leaf(1);
    let (src, dst) = (address(1, 1, 1), address(2, 1, 1));
    leaf.forget_uplink(expected_path(src, dst, PATHS.into()).into());
    let outcome = leaf.send(1, &ping(src, dst), 0);
    assert!(outcome.sent.is_none());
    assert!(outcome.queues.is_empty(), "it heads for no port");
    assert_eq!(leaf.dropped(drops::NO_UPLINK), 1);
}

#[test]
fn what_is_no_ip_is_dropped_and_counted() {
    let mut leaf = Bench::leaf(1);
    let mut arp = ping(address(1, 1, 1), address(1, 2, 1));
    arp[12..14].copy_from_slice(&[0x08, 0x06]);
    assert!(leaf.send(1, &arp, 0).sent.is_none());
    assert!(leaf.send(1, &[], 0).sent.is_none());
    assert_eq!(leaf.dropped(drops::NOT_IP), 2);
}

#[test]
fn broken_headers_are_dropped_and_counted() {
    let mut leaf = Bench::leaf(1);
    let whole = Tcp::subflow(address(1, 1, 1), address(1, 2, 1)).frame();

    let mut bad_checksum = whole.clone();
    bad_checksum[24] ^= 1;
    let mut bad_version = whole.clone();
    edit_ipv4(&mut bad_version, |header| header[0] = 0x65);
    let mut bad_length = whole.clone();
    edit_ipv4(&mut bad_length, |header| header[0] = 0x44);
    let truncated = &whole[..14 + 20 + 19];

    for frame in [&bad_checksum, &bad_version, &bad_length, truncated] {
        assert!(leaf.send(1, frame, 0).sent.is_none());
    }
    assert_eq!(leaf.dropped(drops::BAD_HEADER), 4);
}

#[test]
fn ipv4_options_are_dropped_and_counted() {
    let mut leaf = Bench::leaf(1);
    let mut frame = ping(address(1, 1, 1), address(1, 2, 1));
    frame[14] = 0x46;
    assert!(leaf.send(1, &frame, 0).sent.is_none());
    assert_eq!(leaf.dropped(drops::IPV4_OPTIONS), 1);
}

#[test]
fn routes_and_paths_count_their_packets() {
    let mut leaf = Bench::leaf(1);
    for (dst, routed, by_path) in [(address(2, 1, 1), 1, 1), (address(1, 2, 1), 2, 1)] {
        leaf.send(1, &ping(address(1, 1, 1), dst), 0);
        assert_eq!(leaf.counted("routing.ipv4_lpm"), routed);
        assert_eq!(leaf.counted("routing.path_select"), by_path);
    }
}

#[test]
fn the_longest_prefix_wins() {
    let mut spine = Bench::spine();
    spine.route(Ipv4Addr::new(10, 2, 1, 0), 24, ("routing.to_port", vec![9]));
    let to = |host| ping(address(1, 1, 1), address(2, host, 1));
    assert_eq!(spine.send(1, &to(1), 0).port(), Some(9));
    assert_eq!(spine.send(1, &to(2), 0).port(), Some(2));
}

#[test]
fn a_packet_out_leaves_as_it_is_by_the_port_it_names() {
    for mut switch in [Bench::leaf(1), Bench::spine()] {
        let frame = ping(address(1, 1, 1), address(2, 1, 1));
        let packet_out = [&(3u16 << 7).to_be_bytes(), &frame[..]].concat();
        assert_eq!(switch.send(CPU_PORT, &packet_out, 0).sent, Some((3, frame)));
    }
}

#[test]
fn a_packet_in_says_where_it_came_in() {
    for mut switch in [Bench::leaf(1), Bench::spine()] {
        let to_controller = ("routing.to_controller", vec![]);
        switch.route(Ipv4Addr::new(192, 0, 2, 1), 32, to_controller);
        let frame = ping(address(1, 1, 1), Ipv4Addr::new(192, 0, 2, 1));
        let packet_in = [&(2u16 << 7).to_be_bytes(), &frame[..]].concat();
        assert_eq!(switch.send(2, &frame, 0).sent, Some((CPU_PORT, packet_in)));
    }
}
