// SPDX-License-Identifier: Apache-2.0

//! Plans which registers are stored beside each other: those that actions use at the same index.

use std::collections::HashMap;

use crate::pipeline::model::action::Op;
use crate::pipeline::model::expr::{Expr, Node};
use crate::pipeline::model::info::RegisterInfo;
use crate::pipeline::model::registers::{Place, RegisterPlan, Shape};
use crate::pipeline::model::word::limbs_for;

impl RegisterPlan {
    /// The plan for registers that actions use with these primitives.
    pub fn new<'a>(registers: &[RegisterInfo], ops: impl Iterator<Item = &'a Op> + Clone) -> Self {
        let mut plan = Self::default();
        let mut bank_of = HashMap::new();
        for (info, first) in registers.iter().zip(used_alike(registers, ops)) {
            let bank = *bank_of.entry(first).or_insert_with(|| {
                plan.banks.push(Shape {
                    rows: info.size,
                    row_limbs: 0,
                });
                plan.banks.len() - 1
            });
            let limbs = limbs_for(info.bits);
            plan.places.push(Place {
                bank,
                shape: plan.banks[bank],
                start: plan.banks[bank].row_limbs,
                limbs,
                bits: info.bits,
            });
            plan.banks[bank].row_limbs += limbs;
        }
        for place in &mut plan.places {
            place.shape = plan.banks[place.bank];
        }
        plan
    }
}

/// For each register, the first one of its size that is used at the same index, directly or by way
/// of a third register. Two indices are the same if they are the same expression.
pub(in crate::pipeline) fn used_alike<'a>(
    registers: &[RegisterInfo],
    ops: impl Iterator<Item = &'a Op> + Clone,
) -> Vec<usize> {
    let sources = sources(ops.clone());
    let mut first: Vec<usize> = (0..registers.len()).collect();
    let mut by_index = HashMap::new();
    for op in ops {
        let (register, index) = match op {
            Op::RegisterRead {
                register, index, ..
            }
            | Op::RegisterWrite {
                register, index, ..
            } => (*register as usize, index),
            _ => continue,
        };
        let Expr::Word(mut index, _) = index.clone() else {
            continue;
        };
        // Each step leads to an earlier word, so this ends, except for programs that p4c did not
        // write.
        for _ in 0..sources.len() {
            match index {
                Node::Word(word) => match sources.get(&word) {
                    Some(Some(source)) => index = source.clone(),
                    _ => break,
                },
                _ => break,
            }
        }
        let key = (format!("{index:?}"), registers[register].size);
        let other = *by_index.entry(key).or_insert(register);
        let (one, two) = (first[register], first[other]);
        let apart = first.iter_mut().filter(|of| **of == one.max(two));
        apart.for_each(|of| *of = one.min(two));
    }
    first
}

/// The expression assigned to each field, or nothing if there are several. p4c computes each index
/// into its own variable.
fn sources<'a>(ops: impl Iterator<Item = &'a Op>) -> HashMap<u32, Option<Node<u64>>> {
    let mut sources = HashMap::new();
    for op in ops {
        let (word, value) = match op {
            Op::SetConst { word, value } => (*word, Node::Const(*value)),
            Op::SetWord { word, from, .. } => (*word, Node::Word(*from)),
            Op::Set { word, value, .. } => (*word, value.clone()),
            _ => continue,
        };
        sources
            .entry(word)
            .and_modify(|source| *source = None)
            .or_insert(Some(value));
    }
    sources
}
