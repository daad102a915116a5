//! Controls: the graph of tables and conditions that a packet walks.

use super::CounterValue;
use super::action::{Machine, Op};
use super::expr::{Expr, Scope};
use super::table::{Args, Table};

/// Where to go on: a node, or [`END`].
pub(super) type Next = u32;

/// The end of the control.
pub(super) const END: Next = u32::MAX;

/// A control. Its graph has no cycles.
#[derive(Debug, Default)]
pub(super) struct Control {
    pub start: Next,
    pub nodes: Vec<ControlNode>,
}

#[derive(Debug)]
pub(super) enum ControlNode {
    /// Applies a table.
    Table {
        table: usize,
        counted: bool,
        after: After,
    },
    /// Runs an action that p4c wrapped in a table nobody can change, and what always follows it.
    Call {
        ops: Box<[Op]>,
        args: Args,
        next: Next,
    },
    /// Goes one way or the other.
    If {
        condition: Expr,
        yes: Next,
        no: Next,
    },
}

/// Where a table leads.
#[derive(Debug)]
pub(super) enum After {
    /// By the action that ran, at its position in the table; `none` when a miss has no action.
    Action { next: Box<[Next]>, none: Next },
    /// By whether an entry matched.
    Match { hit: Next, miss: Next },
}

impl After {
    /// All places it leads to.
    pub fn all(&self) -> Vec<Next> {
        match self {
            After::Action { next, none } => next.iter().copied().chain([*none]).collect(),
            After::Match { hit, miss } => vec![*hit, *miss],
        }
    }
}

impl Control {
    /// The tables that it applies.
    pub fn applied_tables(&self) -> impl Iterator<Item = usize> {
        self.nodes.iter().filter_map(|node| match node {
            ControlNode::Table { table, .. } => Some(*table),
            ControlNode::Call { .. } | ControlNode::If { .. } => None,
        })
    }

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
