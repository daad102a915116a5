// SPDX-License-Identifier: Apache-2.0

//! Tests of the hub, on simulated time.

use super::*;
use crate::classes::WINDOWS;
use crate::engine::{Config, Rule};
use crate::fabric::RoutedFabric;
use crate::telemetry::ClassSample;
use crate::testing::{fabric, leaf_spine, rtt_sample};

const MS: u64 = 1_000_000;
const LIFE: Duration = Duration::from_millis(200);
const PAIR: LeafPair = LeafPair {
    source: 1,
    destination: 2,
};
/// The switches of the fabric of [`hub`].
const SWITCHES: [&str; 4] = ["leaf1", "leaf2", "spine1", "spine2"];

/// Two leaves, two spines, one host per leaf; both paths measured at 50 ms.
fn hub(recorder: Option<Recorder>) -> Hub {
    let engine = Engine::new(fabric(2, 2, 1), Config::default());
    let hub = Hub::new(engine, LIFE, 0, recorder, String::new());
    for switch in SWITCHES {
        hub.arbitrated(switch, Arbitration::Primary);
    }
    measure(&hub, 50 * MS, &[0, 1]);
    hub
}

/// Feeds an RTT of each of `paths`.
fn measure(hub: &Hub, now_ns: u64, paths: &[u8]) {
    let mut state = hub.lock();
    for &path in paths {
        let sample = Sample::Rtt(rtt_sample(state.engine.fabric(), 1, path, 0));
        state.engine.record(now_ns, None, "leaf1", &sample);
    }
    hub.publish_changes(&mut state, now_ns);
}

/// Lets time pass without samples.
fn wait(hub: &Hub, ms: std::ops::Range<u64>) {
    for ms in ms {
        hub.publish_changes(&mut hub.lock(), ms * MS);
    }
}

fn rules(hub: &Hub) -> Vec<Rule> {
    let state = hub.lock();
    state.engine.history(PAIR).map(|one| one.rule).collect()
}

fn dead_paths(hub: &Hub) -> usize {
    let state = hub.lock();
    let paths = 0..state.engine.fabric().paths();
    paths
        .filter(|&path| state.engine.liveness().is_dead(PAIR, path))
        .count()
}

#[test]
fn on_standby_silence_is_no_sign_of_death_and_no_pattern_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let hub = hub(Some(Recorder::open(folder.path()).unwrap()));
    let rows = || std::fs::read_to_string(folder.path().join("patterns.csv")).unwrap();
    // Otherwise one path would be dead before the other.
    measure(&hub, 55 * MS, &[0]);
    let before = rows();
    for switch in SWITCHES {
        hub.arbitrated(switch, Arbitration::Backup);
    }
    wait(&hub, 56..1_000);
    assert_eq!((dead_paths(&hub), rules(&hub)), (0, vec![Rule::First]));
    assert_eq!(rows(), before);
}

#[test]
fn a_controller_that_takes_over_again_begins_with_paths_that_live() {
    let hub = hub(None);
    // Nobody answers probes, so the paths are dead when the other controller takes over.
    wait(&hub, 51..100);
    assert_eq!(dead_paths(&hub), 2);
    for outcome in [Arbitration::Backup, Arbitration::Primary] {
        for switch in SWITCHES {
            hub.arbitrated(switch, outcome);
        }
        assert_eq!(dead_paths(&hub), 0);
    }
    let before = rules(&hub).len();
    // Enough samples to bring one path back to life, and not the other.
    for ms in 1_000..1_003 {
        measure(&hub, ms * MS, &[0]);
    }
    assert_eq!(rules(&hub).len(), before);
    let state = hub.lock();
    assert_eq!(letters(&state.engine.pattern(PAIR).unwrap().sequence), "AB");
}

#[test]
fn what_a_standby_has_to_do_waits_until_it_is_primary() {
    let hub = hub(None);
    for switch in SWITCHES {
        hub.arbitrated(switch, Arbitration::Backup);
    }
    assert_eq!(hub.next_wake_ns(&hub.lock()), None);
    for switch in SWITCHES {
        hub.arbitrated(switch, Arbitration::Primary);
    }
    assert!(hub.next_wake_ns(&hub.lock()).is_some());
}

#[test]
fn probes_that_come_from_a_host_bring_no_path_back_to_life() {
    let hub = hub(None);
    let mut orders = ["leaf1", "leaf2"].map(|leaf| hub.open_orders(leaf));
    // Ports of a leaf: first its host, then the spines.
    let mut answer = |ms, port_of: fn(u8) -> u16| {
        wait(&hub, ms..ms + 1);
        let orders = orders.iter_mut();
        for order in orders.flat_map(|orders| std::iter::from_fn(|| orders.try_recv().ok())) {
            let Order::Send(outgoing) = order else {
                panic!("{order:?}");
            };
            let probe = probe::decode(&outgoing.frame).unwrap();
            let leaf = format!("leaf{}", probe.pair.destination);
            let at = (&*leaf, port_of(probe.path));
            hub.take_probe(&mut hub.lock(), ms * MS, at, probe);
        }
    };
    for ms in 51..200 {
        answer(ms, |_| 1);
    }
    assert_eq!(dead_paths(&hub), 2);
    for ms in 200..300 {
        answer(ms, |path| 2 + u16::from(path));
    }
    assert_eq!(dead_paths(&hub), 0);
}

#[test]
fn a_controller_without_switches_sends_its_agents_away_until_it_has_most_of_them() {
    let hub = hub(None);
    let mut stream = hub.subscribe("h1_1").unwrap();
    assert!(stream.try_recv().is_ok(), "the patterns there are");
    hub.arbitrated("spine1", Arbitration::Unreachable);
    assert!(
        hub.is_primary() && hub.subscribe("h2_1").is_ok(),
        "one is dead"
    );
    for switch in SWITCHES {
        hub.arbitrated(switch, Arbitration::Unreachable);
    }
    assert!(!hub.is_primary() && stream.is_closed());
    assert_eq!(hub.subscribe("h1_1").err(), Some(Refusal::Standby));
    assert_eq!(hub.next_wake_ns(&hub.lock()), None, "nothing is renewed");
    for switch in &SWITCHES[1..] {
        hub.arbitrated(switch, Arbitration::Primary);
    }
    assert!(hub.is_primary() && hub.subscribe("h1_1").is_ok());
}

#[test]
fn agents_may_follow_a_controller_that_has_just_started_and_is_not_primary_yet() {
    let engine = Engine::new(fabric(2, 2, 1), Config::default());
    let hub = Hub::new(engine, LIFE, 0, None, String::new());
    assert!(!hub.is_primary());
    assert!(hub.subscribe("h1_1").is_ok());
}

/// A hub whose hosts have sent enough long flows with classes, and the stream of one of them.
fn hub_with_classes() -> (Hub, Updates, mpsc::Receiver<Order>) {
    let mut topology = leaf_spine(2, 2, 1);
    topology.priorities = Some(8);
    let fabric = RoutedFabric::new(topology).unwrap();
    let engine = Engine::new(fabric, Config::default());
    let hub = Hub::new(engine, LIFE, 0, None, String::new());
    for switch in SWITCHES {
        hub.arbitrated(switch, Arbitration::Primary);
    }
    let stream = hub.subscribe("h1_1").unwrap();
    let orders = hub.open_orders("leaf1");
    for window in 0..=WINDOWS as u64 {
        let long = [0, 0, 0, 0, 0, 0, 1, 99].map(|share| share * window * 500_000);
        send_by_class(&hub, window, long);
    }
    (hub, stream, orders)
}

/// Tells the hub at the end of a window what h1_1 has sent in each class since the first one.
fn send_by_class(hub: &Hub, window: u64, bytes: [u64; 8]) {
    let sample = Sample::Classes(ClassSample {
        port: 1,
        bytes,
        at_ns: 0,
    });
    let now_ns = (1 + window) * 300 * MS;
    let mut state = hub.lock();
    state.engine.record(now_ns, None, "leaf1", &sample);
    hub.publish_changes(&mut state, now_ns);
}

/// What leaves are told of classes.
fn about_classes(orders: &mut mpsc::Receiver<Order>) -> Vec<Order> {
    std::iter::from_fn(|| orders.try_recv().ok())
        .filter(|order| !matches!(order, Order::Send(_)))
        .collect()
}

/// The thresholds in the updates that wait.
fn thresholds(stream: &mut Updates) -> Vec<v1::Thresholds> {
    let updates = std::iter::from_fn(|| stream.try_recv().ok());
    updates
        .filter_map(|update| update.unwrap().thresholds)
        .collect()
}

#[test]
fn new_thresholds_reach_every_host_and_are_acknowledged() {
    let (hub, mut stream, _orders) = hub_with_classes();
    let mut last = 0;
    let updates = std::iter::from_fn(|| stream.try_recv().ok());
    let sent: Vec<v1::Thresholds> = updates
        .filter_map(|update| {
            let update = update.unwrap();
            last = update.update;
            update.thresholds
        })
        .collect();
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].most_bytes.len(), 6);
    assert_eq!(sent[0].time_to_live_ns, 200 * MS);
    let before = hub.explain_classes();
    assert_eq!(before.version, sent[0].version);
    assert!(before.acknowledged_by.is_empty());
    hub.acknowledge("h1_1", last, 0);
    assert_eq!(hub.explain_classes().acknowledged_by, ["h1_1"]);
}

#[test]
fn a_host_that_subscribes_later_gets_the_thresholds_first_of_all() {
    let (hub, mut first, _orders) = hub_with_classes();
    let mut second = hub.subscribe("h2_1").unwrap();
    assert_eq!(thresholds(&mut second), thresholds(&mut first));
}

#[test]
fn limits_and_thresholds_go_to_leaves_now_and_after_a_new_session() {
    let (hub, _stream, mut orders) = hub_with_classes();
    let sent = about_classes(&mut orders);
    let [Order::Limit(_), Order::Classify(most_bytes)] = &sent[..] else {
        panic!("{sent:?}");
    };
    assert_eq!(most_bytes.len(), 6);
    assert_eq!(about_classes(&mut hub.open_orders("leaf1")), sent);
    assert!(hub.open_orders("spine1").try_recv().is_err());
}

#[test]
fn where_only_limits_change_leaves_are_not_told_the_thresholds_again() {
    let (hub, _stream, mut orders) = hub_with_classes();
    let long = 500_000 * 99 * WINDOWS as u64;
    about_classes(&mut orders);
    for window in 1..=WINDOWS as u64 {
        let more = window * 10_000_000;
        let bytes = [4 * more, more, more, more, more, more, more, more];
        let mut now = bytes;
        now[7] += long;
        now[6] += 500_000 * WINDOWS as u64;
        send_by_class(&hub, WINDOWS as u64 + window, now);
    }
    let sent = about_classes(&mut orders);
    let is_limit = |order: &Order| matches!(order, Order::Limit(_));
    assert!(!sent.is_empty() && sent.iter().all(is_limit), "{sent:?}");
}

#[test]
fn thresholds_are_renewed_although_there_is_no_pattern() {
    let (hub, _stream, _orders) = hub_with_classes();
    let state = hub.lock();
    assert!(state.engine.patterns().next().is_none());
    assert!(hub.renewal_ns(&state).is_some());
}
