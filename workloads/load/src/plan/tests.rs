// SPDX-License-Identifier: Apache-2.0

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::ideal_fabric::tests::leaf_spine;

const GBIT: u64 = 1_000_000_000;

fn fabric(leaves: u8, hosts: u8) -> IdealFabric {
    IdealFabric::new(&leaf_spine(leaves, 2, hosts, GBIT, GBIT)).unwrap()
}

fn websearch() -> Distribution {
    Distribution::built_in("websearch").unwrap()
}

fn random(fabric: &IdealFabric, load: f64, count: u32, seed: u64) -> Result<Vec<Flow>, PlanError> {
    let extent = Extent::Flows(count);
    poisson(fabric, Pairs::Random, &websearch(), load, extent, seed)
}

#[test]
fn arrivals_offer_the_load_that_was_asked_for() {
    let fabric = fabric(2, 4);
    let flows = random(&fabric, 0.3, 100_000, 1).unwrap();
    let seconds = flows.last().unwrap().start_ns as f64 / 1e9;
    let rate = flows.len() as f64 / seconds;
    let expected = 0.3 * 8.0 * 1e9 / (8.0 * websearch().mean_bytes());
    assert!((rate / expected - 1.0).abs() < 0.02, "{rate} flows/s");
    let bps = flows
        .iter()
        .map(|flow| flow.bytes as f64 * 8.0)
        .sum::<f64>()
        / seconds;
    assert!((bps / (0.3 * 8e9) - 1.0).abs() < 0.04, "{bps} bit/s");
}

#[test]
fn gaps_are_exponential() {
    let flows = random(&fabric(2, 4), 0.5, 50_000, 2).unwrap();
    let gaps: Vec<f64> = flows
        .windows(2)
        .map(|w| (w[1].start_ns - w[0].start_ns) as f64)
        .collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let deviation =
        (gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
    assert!((deviation / mean - 1.0).abs() < 0.03);
}

#[test]
fn another_load_sends_the_same_flows_at_other_times() {
    let fabric = fabric(2, 4);
    let slow = random(&fabric, 0.1, 50, 7).unwrap();
    let fast = random(&fabric, 0.8, 50, 7).unwrap();
    let untimed = |flows: &[Flow]| {
        flows
            .iter()
            .map(|flow| Flow {
                start_ns: 0,
                ..*flow
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(untimed(&slow), untimed(&fast));
    assert!(slow[49].start_ns > fast[49].start_ns);
}

#[test]
fn an_incast_spreads_over_other_racks_and_reuses_hosts_evenly() {
    let fabric = fabric(2, 4);
    let flows = incast(&fabric, 10, 225_000, Starts::AtOnce, 3).unwrap();
    assert_eq!(flows.len(), 10);
    let receiver = flows[0].destination;
    let mut per_sender = vec![0; fabric.hosts()];
    for flow in &flows {
        assert_eq!((flow.destination, flow.start_ns), (receiver, 0));
        assert_ne!(fabric.rack(flow.source), fabric.rack(receiver));
        per_sender[flow.source] += 1;
    }
    per_sender.retain(|flows| *flows > 0);
    per_sender.sort_unstable();
    assert_eq!(per_sender, [2, 2, 3, 3]);
}

#[test]
fn an_incasts_flows_may_start_as_a_poisson_process() {
    let at_once = incast(&fabric(2, 4), 20_000, 1, Starts::AtOnce, 3).unwrap();
    let flows = incast(&fabric(2, 4), 20_000, 1, Starts::Poisson(100_000), 3).unwrap();
    assert_eq!(flows[0].start_ns, 0);
    assert!(flows.windows(2).all(|w| w[0].start_ns <= w[1].start_ns));
    let mean_ns = flows[19_999].start_ns as f64 / 19_999.0;
    assert!((mean_ns / 100_000.0 - 1.0).abs() < 0.03, "{mean_ns}");
    let pairs = |flows: &[Flow]| -> Vec<_> {
        let pair = |flow: &Flow| (flow.source, flow.destination);
        flows.iter().map(pair).collect()
    };
    assert_eq!(pairs(&at_once), pairs(&flows));
}

#[test]
fn bulk_flows_have_hosts_of_their_own_while_there_are_some() {
    let flows = bulk(&fabric(3, 3), 5, 20_000_000).unwrap();
    let pairs: Vec<_> = flows.iter().map(|f| (f.source, f.destination)).collect();
    assert_eq!(pairs, [(0, 3), (1, 4), (2, 5), (0, 3), (1, 4)]);
    assert!(
        flows
            .iter()
            .all(|f| (f.bytes, f.start_ns) == (20_000_000, 0))
    );
}

#[test]
fn the_objects_of_a_page_are_equal_and_add_up() {
    let flows = page(&fabric(2, 2), 7, 1_000).unwrap();
    assert_eq!(flows.iter().map(|flow| flow.bytes).sum::<u64>(), 1_000);
    for flow in flows {
        assert!((142..=143).contains(&flow.bytes));
        assert_eq!((flow.source, flow.destination), (0, 2));
    }
}

#[test]
fn a_permutation_gives_every_host_one_partner_in_another_rack() {
    for (leaves, hosts) in [(2, 4), (3, 5)] {
        let fabric = fabric(leaves, hosts);
        let extent = Extent::Flows(500);
        let flows = poisson(&fabric, Pairs::Permutation, &websearch(), 0.5, extent, 1).unwrap();
        let pairs: BTreeSet<_> = flows.iter().map(|f| (f.source, f.destination)).collect();
        let receivers: BTreeSet<_> = pairs.iter().map(|pair| pair.1).collect();
        assert_eq!(
            (pairs.len(), receivers.len()),
            (fabric.hosts(), fabric.hosts())
        );
        for (source, destination) in pairs {
            assert_ne!(fabric.rack(source), fabric.rack(destination));
        }
    }
}

#[test]
fn many_to_one_offers_its_load_to_the_receivers_link() {
    let fabric = fabric(3, 4);
    let extent = Extent::Flows(50_000);
    let flows = poisson(&fabric, Pairs::ManyToOne, &websearch(), 0.5, extent, 1).unwrap();
    let receivers: BTreeSet<_> = flows.iter().map(|flow| flow.destination).collect();
    assert_eq!(receivers.len(), 1);
    let seconds = flows.last().unwrap().start_ns as f64 / 1e9;
    let expected = 0.5 * 1e9 / (8.0 * websearch().mean_bytes());
    assert!((flows.len() as f64 / seconds / expected - 1.0).abs() < 0.02);
}

#[test]
fn a_run_of_some_time_has_all_flows_that_arrive_in_it() {
    let fabric = fabric(2, 4);
    let extent = Extent::Time(50_000_000);
    let timed = poisson(&fabric, Pairs::Random, &websearch(), 0.5, extent, 3).unwrap();
    let counted = random(&fabric, 0.5, timed.len() as u32 + 1, 3).unwrap();
    assert_eq!(timed[..], counted[..timed.len()]);
    assert!(timed.last().unwrap().start_ns <= 50_000_000);
    assert!(counted.last().unwrap().start_ns > 50_000_000);
}

#[test]
fn smaller_flows_come_more_often_so_that_the_load_stays() {
    let fabric = fabric(2, 4);
    let small = websearch().scaled(0.1);
    let extent = Extent::Flows(20_000);
    let flows = poisson(&fabric, Pairs::Random, &small, 0.3, extent, 1).unwrap();
    let large = random(&fabric, 0.3, 20_000, 1).unwrap();
    let seconds = flows.last().unwrap().start_ns as f64 / 1e9;
    let bits: f64 = flows.iter().map(|flow| flow.bytes as f64 * 8.0).sum();
    assert!((bits / seconds / (0.3 * 8e9) - 1.0).abs() < 0.05);
    for (small, large) in flows.iter().zip(&large) {
        assert_eq!(
            (small.source, small.destination),
            (large.source, large.destination)
        );
        assert!(
            (small.bytes as f64 / large.bytes as f64 - 0.1).abs() < 0.01 + 1.0 / large.bytes as f64
        );
    }
}

#[test]
fn all_to_all_has_every_pair_of_racks_hosts_once() {
    let fabric = fabric(3, 2);
    let flows = all_to_all(&fabric, 1_000, Starts::AtOnce, 1).unwrap();
    let pairs: BTreeSet<_> = flows.iter().map(|f| (f.source, f.destination)).collect();
    assert_eq!((flows.len(), pairs.len()), (6 * 4, 6 * 4));
}

#[test]
fn jitter_spreads_starts_evenly_and_keeps_pairs() {
    let flows = incast(&fabric(2, 4), 10_000, 1, Starts::Within(1_000_000), 3).unwrap();
    assert!(flows.windows(2).all(|w| w[0].start_ns <= w[1].start_ns));
    let mean_ns = flows.iter().map(|f| f.start_ns as f64).sum::<f64>() / 10_000.0;
    assert!((mean_ns / 500_000.0 - 1.0).abs() < 0.03, "{mean_ns}");
    assert!(flows.iter().all(|flow| flow.start_ns < 1_000_000));
}

#[test]
fn a_mix_has_its_share_of_long_flows_among_the_short_ones() {
    let mix = Mix {
        flows: 50,
        long_share: 0.2,
        long_bytes: 2_000_000,
        short_bytes: 2_000,
        starts: Starts::Poisson(1_000),
    };
    let flows = mixed(&fabric(2, 4), &mix, 1).unwrap();
    let long = flows.iter().filter(|flow| flow.bytes == 2_000_000).count();
    let short = flows.iter().filter(|flow| flow.bytes == 2_000).count();
    assert_eq!((long, short), (10, 40));
    let receivers: BTreeSet<_> = flows.iter().map(|flow| flow.destination).collect();
    assert_eq!(receivers.len(), 1);
    assert!(flows[..10].iter().any(|flow| flow.bytes == 2_000));
}

#[test]
fn a_query_asks_different_servers_at_one_moment() {
    let fabric = fabric(3, 4);
    let flows = queries(&fabric, 20, 6, 20_000, 1_000_000, 1).unwrap();
    assert_eq!(flows.len(), 120);
    for query in flows.chunks(6) {
        let servers: BTreeSet<_> = query.iter().map(|flow| flow.source).collect();
        assert_eq!(servers.len(), 6);
        for flow in query {
            assert_eq!(flow.start_ns, query[0].start_ns);
            assert_eq!(flow.destination, query[0].destination);
            assert_ne!(fabric.rack(flow.source), fabric.rack(flow.destination));
        }
    }
}

#[test]
fn one_rack_is_not_enough() {
    let fabric = fabric(1, 4);
    assert_eq!(bulk(&fabric, 1, 1), Err(PlanError::OneRack));
    assert_eq!(
        incast(&fabric, 1, 1, Starts::AtOnce, 1),
        Err(PlanError::OneRack)
    );
    assert_eq!(random(&fabric, 0.1, 1, 1), Err(PlanError::OneRack));
}

proptest! {
    #[test]
    fn flows_cross_racks_in_order_and_depend_on_the_seed_alone(
        seed: u64, leaves in 2u8..5, hosts in 1u8..5, load in 0.01..1.0f64,
    ) {
        let fabric = fabric(leaves, hosts);
        let flows = random(&fabric, load, 40, seed).unwrap();
        prop_assert_eq!(&flows, &random(&fabric, load, 40, seed).unwrap());
        for flow in &flows {
            prop_assert_ne!(fabric.rack(flow.source), fabric.rack(flow.destination));
            prop_assert!(flow.bytes > 0);
        }
        prop_assert!(flows.windows(2).all(|w| w[0].start_ns <= w[1].start_ns));
    }
}
