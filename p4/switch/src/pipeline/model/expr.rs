// SPDX-License-Identifier: Apache-2.0

//! Expressions: a tree of operations on one word type.

use num_bigint::BigInt;

use super::slot::Slot;

/// A field of an element of a stack.
#[derive(Debug, Clone)]
pub struct Element {
    pub stack: usize,
    /// Where the field is in the header.
    pub slot: Slot,
    pub index: Expr,
}

/// An operation on words `W`. Booleans are 0 and 1. Rare operands are boxed, so that a program's
/// expressions fit into the processor's first-level cache.
#[derive(Debug, Clone)]
pub enum Node<W> {
    Const(W),
    /// A field of at most 64 bits, not signed.
    Word(u32),
    Field(Slot),
    /// An action's argument.
    Arg(Slot),
    /// The index of the stack element extracted last.
    LastIndex(usize),
    /// A field of the stack element extracted last; 0 when there is none.
    StackLast(Box<(usize, Slot)>),
    /// A field of the stack element at an index; 0 when there is none.
    StackAt(Box<Element>),
    Add(Box<[Node<W>; 2]>),
    Sub(Box<[Node<W>; 2]>),
    Mul(Box<[Node<W>; 2]>),
    Div(Box<[Node<W>; 2]>),
    Rem(Box<[Node<W>; 2]>),
    BitAnd(Box<[Node<W>; 2]>),
    BitOr(Box<[Node<W>; 2]>),
    BitXor(Box<[Node<W>; 2]>),
    BitNot(Box<Node<W>>),
    Shl(Box<[Node<W>; 2]>),
    Shr(Box<[Node<W>; 2]>, bool),
    Eq(Box<[Node<W>; 2]>),
    Ne(Box<[Node<W>; 2]>),
    Less(Box<[Node<W>; 2]>, bool),
    LessEq(Box<[Node<W>; 2]>, bool),
    And(Box<[Node<W>; 2]>),
    Or(Box<[Node<W>; 2]>),
    Not(Box<Node<W>>),
    /// Not zero.
    Test(Box<Node<W>>),
    /// The low bits as two's complement.
    Wrap(Box<Node<W>>, u32),
    /// Saturated to an unsigned integer of that many bits, or a signed one if `true`.
    Saturate(Box<Node<W>>, u32, bool),
    /// The second operand if the first is true, otherwise the third.
    If(Box<[Node<W>; 3]>),
}

/// An expression in the narrowest word that gives its value, and whether that word is signed.
#[derive(Debug, Clone)]
pub enum Expr {
    /// In 64 bits.
    Word(Node<u64>, bool),
    /// In 128 bits.
    Double(Box<Node<u128>>, bool),
    /// In unbounded integers. Allocates.
    Big(Box<Node<BigInt>>),
}

/// The destination of an assignment.
#[derive(Debug, Clone)]
pub enum Dest {
    Field(Slot),
    /// Ignored if no element was extracted.
    StackLast(Box<(usize, Slot)>),
    /// Ignored if the index is out of bounds.
    StackAt(Box<Element>),
}

impl Dest {
    /// The width of the destination.
    pub fn bits(&self) -> u32 {
        match self {
            Dest::Field(slot) => slot.bits,
            Dest::StackLast(of) => of.1.bits,
            Dest::StackAt(element) => element.slot.bits,
        }
    }
}
