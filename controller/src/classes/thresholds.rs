// SPDX-License-Identifier: Apache-2.0

//! The thresholds with the shortest mean waiting time.
//!
//! A link that serves classes in strict order is a queue with preemptive priorities. A connection
//! is a job in the class of what it has left; when that falls below a threshold, it is a new job
//! in the class before. If jobs come at random, one of class `i` spends there on average
//!
//! ```text
//!        R_i                 S_i                     R_i: mean rest of the work in service, of
//! ----------------------- + ------------                  classes up to i
//! (1 - L_i-1) (1 - L_i)     1 - L_i-1                 S_i: its own work in class i
//!                                                     L_i: load of the classes up to i
//! ```
//!
//! (Cobham, Operations Research 2(1), 1954; with preemption in Kleinrock, Queueing Systems II,
//! section 3.4). A threshold that is too low leaves long connections among each other in the last
//! classes, and one that is too high puts short ones behind long ones.

use super::sizes::Sizes;

/// The load that thresholds are made for, of the link. They differ little between 0.5 and 0.8,
/// and what happens at low loads matters less.
const LOAD: f64 = 0.7;

/// A full-size packet: a class of less orders nothing.
const LEAST_BYTES: f64 = 1500.0;

/// Candidates for thresholds in each factor of ten.
const PER_DECADE: i32 = 12;

/// Thresholds are multiples of this.
const UNIT_BYTES: f64 = 1000.0;

/// Mean time of connections in the network, in a unit of its own.
pub fn waiting(sizes: &Sizes, most_bytes: &[u64]) -> f64 {
    let ends = most_bytes.iter().map(|&bytes| bytes as f64);
    let (mut from, mut load, mut rest, mut time) = (0.0, 0.0, 0.0, 0.0);
    for to in ends.chain([f64::INFINITY]) {
        let (bytes, moment) = sizes.between(from, to);
        let jobs = sizes.flows_above(from);
        rest += LOAD * LOAD * moment;
        let load_with = load + LOAD * bytes;
        time += jobs * rest / ((1.0 - load) * (1.0 - load_with)) + LOAD * bytes / (1.0 - load);
        (from, load) = (to, load_with);
    }
    time
}

/// The best thresholds, as many as `most_bytes` are.
///
/// Moves one threshold after the other to the best place between its neighbours, from
/// `most_bytes` on and from evenly spread ones on, until none moves.
pub fn best(sizes: &Sizes, most_bytes: &[u64]) -> Vec<u64> {
    let places = candidates(sizes.most(), most_bytes.len());
    let count = most_bytes.len();
    let spread = (1..=count).map(|threshold| threshold * places.len() / (count + 1));
    let near = |&bytes: &u64| places.partition_point(|&place| place < bytes);
    let present = most_bytes.iter().map(near);
    let starts = [spread.collect(), present.collect()];
    let descents = starts.map(|start| descend(sizes, &places, rising(start, places.len())));
    let [first, second] = descents.map(|thresholds| (waiting(sizes, &thresholds), thresholds));
    if first.0 <= second.0 {
        first.1
    } else {
        second.1
    }
}

/// Moves equal places apart, so that each threshold has its own.
fn rising(mut places: Vec<usize>, length: usize) -> Vec<usize> {
    let count = places.len();
    let mut least = 0;
    for (index, place) in places.iter_mut().enumerate() {
        *place = (*place).clamp(least, length - (count - index));
        least = *place + 1;
    }
    places
}

fn descend(sizes: &Sizes, places: &[u64], mut chosen: Vec<usize>) -> Vec<u64> {
    let thresholds =
        |chosen: &[usize]| -> Vec<u64> { chosen.iter().map(|&place| places[place]).collect() };
    let mut least = waiting(sizes, &thresholds(&chosen));
    loop {
        let mut moved = false;
        for index in 0..chosen.len() {
            let low = if index == 0 { 0 } else { chosen[index - 1] + 1 };
            let high = chosen.get(index + 1).copied().unwrap_or(places.len());
            for place in low..high {
                let before = std::mem::replace(&mut chosen[index], place);
                let time = waiting(sizes, &thresholds(&chosen));
                // Equal ones must not move for ever.
                if time < least * (1.0 - 1e-9) {
                    least = time;
                    moved = true;
                } else {
                    chosen[index] = before;
                }
            }
        }
        if !moved {
            return thresholds(&chosen);
        }
    }
}

/// Possible thresholds up to `most_bytes`, evenly by their logarithm; at least `count`.
fn candidates(most_bytes: f64, count: usize) -> Vec<u64> {
    let factor = 10f64.powf(1.0 / f64::from(PER_DECADE));
    let mut places = Vec::new();
    let mut bytes = LEAST_BYTES;
    while bytes < most_bytes || places.len() < count {
        let place = ((bytes / UNIT_BYTES).ceil() * UNIT_BYTES) as u64;
        if places.last() != Some(&place) {
            places.push(place);
        }
        bytes *= factor;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUILT_IN: [u64; 6] = [15_000, 45_000, 150_000, 500_000, 1_500_000, 5_000_000];

    /// The bytes of flows of these sizes in each class.
    fn sizes(flows: &[(f64, f64)]) -> Sizes {
        let mut bytes = Vec::new();
        let mut from = 0.0;
        let ends = BUILT_IN.map(|bytes| bytes as f64).into_iter();
        for to in ends.chain([f64::INFINITY]) {
            let in_class = |&(size, count): &(f64, f64)| (size.min(to) - from).max(0.0) * count;
            bytes.push(flows.iter().map(in_class).sum());
            from = to;
        }
        Sizes::of(&bytes, &BUILT_IN).unwrap()
    }

    #[test]
    fn a_threshold_separates_the_short_from_the_long() {
        let sizes = sizes(&[(50_000.0, 90.0), (5_000_000.0, 1.0)]);
        let best = best(&sizes, &[15_000]);
        // The classes that were seen end at 45 and 150 kB.
        assert!((45_000..=150_000).contains(&best[0]), "{best:?}");
    }

    #[test]
    fn the_best_are_better_than_the_built_in_ones_and_rise() {
        let web_search = [
            (9e3, 15.0),
            (60e3, 40.0),
            (500e3, 15.0),
            (2e6, 20.0),
            (8e6, 10.0),
        ];
        for flows in [&web_search[..], &web_search[..2], &web_search[3..]] {
            let sizes = sizes(flows);
            let best = best(&sizes, &BUILT_IN);
            assert!(waiting(&sizes, &best) <= waiting(&sizes, &BUILT_IN));
            assert!(best.windows(2).all(|two| two[0] < two[1]), "{best:?}");
            assert_eq!(best.len(), BUILT_IN.len());
        }
    }

    #[test]
    fn more_classes_wait_less() {
        let sizes = sizes(&[(9e3, 15.0), (60e3, 40.0), (2e6, 20.0), (8e6, 10.0)]);
        let times = [1, 2, 4, 6].map(|count| waiting(&sizes, &best(&sizes, &BUILT_IN[..count])));
        assert!(times.windows(2).all(|two| two[0] > two[1]), "{times:?}");
    }

    #[test]
    fn tiny_flows_alone_still_give_as_many_thresholds_as_there_are_classes() {
        let sizes = sizes(&[(300.0, 1.0)]);
        assert_eq!(best(&sizes, &BUILT_IN).len(), BUILT_IN.len());
    }
}
