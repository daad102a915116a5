// SPDX-License-Identifier: Apache-2.0

//! Tests of the engine, on simulated time.

mod failures;
mod oscillation;

use weft_topology::Routing;

use super::*;
use crate::pattern::letters;
use crate::telemetry::{BusyPeriod, IDLE_NS, QueueSample};
use crate::testing::{fabric, leaf_spine, links_of, rtt_sample};

pub(super) const MS: u64 = 1_000_000;
pub(super) const PAIR: LeafPair = LeafPair {
    source: 1,
    destination: 2,
};

pub(super) fn record(engine: &mut Engine, now_ns: u64, path: u8, queueing_ns: u64) {
    let sample = Sample::Rtt(rtt_sample(engine.fabric(), 1, path, queueing_ns));
    engine.record(now_ns, None, "leaf1", &sample);
}

pub(super) fn letters_of(engine: &Engine) -> String {
    letters(&engine.pattern(PAIR).unwrap().sequence)
}

/// Polls, and lets all probes arrive at once.
fn poll_answered(engine: &mut Engine, now_ns: u64) -> Vec<LeafPair> {
    let mut changed = engine.poll(now_ns);
    for probe in engine.take_probes() {
        engine.probed(now_ns, probe);
    }
    changed.extend(engine.poll(now_ns));
    changed
}

/// An engine with both paths measured at 50 ms.
fn started() -> Engine {
    let mut engine = Engine::new(fabric(2, 2, 2), Config::default());
    record(&mut engine, 50 * MS, 0, 0);
    record(&mut engine, 50 * MS, 1, 0);
    assert_eq!(engine.poll(50 * MS), [PAIR]);
    engine
}

#[test]
fn there_is_no_pattern_before_every_path_has_an_rtt() {
    let mut engine = Engine::new(fabric(2, 2, 2), Config::default());
    record(&mut engine, MS, 0, 0);
    assert_eq!(engine.poll(MS), []);
    record(&mut engine, 2 * MS, 1, 0);
    assert_eq!(engine.poll(2 * MS), [PAIR]);
    assert_eq!(letters_of(&engine), "AB");
}

#[test]
fn gaps_follow_a_slow_spine() {
    let mut topology = leaf_spine(2, 2, 2);
    for link in links_of(&mut topology, "spine2") {
        link.delay_ns = 40_000;
    }
    let mut engine = Engine::new(RoutedFabric::new(topology).unwrap(), Config::default());
    record(&mut engine, MS, 0, 0);
    record(&mut engine, MS, 1, 0);
    engine.poll(MS);
    // 237.6 us to 117.6 us.
    assert_eq!(letters_of(&engine), "AAB");
}

#[test]
fn gaps_follow_a_path_that_becomes_longer_whatever_they_follow_from() {
    for input in [Input::Rtt, Input::RttAndQueue] {
        let config = Config {
            input,
            ..Config::default()
        };
        let mut engine = Engine::new(fabric(2, 2, 2), config);
        // Ports to the first host, to spine2, and from spine2 to the leaves: all empty.
        for (switch, port) in ["leaf1", "leaf2", "spine2"]
            .into_iter()
            .flat_map(|switch| [1, 2, 4].map(|port| (switch, port)))
        {
            let sample = Sample::Queue(QueueSample {
                port,
                depth_packets: 0,
                delay_ns: 0,
                at_ns: 0,
                busy_period: None,
                classes: None,
            });
            engine.record(MS, None, switch, &sample);
        }
        for ms in 1..20 {
            record(&mut engine, ms * MS, 0, 0);
            record(&mut engine, ms * MS, 1, if ms < 5 { 0 } else { 120_000 });
            engine.poll(ms * MS);
        }
        assert_eq!(letters_of(&engine), "AAB", "{input}");
    }
}

#[test]
fn no_path_gets_more_than_its_rate() {
    let mut topology = leaf_spine(2, 2, 2);
    for link in links_of(&mut topology, "spine2") {
        link.rate_bps = 200_000_000;
    }
    let mut engine = Engine::new(RoutedFabric::new(topology).unwrap(), Config::default());
    record(&mut engine, MS, 0, 0);
    record(&mut engine, MS, 1, 0);
    engine.poll(MS);
    assert_eq!(engine.rate_bps(PAIR, 1), Some(200_000_000));
    assert_eq!(letters_of(&engine), "AAAAAB");
}

/// Makes the link from leaf1 to spine2 transmit a quarter of its rate, from 51 to 53 ms.
fn send_a_quarter(engine: &mut Engine) {
    for ms in 51..54 {
        let sample = Sample::Queue(QueueSample {
            port: 4,
            depth_packets: 20,
            delay_ns: 20 * 4 * 12_112,
            at_ns: ms * MS,
            busy_period: Some(BusyPeriod {
                since_ns: 50 * MS,
                sent_bytes: (ms - 50) as u32 * 125_000 / 4,
            }),
            classes: None,
        });
        engine.record(ms * MS, None, "leaf1", &sample);
        engine.poll(ms * MS);
    }
}

#[test]
fn where_queues_serve_packets_no_link_is_taken_for_slow() {
    let config = Config {
        finds_slow_links: false,
        ..Config::default()
    };
    let mut engine = Engine::new(fabric(2, 2, 2), config);
    send_a_quarter(&mut engine);
    assert_eq!(engine.slow_percent(PAIR, 1), None);
    assert!(engine.take_link_events().is_empty());
}

#[test]
fn a_link_that_has_become_slow_gets_less_at_once_and_its_part_when_it_is_not_any_more() {
    let mut engine = started();
    send_a_quarter(&mut engine);
    assert_eq!(engine.slow_percent(PAIR, 1), Some(25));
    assert_eq!(letters_of(&engine), "AAAAB");
    // A packet would take 36 us longer at that rate; these didn't.
    for ms in 100..102 {
        record(&mut engine, ms * MS, 0, 0);
        record(&mut engine, ms * MS, 1, 0);
        engine.poll(ms * MS);
    }
    let news = engine.take_link_events();
    assert_eq!(news.last().unwrap().fault, Fault::FullRate);
    assert_eq!(engine.slow_percent(PAIR, 1), None);
    assert_eq!(letters_of(&engine), "AB");
}

#[test]
fn a_moved_gap_has_a_pattern_at_once_and_the_next_one_when_it_can_have_shown() {
    let mut engine = started();
    record(&mut engine, 52 * MS, 1, 375_000);
    assert_eq!(engine.poll(52 * MS), [PAIR]);
    assert_eq!(letters_of(&engine), "AAAAB");
    let slowest_ns = engine.pattern(PAIR).unwrap().costs_ns[1];
    // Any next pattern waits until hosts can have felt this one.
    let rested_ns = 52 * MS + 2 * slowest_ns;
    record(&mut engine, 52 * MS + 1, 1, MS);
    record(&mut engine, 52 * MS + 2, 1, MS);
    assert_eq!(engine.poll(52 * MS + 2), []);
    let assessment = engine.assess(52 * MS + 2, PAIR);
    let until_ns = rested_ns;
    assert_eq!(assessment.verdict, Verdict::Resting { until_ns });
    assert_eq!(engine.next_deadline_ns(), Some(rested_ns));
    assert_eq!(engine.poll(rested_ns), [PAIR]);
    let last = engine.history(PAIR).next_back().unwrap();
    assert!(last.rested);
    assert_eq!(last.trigger.as_ref().unwrap().at_ns, 52 * MS + 1);
}

#[test]
fn the_papers_interval_holds_patterns_back_for_ten_milliseconds() {
    let config = Config {
        limits: pacing::Limits::at_least(10 * MS),
        ..Config::default()
    };
    let mut engine = Engine::new(fabric(2, 2, 2), config);
    record(&mut engine, 50 * MS, 0, 0);
    record(&mut engine, 50 * MS, 1, 0);
    engine.poll(50 * MS);
    record(&mut engine, 52 * MS, 1, 375_000);
    assert_eq!(engine.poll(52 * MS), [PAIR]);
    record(&mut engine, 53 * MS, 1, MS);
    assert_eq!(engine.poll(53 * MS), []);
    assert_eq!(engine.next_deadline_ns(), Some(62 * MS));
}

#[test]
fn a_gap_that_hysteresis_keeps_is_said_to_be_sticky() {
    let mut engine = started();
    // Ratio 1.6: rounds to 2, but within the hysteresis.
    let cost = engine.pattern(PAIR).unwrap().costs_ns[0];
    record(&mut engine, 60 * MS, 1, cost * 6 / 10);
    assert_eq!(engine.poll(60 * MS), []);
    let assessment = engine.assess(60 * MS, PAIR);
    assert_eq!(assessment.verdict, Verdict::Sticky);
    assert_eq!(
        (assessment.plain_gaps, assessment.gaps),
        (vec![2, 1], vec![1, 1])
    );
}

#[test]
fn a_queue_moves_the_patterns_of_all_pairs_behind_it() {
    let config = Config {
        input: Input::RttAndQueue,
        ..Config::default()
    };
    let mut engine = Engine::new(fabric(3, 2, 2), config);
    // Before any traffic.
    assert_eq!(engine.next_deadline_ns(), Some(0));
    assert_eq!(engine.poll(0).len(), 6);
    assert_eq!(engine.pattern(PAIR).unwrap().gaps, [1, 1]);
    let pairs = [1, 3].map(|source| LeafPair {
        source,
        destination: 2,
    });
    for (pair, path) in pairs.iter().flat_map(|pair| [(pair, 0), (pair, 1)]) {
        let rtt = rtt_sample(engine.fabric(), pair.source, path, 0);
        engine.record(MS, None, "leaf", &Sample::Rtt(rtt));
    }
    assert_eq!(engine.poll(MS), []);
    // Port 2 of spine2 leads to leaf2.
    let queue = Sample::Queue(crate::telemetry::QueueSample {
        port: 2,
        depth_packets: 30,
        delay_ns: 360_000,
        at_ns: 0,
        busy_period: None,
        classes: None,
    });
    engine.record(2 * MS, None, "spine2", &queue);
    assert_eq!(engine.poll(2 * MS), pairs);
    assert_eq!(engine.pattern(PAIR).unwrap().gaps, [4, 1]);
    // Nobody reports it any more, so it has drained.
    let drained_ns = 2 * MS + QUEUE_FRESH_NS;
    while let Some(now_ns) = engine.next_deadline_ns().filter(|&at| at < drained_ns) {
        assert_eq!(poll_answered(&mut engine, now_ns), []);
    }
    assert_eq!(engine.next_deadline_ns(), Some(drained_ns));
    assert_eq!(poll_answered(&mut engine, drained_ns), pairs);
    assert_eq!(engine.pattern(PAIR).unwrap().gaps, [1, 1]);
}

#[test]
fn with_srtt_kernels_are_left_alone() {
    let config = Config {
        input: Input::Srtt,
        ..Config::default()
    };
    let mut engine = Engine::new(fabric(2, 2, 2), config);
    record(&mut engine, MS, 0, 0);
    record(&mut engine, MS, 1, 0);
    assert_eq!(engine.poll(MS), []);
    assert_eq!(engine.assess(MS, PAIR).verdict, Verdict::KernelRtt);
    assert_eq!(engine.next_deadline_ns(), None);
}

#[test]
fn the_history_is_bounded_and_its_end_is_the_pattern() {
    let mut engine = started();
    for round in 1..=200 {
        // Far enough apart not to count as herding.
        let now = (50 + 600 * round) * MS;
        record(&mut engine, now, 1, if round % 2 == 0 { 0 } else { 3 * MS });
        let again = now + 10 * MS;
        record(&mut engine, again, 0, 0);
        record(
            &mut engine,
            again,
            1,
            if round % 2 == 0 { 0 } else { 3 * MS },
        );
        engine.poll(again);
    }
    let history: Vec<&Decision> = engine.history(PAIR).collect();
    assert_eq!(history.len(), HISTORY_DECISIONS);
    assert!(
        history
            .windows(2)
            .all(|pair| pair[0].pattern.version < pair[1].pattern.version)
    );
    assert_eq!(
        Some(&history[HISTORY_DECISIONS - 1].pattern),
        engine.pattern(PAIR)
    );
}

#[test]
fn the_same_gaps_make_no_new_version() {
    let mut engine = started();
    let version = engine.pattern(PAIR).unwrap().version;
    for at in 60..100 {
        record(&mut engine, at * MS, (at % 2) as u8, (at % 7) * 2_000);
        assert_eq!(engine.poll(at * MS), []);
    }
    assert_eq!(engine.pattern(PAIR).unwrap().version, version);
}

#[test]
fn an_idle_pair_returns_to_the_pattern_of_empty_queues_and_sleeps() {
    let mut engine = started();
    for at in 60..80 {
        record(&mut engine, at * MS, 1, 2 * MS);
        poll_answered(&mut engine, at * MS);
    }
    assert_ne!(letters_of(&engine), "AB");
    let mut last = 0;
    while let Some(deadline) = engine.next_deadline_ns() {
        poll_answered(&mut engine, deadline);
        last = deadline;
    }
    assert_eq!(last, 79 * MS + IDLE_NS);
    assert_eq!(letters_of(&engine), "AB");
}

#[test]
fn versions_grow_across_a_restart() {
    let mut engine = started();
    let mut last = engine.pattern(PAIR).unwrap().version;
    let mut now = 50 * MS;
    for round in 0..50 {
        now += 10 * MS;
        record(&mut engine, now, 1, 6 * MS * (round % 2));
        for path in 0..2 {
            record(&mut engine, now, path, 0);
        }
        engine.poll(now);
        let version = engine.pattern(PAIR).unwrap().version;
        assert!(version >= last);
        last = version;
    }
    let mut restarted = Engine::new(fabric(2, 2, 2), Config::default());
    now += MS;
    record(&mut restarted, now, 0, 0);
    record(&mut restarted, now, 1, 0);
    restarted.poll(now);
    assert!(restarted.pattern(PAIR).unwrap().version > last);
}

#[test]
fn where_addresses_do_not_decide_the_path_there_are_no_patterns() {
    for routing in [Routing::Ecmp, Routing::Flowlet, Routing::Spray] {
        let mut topology = leaf_spine(2, 2, 2);
        topology.routing = routing;
        let mut engine = Engine::new(RoutedFabric::new(topology).unwrap(), Config::default());
        record(&mut engine, MS, 0, 0);
        record(&mut engine, MS, 1, 0);
        assert_eq!(engine.poll(MS), []);
        assert_eq!(engine.next_deadline_ns(), None);
        assert_eq!(engine.assess(MS, PAIR).verdict, Verdict::Ecmp);
    }
}
