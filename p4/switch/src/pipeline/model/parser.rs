// SPDX-License-Identifier: Apache-2.0

//! The parser: a state machine that extracts headers from a packet.

use super::action::Op;
use super::expr::{Dest, Expr};

/// Ends parsing; the packet is accepted.
pub const ACCEPT: usize = usize::MAX;

/// Values of `standard_metadata.parser_error`, which each program numbers in its own way.
#[derive(Debug, Clone, Copy, Default)]
pub struct ErrorCodes {
    pub no_error: u64,
    pub packet_too_short: u64,
    pub no_match: u64,
    pub stack_out_of_bounds: u64,
    pub header_too_short: u64,
    pub parser_timeout: u64,
    pub parser_invalid_argument: u64,
}

/// The state machine.
#[derive(Debug, Default)]
pub struct Parser {
    pub start: usize,
    pub states: Vec<State>,
    pub errors: ErrorCodes,
}

#[derive(Debug)]
pub struct State {
    pub steps: Box<[Step]>,
    /// The key of the select. Its first part is in the highest bits.
    pub key: Box<[KeyPart]>,
    /// Tried in order.
    pub transitions: Box<[Transition]>,
}

/// One statement of a state.
#[derive(Debug)]
pub enum Step {
    /// `extract` of a header. The expression gives the length of its varbit field in bits.
    Extract(usize, Option<Expr>),
    /// `extract` of a stack's next element.
    ExtractNext(usize),
    /// `lookahead`: assignment of the next bits of the packet, from an offset.
    Lookahead { to: Dest, offset: u32, bits: u32 },
    /// `advance`, in bits.
    Advance(Expr),
    /// `verify`: condition and error.
    Verify(Expr, u64),
    /// A primitive as in actions.
    Do(Op),
}

/// A part of a select key, which takes whole bytes.
#[derive(Debug)]
pub struct KeyPart {
    pub source: KeySource,
    /// Its width.
    pub bits: u32,
}

#[derive(Debug)]
pub enum KeySource {
    Value(Expr),
    /// The next bits of the packet, from an offset.
    Lookahead {
        offset: u32,
    },
}

impl KeyPart {
    #[inline]
    pub fn padded_bits(&self) -> u32 {
        self.bits.div_ceil(8) * 8
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Transition {
    pub value: u128,
    pub mask: u128,
    /// A state or [`ACCEPT`].
    pub next: usize,
}
