// SPDX-License-Identifier: Apache-2.0

//! Chooses the word an expression is computed in.
//!
//! Every node has a range of values. A node whose operands only matter modulo the word's size can
//! be computed in any word. A node that needs the exact value of an operand requires a word that
//! holds the operand's whole range. The expression gets the narrowest word that serves all its
//! nodes, or unbounded integers if none does.

use num_bigint::{BigInt, Sign};

use crate::pipeline::model::expr::{Expr, Node};
use crate::pipeline::model::slot::Slot;
use crate::pipeline::model::word::Word;

/// The range of a node's values: below 2^`bits`, and at least -2^`bits` if `negative`, or at least
/// 0 otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    negative: bool,
    bits: u32,
}

impl Range {
    const TRUTH: Range = Range::unsigned(1);

    const fn unsigned(bits: u32) -> Range {
        Range {
            negative: false,
            bits,
        }
    }

    const fn signed(bits: u32) -> Range {
        Range {
            negative: true,
            bits: bits.saturating_sub(1),
        }
    }

    fn fits_unsigned(self, width: u32) -> bool {
        !self.negative && self.bits <= width
    }

    fn fits_signed(self, width: u32) -> bool {
        self.bits < width
    }

    /// Whether to read a word of that width that holds the value as signed.
    fn reading(self, width: u32) -> Option<bool> {
        if self.fits_unsigned(width) {
            Some(false)
        } else {
            self.fits_signed(width).then_some(true)
        }
    }

    fn join(self, other: Range) -> Range {
        Range {
            negative: self.negative || other.negative,
            bits: self.bits.max(other.bits),
        }
    }

    fn grown(self, bits: u32) -> Range {
        Range {
            bits: self.bits.saturating_add(bits),
            ..self
        }
    }
}

/// Compiles `tree` for a reader that takes its low `bits`, or its exact value if `None`.
pub fn select_width(tree: &Node<BigInt>, bits: Option<u32>) -> Expr {
    let tree = &simplify(tree.clone());
    if let Some((node, signed)) = in_width::<u64>(tree, bits) {
        Expr::Word(node, signed)
    } else if let Some((node, signed)) = in_width::<u128>(tree, bits) {
        Expr::Double(Box::new(node), signed)
    } else {
        match convert::<BigInt>(tree) {
            Some(node) => Expr::Big(Box::new(node)),
            // Every range fits into an unbounded integer, so `convert` cannot refuse.
            None => Expr::Big(Box::new(tree.clone())),
        }
    }
}

fn in_width<W: Word>(tree: &Node<BigInt>, bits: Option<u32>) -> Option<(Node<W>, bool)> {
    let range = range(tree);
    let signed = match bits {
        Some(bits) if bits <= W::BITS => range.reading(W::BITS).unwrap_or(false),
        _ => range.reading(W::BITS)?,
    };
    Some((convert(tree)?, signed))
}

/// Drops masks that clear nothing, and conversions to Boolean of values that are Boolean already.
fn simplify(tree: Node<BigInt>) -> Node<BigInt> {
    match map_operands(tree, &mut simplify) {
        Node::BitAnd(operands) => {
            let [left, right] = *operands;
            let left_range = range(&left);
            if let Node::Const(mask) = &right {
                let next: BigInt = mask + 1;
                let ones = mask.sign() == Sign::Plus && (mask & next).sign() == Sign::NoSign;
                if ones && !left_range.negative && u64::from(left_range.bits) <= mask.bits() {
                    return left;
                }
            }
            Node::BitAnd(Box::new([left, right]))
        }
        Node::Test(of) if range(&of) == Range::TRUTH => *of,
        other => other,
    }
}

fn slot_range(slot: &Slot) -> Range {
    if slot.signed {
        Range::signed(slot.bits)
    } else {
        Range::unsigned(slot.bits)
    }
}

fn range(node: &Node<BigInt>) -> Range {
    match node {
        Node::Const(value) => Range {
            negative: value.sign() == Sign::Minus,
            bits: value.bits() as u32,
        },
        Node::Word(_) => Range::unsigned(64),
        Node::Field(slot) | Node::Arg(slot) => slot_range(slot),
        Node::LastIndex(_) => Range::unsigned(32),
        Node::StackLast(of) => slot_range(&of.1),
        Node::StackAt(element) => slot_range(&element.slot),
        Node::Add(of) => range(&of[0]).join(range(&of[1])).grown(1),
        Node::Sub(of) => Range {
            negative: true,
            ..range(&of[0]).join(range(&of[1])).grown(1)
        },
        Node::Mul(of) => {
            let (left, right) = (range(&of[0]), range(&of[1]));
            let bits = left.bits.saturating_add(right.bits).saturating_add(1);
            Range {
                bits,
                ..left.join(right)
            }
        }
        Node::Div(of) => range(&of[0]),
        Node::Rem(of) => range(&of[0]),
        Node::BitAnd(of) => {
            let (left, right) = (range(&of[0]), range(&of[1]));
            match (left.negative, right.negative) {
                (false, false) => Range::unsigned(left.bits.min(right.bits)),
                (false, true) => left,
                (true, false) => right,
                (true, true) => left.join(right),
            }
        }
        Node::BitOr(of) | Node::BitXor(of) => range(&of[0]).join(range(&of[1])),
        Node::BitNot(of) => Range {
            negative: true,
            ..range(of)
        },
        Node::Shl(of) => match &of[1] {
            Node::Const(amount) => {
                range(&of[0]).grown(amount.low64().try_into().unwrap_or(u32::MAX))
            }
            _ => range(&of[0]).grown(u32::MAX),
        },
        Node::Shr(of, _) => range(&of[0]),
        Node::Eq(_) | Node::Ne(_) | Node::Less(..) | Node::LessEq(..) => Range::TRUTH,
        Node::And(_) | Node::Or(_) | Node::Not(_) | Node::Test(_) => Range::TRUTH,
        Node::Wrap(_, bits) => Range::signed(*bits),
        Node::Saturate(_, bits, true) => Range::signed(*bits),
        Node::Saturate(_, bits, false) => Range::unsigned(*bits),
        Node::If(of) => range(&of[1]).join(range(&of[2])),
    }
}

/// The same tree for word `W`; `None` if the word is too narrow for it.
fn convert<W: Word>(tree: &Node<BigInt>) -> Option<Node<W>> {
    let width = W::BITS;
    let reading = |node: &Node<BigInt>| range(node).reading(width);
    // Whether to read both operands as signed.
    let common = |of: &[Node<BigInt>; 2]| range(&of[0]).join(range(&of[1])).reading(width);
    let natural = |node: &Node<BigInt>| reading(node).filter(|signed| !signed);
    let pair = |of: &[Node<BigInt>; 2]| -> Option<Box<[Node<W>; 2]>> {
        Some(Box::new([convert(&of[0])?, convert(&of[1])?]))
    };
    let one = |of: &Node<BigInt>| -> Option<Box<Node<W>>> { Some(Box::new(convert(of)?)) };
    Some(match tree {
        Node::Const(value) => Node::Const(W::from_big(value)),
        Node::Word(word) => Node::Word(*word),
        Node::Field(slot) if !slot.signed && slot.bits <= u64::BITS => Node::Word(slot.word),
        Node::Field(slot) => Node::Field(*slot),
        Node::Arg(slot) => Node::Arg(*slot),
        Node::LastIndex(stack) => Node::LastIndex(*stack),
        Node::StackLast(of) => Node::StackLast(of.clone()),
        Node::StackAt(element) => Node::StackAt(element.clone()),
        Node::Add(of) => Node::Add(pair(of)?),
        Node::Sub(of) => Node::Sub(pair(of)?),
        Node::Mul(of) => Node::Mul(pair(of)?),
        Node::Div(of) | Node::Rem(of) => {
            natural(&of[0]).and(natural(&of[1]))?;
            match tree {
                Node::Div(_) => Node::Div(pair(of)?),
                _ => Node::Rem(pair(of)?),
            }
        }
        Node::BitAnd(of) => Node::BitAnd(pair(of)?),
        Node::BitOr(of) => Node::BitOr(pair(of)?),
        Node::BitXor(of) => Node::BitXor(pair(of)?),
        Node::BitNot(of) => Node::BitNot(one(of)?),
        Node::Shl(of) => {
            natural(&of[1])?;
            Node::Shl(pair(of)?)
        }
        Node::Shr(of, _) => {
            natural(&of[1])?;
            Node::Shr(pair(of)?, reading(&of[0])?)
        }
        Node::Eq(of) => common(of).and_then(|_| Some(Node::Eq(pair(of)?)))?,
        Node::Ne(of) => common(of).and_then(|_| Some(Node::Ne(pair(of)?)))?,
        Node::Less(of, _) => Node::Less(pair(of)?, common(of)?),
        Node::LessEq(of, _) => Node::LessEq(pair(of)?, common(of)?),
        Node::And(of) => {
            reading(&of[0]).and(reading(&of[1]))?;
            Node::And(pair(of)?)
        }
        Node::Or(of) => {
            reading(&of[0]).and(reading(&of[1]))?;
            Node::Or(pair(of)?)
        }
        Node::Not(of) => reading(of).and_then(|_| Some(Node::Not(one(of)?)))?,
        Node::Test(of) => reading(of).and_then(|_| Some(Node::Test(one(of)?)))?,
        Node::Wrap(of, bits) if *bits <= width => Node::Wrap(one(of)?, *bits),
        Node::Saturate(of, bits, signed) if range(of).fits_signed(width) && *bits < width => {
            Node::Saturate(one(of)?, *bits, *signed)
        }
        Node::Wrap(..) | Node::Saturate(..) => return None,
        Node::If(of) => {
            reading(&of[0])?;
            Node::If(Box::new([
                convert(&of[0])?,
                convert(&of[1])?,
                convert(&of[2])?,
            ]))
        }
    })
}

/// The node with each operand replaced.
fn map_operands(
    node: Node<BigInt>,
    map: &mut dyn FnMut(Node<BigInt>) -> Node<BigInt>,
) -> Node<BigInt> {
    let mut two = |of: Box<[Node<BigInt>; 2]>| -> Box<[Node<BigInt>; 2]> {
        let [left, right] = *of;
        Box::new([map(left), map(right)])
    };
    match node {
        Node::Add(of) => Node::Add(two(of)),
        Node::Sub(of) => Node::Sub(two(of)),
        Node::Mul(of) => Node::Mul(two(of)),
        Node::Div(of) => Node::Div(two(of)),
        Node::Rem(of) => Node::Rem(two(of)),
        Node::BitAnd(of) => Node::BitAnd(two(of)),
        Node::BitOr(of) => Node::BitOr(two(of)),
        Node::BitXor(of) => Node::BitXor(two(of)),
        Node::Shl(of) => Node::Shl(two(of)),
        Node::Shr(of, signed) => Node::Shr(two(of), signed),
        Node::Eq(of) => Node::Eq(two(of)),
        Node::Ne(of) => Node::Ne(two(of)),
        Node::Less(of, signed) => Node::Less(two(of), signed),
        Node::LessEq(of, signed) => Node::LessEq(two(of), signed),
        Node::And(of) => Node::And(two(of)),
        Node::Or(of) => Node::Or(two(of)),
        Node::BitNot(of) => Node::BitNot(Box::new(map(*of))),
        Node::Not(of) => Node::Not(Box::new(map(*of))),
        Node::Test(of) => Node::Test(Box::new(map(*of))),
        Node::Wrap(of, bits) => Node::Wrap(Box::new(map(*of)), bits),
        Node::Saturate(of, bits, signed) => Node::Saturate(Box::new(map(*of)), bits, signed),
        Node::If(of) => {
            let [cond, yes, no] = *of;
            Node::If(Box::new([map(cond), map(yes), map(no)]))
        }
        leaf => leaf,
    }
}
