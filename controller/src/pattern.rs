// SPDX-License-Identifier: Apache-2.0

//! Allocation patterns: gaps from RTTs, and the sequence from gaps.
//!
//! MPTCP-RB (section 4) sends `gap_i = round(RTT_max / RTT_i)` packets over path i for
//! each packet on the slowest path, so that all of them arrive in order. The sequence
//! gives each of the `L = sum of gaps` packets of a pattern its path. It is filled from
//! the slowest path to the fastest:
//!
//! ```text
//! RTT 1:2:3:5, gaps 5 3 2 1        1 2 3 4 5 6 7 8 9 10 11
//! D marks the end                  . . . . . . . . . .  D
//! split by 2/1, C marks both ends  . . . . C . . . . C  D
//! split by 3/2, B marks three      . B . B C . B . . C  D
//! A takes what is left             A B A B C A B A A C  D
//! ```

/// Maximum number of paths in a pattern: `WEFT_PATHS_MAX` of the kernel.
pub const PATHS_MAX: usize = 8;

/// Maximum number of positions in a pattern: `WEFT_SEQUENCE_MAX` of the kernel.
pub const SEQUENCE_MAX: u32 = 256;

/// Hysteresis, in thousandths: how far the ratio of RTTs must go beyond the midpoint between
/// two gaps before the gap changes. Queues fluctuate, and patterns should not.
const STICKINESS_MILLI: u128 = 200;

/// With a larger gap the path would still get all positions but one per other path.
const GAP_MAX: u128 = 1 << 24;

/// One gap per path, from RTTs in any unit.
///
/// Empty if there are no paths or an RTT is zero.
#[must_use]
pub fn gaps(rtts: &[u64]) -> Vec<u32> {
    gaps_with(rtts, |_, milli| (milli + 500) / 1000)
}

/// Like [`gaps`], but a gap keeps its value in `current` while the ratio of RTTs is near the
/// boundary to the next value.
#[must_use]
pub fn sticky_gaps(rtts: &[u64], current: &[u32]) -> Vec<u32> {
    if rtts.len() != current.len() {
        return gaps(rtts);
    }
    gaps_with(rtts, |path, milli| {
        let current = u128::from(current[path]);
        let reach = 500 + STICKINESS_MILLI;
        if milli.abs_diff(current * 1000) <= reach {
            current
        } else {
            (milli + 500) / 1000
        }
    })
}

/// Rounds `1000 * RTT_max / RTT_i` to gaps by `round`, then bounds their sum.
fn gaps_with(rtts: &[u64], round: impl Fn(usize, u128) -> u128) -> Vec<u32> {
    let slowest = rtts.iter().copied().max().unwrap_or(0);
    if rtts.contains(&0) {
        return Vec::new();
    }
    let mut gaps: Vec<u32> = rtts
        .iter()
        .enumerate()
        .map(|(path, &rtt)| match rtt {
            rtt if rtt == slowest => 1,
            rtt => {
                let milli = u128::from(slowest) * 1000 / u128::from(rtt);
                u32::try_from(round(path, milli).clamp(1, GAP_MAX)).unwrap_or(1)
            }
        })
        .collect();
    bound(&mut gaps);
    gaps
}

/// Scales all gaps by one factor, none below 1, until they fit [`SEQUENCE_MAX`] positions. The
/// kernel does the same with its own gaps.
fn bound(gaps: &mut [u32]) {
    let paths = gaps.len() as u64;
    let length: u64 = gaps.iter().map(|&gap| u64::from(gap)).sum();
    let most = u64::from(SEQUENCE_MAX);
    if length <= most || paths >= most {
        return;
    }
    for gap in gaps {
        let scaled = u64::from(*gap) * (most - paths) / length;
        // At most SEQUENCE_MAX.
        *gap = scaled.max(1) as u32;
    }
}

/// The path of every position, for these gaps.
///
/// Of two equal gaps, the path with the higher index counts as slower.
#[must_use]
pub fn sequence(gaps: &[u32]) -> Vec<u8> {
    let mut order: Vec<usize> = (0..gaps.len()).collect();
    // Slowest first.
    order.sort_by_key(|&path| (gaps[path], std::cmp::Reverse(path)));
    let Some(fastest) = order.pop() else {
        return Vec::new();
    };
    let length: u64 = gaps.iter().map(|&gap| u64::from(gap)).sum();
    let length = length.min(u64::from(SEQUENCE_MAX)) as usize;

    let mut sequence = vec![fastest as u8; length];
    // Unmarked ranges in order, as start and end (exclusive).
    let mut partitions = vec![(0, length)];
    let mut previous_gap = 1;
    for path in order {
        let gap = gaps[path].max(1);
        partitions = split(&partitions, gap.div_ceil(previous_gap) as usize);
        mark(&mut sequence, &mut partitions, path as u8, gap);
        previous_gap = gap;
    }
    sequence
}

/// Marks the last position of one partition after another with `path` until its `gap` is
/// used up, and removes these positions from the partitions.
fn mark(sequence: &mut [u8], partitions: &mut Vec<(usize, usize)>, path: u8, gap: u32) {
    let mut left = gap;
    // One round, unless there are fewer partitions than the gap.
    while left > 0 && !partitions.is_empty() {
        for (_, end) in partitions.iter_mut().take(left as usize) {
            *end -= 1;
            sequence[*end] = path;
        }
        left -= left.min(partitions.len() as u32);
        partitions.retain(|(start, end)| start < end);
    }
}

/// Splits every partition into `parts` parts of nearly equal, nonzero length.
fn split(partitions: &[(usize, usize)], parts: usize) -> Vec<(usize, usize)> {
    partitions
        .iter()
        .flat_map(|&(start, end)| {
            let bound = move |part: usize| start + (end - start) * part / parts;
            (0..parts).map(move |part| (bound(part), bound(part + 1)))
        })
        .filter(|(start, end)| start < end)
        .collect()
}

/// A sequence as letters: `A` is path 0.
#[must_use]
pub fn letters(sequence: &[u8]) -> String {
    sequence
        .iter()
        .map(|&path| char::from(b'A' + path.min(25)))
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pattern(rtts: &[u64]) -> String {
        letters(&sequence(&gaps(rtts)))
    }

    #[test]
    fn the_papers_figure_8() {
        assert_eq!(gaps(&[100, 200, 300, 500]), [5, 3, 2, 1]);
        assert_eq!(pattern(&[100, 200, 300, 500]), "ABABCABAACD");
    }

    #[test]
    fn equal_rtts_make_round_robin() {
        assert_eq!(pattern(&[77]), "A");
        assert_eq!(pattern(&[100, 100]), "AB");
        assert_eq!(pattern(&[100, 100, 100, 100]), "ABCD");
    }

    #[test]
    fn four_to_one_sends_every_fifth_packet_the_slow_way() {
        assert_eq!(pattern(&[100, 400]), "AAAAB");
        assert_eq!(pattern(&[400, 100]), "BBBBA");
    }

    #[test]
    fn an_unknown_rtt_makes_no_pattern() {
        assert_eq!(pattern(&[100, 0]), "");
        assert_eq!(pattern(&[]), "");
    }

    #[test]
    fn a_gap_holds_until_its_ratio_is_clearly_another() {
        let current = [2, 1];
        assert_eq!(sticky_gaps(&[100, 260], &current), [2, 1]);
        assert_eq!(sticky_gaps(&[100, 131], &current), [2, 1]);
        assert_eq!(sticky_gaps(&[100, 275], &current), [3, 1]);
        assert_eq!(sticky_gaps(&[100, 125], &current), [1, 1]);
        assert_eq!(sticky_gaps(&[300, 100], &current), [1, 3]);
    }

    #[test]
    fn a_hundred_to_one_fits_with_scaled_gaps() {
        assert_eq!(gaps(&[1, 1, 1, 1000]), [83, 83, 83, 1]);
        assert_eq!(gaps(&[1, 1_000_000]), [253, 1]);
    }

    proptest! {
        #[test]
        fn every_path_gets_its_gap(rtts in prop::collection::vec(1_u64..100_000, 1..=PATHS_MAX)) {
            let gaps = gaps(&rtts);
            let sequence = sequence(&gaps);
            prop_assert!(sequence.len() <= SEQUENCE_MAX as usize);
            for (path, &gap) in gaps.iter().enumerate() {
                let count = sequence.iter().filter(|&&at| usize::from(at) == path).count();
                prop_assert_eq!(count as u32, gap);
            }
        }

        #[test]
        fn faster_paths_never_get_less(rtts in prop::collection::vec(1_u64..100_000, 1..=PATHS_MAX)) {
            let gaps = gaps(&rtts);
            for (a, b) in (0..rtts.len()).flat_map(|a| (0..rtts.len()).map(move |b| (a, b))) {
                prop_assert!(rtts[a] > rtts[b] || gaps[a] >= gaps[b]);
            }
        }

        #[test]
        fn a_slowest_path_ends_the_pattern(rtts in prop::collection::vec(1_u64..100_000, 1..=PATHS_MAX)) {
            let gaps = gaps(&rtts);
            let last = *sequence(&gaps).last().unwrap();
            prop_assert_eq!(gaps[usize::from(last)], 1);
        }

        #[test]
        fn sticky_gaps_stay_within_bounds(
            rtts in prop::collection::vec(1_u64..1_000_000, 2..=PATHS_MAX),
            current in prop::collection::vec(1_u32..300, 2..=PATHS_MAX),
        ) {
            let gaps = sticky_gaps(&rtts, &current);
            prop_assert!(gaps.iter().sum::<u32>() <= SEQUENCE_MAX);
            prop_assert!(gaps.contains(&1));
        }
    }
}
