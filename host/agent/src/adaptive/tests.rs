// SPDX-License-Identifier: Apache-2.0

//! Tests of the decisions with a fluid model of a path, on virtual time.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use proptest::prelude::*;

use super::*;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
const PACKET_BITS: f64 = 1_400.0 * 8.0;

/// The state of a path for a while.
#[derive(Debug, Clone, Copy)]
struct Conditions {
    capacity_bps: f64,
    loss: f64,
    rtt_ns: u64,
    /// Relative standard deviation of the throughput of an interval.
    noise: f64,
    /// Whether the application has data to send.
    busy: bool,
}

const LOSSLESS: Conditions = Conditions {
    capacity_bps: 50e6,
    loss: 0.0,
    rtt_ns: 20 * MS,
    noise: 0.0,
    busy: true,
};
const LOSSY: Conditions = Conditions {
    loss: 0.01,
    ..LOSSLESS
};

/// A connection over paths that obey the law.
struct World {
    now_ns: u64,
    random: u64,
    connection: Connection,
    subflows: Vec<Sample>,
    next_port: u16,
    parameters: Parameters,
    /// Subflows per path over time, at every change.
    history: Vec<(u64, usize)>,
    carried_bits: f64,
    /// Maximum number of subflows that the peer accepts.
    refuses_beyond: usize,
    refused_ns: Vec<u64>,
}

impl World {
    fn new(paths: u8, parameters: Parameters, seed: u64) -> Self {
        let addresses: Vec<_> = (1..=paths).map(address).collect();
        let remote = SocketAddrV4::new([10, 2, 1, 1].into(), 5_000);
        let policy = Policy::Adaptive(parameters);
        let mut world = Self {
            now_ns: 0,
            random: seed,
            connection: Connection::new(policy, &addresses, remote, 0),
            subflows: Vec::new(),
            next_port: 10_000,
            parameters,
            history: Vec::new(),
            carried_bits: 0.0,
            refuses_beyond: SUBFLOWS_MAX,
            refused_ns: Vec::new(),
        };
        world.open(address(1), 0, remote);
        world.observe();
        world
    }

    /// Lets time pass; `conditions` of each path, the last for all further paths.
    fn run(&mut self, duration_ns: u64, conditions: &[Conditions]) {
        let end_ns = self.now_ns + duration_ns;
        while self.now_ns < end_ns {
            self.now_ns += self.parameters.interval_ns;
            for path in 1..=8 {
                let index = (usize::from(path) - 1).min(conditions.len() - 1);
                self.carry(address(path), &conditions[index]);
            }
            self.observe();
        }
    }

    /// Simulates an interval on one path.
    fn carry(&mut self, local: Ipv4Addr, conditions: &Conditions) {
        let noise = 1.0 + conditions.noise * (self.uniform() * 12f64.sqrt() - 12f64.sqrt() / 2.0);
        let seconds = self.parameters.interval_ns as f64 / 1e9;
        let mut of_path: Vec<_> = self
            .subflows
            .iter_mut()
            .filter(|subflow| *subflow.local.ip() == local)
            .collect();
        let subflows = of_path.len() as f64;
        let rtt_s = conditions.rtt_ns as f64 / 1e9;
        let law = model::subflow_bps(conditions.loss, rtt_s, 0.22, 1_400.0);
        let full = subflows * law * noise >= conditions.capacity_bps;
        let bps = (subflows * law * noise).min(conditions.capacity_bps) / subflows;
        for subflow in &mut of_path {
            subflow.rtt_min_ns = conditions.rtt_ns;
            subflow.rtt_ns = conditions.rtt_ns * if full && conditions.busy { 15 } else { 10 } / 10;
            subflow.rto_ns = 220 * MS;
            subflow.mss_bytes = 1_400;
            if !conditions.busy {
                continue;
            }
            let packets = bps * seconds / PACKET_BITS;
            self.carried_bits += bps * seconds;
            subflow.acked_bytes += (bps * seconds / 8.0) as u64;
            // Counters are whole numbers; the rest of a packet counts later.
            subflow.sent_packets = subflow.acked_bytes / 1_400 + subflow.retransmitted_packets;
            let lost = packets * conditions.loss;
            let chance = lost.fract();
            self.random = step(self.random);
            let more = u64::from(unit(self.random) < chance);
            subflow.retransmitted_packets += lost as u64 + more;
            subflow.busy_ns += self.parameters.interval_ns;
        }
    }

    fn observe(&mut self) {
        for action in self.connection.observe(self.now_ns, &self.subflows) {
            match action {
                Action::Open {
                    local,
                    address_id,
                    remote,
                } => self.open(local, address_id, remote),
                Action::Close { local, remote } => {
                    let before = self.subflows.len();
                    self.subflows
                        .retain(|subflow| (subflow.local, subflow.remote) != (local, remote));
                    assert_eq!(
                        self.subflows.len(),
                        before - 1,
                        "closed one that was not there"
                    );
                }
            }
        }
        let count = self.on(1);
        if self.history.last().is_none_or(|(_, last)| *last != count) {
            self.history.push((self.now_ns, count));
        }
    }

    fn open(&mut self, local: Ipv4Addr, address_id: u8, remote: SocketAddrV4) {
        if self.subflows.len() == self.refuses_beyond {
            self.refused_ns.push(self.now_ns);
            return;
        }
        self.next_port += 1;
        let local = SocketAddrV4::new(local, self.next_port);
        self.subflows.push(Sample::first(local, remote, address_id));
    }

    fn on(&self, path: u8) -> usize {
        let of_path = |sample: &&Sample| *sample.local.ip() == address(path);
        self.subflows.iter().filter(of_path).count()
    }

    fn uniform(&mut self) -> f64 {
        self.random = step(self.random);
        unit(self.random)
    }
}

fn address(path: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 1, 1, path)
}

/// Knuth's linear congruential generator: the same noise on every machine.
fn step(state: u64) -> u64 {
    state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407)
}

/// From 0 to 1.
fn unit(state: u64) -> f64 {
    (state >> 11) as f64 / (1u64 << 53) as f64
}

fn adaptive(max: usize) -> Parameters {
    Parameters {
        max,
        ..Parameters::default()
    }
}

#[test]
fn every_path_gets_its_first_subflow_at_once() {
    let world = World::new(4, adaptive(4), 1);
    assert_eq!((1..=4).map(|path| world.on(path)).sum::<usize>(), 4);
    assert_eq!(world.now_ns, 0);
}

#[test]
fn a_lossless_path_keeps_one_subflow() {
    let mut world = World::new(2, adaptive(4), 1);
    world.run(60 * SECOND, &[LOSSLESS]);
    assert_eq!(world.history, [(0, 1)]);
}

#[test]
fn a_lossy_path_grows_and_its_neighbour_does_not() {
    let mut world = World::new(2, adaptive(4), 1);
    world.run(20 * SECOND, &[LOSSY, LOSSLESS]);
    assert_eq!((world.on(1), world.on(2)), (4, 1));
}

#[test]
fn growth_ends_where_the_path_is_full() {
    // 2.5 loss-limited subflows fill it: the third adds a fifth, a fourth nothing.
    let law = model::subflow_bps(0.01, 0.02, 0.22, 1_400.0);
    let path = Conditions {
        capacity_bps: 2.5 * law,
        ..LOSSY
    };
    let mut world = World::new(1, adaptive(8), 1);
    world.run(60 * SECOND, &[path]);
    assert_eq!(world.history.iter().map(|(_, count)| *count).max(), Some(3));
    assert_eq!(world.on(1), 3);
}

#[test]
fn growth_ends_where_the_gain_is_marginal() {
    // From 3 to 4 is 33% more, from 4 to 5 it is 25%.
    let demanding = Parameters {
        gain: 0.3,
        ..adaptive(8)
    };
    let mut world = World::new(1, demanding, 1);
    world.run(60 * SECOND, &[LOSSY]);
    assert_eq!(world.on(1), 4);
}

#[test]
fn it_comes_back_to_one_after_the_loss() {
    let mut world = World::new(1, adaptive(4), 1);
    world.run(20 * SECOND, &[LOSSY]);
    assert_eq!(world.on(1), 4);
    world.run(20 * SECOND, &[LOSSLESS]);
    assert_eq!(world.on(1), 1);
}

#[test]
fn it_comes_back_to_one_when_the_application_is_silent() {
    let mut world = World::new(1, adaptive(4), 1);
    world.run(20 * SECOND, &[LOSSY]);
    let silent = Conditions {
        busy: false,
        ..LOSSY
    };
    world.run(200 * SECOND, &[silent]);
    assert_eq!(world.on(1), 1);
}

#[test]
fn a_subflow_that_brings_nothing_is_closed_again() {
    // The law allows more, but something else (a receiver, a policer) is the limit.
    let law = model::subflow_bps(0.01, 0.02, 0.22, 1_400.0);
    let mut world = World::new(1, adaptive(4), 1);
    for _ in 0..200 {
        let share = law / world.on(1) as f64;
        let policed = Conditions {
            capacity_bps: f64::INFINITY,
            // The loss at which this many subflows fill the path.
            loss: (0..1_000)
                .map(|step| 0.01 * 1.005f64.powi(step))
                .find(|loss| model::subflow_bps(*loss, 0.02, 0.22, 1_400.0) <= share)
                .unwrap(),
            ..LOSSY
        };
        world.run(100 * MS, &[policed]);
    }
    assert_eq!(world.history.iter().map(|(_, count)| *count).max(), Some(2));
    assert_eq!(world.on(1), 1);
}

#[test]
fn a_subflow_that_is_lost_is_opened_again() {
    let mut world = World::new(2, adaptive(4), 1);
    world.run(20 * SECOND, &[LOSSY, LOSSLESS]);
    world
        .subflows
        .retain(|subflow| *subflow.local.ip() != address(1));
    world.run(SECOND, &[LOSSY, LOSSLESS]);
    assert_eq!((world.on(1), world.on(2)), (4, 1));
}

#[test]
fn a_path_that_takes_no_more_subflows_is_left_with_what_it_has() {
    let mut world = World::new(1, adaptive(4), 1);
    world.refuses_beyond = 2;
    world.run(100 * SECOND, &[LOSSY]);
    assert_eq!(world.on(1), 2);
    let asked = world
        .refused_ns
        .iter()
        .filter(|at_ns| **at_ns > 20 * SECOND);
    assert!(asked.count() <= 4, "{:?}", world.refused_ns);
}

#[test]
fn a_subflow_that_is_slow_to_open_is_asked_for_once() {
    let mut connection = Connection::new(
        Policy::Fixed(2),
        &[address(1)],
        SocketAddrV4::new([10, 2, 1, 1].into(), 5_000),
        0,
    );
    let remote = SocketAddrV4::new([10, 2, 1, 1].into(), 5_000);
    let first = Sample::first(SocketAddrV4::new(address(1), 1), remote, 0);
    let second = Sample {
        local: SocketAddrV4::new(address(1), 2),
        established: false,
        ..first
    };
    assert_eq!(connection.observe(0, &[first]).len(), 1);
    assert!(connection.is_waiting());
    assert!(connection.observe(SECOND, &[first]).is_empty());
    assert_eq!(connection.observe(5 * SECOND, &[first]).len(), 1);
    assert!(connection.observe(6 * SECOND, &[first, second]).is_empty());
    assert!(!connection.is_waiting());
}

#[test]
fn a_fixed_number_is_kept_whatever_the_loss() {
    let remote = SocketAddrV4::new([10, 2, 1, 1].into(), 5_000);
    let addresses = [address(1), address(2)];
    let mut connection = Connection::new(Policy::Fixed(2), &addresses, remote, 0);
    let first = Sample::first(SocketAddrV4::new(address(1), 1), remote, 0);
    let actions = connection.observe(0, &[first]);
    let opened: BTreeMap<_, _> = actions
        .iter()
        .map(|action| match action {
            Action::Open {
                local, address_id, ..
            } => (*local, *address_id),
            Action::Close { .. } => panic!("{action:?}"),
        })
        .collect();
    assert_eq!(actions.len(), 3);
    // MPTCP's ID of the first address is 0; the second address has its own.
    assert_eq!(opened, BTreeMap::from([(address(1), 0), (address(2), 2)]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_number_stays_within_its_bounds(
        seed: u64,
        paths in 1u8..=8,
        max in 1usize..=8,
        losses in proptest::collection::vec((0.0f64..0.2, 1u64..200, any::<bool>()), 1..6),
    ) {
        let mut world = World::new(paths, adaptive(max), seed);
        for (loss, rtt_ms, busy) in losses {
            let path = Conditions { loss, rtt_ns: rtt_ms * MS, noise: 0.3, busy, ..LOSSLESS };
            for _ in 0..50 {
                world.run(100 * MS, &[path, LOSSLESS]);
                for path in 1..=paths {
                    prop_assert!((1..=max).contains(&world.on(path)));
                }
                prop_assert!(world.subflows.len() <= SUBFLOWS_MAX);
            }
        }
    }

    #[test]
    fn noise_makes_no_flapping(seed: u64, loss in 0.002f64..0.03, noise in 0.0f64..0.2) {
        let mut world = World::new(1, adaptive(4), seed);
        world.run(300 * SECOND, &[Conditions { loss, noise, ..LOSSLESS }]);
        // Pauses double up to a minute: some trials at first, then one per minute.
        let changes = world.history.iter().filter(|(at_ns, _)| *at_ns > 100 * SECOND).count();
        prop_assert!(changes <= 12, "{:?}", world.history);
    }

    #[test]
    fn a_lossy_path_gets_near_the_best_fixed_number(seed: u64, loss in 0.002f64..0.05, noise in 0.0f64..0.1) {
        let path = Conditions { loss, noise, ..LOSSLESS };
        let mut world = World::new(1, adaptive(4), seed);
        world.run(10 * SECOND, &[path]);
        world.carried_bits = 0.0;
        world.run(60 * SECOND, &[path]);
        let law = model::subflow_bps(loss, 0.02, 0.22, 1_400.0);
        let best = (4.0 * law).min(path.capacity_bps);
        prop_assert!(world.carried_bits / 60.0 > 0.8 * best, "{:?}", world.history);
    }
}
