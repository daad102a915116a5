// SPDX-License-Identifier: Apache-2.0

//! Traffic that follows the patterns and fills its own queues.

use super::*;

/// Two hosts' worth of traffic that follows the pattern at once. What a path gets beyond half
/// of the traffic fills its queue; what it gets less drains it.
#[test]
fn hosts_together_do_not_chase_the_emptier_path_back_and_forth() {
    const STEP_NS: u64 = 100_000;
    let mut engine = started();
    // A burst of others has filled path 1 at the start.
    let mut queues_ns = [0_i64, 400_000];
    let mut changes = Vec::new();
    for step in 1..10_000 {
        let now_ns = 50 * MS + step * STEP_NS;
        let gaps = engine.pattern(PAIR).unwrap().gaps.clone();
        let all: u32 = gaps.iter().sum();
        for (path, queue_ns) in (0_u8..).zip(&mut queues_ns) {
            // All hosts together offer as much as both paths carry.
            let share = f64::from(gaps[usize::from(path)]) * 2.0 / f64::from(all);
            *queue_ns += ((share - 1.0) * STEP_NS as f64) as i64;
            *queue_ns = (*queue_ns).clamp(0, 1_200_000);
        }
        if step % 10 == 0 {
            for (path, queue_ns) in (0_u8..).zip(queues_ns) {
                record(&mut engine, now_ns, path, queue_ns as u64);
            }
        }
        if poll_answered(&mut engine, now_ns).contains(&PAIR) {
            changes.push(now_ns);
        }
    }
    let late = changes.iter().filter(|&&at| at > 550 * MS).count();
    let total = changes.len();
    // The paper's interval would allow 100 per second; expect at most a quarter.
    assert!(total <= 25, "{total} patterns, at {changes:?}");
    assert!(late <= 12, "{late} of {total} in the second half");
}

#[test]
fn while_a_pair_fills_its_own_queues_only_path_rates_set_the_pattern() {
    let mut engine = started();
    let mut now_ns = 50 * MS;
    for queue_ns in [0, MS].into_iter().cycle().take(100) {
        now_ns += 11 * MS;
        record(&mut engine, now_ns, 0, queue_ns);
        // Three times the RTT.
        record(&mut engine, now_ns, 1, 240_000);
        poll_answered(&mut engine, now_ns);
        let decision = engine.history(PAIR).next_back();
        if decision.is_some_and(|decision| decision.rule == Rule::Herd) {
            assert_eq!(engine.pattern(PAIR).unwrap().gaps, [1, 1]);
            return;
        }
    }
    panic!("rates never set the pattern");
}

#[test]
fn a_step_is_followed_by_one_pattern_and_then_by_none() {
    let mut engine = started();
    let mut changes = Vec::new();
    for step in 1..2_000 {
        let now_ns = 50 * MS + step * 500_000;
        let queueing_ns = if now_ns >= 200 * MS { 240_000 } else { 0 };
        record(&mut engine, now_ns, 0, 0);
        record(&mut engine, now_ns, 1, queueing_ns);
        if poll_answered(&mut engine, now_ns).contains(&PAIR) {
            changes.push((now_ns, engine.pattern(PAIR).unwrap().gaps.clone()));
        }
    }
    // 357.6 us to 117.6 us, at once: the leaf has already smoothed.
    assert_eq!(changes, [(200 * MS, vec![3, 1])]);
}
