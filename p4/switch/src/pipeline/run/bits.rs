// SPDX-License-Identifier: Apache-2.0

//! Reads and writes bits of byte strings in network order.

use crate::pipeline::model::word::mask64;

/// Up to 64 bits from bit `offset` of `bytes`; bits beyond the end read as zero.
#[inline]
pub fn read_bits(bytes: &[u8], offset: usize, bits: u32) -> u64 {
    if bits == 0 {
        return 0;
    }
    let (byte, skip) = (offset / 8, (offset % 8) as u32);
    if let Some(Ok(word)) = bytes.get(byte..byte + 8).map(<[u8; 8]>::try_from) {
        let word = u64::from_be_bytes(word) << skip;
        if skip + bits <= 64 {
            return word >> (64 - bits);
        }
        let next = bytes.get(byte + 8).copied().unwrap_or(0);
        let word = word | u64::from(next) >> (8 - skip);
        return word >> (64 - bits);
    }
    let mut word = 0u128;
    for index in 0..9 {
        word = word << 8 | u128::from(bytes.get(byte + index).copied().unwrap_or(0));
    }
    let value = (word >> (72 - skip - bits)) as u64;
    value & mask64(bits)
}

/// Reads `bits` from bit `offset` into little-endian limbs.
#[inline]
pub fn read_limbs(bytes: &[u8], offset: usize, bits: u32, limbs: &mut [u64]) {
    if bits <= 64 {
        limbs[0] = read_bits(bytes, offset, bits);
        limbs[1..].fill(0);
        return;
    }
    let mut end = offset + bits as usize;
    let mut left = bits;
    for limb in limbs {
        let take = left.min(64);
        end -= take as usize;
        left -= take;
        *limb = read_bits(bytes, end, take);
    }
}

/// Appends bits to a byte string; the last byte is filled up with zeros.
#[derive(Debug)]
pub struct BitWriter<'a> {
    bytes: &'a mut Vec<u8>,
    /// Bits that do not fill a byte yet, in the low `pending_bits`.
    pending: u128,
    pending_bits: u32,
}

impl<'a> BitWriter<'a> {
    pub fn new(bytes: &'a mut Vec<u8>) -> Self {
        BitWriter {
            bytes,
            pending: 0,
            pending_bits: 0,
        }
    }

    /// Appends the low `bits` (up to 64) of `value`, whose other bits are zero.
    #[inline]
    pub fn push(&mut self, value: u64, bits: u32) {
        if self.pending_bits == 0 {
            let bytes = value.to_be_bytes();
            match bits {
                8 => return self.bytes.push(bytes[7]),
                16 => return self.bytes.extend_from_slice(&bytes[6..]),
                32 => return self.bytes.extend_from_slice(&bytes[4..]),
                48 => return self.bytes.extend_from_slice(&bytes[2..]),
                64 => return self.bytes.extend_from_slice(&bytes),
                _ => {}
            }
        }
        self.push_bits(value, bits);
    }

    fn push_bits(&mut self, value: u64, bits: u32) {
        self.pending = self.pending << bits | u128::from(value);
        self.pending_bits += bits;
        let whole = self.pending_bits / 8;
        self.pending_bits %= 8;
        let ready = self.pending >> self.pending_bits;
        for byte in (0..whole).rev() {
            self.bytes.push((ready >> (byte * 8)) as u8);
        }
    }

    /// Appends the low `bits` of little-endian limbs.
    #[inline]
    pub fn push_limbs(&mut self, limbs: &[u64], bits: u32) {
        if bits <= 64 {
            self.push(limbs[0], bits);
            return;
        }
        let mut left = bits;
        for limb in limbs[..bits.div_ceil(64) as usize].iter().rev() {
            let take = (left - 1) % 64 + 1;
            self.push(*limb, take);
            left -= take;
        }
    }

    /// Fills the last byte up.
    pub fn finish(self) {
        if self.pending_bits > 0 {
            self.bytes
                .push((self.pending << (8 - self.pending_bits)) as u8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::model::word::mask_limbs;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(fields in proptest::collection::vec((any::<[u64; 4]>(), 1u32..=256), 1..20)) {
            let mut bytes = Vec::new();
            let mut writer = BitWriter::new(&mut bytes);
            let mut masked = fields.clone();
            for (limbs, bits) in &mut masked {
                let used = bits.div_ceil(64) as usize;
                limbs[used..].fill(0);
                mask_limbs(limbs, *bits);
                writer.push_limbs(limbs, *bits);
            }
            writer.finish();
            let mut offset = 0;
            for (limbs, bits) in &masked {
                let mut read = [0; 4];
                read_limbs(&bytes, offset, *bits, &mut read[..bits.div_ceil(64) as usize]);
                prop_assert_eq!(&read, limbs);
                offset += *bits as usize;
            }
            prop_assert_eq!(bytes.len(), offset.div_ceil(8));
        }
    }

    #[test]
    fn bits_beyond_the_end_are_zero() {
        assert_eq!(read_bits(&[0xff], 4, 16), 0xf000);
        assert_eq!(read_bits(&[], 100, 64), 0);
    }
}
