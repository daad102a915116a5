// SPDX-License-Identifier: Apache-2.0

//! Controls: the graph of tables and conditions that a packet walks.

use super::action::Op;
use super::expr::Expr;
use super::table::Args;

/// The next node, or [`END`].
pub type Next = u32;

/// The end of the control.
pub const END: Next = u32::MAX;

/// A control. Its graph has no cycles.
#[derive(Debug, Default)]
pub struct Control {
    pub start: Next,
    pub nodes: Vec<ControlNode>,
}

#[derive(Debug)]
pub enum ControlNode {
    /// Applies a table.
    Table {
        table: usize,
        counted: bool,
        after: After,
    },
    /// Runs an action that p4c wrapped in a constant table, with the calls that were joined to it.
    Call {
        ops: Box<[Op]>,
        args: Args,
        next: Next,
    },
    /// Branches on a condition.
    If {
        condition: Expr,
        yes: Next,
        no: Next,
    },
}

/// The next node after a table.
#[derive(Debug)]
pub enum After {
    /// Depends on the action that ran, by its position in the table; `none` is for a miss without
    /// action.
    Action { next: Box<[Next]>, none: Next },
    /// Depends on whether an entry matched.
    Match { hit: Next, miss: Next },
}

impl After {
    /// All possible next nodes.
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
}
