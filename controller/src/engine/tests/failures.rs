// SPDX-License-Identifier: Apache-2.0

//! Dead paths, and digests that are lost, late or repeated.

use super::*;

/// Both paths measured at 50 ms, then only path 0 until path 1 is dead. Returns when.
fn with_a_dead_path() -> (Engine, u64) {
    let mut engine = started();
    for ms in 51..100 {
        record(&mut engine, ms * MS, 0, 0);
        let changed = engine.poll(ms * MS);
        if !changed.is_empty() {
            assert!(changed.contains(&PAIR));
            return (engine, ms * MS);
        }
    }
    panic!("path 1 has not died");
}

#[test]
fn a_dead_path_leaves_the_pattern_at_once_and_returns_with_its_packets() {
    let (mut engine, dead_ns) = with_a_dead_path();
    let pattern = engine.pattern(PAIR).unwrap();
    assert_eq!(
        (&*pattern.gaps, &*pattern.sequence),
        (&[1, 0][..], &[0][..])
    );
    let last = engine.history(PAIR).next_back().unwrap();
    assert_eq!((last.rule, &last.trigger), (Rule::Failed, &None));
    assert!(dead_ns - 50 * MS < 25 * MS, "{dead_ns}");

    engine.take_probes();
    let mut now = dead_ns;
    while engine.liveness().is_dead(PAIR, 1) {
        now = engine.next_deadline_ns().unwrap();
        engine.poll(now);
        for probe in engine.take_probes() {
            engine.probed(now, probe);
        }
        assert!(now < dead_ns + 20 * MS, "it does not return");
    }
    assert_eq!(engine.poll(now), [PAIR]);
    assert_eq!(engine.pattern(PAIR).unwrap().gaps, [1, 1]);
    let last = engine.history(PAIR).next_back().unwrap();
    assert_eq!(last.rule, Rule::Returned);
}

#[test]
fn of_three_paths_the_living_share_the_pattern() {
    assert_eq!(assess::sequence_of(&[2, 0, 1]), [0, 0, 2]);
    assert_eq!(assess::sequence_of(&[0, 1, 1]), [1, 2]);
}

#[test]
fn when_no_path_is_known_to_live_the_pattern_stays() {
    let (mut engine, dead_ns) = with_a_dead_path();
    // Path 1 has samples and path 0 falls silent, too early for path 1 to be back.
    let mut now = dead_ns;
    let mut both_dead = false;
    while now < dead_ns + 100 * MS {
        now += 20 * MS;
        record(&mut engine, now, 1, 0);
        for step in 0..10 {
            engine.poll(now + step * MS);
        }
        both_dead |= (0..2).all(|path| engine.liveness().is_dead(PAIR, path));
        assert!(!engine.pattern(PAIR).unwrap().sequence.is_empty());
    }
    assert!(both_dead);
}

#[test]
fn a_digest_that_was_held_up_does_not_undo_what_newer_ones_said() {
    let mut engine = started();
    let [old, new] =
        [0, 3 * MS].map(|queueing_ns| Sample::Rtt(rtt_sample(engine.fabric(), 1, 1, queueing_ns)));
    engine.record(60 * MS, Some(60 * MS), "leaf1", &new);
    assert_eq!(engine.poll(60 * MS), [PAIR]);
    let version = engine.pattern(PAIR).unwrap().version;
    for at in 70..80 {
        // Retransmitted again and again, as a switch does without acknowledgements.
        engine.record(at * MS, Some(54 * MS), "leaf1", &old);
        assert_eq!(poll_answered(&mut engine, at * MS), []);
    }
    assert_eq!(engine.late_samples(), 10);
    assert_eq!(engine.pattern(PAIR).unwrap().version, version);
    // A sample of a switch whose clock has restarted isn't late.
    engine.record(81 * MS, Some(0), "spine1", &old);
    assert_eq!(engine.late_samples(), 10);
}

#[test]
fn with_digests_lost_late_repeated_and_out_of_order_patterns_stay_whole() {
    use rand::Rng as _;
    use rand::SeedableRng as _;
    for seed in 0..50 {
        let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        let mut engine = started();
        let mut deliveries = Vec::new();
        for step in 0..2_000_u64 {
            let taken_ns = 50 * MS + step * 100_000;
            let path = random.random_range(0..2);
            let queueing_ns = random.random_range(0..3 * MS);
            for _ in 0..random.random_range(0..3) {
                let delay_ns = random.random_range(20_000..20 * MS);
                deliveries.push((taken_ns + delay_ns, taken_ns, path, queueing_ns));
            }
        }
        deliveries.sort_unstable();
        let mut version = 0;
        for (now_ns, taken_ns, path, queueing_ns) in deliveries {
            let sample = Sample::Rtt(rtt_sample(engine.fabric(), 1, path, queueing_ns));
            engine.record(now_ns, Some(taken_ns), "leaf1", &sample);
            if !poll_answered(&mut engine, now_ns).contains(&PAIR) {
                continue;
            }
            let pattern = engine.pattern(PAIR).unwrap();
            assert!(pattern.version > version, "seed {seed}");
            version = pattern.version;
            for (path, gap) in (0_u8..).zip(&pattern.gaps) {
                let places = pattern.sequence.iter().filter(|&&place| place == path);
                assert_eq!(places.count(), *gap as usize, "seed {seed}");
            }
        }
        assert!(engine.late_samples() > 0);
        assert!(version > 0, "seed {seed}: no pattern");
    }
}
