// SPDX-License-Identifier: Apache-2.0

//! Actions, and the primitives that they consist of.

use super::expr::{Dest, Expr, Node};
use super::slot::Slot;

/// An action, compiled.
#[derive(Debug)]
pub struct Action {
    pub name: String,
    /// Where each parameter is in the arguments.
    pub params: Box<[Slot]>,
    pub ops: Box<[Op]>,
}

/// One primitive of an action. It is smaller than a cache line, because a packet runs hundreds of
/// them.
#[derive(Debug, Clone)]
pub enum Op {
    /// Assignment of a number to a field of at most 64 bits.
    SetConst { word: u32, value: u64 },
    /// Assignment of a field to another, both of at most 64 bits.
    SetWord { word: u32, mask: u64, from: u32 },
    /// Assignment of an expression that is computed in 64 bits to a field of at most 64 bits.
    Set {
        word: u32,
        mask: u64,
        value: Node<u64>,
    },
    /// Any other assignment of an expression.
    Assign { to: Dest, value: Expr },
    /// Copies words: a wide field, a varbit with its length, a header with its validity.
    Copy { from: u32, to: u32, words: u32 },
    /// `setValid`: an invalid header becomes valid and zero.
    AddHeader(usize),
    /// `setInvalid`.
    RemoveHeader(usize),
    /// Copies all elements of a stack, and the number of filled ones.
    CopyStack { from: usize, to: usize },
    /// `push_front`.
    Push { stack: usize, count: usize },
    /// `pop_front`.
    Pop { stack: usize, count: usize },
    /// `hash`: base + hash modulo size; base alone when size is 0.
    Hash {
        to: Dest,
        calculation: usize,
        base_and_size: Box<[Expr; 2]>,
    },
    /// `random` between two bounds, inclusive.
    Random { to: Dest, bounds: Box<[Expr; 2]> },
    /// `mark_to_drop`.
    Drop,
    /// `count`; nothing when the index is out of bounds.
    Count { counter: usize, index: Expr },
    /// `execute_meter`; green when the index is out of bounds.
    Meter { to: Dest, meter: u32, index: Expr },
    /// `read`; 0 when the index is out of bounds.
    RegisterRead {
        to: Dest,
        register: u32,
        index: Expr,
    },
    /// `write`; nothing when the index is out of bounds.
    RegisterWrite {
        register: u32,
        index: Expr,
        value: Expr,
    },
    /// `digest`, with the present values of the fields. (BMv2 takes their values at the end of
    /// ingress, and sends only the last digest of a packet.)
    Digest(usize),
    /// `truncate`.
    Truncate(Expr),
    /// `clone`.
    Clone { session: Expr, list: usize },
    /// `resubmit`.
    Resubmit(usize),
    /// `recirculate`.
    Recirculate(usize),
    /// `log_msg`: the text with `{}` for each value.
    Log { text: String, values: Box<[Expr]> },
    /// `assert` and `assume`: if the condition is false, the packet is dropped.
    Assert { condition: Expr, place: String },
    /// `exit`.
    Exit,
}
