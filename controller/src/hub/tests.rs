// SPDX-License-Identifier: Apache-2.0

//! Tests of the hub, on simulated time.

use super::*;
use crate::engine::{Config, Rule};
use crate::testing::{fabric, rtt_sample};

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
    let mut probes = ["leaf1", "leaf2"].map(|leaf| hub.open_packet_out(leaf));
    // Ports of a leaf: first its host, then the spines.
    let mut answer = |ms, port_of: fn(u8) -> u16| {
        wait(&hub, ms..ms + 1);
        let sent = probes.iter_mut();
        for outgoing in sent.flat_map(|sent| std::iter::from_fn(|| sent.try_recv().ok())) {
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
