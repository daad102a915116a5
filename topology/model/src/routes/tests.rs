// SPDX-License-Identifier: Apache-2.0

//! Tests of the routes through all kinds of fabrics.

use std::collections::BTreeSet;

use serde::Serialize;

use super::*;

/// A fabric of `weft-testing` in the types of this crate. Unit tests are a second build of the
/// crate, whose types are not those of the build that `weft-testing` uses.
fn own(fabric: &impl Serialize) -> Topology {
    serde_json::from_value(serde_json::to_value(fabric).unwrap()).unwrap()
}

fn leaf_spine(leaves: u8, spines: u8) -> Topology {
    own(&weft_testing::topology::leaf_spine(leaves, spines, 0))
}

fn fat_tree(k: u8) -> Topology {
    own(&weft_testing::topology::fat_tree(k))
}

fn with_paths(paths: u8, topology: Topology) -> Topology {
    Topology { paths, ..topology }
}

/// Names of the switches after the source leaf.
fn names(topology: &Topology, routes: &Routes, source: u8, destination: u8, path: u8) -> String {
    let route = routes.route(source, destination, path).skip(1);
    let names: Vec<_> = route.map(|port| &*port.switch(topology).name).collect();
    names.join(" ")
}

#[test]
fn a_path_of_a_leaf_spine_crosses_the_spine_of_its_number() {
    let topology = leaf_spine(3, 4);
    let routes = Routes::new(&topology).unwrap();
    let via = [0, 1, 2, 3].map(|path| names(&topology, &routes, 3, 1, path));
    assert_eq!(via, ["spine1", "spine2", "spine3", "spine4"]);
    assert_eq!(routes.route(2, 2, 0).count(), 0);
    assert_eq!(routes.route(2, 9, 0).count(), 0);
}

#[test]
fn four_paths_lead_from_pod_to_pod_of_the_smallest_fat_tree_and_two_through_a_pod() {
    let topology = fat_tree(4);
    let routes = Routes::new(&topology).unwrap();
    let via = [0, 1, 2, 3].map(|path| names(&topology, &routes, 1, 8, path));
    assert_eq!(
        via,
        [
            "agg1_1 core1 agg4_1",
            "agg1_2 core3 agg4_2",
            "agg1_1 core2 agg4_1",
            "agg1_2 core4 agg4_2"
        ]
    );
    let via = [0, 1, 2, 3].map(|path| names(&topology, &routes, 3, 4, path));
    assert_eq!(via, ["agg2_1", "agg2_2", "agg2_1", "agg2_2"]);
}

#[test]
fn data_and_acks_cross_the_same_switches_on_every_path() {
    let fabrics = [leaf_spine(5, 20), fat_tree(4), fat_tree(6), fat_tree(8)];
    let fewer = [1, 2].map(|paths| with_paths(paths, fat_tree(8)));
    for topology in fabrics.into_iter().chain(fewer) {
        let routes = Routes::new(&topology).unwrap();
        for (source, destination) in (1..=5).flat_map(|a| (1..=5).map(move |b| (a, b))) {
            for path in 0..topology.paths {
                let there: Vec<_> = routes
                    .route(source, destination, path)
                    .map(|port| port.port(&topology).link)
                    .collect();
                let mut back: Vec<_> = routes
                    .route(destination, source, path)
                    .map(|port| port.port(&topology).link)
                    .collect();
                back.reverse();
                assert_eq!(there, back);
                assert_eq!(there.is_empty(), source == destination);
            }
        }
    }
}

#[test]
fn the_paths_of_a_pair_are_distinct_and_all_pairs_together_use_every_link() {
    let fabrics = [
        (leaf_spine(20, 20), 20, 2),
        (fat_tree(6), 18, 4),
        (fat_tree(8), 32, 4),
        (with_paths(2, fat_tree(6)), 18, 4),
        (with_paths(2, fat_tree(8)), 32, 4),
    ];
    for (topology, leaves, farthest) in fabrics {
        let routes = Routes::new(&topology).unwrap();
        let mut used = BTreeSet::new();
        let pairs = (1..=leaves).flat_map(|a| (1..=leaves).map(move |b| (a, b)));
        for (source, destination) in pairs {
            let paths: BTreeSet<Vec<EgressPort>> = (0..topology.paths)
                .map(|path| routes.route(source, destination, path).collect())
                .collect();
            if paths.iter().any(|route| route.len() == farthest) {
                assert_eq!(paths.len(), usize::from(topology.paths));
            }
            used.extend(paths.iter().flatten().map(|port| port.port(&topology).link));
        }
        let between_switches = topology
            .links
            .iter()
            .filter(|link| topology.host(&link.a.node).is_none());
        assert_eq!(used.len(), between_switches.count());
    }
}

#[test]
fn two_tiers_that_spread_pairs_do_so_over_all_cores() {
    let topology = with_paths(2, fat_tree(8));
    let routes = Routes::new(&topology).unwrap();
    let mut pairs = BTreeMap::<String, u32>::new();
    for (source, destination) in (1..=16).flat_map(|a| (17..=32).map(move |b| (a, b))) {
        for path in 0..2 {
            let via = names(&topology, &routes, source, destination, path);
            let core = via.split(' ').nth(1).unwrap().to_owned();
            *pairs.entry(core).or_default() += 1;
        }
    }
    // 512 paths over 16 cores.
    assert_eq!(pairs.len(), 16);
    assert!(
        pairs.values().all(|count| (16..=48).contains(count)),
        "{pairs:?}"
    );
}

#[test]
fn what_the_programs_compute_leads_to_the_same_uplink() {
    for topology in [
        fat_tree(8),
        with_paths(1, fat_tree(8)),
        with_paths(3, fat_tree(10)),
    ] {
        let routes = Routes::new(&topology).unwrap();
        let mut spread_uplinks = 0;
        for (place, node) in routes.nodes.iter().enumerate() {
            let choices: Vec<usize> = routes.hash_targets(place).collect();
            for (path, spread) in
                (0..topology.paths).flat_map(|p| [0, 7, 4242, u16::MAX].map(|s| (p, s)))
            {
                let port = match routes.uplink(place, path) {
                    // `spread_leaves` of p4/src/stages/uplink.p4.
                    Some(Uplink::Spread(first)) => {
                        spread_uplinks += 1;
                        Some(choices[(usize::from(first) + usize::from(spread)) % choices.len()])
                    }
                    Some(Uplink::Fixed(port)) => Some(port),
                    None => None,
                };
                assert_eq!(port, node.uplink(path, spread));
            }
        }
        assert!(spread_uplinks > 0);
    }
}

#[test]
fn what_is_no_regular_tree_is_refused() {
    let mut uneven = leaf_spine(2, 2);
    uneven.switches[1].ports.pop();
    assert_eq!(
        Routes::new(&uneven).unwrap_err().to_string(),
        "leaf1 has 2 uplinks, leaf2 has 1; switches of a tier must have equal numbers"
    );
    let mut apart = leaf_spine(2, 1);
    apart.switches[2].ports.pop();
    assert_eq!(
        Routes::new(&apart).unwrap_err().to_string(),
        "no path 0 from leaf1 to leaf2"
    );
}

#[test]
fn the_largest_fat_tree_has_its_ways_in_no_time() {
    let routes = Routes::new(&fat_tree(16)).unwrap();
    assert_eq!(routes.route(1, 128, 7).count(), 4);
    assert_eq!(routes.downlinks(255).count(), 8);
}
