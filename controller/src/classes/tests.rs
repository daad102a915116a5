// SPDX-License-Identifier: Apache-2.0

//! Tests of classes, on invented counts.

use super::*;

const MS: u64 = 1_000_000;

/// Bytes by class of a host that sends so many flows of these sizes, by thresholds.
fn bytes_of(flows: &[(u64, u64)], most_bytes: &[u64]) -> [u64; CLASSES] {
    let mut bytes = [0; CLASSES];
    let mut from = 0;
    let ends = most_bytes.iter().copied().chain([u64::MAX]);
    for (bytes, to) in bytes[1..].iter_mut().zip(ends) {
        let in_class = |&(size, count): &(u64, u64)| size.min(to).saturating_sub(from) * count;
        *bytes = flows.iter().map(in_class).sum();
        from = to;
    }
    bytes
}

/// Flows below all built-in thresholds.
const SHORT: [(u64, u64); 2] = [(4_000, 1000), (40_000, 500)];
/// Flows that end above all built-in thresholds.
const LONG: [(u64, u64); 3] = [(20_000_000, 12), (100_000_000, 4), (225_000_000, 2)];

/// A mix of sizes whose thresholds are the built-in ones. With those of long flows, over a quarter
/// is in the first class, and by what is seen then others are only somewhat better.
const MIXED: [(u64, u64); 6] = [
    (10_000, 300),
    (50_000, 250),
    (700_000, 100),
    (2_000_000, 140),
    (7_000_000, 90),
    (20_000_000, 30),
];

/// A fabric of hosts that send the same flows over and over.
struct Fabric {
    classes: Classes,
    sent: [[u64; CLASSES]; 4],
    now_ns: u64,
}

impl Fabric {
    fn new(adapts: bool) -> Self {
        let mut fabric = Self {
            classes: Classes::new(8, adapts),
            sent: [[0; CLASSES]; 4],
            now_ns: MS,
        };
        (0..4).for_each(|host| fabric.report(host, [0; CLASSES]));
        fabric
    }

    /// Lets every host send its flows until the windows are full.
    fn fill(&mut self, flows: [&[(u64, u64)]; 4]) -> Changes {
        for _ in 1..WINDOWS {
            assert_eq!(self.send(flows), Changes::default());
        }
        self.send(flows)
    }

    /// Lets every host send its flows once, and 200 ms pass.
    fn send(&mut self, flows: [&[(u64, u64)]; 4]) -> Changes {
        for (host, flows) in flows.into_iter().enumerate() {
            let bytes = bytes_of(flows, self.classes.most_bytes());
            self.report(host, bytes);
        }
        self.now_ns += 200 * MS;
        self.classes.poll(self.now_ns, self.now_ns / 1000)
    }

    fn report(&mut self, host: usize, bytes: [u64; CLASSES]) {
        for (sum, bytes) in self.sent[host].iter_mut().zip(bytes) {
            *sum += bytes;
        }
        let sample = ClassSample {
            port: host as u16 + 1,
            bytes: self.sent[host],
            at_ns: self.now_ns,
        };
        self.classes.record(self.now_ns, "leaf1", &sample);
    }
}

#[test]
fn thresholds_follow_the_sizes_of_flows() {
    let mut fabric = Fabric::new(true);
    let built_in = fabric.classes.most_bytes().to_vec();
    assert!(fabric.fill([&LONG; 4]).thresholds);
    let of_long = fabric.classes.most_bytes().to_vec();
    assert!(of_long[5] > built_in[5], "{of_long:?}");
    let decided = fabric.classes.decided().unwrap();
    assert!(decided.waiting < CLEARLY_BETTER);
    assert!(decided.seen_bytes >= WINDOW_BYTES);
    // And anew when the traffic changes.
    let changed = (0..2 * WINDOWS).any(|_| fabric.send([&SHORT; 4]).thresholds);
    assert!(changed);
    for _ in 0..2 * WINDOWS {
        fabric.send([&SHORT; 4]);
    }
    assert!(fabric.classes.most_bytes()[5] < of_long[5]);
}

#[test]
fn the_same_traffic_settles() {
    let mut fabric = Fabric::new(true);
    assert!(fabric.fill([&LONG; 4]).thresholds);
    let changes: Vec<bool> = (0..20)
        .map(|_| fabric.send([&LONG; 4]).thresholds)
        .collect();
    assert!(changes[5..].iter().all(|changed| !changed), "{changes:?}");
}

#[test]
fn too_few_bytes_and_too_little_time_decide_nothing() {
    let mut fabric = Fabric::new(true);
    let few = [(10_000, 100)];
    assert_eq!(fabric.send([&few; 4]), Changes::default());
    assert_eq!(fabric.classes.seen_bytes(), 4_000_000);
    let mut early = Fabric::new(true);
    early.report(0, bytes_of(&LONG, early.classes.most_bytes()));
    let changes = early.classes.poll(early.now_ns + 199 * MS, 1);
    assert_eq!(changes, Changes::default());
}

#[test]
fn a_host_that_lies_shifts_neither_thresholds_nor_rates() {
    let honest = {
        let mut fabric = Fabric::new(true);
        fabric.fill([&LONG; 4]);
        fabric.classes
    };
    let mut fabric = Fabric::new(true);
    let mut lies = [0; CLASSES];
    lies[1] = 400_000_000;
    for _ in 0..WINDOWS {
        fabric.report(3, lies);
        fabric.send([&LONG, &LONG, &LONG, &[]]);
    }
    assert_eq!(fabric.classes.most_bytes(), honest.most_bytes());
    assert_eq!(fabric.classes.rates(), honest.rates());
}

#[test]
fn a_host_may_send_several_times_the_typical_share_of_a_class_and_never_too_little() {
    let mut fabric = Fabric::new(false);
    assert!(fabric.fill([&LONG; 4]).rates);
    let (shares, rates) = (fabric.classes.shares(), fabric.classes.rates());
    assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    // The last class has no limit.
    assert_eq!(rates.len(), 7);
    for (share, rate) in shares.iter().zip(rates) {
        assert!(*rate >= (4.0 * share).min(1.0) - 1e-9);
        assert!((0.05..=1.0).contains(rate));
    }
    // The same again changes nothing.
    assert!(!fabric.send([&LONG; 4]).rates);
}

#[test]
fn whoever_claims_the_first_class_has_a_limit_also_after_the_traffic_has_changed() {
    let mut fabric = Fabric::new(true);
    fabric.fill([&LONG; 4]);
    for _ in 0..2 * WINDOWS {
        fabric.send([&MIXED; 4]);
    }
    assert!(fabric.classes.rates()[1] < 1.0);
}

#[test]
fn built_in_thresholds_stay_if_they_are_not_to_follow() {
    let mut fabric = Fabric::new(false);
    let built_in = fabric.classes.most_bytes().to_vec();
    assert!(!fabric.fill([&LONG; 4]).thresholds);
    assert_eq!(fabric.classes.most_bytes(), built_in);
    assert!(fabric.classes.decided().is_none());
}

#[test]
fn a_switch_that_restarts_counts_from_zero() {
    let mut fabric = Fabric::new(true);
    fabric.report(0, [0, 0, 0, 0, 0, 0, 0, 5_000_000]);
    assert_eq!(fabric.classes.seen_bytes(), 5_000_000);
    fabric.sent[0] = [0; CLASSES];
    fabric.report(0, [0, 0, 0, 0, 0, 0, 0, 2_000_000]);
    assert_eq!(fabric.classes.seen_bytes(), 2_000_000);
}

#[test]
fn two_classes_have_no_threshold_to_move() {
    let mut classes = Classes::new(2, true);
    assert!(!classes.adapts());
    for window in 0..=WINDOWS as u64 {
        let sample = ClassSample {
            port: 1,
            bytes: [0, window * 30_000_000, 0, 0, 0, 0, 0, 0],
            at_ns: 0,
        };
        let now_ns = window * WINDOW_NS;
        classes.record(now_ns, "leaf1", &sample);
        assert!(!classes.poll(now_ns, 1).thresholds);
    }
    assert_eq!(classes.rates().len(), 1);
}
