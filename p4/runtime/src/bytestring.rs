// SPDX-License-Identifier: Apache-2.0

//! Numbers as P4Runtime sends them: big-endian, shortest form.
//!
//! The canonical form (P4Runtime specification, "Bytestrings") has no leading
//! zero bytes and at least one byte. Readers take longer forms too, as long as
//! the value fits the width of the field.

/// Why a bytestring is not a valid value of its field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A value needs at least one byte.
    #[error("empty bytestring")]
    Empty,
    /// The value needs more bits than the field has.
    #[error("value does not fit in {width_bits} bits")]
    TooWide {
        /// Width of the field.
        width_bits: u32,
    },
}

/// `value` in canonical form.
#[must_use]
pub fn encode(value: u128) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    let first = (value.leading_zeros() / 8).min(15) as usize;
    bytes[first..].to_vec()
}

/// The value of `bytes` for a field of `width_bits` (up to 128).
///
/// # Errors
/// See [`Error`].
pub fn decode(bytes: &[u8], width_bits: u32) -> Result<u128, Error> {
    if bytes.is_empty() {
        return Err(Error::Empty);
    }
    let significant = bytes.iter().position(|&byte| byte != 0);
    let bytes = &bytes[significant.unwrap_or(bytes.len())..];
    let value = if bytes.len() > 16 {
        None
    } else {
        Some(
            bytes
                .iter()
                .fold(0, |value, &byte| (value << 8) | u128::from(byte)),
        )
    };
    match value {
        Some(value) if 128 - value.leading_zeros() <= width_bits => Ok(value),
        _ => Err(Error::TooWide { width_bits }),
    }
}

/// The mask of the first `prefix_bits` of a field of `width_bits`, as in a
/// longest-prefix match. Both are limited to the width of a `u128`.
#[must_use]
pub fn prefix_mask(prefix_bits: u32, width_bits: u32) -> u128 {
    let width = width_bits.min(128);
    let free = width - prefix_bits.min(width);
    let all = if width == 128 {
        u128::MAX
    } else {
        (1 << width) - 1
    };
    if free == 128 { 0 } else { all >> free << free }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_form_has_no_leading_zeros_but_one_byte() {
        assert_eq!(encode(0), [0]);
        assert_eq!(encode(0x63), [0x63]);
        assert_eq!(encode(0x3063), [0x30, 0x63]);
        assert_eq!(encode(u128::MAX), [0xff; 16]);
    }

    #[test]
    fn every_value_survives_the_way_there_and_back() {
        for shift in 0..128 {
            let value = (1 << shift) | 1;
            assert_eq!(decode(&encode(value), 128), Ok(value));
        }
    }

    #[test]
    fn longer_forms_are_read_and_wider_values_refused() {
        assert_eq!(decode(&[0, 0, 0, 5], 9), Ok(5));
        assert_eq!(decode(&[0; 40], 9), Ok(0));
        assert_eq!(decode(&[1, 0xff], 9), Ok(511));
        assert_eq!(decode(&[2, 0], 9), Err(Error::TooWide { width_bits: 9 }));
        assert_eq!(
            decode(&[1; 17], 128),
            Err(Error::TooWide { width_bits: 128 })
        );
        assert_eq!(decode(&[], 9), Err(Error::Empty));
    }

    #[test]
    fn a_prefix_mask_covers_the_leading_bits_of_its_field() {
        assert_eq!(prefix_mask(24, 32), 0xffff_ff00);
        assert_eq!(prefix_mask(0, 32), 0);
        assert_eq!(prefix_mask(0, 128), 0);
        assert_eq!(prefix_mask(128, 128), u128::MAX);
        assert_eq!(prefix_mask(40, 32), 0xffff_ffff);
    }
}
