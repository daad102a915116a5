// SPDX-License-Identifier: Apache-2.0

//! Runs controls.

use super::api::CounterValue;
use super::eval::Scope;
use super::machine::Machine;
use super::table::Table;
use crate::pipeline::model::control::{After, Control, ControlNode, Next};

impl Control {
    /// Sends the packet of `machine` through.
    pub fn run(&self, machine: &mut Machine, tables: &mut [Table]) {
        let mut at = self.start;
        while let Some(node) = self.nodes.get(at as usize) {
            at = match node {
                ControlNode::Table {
                    table,
                    counted,
                    after,
                } => apply(&mut tables[*table], *counted, after, machine),
                ControlNode::Call { ops, args, next } => {
                    machine.run(ops, args);
                    *next
                }
                ControlNode::If { condition, yes, no } => {
                    let scope = &Scope {
                        words: &machine.packet.words,
                        args: &[],
                        stacks: &machine.program.layout.stacks,
                    };
                    if condition.test(scope) { *yes } else { *no }
                }
            };
            if machine.packet.exited {
                return;
            }
        }
    }
}

fn apply(table: &mut Table, counted: bool, after: &After, machine: &mut Machine) -> Next {
    let length = machine.packet.length();
    let count = |counter: &mut CounterValue| {
        if counted {
            counter.add(length);
        }
    };
    let (call, hit) = match table.lookup(&machine.packet.words) {
        Some(entry) => {
            count(&mut entry.counter);
            (Some(&entry.call), true)
        }
        None => {
            count(&mut table.rest.default_counter);
            (table.default.as_ref(), false)
        }
    };
    if let Some(call) = call {
        machine.run(&machine.program.actions[call.action].ops, &call.args);
    }
    match (after, call) {
        (After::Match { hit: yes, miss }, _) => {
            if hit {
                *yes
            } else {
                *miss
            }
        }
        (After::Action { next, .. }, Some(call)) => next[call.position],
        (After::Action { none, .. }, None) => *none,
    }
}
