// SPDX-License-Identifier: Apache-2.0

//! The algorithms of `hash` and of checksums, as BMv2 computes them.

use super::bits::BitWriter;
use super::wire::write_fields;
use crate::pipeline::model::hash::{Algorithm, Calculation, Input};
use crate::pipeline::model::layout::Layout;

impl Algorithm {
    /// The hash of `bytes`.
    pub fn compute(self, bytes: &[u8]) -> u64 {
        match self {
            Algorithm::Crc16 => crc16(bytes).into(),
            Algorithm::Crc32 => crc32(bytes).into(),
            Algorithm::Csum16 => (!ones_complement_sum(bytes)).into(),
            Algorithm::Xor16 => words16(bytes).fold(0, |sum, word| sum ^ word).into(),
            Algorithm::Identity => bytes
                .iter()
                .take(8)
                .fold(0, |value, byte| value << 8 | u64::from(*byte)),
        }
    }
}

/// Big-endian 16-bit words, the last one padded with zero.
fn words16(bytes: &[u8]) -> impl Iterator<Item = u16> + '_ {
    bytes.chunks(2).map(|word| {
        let low = word.get(1).copied().unwrap_or(0);
        u16::from_be_bytes([word[0], low])
    })
}

fn ones_complement_sum(bytes: &[u8]) -> u16 {
    let mut sum: u64 = words16(bytes).map(u64::from).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The remainders of all byte values for a reflected CRC polynomial.
const fn reflected_table(polynomial: u32) -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut remainder = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            remainder = remainder >> 1 ^ if remainder & 1 == 1 { polynomial } else { 0 };
            bit += 1;
        }
        table[byte] = remainder;
        byte += 1;
    }
    table
}

/// x^16 + x^15 + x^2 + 1, reflected.
static CRC16_TABLE: [u32; 256] = reflected_table(0xa001);

/// The polynomial of IEEE 802.3, reflected.
static CRC32_TABLE: [u32; 256] = reflected_table(0xedb8_8320);

fn crc(table: &[u32; 256], start: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(start, |crc, byte| {
        crc >> 8 ^ table[usize::from(crc as u8 ^ *byte)]
    })
}

fn crc16(bytes: &[u8]) -> u16 {
    crc(&CRC16_TABLE, 0, bytes) as u16
}

fn crc32(bytes: &[u8]) -> u32 {
    !crc(&CRC32_TABLE, u32::MAX, bytes)
}

impl Calculation {
    /// The hash for a packet. `scratch` is overwritten.
    pub fn compute(
        &self,
        layout: &Layout,
        words: &[u64],
        payload: &[u8],
        scratch: &mut Vec<u8>,
    ) -> u64 {
        scratch.clear();
        let mut writer = BitWriter::new(scratch);
        for input in &self.inputs {
            match input {
                Input::Fields { groups, valid } => {
                    if valid.is_none_or(|valid| valid.get(words) == 1) {
                        write_fields(groups, words, &mut writer);
                    }
                }
                Input::Const { limbs, bits } => writer.push_limbs(limbs, *bits),
                Input::Header(header) => {
                    let header = &layout.headers[*header];
                    if header.is_valid(words) {
                        write_fields(&header.groups, words, &mut writer);
                    }
                }
                Input::Payload => {
                    // p4c puts the payload last, after whole bytes.
                    writer.finish();
                    scratch.extend_from_slice(payload);
                    return self.algorithm.compute(scratch);
                }
            }
        }
        writer.finish();
        self.algorithm.compute(scratch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHECK: &[u8] = b"123456789";

    #[test]
    fn crcs_give_their_published_check_values() {
        assert_eq!(Algorithm::Crc16.compute(CHECK), 0xbb3d); // CRC-16/ARC
        assert_eq!(Algorithm::Crc32.compute(CHECK), 0xcbf4_3926); // CRC-32/ISO-HDLC
    }

    #[test]
    fn internet_checksum_is_that_of_a_known_ipv4_header() {
        let header = [
            0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0, 0, 0xc0, 0xa8, 0x00,
            0x01, 0xc0, 0xa8, 0x00, 0xc7,
        ];
        assert_eq!(Algorithm::Csum16.compute(&header), 0xb861);
        assert_eq!(Algorithm::Csum16.compute(&[0xff]), 0x00ff);
    }

    #[test]
    fn identity_takes_the_first_eight_bytes() {
        assert_eq!(Algorithm::Identity.compute(&[1, 2]), 0x0102);
        assert_eq!(
            Algorithm::Identity.compute(CHECK),
            u64::from_be_bytes(*b"12345678")
        );
    }

    #[test]
    fn xor16_fills_an_odd_end_with_zero() {
        assert_eq!(Algorithm::Xor16.compute(&[0x12, 0x34, 0x56]), 0x4434);
    }
}
