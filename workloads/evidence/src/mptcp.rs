// SPDX-License-Identifier: Apache-2.0

//! MPTCP's options (RFC 8684), as far as they determine which data a segment carries.

use sha2::{Digest, Sha256};

/// MPTCP's TCP option kind (section 3).
const KIND: u8 = 30;
const END: u8 = 0;
const NO_OPERATION: u8 = 1;
/// Subtypes (section 8.2).
const MP_CAPABLE: u8 = 0;
const MP_JOIN: u8 = 1;
const DSS: u8 = 2;
/// The supported version, RFC 8684's.
const VERSION: u8 = 1;

/// The MPTCP options of a segment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// MP_CAPABLE: opens a connection.
    pub capable: Option<Capable>,
    /// MP_JOIN on a SYN: the receiver's token, which identifies the subflow's connection.
    pub join_token: Option<u32>,
    /// Data sequence signal.
    pub dss: Option<Dss>,
}

/// MP_CAPABLE (section 3.1). It gets longer during the handshake.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Capable {
    /// Key of the sender, from the SYN/ACK on.
    pub sender_key: Option<Key>,
    /// Key of the receiver, from the third segment on.
    pub receiver_key: Option<Key>,
    /// Length of the mapping of the first data, which starts at the segment.
    pub data_bytes: Option<u16>,
}

/// The data sequence signal (section 3.3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dss {
    /// The Data ACK.
    pub data_ack: Option<Number>,
    /// The mapping of the subflow's data.
    pub mapping: Option<SignalledMapping>,
}

/// A data sequence number, as sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Number {
    /// Its low 32 bits.
    Short(u32),
    /// All 64 bits.
    Long(u64),
}

/// A mapping, as sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignalledMapping {
    /// Data sequence number of its first byte.
    pub data_sequence: Number,
    /// Subflow sequence number of that byte; the first byte of data is 1.
    pub subflow_sequence: u32,
    /// Its length; 0 for an infinite mapping (section 3.7).
    pub bytes: u16,
}

/// A key from the handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key(pub u64);

impl Key {
    /// The token for MP_JOIN, and the initial data sequence number of the key's owner: both from
    /// the key's hash (sections 3.1 and 3.2). Data starts at the next number.
    #[must_use]
    pub fn token_and_initial_sequence(self) -> (u32, u64) {
        let hash: [u8; 32] = Sha256::digest(self.0.to_be_bytes()).into();
        let [a, b, c, d, .., s, t, u, v, w, x, y, z] = hash;
        (
            u32::from_be_bytes([a, b, c, d]),
            u64::from_be_bytes([s, t, u, v, w, x, y, z]),
        )
    }
}

impl Options {
    /// Parses the options of a segment. Malformed and unknown options are skipped.
    #[must_use]
    pub fn of(mut rest: &[u8]) -> Self {
        let mut options = Self::default();
        loop {
            rest = match rest {
                [] | [END, ..] => return options,
                [NO_OPERATION, rest @ ..] => rest,
                [kind, length, ..] => {
                    let length = usize::from(*length);
                    let (Some(body), Some(behind)) = (rest.get(2..length), rest.get(length..))
                    else {
                        return options;
                    };
                    if *kind == KIND {
                        options.add(body);
                    }
                    behind
                }
                [_] => return options,
            };
        }
    }

    fn add(&mut self, body: &[u8]) {
        match body.first().map(|byte| (byte >> 4, byte & 0xf)) {
            Some((MP_CAPABLE, VERSION)) => self.capable = Capable::of(body),
            // On a SYN: flags, address, token, random number.
            Some((MP_JOIN, _)) if body.len() == 10 => {
                self.join_token = Fields(&body[2..]).u32();
            }
            Some((DSS, _)) => self.dss = Dss::of(body),
            _ => {}
        }
    }
}

impl Capable {
    fn of(body: &[u8]) -> Option<Self> {
        let mut fields = Fields(body.get(2..)?);
        Some(Self {
            sender_key: fields.u64().map(Key),
            receiver_key: fields.u64().map(Key),
            data_bytes: fields.u16(),
        })
    }
}

impl Dss {
    fn of(body: &[u8]) -> Option<Self> {
        let flags = body.get(1)?;
        let flag = |bit: u8| flags & (1 << bit) != 0;
        let mut fields = Fields(body.get(2..)?);
        let mut dss = Self::default();
        if flag(0) {
            dss.data_ack = Some(fields.number(flag(1))?);
        }
        if flag(2) {
            dss.mapping = Some(SignalledMapping {
                data_sequence: fields.number(flag(3))?,
                subflow_sequence: fields.u32()?,
                bytes: fields.u16()?,
            });
        }
        Some(dss)
    }
}

impl Number {
    /// Offset from `first`, of the full number nearest to `first + expected`.
    ///
    /// `None` for a number before `first`.
    #[must_use]
    pub fn offset(self, first: u64, expected: u64) -> Option<u64> {
        match self {
            Self::Long(number) => {
                i64::try_from(number.wrapping_sub(first)).ok()?;
                Some(number.wrapping_sub(first))
            }
            Self::Short(low) => nearest(low.wrapping_sub(first as u32), expected),
        }
    }
}

/// The number with these low 32 bits that is nearest to `expected`; `None` if it would be
/// negative.
#[must_use]
pub fn nearest(low: u32, expected: u64) -> Option<u64> {
    let distance = low.wrapping_sub(expected as u32) as i32;
    expected.checked_add_signed(distance.into())
}

/// Big-endian fields of an option.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    fn number(&mut self, long: bool) -> Option<Number> {
        if long {
            self.u64().map(Number::Long)
        } else {
            self.u32().map(Number::Short)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_signal_with_short_numbers_is_read() {
        // NOP, NOP, timestamps, then DSS with a 4-byte Data ACK, a mapping and its checksum.
        let mut bytes = vec![1, 1, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend([30, 20, 0x20, 0b0101, 0, 0, 0, 9, 1, 2, 3, 4, 0, 0, 0, 1]);
        bytes.extend([5, 150, 0xab, 0xcd]);
        let dss = Options::of(&bytes).dss.unwrap();
        assert_eq!(dss.data_ack, Some(Number::Short(9)));
        let expected = SignalledMapping {
            data_sequence: Number::Short(0x0102_0304),
            subflow_sequence: 1,
            bytes: 1430,
        };
        assert_eq!(dss.mapping, Some(expected));
    }

    #[test]
    fn the_handshakes_keys_are_read_as_they_come() {
        assert_eq!(
            Options::of(&[30, 4, 1, 1]).capable,
            Some(Capable::default())
        );
        let mut bytes = vec![30, 22, 1, 1];
        bytes.extend([0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 100]);
        let expected = Capable {
            sender_key: Some(Key(1)),
            receiver_key: Some(Key(2)),
            data_bytes: Some(100),
        };
        assert_eq!(Options::of(&bytes).capable, Some(expected));
        // Version 0 is another protocol.
        assert_eq!(Options::of(&[30, 4, 0, 1]).capable, None);
    }

    #[test]
    fn token_and_first_number_are_the_ends_of_the_keys_hash() {
        // SHA-256 of eight zero bytes, as `head -c8 /dev/zero | sha256sum` says:
        // af5570f5a1810b7af78caf4bc70a660f0df51e42baf91d4de5b2328de0e83dfc
        let (token, first) = Key(0).token_and_initial_sequence();
        assert_eq!(token, 0xaf55_70f5);
        assert_eq!(first, 0xe5b2_328d_e0e8_3dfc);
    }

    #[test]
    fn a_short_number_is_continued_where_it_wraps() {
        let first = 0x0000_0007_ffff_ff00;
        let number = Number::Short(0x0000_0010);
        assert_eq!(number.offset(first, 0x100), Some(0x110));
        // After one wrap.
        let late = 0x1_0000_0100;
        assert_eq!(number.offset(first, late), Some(0x1_0000_0110));
        assert_eq!(Number::Short(0xffff_fe00).offset(first, 0), None);
        assert_eq!(Number::Long(first - 1).offset(first, 0), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = Options::of(&bytes);
            let mut option = vec![KIND, bytes.len() as u8 + 2];
            option.extend(&bytes);
            let _ = Options::of(&option);
        }

        #[test]
        fn a_number_next_to_the_expected_one_is_found(
            expected in 0_u64..1 << 60, distance in -(1_i64 << 31) + 1..1 << 31,
        ) {
            if let Some(number) = expected.checked_add_signed(distance) {
                prop_assert_eq!(nearest(number as u32, expected), Some(number));
            }
        }
    }
}
