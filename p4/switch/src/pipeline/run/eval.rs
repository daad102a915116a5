// SPDX-License-Identifier: Apache-2.0

//! Evaluates expressions for a packet.

use crate::pipeline::model::expr::{Dest, Element, Expr, Node};
use crate::pipeline::model::layout::Stack;
use crate::pipeline::model::slot::Slot;
use crate::pipeline::model::word::{Word, mask_limbs, mask64};

/// The values that an expression reads.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    /// The packet's headers and metadata.
    pub words: &'a [u64],
    /// The action's arguments.
    pub args: &'a [u64],
    /// The program's stacks.
    pub stacks: &'a [Stack],
}

impl Element {
    /// The field, unless the index is out of bounds.
    fn resolve(&self, scope: &Scope) -> Option<Slot> {
        let index = usize::try_from(self.index.to_u64(scope)).ok()?;
        Some(self.slot.at(*scope.stacks[self.stack].bases.get(index)?))
    }
}

impl<W: Word> Node<W> {
    /// The node's value. Most operands are fields and constants, which need no call.
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

/// The amount of a shift. All amounts that shift out every bit are equivalent.
#[inline]
fn shift_amount<W: Word>(amount: &W) -> u64 {
    if W::BITS > u64::BITS && !amount.shr(32, false).is_zero() {
        u64::from(u32::MAX)
    } else {
        amount.low64().min(u64::from(u32::MAX))
    }
}

/// `value`, read as two's complement and saturated to `bits`. The caller ensures that the bounds
/// fit in the word.
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

    /// The value as an index or a count. It becomes `u64::MAX` if it is negative or does not fit.
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

impl Dest {
    /// The slot of the destination, unless the value is ignored.
    #[inline]
    pub fn resolve(&self, scope: &Scope) -> Option<Slot> {
        match self {
            Dest::Field(slot) => Some(*slot),
            Dest::StackLast(of) => Some(of.1.at(scope.stacks[of.0].last(scope.words)?)),
            Dest::StackAt(element) => element.resolve(scope),
        }
    }
}
