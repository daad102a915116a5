// SPDX-License-Identifier: Apache-2.0

//! Words that expressions are computed in: the same operations on 64 bits, on 128 bits and on
//! unbounded integers.
//!
//! BMv2 computes on integers of any size. Expressions here give the same values, but where a result
//! modulo 2^64 (or 2^128) suffices they are compiled for a word of that size. Addition,
//! subtraction, multiplication, left shift and the bitwise operations are exact modulo the word's
//! size. Operations that need the exact value (comparison, right shift, saturation) take a flag
//! that says whether the word is signed.

use num_bigint::{BigInt, Sign};

/// Bits in a limb of a stored value.
pub const LIMB_BITS: u32 = u64::BITS;

/// How many limbs a value of `bits` takes, at least one.
pub const fn limbs_for(bits: u32) -> usize {
    if bits <= LIMB_BITS {
        1
    } else {
        bits.div_ceil(LIMB_BITS) as usize
    }
}

/// A mask of the low `bits`; all 64 if there are more.
pub const fn mask64(bits: u32) -> u64 {
    if bits >= LIMB_BITS {
        u64::MAX
    } else {
        (1 << bits) - 1
    }
}

/// A word that expressions are computed in. `signed` says whether to read it as two's complement.
pub trait Word: Clone + std::fmt::Debug {
    /// Width of the word; `u32::MAX` if it is unbounded.
    const BITS: u32;

    /// The value modulo the word's size.
    fn from_big(value: &BigInt) -> Self;
    fn from_u64(value: u64) -> Self;
    /// The unsigned value of little-endian limbs, modulo the word's size.
    fn from_limbs(limbs: &[u64]) -> Self;
    /// Writes the value modulo 2^(64 * `limbs.len()`).
    fn to_limbs(&self, signed: bool, limbs: &mut [u64]);
    fn low64(&self) -> u64;
    fn is_zero(&self) -> bool;
    fn add(&self, other: &Self) -> Self;
    fn sub(&self, other: &Self) -> Self;
    fn mul(&self, other: &Self) -> Self;
    /// Quotient of two values that are not negative; 0 if `other` is 0.
    fn div(&self, other: &Self) -> Self;
    /// Remainder of two values that are not negative; 0 if `other` is 0.
    fn rem(&self, other: &Self) -> Self;
    fn and(&self, other: &Self) -> Self;
    fn or(&self, other: &Self) -> Self;
    fn xor(&self, other: &Self) -> Self;
    fn not(&self) -> Self;
    /// Left shift; an amount beyond [`MAX_SHIFT`] gives 0.
    fn shl(&self, amount: u64) -> Self;
    fn shr(&self, amount: u64, signed: bool) -> Self;
    fn less(&self, other: &Self, signed: bool) -> bool;
    fn equal(&self, other: &Self) -> bool;
    /// The low `bits` read as two's complement.
    fn sign_extend(&self, bits: u32) -> Self;
}

/// The widest left shift of an unbounded integer: wider than any field.
const MAX_SHIFT: u64 = 1 << 16;

macro_rules! fixed_word {
    ($word:ty, $signed:ty) => {
        impl Word for $word {
            const BITS: u32 = <$word>::BITS;

            fn from_big(value: &BigInt) -> Self {
                let (sign, digits) = value.to_u64_digits();
                let magnitude = <$word>::from_limbs(&digits);
                match sign {
                    Sign::Minus => magnitude.wrapping_neg(),
                    _ => magnitude,
                }
            }
            #[inline]
            fn from_u64(value: u64) -> Self {
                value.into()
            }
            #[inline]
            fn from_limbs(limbs: &[u64]) -> Self {
                let mut value: $word = 0;
                for (index, limb) in limbs.iter().enumerate() {
                    let shift = index as u32 * LIMB_BITS;
                    if shift < <$word>::BITS {
                        value |= (*limb as $word) << shift;
                    }
                }
                value
            }
            #[inline]
            fn to_limbs(&self, signed: bool, limbs: &mut [u64]) {
                let fill = if signed && (*self as $signed) < 0 {
                    u64::MAX
                } else {
                    0
                };
                for (index, limb) in limbs.iter_mut().enumerate() {
                    let shift = index as u32 * LIMB_BITS;
                    *limb = if shift < <$word>::BITS {
                        (*self >> shift) as u64
                    } else {
                        fill
                    };
                }
            }
            #[inline]
            fn low64(&self) -> u64 {
                *self as u64
            }
            #[inline]
            fn is_zero(&self) -> bool {
                *self == 0
            }
            #[inline]
            fn add(&self, other: &Self) -> Self {
                self.wrapping_add(*other)
            }
            #[inline]
            fn sub(&self, other: &Self) -> Self {
                self.wrapping_sub(*other)
            }
            #[inline]
            fn mul(&self, other: &Self) -> Self {
                self.wrapping_mul(*other)
            }
            #[inline]
            fn div(&self, other: &Self) -> Self {
                self.checked_div(*other).unwrap_or(0)
            }
            #[inline]
            fn rem(&self, other: &Self) -> Self {
                self.checked_rem(*other).unwrap_or(0)
            }
            #[inline]
            fn and(&self, other: &Self) -> Self {
                *self & *other
            }
            #[inline]
            fn or(&self, other: &Self) -> Self {
                *self | *other
            }
            #[inline]
            fn xor(&self, other: &Self) -> Self {
                *self ^ *other
            }
            #[inline]
            fn not(&self) -> Self {
                !*self
            }
            #[inline]
            fn shl(&self, amount: u64) -> Self {
                if amount < <$word>::BITS as u64 {
                    *self << amount
                } else {
                    0
                }
            }
            #[inline]
            fn shr(&self, amount: u64, signed: bool) -> Self {
                let bits = <$word>::BITS as u64;
                if signed {
                    ((*self as $signed) >> amount.min(bits - 1)) as $word
                } else if amount < bits {
                    *self >> amount
                } else {
                    0
                }
            }
            #[inline]
            fn less(&self, other: &Self, signed: bool) -> bool {
                if signed {
                    (*self as $signed) < (*other as $signed)
                } else {
                    self < other
                }
            }
            #[inline]
            fn equal(&self, other: &Self) -> bool {
                self == other
            }
            #[inline]
            fn sign_extend(&self, bits: u32) -> Self {
                match <$word>::BITS.checked_sub(bits) {
                    None | Some(0) => *self,
                    Some(unused) if unused < <$word>::BITS => {
                        (((*self << unused) as $signed) >> unused) as $word
                    }
                    Some(_) => 0,
                }
            }
        }
    };
}

fixed_word!(u64, i64);

fixed_word!(u128, i128);

impl Word for BigInt {
    const BITS: u32 = u32::MAX;

    fn from_big(value: &BigInt) -> Self {
        value.clone()
    }
    fn from_u64(value: u64) -> Self {
        value.into()
    }
    fn from_limbs(limbs: &[u64]) -> Self {
        let bytes: Vec<u8> = limbs.iter().flat_map(|limb| limb.to_le_bytes()).collect();
        BigInt::from_bytes_le(Sign::Plus, &bytes)
    }
    fn to_limbs(&self, _signed: bool, limbs: &mut [u64]) {
        let (sign, digits) = self.to_u64_digits();
        for (index, limb) in limbs.iter_mut().enumerate() {
            *limb = digits.get(index).copied().unwrap_or(0);
        }
        if sign == Sign::Minus {
            let mut carry = true;
            for limb in limbs {
                (*limb, carry) = (!*limb).overflowing_add(carry.into());
            }
        }
    }
    fn low64(&self) -> u64 {
        let mut limb = [0];
        self.to_limbs(true, &mut limb);
        limb[0]
    }
    fn is_zero(&self) -> bool {
        self.sign() == Sign::NoSign
    }
    fn add(&self, other: &Self) -> Self {
        self + other
    }
    fn sub(&self, other: &Self) -> Self {
        self - other
    }
    fn mul(&self, other: &Self) -> Self {
        self * other
    }
    fn div(&self, other: &Self) -> Self {
        self.checked_div(other).unwrap_or_default()
    }
    fn rem(&self, other: &Self) -> Self {
        if Word::is_zero(other) {
            BigInt::default()
        } else {
            self % other
        }
    }
    fn and(&self, other: &Self) -> Self {
        self & other
    }
    fn or(&self, other: &Self) -> Self {
        self | other
    }
    fn xor(&self, other: &Self) -> Self {
        self ^ other
    }
    fn not(&self) -> Self {
        !self
    }
    fn shl(&self, amount: u64) -> Self {
        if amount <= MAX_SHIFT {
            self << amount
        } else {
            BigInt::default()
        }
    }
    fn shr(&self, amount: u64, _signed: bool) -> Self {
        self >> amount
    }
    fn less(&self, other: &Self, _signed: bool) -> bool {
        self < other
    }
    fn equal(&self, other: &Self) -> bool {
        self == other
    }
    fn sign_extend(&self, bits: u32) -> Self {
        let size = BigInt::from(1) << bits;
        let low = self & (&size - 1);
        if bits > 0 && low >= (&size >> 1) {
            low - size
        } else {
            low
        }
    }
}

/// Big-endian bytes of the value in `limbs`, without leading zeros, at least one byte.
pub fn limbs_to_bytes(limbs: &[u64]) -> Vec<u8> {
    let bytes: Vec<u8> = limbs
        .iter()
        .rev()
        .flat_map(|limb| limb.to_be_bytes())
        .collect();
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    bytes[zeros.min(bytes.len() - 1)..].to_vec()
}

/// The limbs of a big-endian byte string; `None` if it does not fit in `bits`.
pub fn bytes_to_limbs(bytes: &[u8], bits: u32) -> Option<Vec<u64>> {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    let bytes = &bytes[zeros..];
    let mut limbs = vec![0u64; limbs_for(bits)];
    if bytes.len() > limbs.len() * 8 {
        return None;
    }
    for (index, byte) in bytes.iter().rev().enumerate() {
        limbs[index / 8] |= u64::from(*byte) << (index % 8 * 8);
    }
    let top = limbs.len() - 1;
    let top_bits = bits - top as u32 * LIMB_BITS;
    (limbs[top] & !mask64(top_bits) == 0).then_some(limbs)
}

/// Clears the bits from `bits` up.
#[inline]
pub fn mask_limbs(limbs: &mut [u64], bits: u32) {
    let top = limbs_for(bits) - 1;
    limbs[top] &= mask64(bits - top as u32 * LIMB_BITS);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn byte_strings_are_canonical_both_ways() {
        assert_eq!(bytes_to_limbs(&[0, 0, 1, 0xff], 9), Some(vec![0x1ff]));
        assert_eq!(bytes_to_limbs(&[2, 0], 9), None);
        assert_eq!(bytes_to_limbs(&[], 9), Some(vec![0]));
        assert_eq!(limbs_to_bytes(&[0]), vec![0]);
        assert_eq!(
            limbs_to_bytes(&[0x0100, 1]),
            vec![1, 0, 0, 0, 0, 0, 0, 1, 0]
        );
    }

    proptest! {
        #[test]
        fn narrow_words_agree_with_integers(a: u64, b: u64, shift in 0u64..80, bits in 1u32..64) {
            let (x, y) = (BigInt::from(a), BigInt::from(b));
            let low = |value: BigInt| Word::low64(&value);
            prop_assert_eq!(Word::add(&a, &b), low(&x + &y));
            prop_assert_eq!(Word::sub(&a, &b), low(&x - &y));
            prop_assert_eq!(Word::mul(&a, &b), low(&x * &y));
            prop_assert_eq!(Word::not(&a), low(!&x));
            prop_assert_eq!(Word::shl(&a, shift), low(Word::shl(&x, shift)));
            prop_assert_eq!(Word::shr(&a, shift, false), low(Word::shr(&x, shift, false)));
            prop_assert_eq!(Word::sign_extend(&a, bits), low(Word::sign_extend(&x, bits)));
            prop_assert_eq!(Word::less(&a, &b, false), Word::less(&x, &y, false));
        }
    }
}
