// SPDX-License-Identifier: Apache-2.0

//! `hash` and checksums: the algorithms, and their inputs.

use super::expr::Expr;
use super::slot::Slot;
use super::wire::FieldGroup;

/// A hash algorithm of v1model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// CRC-16/ARC.
    Crc16,
    /// CRC-32 of Ethernet.
    Crc32,
    /// The Internet checksum (RFC 1071).
    Csum16,
    /// The exclusive or of all 16-bit words.
    Xor16,
    /// The first eight bytes.
    Identity,
}

/// A hash of a list of fields.
#[derive(Debug)]
pub struct Calculation {
    pub algorithm: Algorithm,
    pub inputs: Box<[Input]>,
}

/// A part of what is hashed.
#[derive(Debug)]
pub enum Input {
    /// Fields of one header, which count only while it is valid, or of metadata.
    Fields {
        groups: Box<[FieldGroup]>,
        valid: Option<Slot>,
    },
    Const {
        limbs: Box<[u64]>,
        bits: u32,
    },
    /// All fields of a header, if it is valid.
    Header(usize),
    /// The payload after the parsed headers.
    Payload,
}

/// A checksum to verify or to update.
#[derive(Debug)]
pub struct Checksum {
    pub target: Slot,
    /// The validity of the header that holds it.
    pub valid: Slot,
    pub calculation: usize,
    pub condition: Option<Expr>,
    pub verify: bool,
    pub update: bool,
}
