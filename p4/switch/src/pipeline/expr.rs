//! Expressions, compiled: a tree of operations on one word type.

use num_bigint::BigInt;

use super::layout::{Slot, Stack};
use super::word::{Word, mask_limbs, mask64};

/// What an expression reads.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    /// The packet's headers and metadata.
    pub words: &'a [u64],
    /// The action's arguments.
    pub args: &'a [u64],
    /// The program's stacks.
    pub stacks: &'a [Stack],
}

/// A field of an element of a stack.
#[derive(Debug, Clone)]
pub(super) struct Element {
    pub stack: usize,
    /// Where the field is in the header.
    pub slot: Slot,
    pub index: Expr,
}

impl Element {
    /// The field, unless the index is out of bounds.
    fn resolve(&self, scope: &Scope) -> Option<Slot> {
        let index = usize::try_from(self.index.to_u64(scope)).ok()?;
        Some(self.slot.at(*scope.stacks[self.stack].bases.get(index)?))
    }
}

/// An operation on words `W`. Booleans are 0 and 1. What is rare is boxed: a program's expressions
/// should fit into the cache next to the processor.
#[derive(Debug, Clone)]
pub(super) enum Node<W> {
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
    /// Limited to an unsigned (or, `true`, signed) integer of that many bits.
    Saturate(Box<Node<W>>, u32, bool),
    /// The second if the first is true, else the third.
    If(Box<[Node<W>; 3]>),
}

impl<W: Word> Node<W> {
    /// Its value. Most operands are fields and constants: those need no call.
    #[inline(always)]
    pub fn eval(&self, scope: &Scope) -> W {
        match self {
            Node::Const(value) => value.clone(),
            Node::Word(word) => W::from_u64(scope.words[*word as usize]),
            _ => self.compute(scope),
        }
    }

    fn compute(&self, scope: &Scope) -> W {
        let truth = |value: bool| W::from_u64(value.into());
        match self {
            Node::Const(_) | Node::Word(_) => self.eval(scope),
            Node::Field(slot) => load(*slot, scope.words),
            Node::Arg(slot) => load(*slot, scope.args),
            Node::LastIndex(stack) => {
                let next = scope.words[scope.stacks[*stack].next as usize];
                W::from_u64(next.wrapping_sub(1) & mask64(32))
            }
            Node::StackLast(of) => match scope.stacks[of.0].last(scope.words) {
                Some(base) => load(of.1.at(base), scope.words),
                None => W::from_u64(0),
            },
            Node::StackAt(element) => match element.resolve(scope) {
                Some(slot) => load(slot, scope.words),
                None => W::from_u64(0),
            },
            Node::Add(of) => of[0].eval(scope).add(&of[1].eval(scope)),
            Node::Sub(of) => of[0].eval(scope).sub(&of[1].eval(scope)),
            Node::Mul(of) => of[0].eval(scope).mul(&of[1].eval(scope)),
            Node::Div(of) => of[0].eval(scope).div(&of[1].eval(scope)),
            Node::Rem(of) => of[0].eval(scope).rem(&of[1].eval(scope)),
            Node::BitAnd(of) => of[0].eval(scope).and(&of[1].eval(scope)),
            Node::BitOr(of) => of[0].eval(scope).or(&of[1].eval(scope)),
            Node::BitXor(of) => of[0].eval(scope).xor(&of[1].eval(scope)),
            Node::BitNot(of) => of.eval(scope).not(),
            Node::Shl(of) => {
                let amount = shift_amount(&of[1].eval(scope));
                of[0].eval(scope).shl(amount)
            }
            Node::Shr(of, signed) => {
                let amount = shift_amount(&of[1].eval(scope));
                of[0].eval(scope).shr(amount, *signed)
            }
            Node::Eq(of) => truth(of[0].eval(scope).equal(&of[1].eval(scope))),
            Node::Ne(of) => truth(!of[0].eval(scope).equal(&of[1].eval(scope))),
            Node::Less(of, signed) => truth(of[0].eval(scope).less(&of[1].eval(scope), *signed)),
            Node::LessEq(of, signed) => truth(!of[1].eval(scope).less(&of[0].eval(scope), *signed)),
            Node::And(of) => truth(!of[0].eval(scope).is_zero() && !of[1].eval(scope).is_zero()),
            Node::Or(of) => truth(!of[0].eval(scope).is_zero() || !of[1].eval(scope).is_zero()),
            Node::Not(of) => truth(of.eval(scope).is_zero()),
            Node::Test(of) => truth(!of.eval(scope).is_zero()),
            Node::Wrap(of, bits) => of.eval(scope).sign_extend(*bits),
            Node::Saturate(of, bits, signed) => saturate(of.eval(scope), *bits, *signed),
            Node::If(of) => {
                let branch = if of[0].eval(scope).is_zero() { 2 } else { 1 };
                of[branch].eval(scope)
            }
        }
    }
}

#[inline]
fn load<W: Word>(slot: Slot, words: &[u64]) -> W {
    let value = if slot.bits <= u64::BITS {
        W::from_u64(words[slot.start()])
    } else {
        W::from_limbs(&words[slot.range()])
    };
    if slot.signed {
        value.sign_extend(slot.bits)
    } else {
        value
    }
}

/// How far a shift goes; every amount that shifts all bits out is as good as another.
#[inline]
fn shift_amount<W: Word>(amount: &W) -> u64 {
    if W::BITS > u64::BITS && !amount.shr(32, false).is_zero() {
        u64::from(u32::MAX)
    } else {
        amount.low64().min(u64::from(u32::MAX))
    }
}

/// `value`, read as two's complement, limited to what `bits` hold. The caller has seen to it that
/// the bounds fit in the word.
fn saturate<W: Word>(value: W, bits: u32, signed: bool) -> W {
    let one = W::from_u64(1);
    let low = if signed {
        W::from_u64(0).sub(&one.shl(u64::from(bits) - 1))
    } else {
        W::from_u64(0)
    };
    let value_bits = if signed { bits - 1 } else { bits };
    let high = one.shl(u64::from(value_bits)).sub(&one);
    if value.less(&low, true) {
        low
    } else if high.less(&value, true) {
        high
    } else {
        value
    }
}

/// An expression in the narrowest word that gives its value, and how that word is to be read.
#[derive(Debug, Clone)]
pub(super) enum Expr {
    /// In 64 bits.
    Word(Node<u64>, bool),
    /// In 128 bits.
    Double(Box<Node<u128>>, bool),
    /// On integers without bound. Allocates.
    Big(Box<Node<BigInt>>),
}

impl Expr {
    /// Whether the value is not 0.
    #[inline]
    pub fn test(&self, scope: &Scope) -> bool {
        match self {
            Expr::Word(node, _) => node.eval(scope) != 0,
            Expr::Double(node, _) => node.eval(scope) != 0,
            Expr::Big(node) => !Word::is_zero(&node.eval(scope)),
        }
    }

    /// The value as an index or a count: what is negative or does not fit becomes `u64::MAX`.
    #[inline]
    pub fn to_u64(&self, scope: &Scope) -> u64 {
        match self {
            Expr::Word(node, signed) => {
                let value = node.eval(scope);
                if *signed && (value as i64) < 0 {
                    u64::MAX
                } else {
                    value
                }
            }
            Expr::Double(node, _) => node.eval(scope).try_into().unwrap_or(u64::MAX),
            Expr::Big(node) => node.eval(scope).try_into().unwrap_or(u64::MAX),
        }
    }

    /// Writes the value modulo 2^`bits` to `limbs`.
    pub fn write(&self, scope: &Scope, bits: u32, limbs: &mut [u64]) {
        match self {
            Expr::Word(node, signed) => node.eval(scope).to_limbs(*signed, limbs),
            Expr::Double(node, signed) => node.eval(scope).to_limbs(*signed, limbs),
            Expr::Big(node) => node.eval(scope).to_limbs(true, limbs),
        }
        mask_limbs(limbs, bits);
    }
}

/// What an assignment writes.
#[derive(Debug, Clone)]
pub(super) enum Dest {
    Field(Slot),
    /// Nothing when no element was extracted.
    StackLast(Box<(usize, Slot)>),
    /// Nothing when the index is out of bounds.
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

    /// Where the value goes, if it goes anywhere.
    #[inline]
    pub fn resolve(&self, scope: &Scope) -> Option<Slot> {
        match self {
            Dest::Field(slot) => Some(*slot),
            Dest::StackLast(of) => Some(of.1.at(scope.stacks[of.0].last(scope.words)?)),
            Dest::StackAt(element) => element.resolve(scope),
        }
    }
}
