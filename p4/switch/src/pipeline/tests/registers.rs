// SPDX-License-Identifier: Apache-2.0

//! Registers that share rows.

use crate::pipeline::compile::registers::used_alike;
use crate::pipeline::model::action::Op;
use crate::pipeline::model::expr::{Dest, Expr, Node};
use crate::pipeline::model::info::RegisterInfo;
use crate::pipeline::model::registers::{RegisterPlan, Shape};
use crate::pipeline::model::slot::Slot;
use crate::pipeline::model::word::limbs_for;
use crate::pipeline::run::registers::Registers;

fn info(size: usize, bits: u32) -> RegisterInfo {
    RegisterInfo {
        name: String::new(),
        size,
        bits,
    }
}

fn read(register: u32, word: u32) -> Op {
    Op::RegisterRead {
        to: Dest::Field(Slot {
            word: 0,
            bits: 64,
            signed: false,
        }),
        register,
        index: Expr::Word(Node::Word(word), false),
    }
}

#[test]
fn registers_that_one_field_indexes_share_their_rows_and_no_cell() {
    let registers = [
        info(64, 32),
        info(64, 72),
        info(64, 48),
        info(8, 32),
        info(64, 16),
    ];
    // 0 and 2 by way of 1; 3 is of another size; nobody uses 4.
    let ops = [read(0, 5), read(1, 5), read(1, 6), read(2, 6), read(3, 6)];
    let plan = RegisterPlan::new(&registers, ops.iter());
    let shape = |rows, row_limbs| Shape { rows, row_limbs };
    assert_eq!(plan.banks, [shape(64, 4), shape(8, 1), shape(64, 1)]);
    let mut state = Registers::new(&plan);
    for (register, info) in registers.iter().enumerate() {
        for index in 0..info.size as u64 {
            let cell = state.cell_mut(&plan, register, index).unwrap();
            cell.fill(100 * register as u64 + index);
        }
    }
    for (register, info) in registers.iter().enumerate() {
        for index in 0..info.size as u64 {
            let cell = state.cell(&plan, register, index).unwrap();
            assert_eq!(cell.len(), limbs_for(info.bits));
            assert!(
                cell.iter()
                    .all(|limb| *limb == 100 * register as u64 + index)
            );
        }
    }
}

#[test]
fn an_index_that_is_computed_twice_is_the_same() {
    let registers = [info(8, 32), info(8, 32), info(8, 32)];
    let set = |word, value| Op::Set {
        word,
        mask: u64::MAX,
        value,
    };
    let ops = [
        set(5, Node::BitNot(Box::new(Node::Word(1)))),
        read(0, 5),
        set(6, Node::BitNot(Box::new(Node::Word(1)))),
        read(1, 6),
        // The value of this field is not known.
        set(7, Node::BitNot(Box::new(Node::Word(1)))),
        set(7, Node::Word(2)),
        read(2, 7),
    ];
    assert_eq!(used_alike(&registers, ops.iter()), [0, 0, 2]);
}
