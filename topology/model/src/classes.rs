// SPDX-License-Identifier: Apache-2.0

//! Classes of packets, by what their connection has left to send.

/// The most classes that there are: a switch has so many priorities.
pub const CLASSES_MAX: u8 = 8;

/// The DSCP that stands for a class, from a pool for local use (xxxx11, RFC 2474 section 6).
/// `host/kernel/priority.c` writes it.
#[must_use]
pub fn dscp_of_class(class: u8) -> u8 {
    class << 2 | 3
}

/// Thousands of bytes left to send up to which data are in class 1, 2, ..., of eight:
/// `weft_thresholds_kb` of `host/kernel/priority.c`.
const THRESHOLDS_KB: [u64; CLASSES_MAX as usize - 2] = [15, 45, 150, 500, 1500, 5000];

/// The class of data, by what their connection has left to send, from these data on: as
/// `host/kernel/priority.h` has it. Class 0 is for what is urgent whatever is left.
///
/// `classes` is from 2 to [`CLASSES_MAX`].
#[must_use]
pub fn class_of(bytes_left: u64, classes: u8) -> u8 {
    let wider = usize::from(CLASSES_MAX - 1);
    let is_within = |class: &u8| {
        let index = usize::from(*class) * wider / usize::from(classes - 1) - 1;
        bytes_left <= 1000 * THRESHOLDS_KB[index]
    };
    (1..classes - 1).find(is_within).unwrap_or(classes - 1)
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
    fn the_thresholds_are_those_of_the_kernel() {
        let numbers = THRESHOLDS_KB.map(|kb| kb.to_string()).join(", ");
        let source = include_str!("../../../host/kernel/priority.c");
        assert!(
            source.contains(&format!("{{\n\t{numbers}\n}};")),
            "{numbers}"
        );
    }
}
