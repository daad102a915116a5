// SPDX-License-Identifier: Apache-2.0

//! Classes of packets, by what their connection has left to send.

/// The most classes that there are: a switch has so many priorities.
pub const CLASSES_MAX: u8 = 8;

/// The DSCP that stands for a class, from a pool for local use (xxxx11, RFC 2474 section 6).
/// `host/kernel/priority.c` writes it. A middlebox that clears bits of it only makes packets less
/// urgent: those of a higher class, or of none.
///
/// `class` is below [`CLASSES_MAX`].
#[must_use]
pub fn dscp_of_class(class: u8) -> u8 {
    (CLASSES_MAX - 1 - class) << 2 | 3
}

/// Thousands of bytes left to send up to which data are in class 1, 2, ..., of eight:
/// `weft_thresholds_kb` of `host/kernel/priority.c`.
const THRESHOLDS_KB: [u64; CLASSES_MAX as usize - 2] = [130, 250, 1000, 2000, 5000, 12_000];

/// The built-in thresholds between so many classes, in bytes, from class 1 on: fewer classes have
/// some of those of eight.
///
/// `classes` is from 2 to [`CLASSES_MAX`].
#[must_use]
pub fn thresholds_of(classes: u8) -> Vec<u64> {
    let wider = usize::from(CLASSES_MAX - 1);
    let index = |class: u8| usize::from(class) * wider / usize::from(classes - 1) - 1;
    (1..classes - 1)
        .map(|class| 1000 * THRESHOLDS_KB[index(class)])
        .collect()
}

/// Percent of a doubling by which what a flow has left counts as more or less at most:
/// `weft_spread_percent` of `host/kernel/priority.c`, where the reason is.
pub const SPREAD_PERCENT: u32 = 85;

/// What a flow has left to send, times a random factor: `weft_spread_left()` of
/// `host/kernel/priority.h`. Equal flows get into neighbouring classes with that, and come after
/// each other.
///
/// `draw` is random and the same for all packets of the flow. The factor is from
/// 2^(-`spread_percent`/100) to 2^(`spread_percent`/100), where `spread_percent` is 1000 at most.
#[must_use]
pub fn spread_left(bytes_left: u64, draw: u32, spread_percent: u32) -> u64 {
    // Exponents in 1/256, and numbers that no product overflows.
    let most = 256 * i64::from(spread_percent.min(1000)) / 100;
    let exponent = (i64::from(draw) * (2 * most + 1) >> 32) - most;
    let doublings = exponent >> 8;
    let scaled = (bytes_left.min(1 << 40) * (256 + (exponent & 255) as u64)) >> 8;
    if doublings < 0 {
        scaled >> -doublings
    } else {
        scaled << doublings
    }
}

/// The class of data, by what their connection has left to send, from these data on: as
/// `host/kernel/priority.h` has it. Class 0 is for what is urgent whatever is left.
///
/// `classes` is from 2 to [`CLASSES_MAX`].
#[must_use]
pub fn class_of(bytes_left: u64, classes: u8) -> u8 {
    let thresholds = thresholds_of(classes).into_iter();
    let mut classed = (1..).zip(thresholds);
    let class = classed.find(|(_, most_bytes)| bytes_left <= *most_bytes);
    class.map_or(classes - 1, |(class, _)| class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_have_the_class_that_the_kernel_gives_them() {
        let classes = |count| {
            [1, 130_000, 130_001, 1_000_000, 12_000_000, 12_000_001].map(|b| class_of(b, count))
        };
        assert_eq!(classes(8), [1, 1, 2, 3, 6, 7]);
        assert_eq!(classes(4), [1, 1, 1, 2, 3, 3]);
        assert_eq!(classes(2), [1; 6]);
        assert_eq!(class_of(0, 3), 1);
        assert_eq!(class_of(u64::MAX, 3), 2);
    }

    #[test]
    fn equal_flows_spread_as_in_the_kernel() {
        let factors = |draw| spread_left(100_000, draw, 150);
        assert_eq!(
            [0, 1 << 31, u32::MAX].map(factors),
            [37_500, 100_000, 300_000]
        );
        assert_eq!(
            [0, u32::MAX].map(|draw| spread_left(100_000, draw, 0)),
            [100_000; 2]
        );
        assert_eq!(spread_left(u64::MAX, u32::MAX, u32::MAX), 1 << 50);
    }

    #[test]
    fn a_middlebox_that_clears_bits_makes_no_packet_more_urgent() {
        for class in 0..CLASSES_MAX {
            for kept in 0..64 {
                let left = dscp_of_class(class) & kept;
                let read = (0..CLASSES_MAX).find(|&known| dscp_of_class(known) == left);
                assert!(read.is_none_or(|read| read >= class), "{class} {kept:#b}");
            }
        }
    }

    #[test]
    fn the_thresholds_and_the_spread_are_those_of_the_kernel() {
        let numbers = THRESHOLDS_KB.map(|kb| kb.to_string()).join(", ");
        let source = include_str!("../../../host/kernel/priority.c");
        assert!(
            source.contains(&format!("{{\n\t{numbers}\n}};")),
            "{numbers}"
        );
        let spread = format!("weft_spread_percent = {SPREAD_PERCENT};");
        assert!(source.contains(&spread), "{spread}");
    }
}
