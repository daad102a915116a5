//! Controls: the graph of tables and conditions that a packet walks.

use super::action::Op;
use super::expr::Expr;
use super::table::Args;

/// Where to go on: a node, or [`END`].
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
pub enum After {
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
}
