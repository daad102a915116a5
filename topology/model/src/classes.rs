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
const THRESHOLDS_KB: [u64; CLASSES_MAX as usize - 2] = [15, 45, 150, 500, 1500, 5000];

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
        let classes =
            |count| [1, 15_000, 15_001, 150_000, 5_000_000, 5_000_001].map(|b| class_of(b, count));
        assert_eq!(classes(8), [1, 1, 2, 3, 6, 7]);
        assert_eq!(classes(4), [1, 1, 1, 2, 3, 3]);
        assert_eq!(classes(2), [1; 6]);
        assert_eq!(class_of(0, 3), 1);
        assert_eq!(class_of(u64::MAX, 3), 2);
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
    fn the_thresholds_are_those_of_the_kernel() {
        let numbers = THRESHOLDS_KB.map(|kb| kb.to_string()).join(", ");
        let source = include_str!("../../../host/kernel/priority.c");
        assert!(
            source.contains(&format!("{{\n\t{numbers}\n}};")),
            "{numbers}"
        );
    }
}
