// SPDX-License-Identifier: Apache-2.0

use proptest::prelude::*;

use super::*;

const STALL_NS: u64 = 30_000_000_000;
const RTT_NS: u64 = 100_000;
const SETTLE_NS: u64 = 50_000_000;

/// A run whose flows start at the times of the plan.
fn timed(plan: Vec<Flow>, connections: Connections, now: u64) -> Engine {
    Engine::new(plan, settings(connections), now)
}

fn settings(connections: Connections) -> Settings {
    Settings {
        connections,
        order: Order::Timed,
        stall_ns: STALL_NS,
        settle_ns: SETTLE_NS,
        stop_ns: None,
        precision: None,
        warmup_ns: 0,
    }
}

fn flow(source: usize, bytes: u64, start_ns: u64) -> Flow {
    Flow {
        source,
        destination: 9,
        bytes,
        start_ns,
    }
}

fn actions(engine: &mut Engine) -> Vec<Action> {
    std::iter::from_fn(|| engine.poll_action()).collect()
}

fn opened(actions: &[Action]) -> Vec<ConnectionId> {
    actions
        .iter()
        .filter_map(|action| match action {
            Action::Open { connection, .. } => Some(*connection),
            _ => None,
        })
        .collect()
}

/// A network in which connecting takes one RTT and every byte 8 ns. Runs the engine to its end
/// on virtual time, and returns all its actions.
fn drive(engine: &mut Engine, mut now: u64) -> Vec<Action> {
    #[derive(Clone, Copy)]
    enum Event {
        Connected(ConnectionId),
        Received(ConnectionId, u64),
        Requested(ConnectionId, u64),
    }
    let mut log = Vec::new();
    let mut agenda: std::collections::BTreeMap<(u64, usize), Event> = Default::default();
    while !engine.is_done() {
        while let Some(action) = engine.poll_action() {
            match action {
                Action::Open { connection, .. } => {
                    let key = (now + RTT_NS, log.len());
                    agenda.insert(key, Event::Connected(connection));
                }
                Action::Send {
                    connection, bytes, ..
                } => {
                    let half = bytes / 2;
                    let key = (now + RTT_NS / 2 + bytes * 8, log.len());
                    agenda.insert((key.0 - 1, key.1), Event::Received(connection, half));
                    agenda.insert(key, Event::Received(connection, bytes - half));
                }
                Action::Request { connection, bytes } => {
                    let key = (now + RTT_NS / 2, log.len());
                    agenda.insert(key, Event::Requested(connection, bytes));
                }
                Action::Announce { .. } | Action::Finish { .. } | Action::Close { .. } => {}
            }
            log.push(action);
        }
        let event = agenda.first_key_value().map(|(key, event)| (*key, *event));
        let deadline = engine.poll_timeout();
        match (event, deadline) {
            (Some((key, event)), deadline) if deadline.is_none_or(|at| key.0 <= at) => {
                agenda.remove(&key);
                now = key.0;
                match event {
                    Event::Connected(connection) => engine.handle_connected(connection, now),
                    Event::Received(connection, bytes) => {
                        engine.handle_received(connection, bytes, now);
                    }
                    Event::Requested(connection, bytes) => {
                        engine.handle_requested(connection, bytes, now);
                    }
                }
            }
            (_, Some(at)) => {
                now = at;
                engine.handle_timeout(now);
            }
            (_, None) => break,
        }
    }
    log
}

fn fcts(engine: Engine) -> Vec<u64> {
    engine
        .into_outcomes()
        .1
        .into_iter()
        .map(|outcome| match outcome {
            Outcome::Done { fct_ns } => fct_ns,
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn a_persistent_connection_is_greeted_before_and_reused_during_the_run() {
    let plan = vec![flow(1, 1_000, 0), flow(1, 1_000, 1_000_000)];
    let mut engine = timed(plan, Connections::Persistent, 5);
    let log = drive(&mut engine, 5);
    assert_eq!(opened(&log), [0]);
    assert_eq!(
        log[1],
        Action::Send {
            connection: 0,
            bytes: 1,
            flow: None
        }
    );
    // No handshake within the flows' completion times.
    assert_eq!(fcts(engine), [RTT_NS / 2 + 8_000; 2]);
}

#[test]
fn a_busy_connection_makes_the_next_flow_open_one_and_pay_for_it() {
    let plan = vec![flow(1, 1_000_000, 0), flow(1, 1_000, 10)];
    let mut engine = timed(plan, Connections::Persistent, 0);
    let log = drive(&mut engine, 0);
    assert_eq!(opened(&log), [0, 1]);
    let fct = fcts(engine);
    assert_eq!(fct[1], RTT_NS + RTT_NS / 2 + 8_000);
}

#[test]
fn new_connections_cost_a_handshake_each_and_are_closed() {
    let plan = vec![flow(1, 1_000, 0), flow(1, 1_000, 1_000_000)];
    let mut engine = timed(plan, Connections::New, 0);
    let log = drive(&mut engine, 0);
    assert_eq!(opened(&log), [0, 1]);
    for connection in [0, 1] {
        let at = |wanted| log.iter().position(|action| *action == wanted).unwrap();
        let flow = connection;
        assert!(at(Action::Finish { connection, flow }) < at(Action::Close { connection }));
    }
    assert_eq!(fcts(engine), [RTT_NS + RTT_NS / 2 + 8_000; 2]);
}

#[test]
fn an_incast_starts_all_flows_at_the_same_moment_on_ready_connections() {
    let plan: Vec<Flow> = (0..40).map(|i| flow(i % 4, 1_000, 0)).collect();
    let mut engine = timed(plan, Connections::Persistent, 0);
    assert_eq!(opened(&actions(&mut engine)).len(), WARM_UP_CONCURRENCY);
    let mut engine = timed(
        (0..40).map(|i| flow(i % 4, 1_000, 0)).collect(),
        Connections::Persistent,
        0,
    );
    let log = drive(&mut engine, 0);
    assert_eq!(opened(&log).len(), 40);
    let first = log
        .iter()
        .position(|action| matches!(action, Action::Send { flow: Some(_), .. }))
        .unwrap();
    let burst = &log[first..first + 40];
    assert!(
        burst
            .iter()
            .all(|action| matches!(action, Action::Send { .. }))
    );
}

#[test]
fn a_refused_connection_fails_its_flow_only() {
    let plan = vec![flow(1, 1_000, 0), flow(2, 1_000, 0)];
    let mut engine = timed(plan, Connections::New, 0);
    actions(&mut engine);
    engine.handle_failed(0, "connection refused", 10);
    engine.handle_connected(1, 20);
    engine.handle_received(1, 1_000, 30);
    actions(&mut engine);
    assert!(engine.is_done());
    let (_, outcomes) = engine.into_outcomes();
    assert_eq!(
        outcomes[0],
        Outcome::Failed {
            reason: "connection refused".into()
        }
    );
    assert_eq!(outcomes[1], Outcome::Done { fct_ns: 30 });
}

#[test]
fn a_broken_idle_connection_is_replaced() {
    let plan = vec![flow(1, 1_000, 0), flow(1, 1_000, 1_000_000_000)];
    let mut engine = timed(plan, Connections::Persistent, 0);
    actions(&mut engine);
    engine.handle_connected(0, 1);
    engine.handle_received(0, 1, 2);
    engine.handle_timeout(2 + SETTLE_NS);
    engine.handle_received(0, 1_000, 3 + SETTLE_NS);
    engine.handle_failed(0, "reset", 4 + SETTLE_NS);
    actions(&mut engine);
    engine.handle_timeout(2 + SETTLE_NS + 1_000_000_000);
    assert_eq!(opened(&actions(&mut engine)), [1]);
}

#[test]
fn a_dead_network_ends_the_run_with_a_reason_for_every_flow() {
    let plan = vec![
        flow(1, 1_000, 0),
        flow(2, 1_000, 0),
        flow(3, 1, 2 * STALL_NS),
    ];
    let mut engine = timed(plan, Connections::New, 0);
    actions(&mut engine);
    engine.handle_connected(0, 7);
    actions(&mut engine);
    assert_eq!(engine.poll_timeout(), Some(STALL_NS + 7));
    engine.handle_timeout(STALL_NS + 7);
    actions(&mut engine);
    assert!(engine.is_done());
    let (_, outcomes) = engine.into_outcomes();
    let reasons: Vec<String> = outcomes.iter().map(|o| format!("{o:?}")).collect();
    assert!(reasons[0].contains("no byte arrived anywhere for 30 s"));
    assert!(reasons[1].contains("no byte arrived"));
    assert!(reasons[2].contains("not started"));
}

#[test]
fn a_dead_network_ends_the_warm_up_too() {
    let plan = (0..40).map(|i| flow(i, 1, 0)).collect();
    let mut engine = timed(plan, Connections::Persistent, 0);
    actions(&mut engine);
    engine.handle_timeout(STALL_NS);
    actions(&mut engine);
    assert!(engine.is_done());
}

#[test]
fn the_start_is_announced_before_it_comes() {
    let plan = vec![flow(1, 1_000, 0)];
    let mut engine = timed(plan.clone(), Connections::Persistent, 0);
    let log = drive(&mut engine, 0);
    let at = |wanted: fn(&Action) -> bool| log.iter().position(wanted).unwrap();
    let announced = at(|action| matches!(action, Action::Announce { .. }));
    let sent = at(|action| matches!(action, Action::Send { flow: Some(_), .. }));
    assert!(announced < sent);
    let start_ns = engine.epoch_ns().unwrap();
    assert_eq!(log[announced], Action::Announce { start_ns });
    let mut engine = timed(plan, Connections::New, 7);
    assert_eq!(actions(&mut engine)[0], Action::Announce { start_ns: 7 });
}

#[test]
fn a_run_that_is_stopped_says_what_arrived_by_then() {
    let plan = vec![flow(1, u64::MAX, 0), flow(2, 1_000, 0)];
    let settings = Settings {
        stop_ns: Some(1_000_000),
        ..settings(Connections::New)
    };
    let mut engine = Engine::new(plan, settings, 5);
    actions(&mut engine);
    for connection in [0, 1] {
        engine.handle_connected(connection, 10);
    }
    engine.handle_received(1, 1_000, 20);
    engine.handle_received(0, 777_000, 500_000);
    assert_eq!(engine.poll_timeout(), Some(1_000_005));
    engine.handle_timeout(1_000_005);
    let last = actions(&mut engine);
    let connection = 0;
    let flow = 0;
    assert!(last.contains(&Action::Finish { connection, flow }));
    assert!(last.contains(&Action::Close { connection }));
    assert!(engine.is_done());
    let (_, outcomes) = engine.into_outcomes();
    assert_eq!(
        outcomes,
        [
            Outcome::Stopped {
                after_ns: 1_000_000,
                bytes: 777_000
            },
            Outcome::Done { fct_ns: 15 }
        ]
    );
}

/// Objects of 1000 bytes, fetched over this number of connections.
fn page(objects: usize, parallel: usize, connections: Connections) -> Engine {
    let settings = Settings {
        order: Order::Fetched { parallel },
        ..settings(connections)
    };
    let plan = (0..objects).map(|_| flow(1, 1_000, 0)).collect();
    Engine::new(plan, settings, 0)
}

#[test]
fn each_connection_of_a_page_fetches_the_next_object_when_its_last_is_done() {
    let mut engine = page(7, 3, Connections::Persistent);
    let log = drive(&mut engine, 0);
    assert_eq!(opened(&log), [0, 1, 2]);
    let (plan, outcomes) = engine.into_outcomes();
    // A request to the server, then the object in return.
    let fetch_ns = RTT_NS + 8_000;
    let starts: Vec<u64> = plan.iter().map(|flow| flow.start_ns / fetch_ns).collect();
    assert_eq!(starts, [0, 0, 0, 1, 1, 1, 2]);
    assert!(plan.iter().all(|flow| flow.start_ns % fetch_ns == 0));
    assert_eq!(outcomes, vec![Outcome::Done { fct_ns: fetch_ns }; 7]);
}

#[test]
fn a_page_may_open_a_connection_for_every_object() {
    let mut engine = page(5, 2, Connections::New);
    let log = drive(&mut engine, 0);
    assert_eq!(opened(&log).len(), 5);
    assert_eq!(fcts(engine), [2 * RTT_NS + 8_000; 5]);
}

#[test]
fn a_page_goes_on_when_an_object_fails() {
    let mut engine = page(3, 1, Connections::New);
    actions(&mut engine);
    engine.handle_connected(0, 10);
    engine.handle_failed(0, "reset", 20);
    assert_eq!(opened(&actions(&mut engine)), [1]);
    engine.handle_failed(1, "refused", 30);
    assert_eq!(opened(&actions(&mut engine)), [2]);
}

#[test]
fn the_answers_of_a_query_are_asked_for_at_its_time() {
    let settings = Settings {
        order: Order::Requested,
        ..settings(Connections::Persistent)
    };
    let plan = vec![
        flow(1, 1_000, 0),
        flow(2, 1_000, 0),
        flow(1, 1_000, 900_000),
    ];
    let mut engine = Engine::new(plan, settings, 0);
    let log = drive(&mut engine, 0);
    let asked = |action: &&Action| matches!(action, Action::Request { .. });
    assert_eq!(log.iter().filter(asked).count(), 3);
    assert_eq!(fcts(engine), [RTT_NS + 8_000; 3]);
}

#[test]
fn no_more_flows_start_once_the_mean_is_known() {
    let settings = Settings {
        precision: Some(0.05),
        ..settings(Connections::Persistent)
    };
    let plan = (0..5_000).map(|i| flow(1, 1_000 + i % 7, i * 1_000_000));
    let mut engine = Engine::new(plan.collect(), settings, 0);
    drive(&mut engine, 0);
    assert!(engine.is_done());
    let (plan, outcomes) = engine.into_outcomes();
    assert_eq!(plan.len(), 200);
    assert!(
        outcomes
            .iter()
            .all(|outcome| matches!(outcome, Outcome::Done { .. }))
    );
}

#[test]
fn flows_of_the_warm_up_do_not_count_for_the_mean() {
    let settings = Settings {
        precision: Some(0.05),
        warmup_ns: 50_000_000,
        ..settings(Connections::Persistent)
    };
    let plan = (0..5_000).map(|i| flow(1, 1_000 + i % 7, i * 1_000_000));
    let mut engine = Engine::new(plan.collect(), settings, 0);
    drive(&mut engine, 0);
    // 200 as without it, and the 50 before.
    assert_eq!(engine.into_outcomes().0.len(), 250);
}

proptest! {
    #[test]
    fn every_flow_ends_once_and_never_before_its_bytes_can_be_there(
        flows in prop::collection::vec((0usize..3, 1u64..100_000, 0u64..300_000), 1..40),
        fresh: bool,
    ) {
        let mut start_ns = 0;
        let plan: Vec<Flow> = flows
            .iter()
            .map(|(source, bytes, gap)| {
                start_ns += gap;
                flow(*source, *bytes, start_ns)
            })
            .collect();
        let mode = if fresh { Connections::New } else { Connections::Persistent };
        let mut engine = timed(plan.clone(), mode, 0);
        let log = drive(&mut engine, 0);
        let finished = log
            .iter()
            .filter(|action| matches!(action, Action::Finish { .. }))
            .count();
        prop_assert_eq!(finished, plan.len());
        prop_assert!(engine.is_done());
        for (fct_ns, flow) in fcts(engine).into_iter().zip(plan) {
            prop_assert!(fct_ns >= RTT_NS / 2 + flow.bytes * 8);
            prop_assert!(fct_ns <= RTT_NS + RTT_NS / 2 + flow.bytes * 8);
        }
    }
}
