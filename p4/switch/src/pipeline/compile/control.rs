// SPDX-License-Identifier: Apache-2.0

//! From JSON to controls.

use std::collections::HashMap;

use super::error::{LoadError, malformed, unsupported};
use super::expr::Names;
use super::json;
use super::table::{Known, compile_table};
use crate::pipeline::model::control::{After, Control, ControlNode, END, Next};
use crate::pipeline::model::info::TableInfo;
use crate::pipeline::model::table::{Args, TablePlan};

/// Compiles a control; its tables are appended to `plans` and `infos`.
pub fn compile_control(
    source: &json::Pipeline,
    known: &Known,
    plans: &mut Vec<TablePlan>,
    infos: &mut Vec<TableInfo>,
) -> Result<Control, LoadError> {
    let control = &source.name;
    if let Some(profile) = source.action_profiles.first() {
        let construct = format!("action profile or selector {}", profile.name);
        return Err(unsupported(format!("control {control}"), construct));
    }
    if let Some(call) = source.action_calls.first() {
        let construct = format!("action call {}", call.name);
        return Err(unsupported(format!("control {control}"), construct));
    }
    let tables = source.tables.iter().map(|table| &table.name);
    let conditions = source.conditionals.iter().map(|condition| &condition.name);
    let names: HashMap<&str, Next> = tables
        .chain(conditions)
        .enumerate()
        .map(|(index, name)| (name.as_str(), index as Next))
        .collect();
    let find = |name: &Option<String>, place: &str| match name {
        None => Ok(END),
        Some(name) => match names.get(name.as_str()) {
            Some(next) => Ok(*next),
            None => Err(malformed(place.into(), format!("no table {name}"))),
        },
    };
    let mut nodes = Vec::new();
    for table in &source.tables {
        let place = format!("table {}", table.name);
        let (plan, info) = compile_table(table, known, &place)?;
        let after = compile_after(table, &info, known, |name| find(name, &place))?;
        nodes.push(match (&plan.default, &after) {
            (Some(call), After::Action { next, .. })
                if info.key.is_empty() && info.const_default && !info.counted =>
            {
                ControlNode::Call {
                    ops: known.actions[call.action].ops.clone(),
                    args: call.args.clone(),
                    next: next[call.position],
                }
            }
            _ => ControlNode::Table {
                table: plans.len(),
                counted: info.counted,
                after,
            },
        });
        plans.push(plan);
        infos.push(info);
    }
    for condition in &source.conditionals {
        let place = format!("condition {}", condition.name);
        let names = Names {
            symbols: known.symbols,
            params: &[],
            place: &place,
        };
        nodes.push(ControlNode::If {
            condition: names.exact(&condition.expression)?,
            yes: find(&condition.true_next, &place)?,
            no: find(&condition.false_next, &place)?,
        });
    }
    let place = format!("control {control}");
    let mut compiled = Control {
        start: find(&source.init_table, &place)?,
        nodes,
    };
    if has_cycle(&compiled) {
        return Err(malformed(place, "its graph has a cycle".into()));
    }
    join_calls(&mut compiled.nodes);
    Ok(compiled)
}

/// Joins calls that always follow each other, because p4c wraps every statement between two tables
/// in its own action.
fn join_calls(nodes: &mut [ControlNode]) {
    for index in 0..nodes.len() {
        while let Some(joined) = join_next(nodes, index) {
            nodes[index] = joined;
        }
    }
}

/// A call joined with the next node, if both are calls without arguments.
fn join_next(nodes: &[ControlNode], index: usize) -> Option<ControlNode> {
    let ControlNode::Call { ops, args, next } = &nodes[index] else {
        return None;
    };
    let ControlNode::Call {
        ops: more,
        args: theirs,
        next,
    } = nodes.get(*next as usize)?
    else {
        return None;
    };
    (args.is_empty() && theirs.is_empty()).then(|| ControlNode::Call {
        ops: ops.iter().chain(more).cloned().collect(),
        args: Args::new(),
        next: *next,
    })
}

/// Whether the graph has a cycle. A node is done when all its next nodes are.
fn has_cycle(control: &Control) -> bool {
    let successors = |node: &ControlNode| match node {
        ControlNode::Table { after, .. } => after.all(),
        ControlNode::Call { next, .. } => vec![*next],
        ControlNode::If { yes, no, .. } => vec![*yes, *no],
    };
    let mut done = vec![false; control.nodes.len()];
    loop {
        let mut progress = false;
        for (index, node) in control.nodes.iter().enumerate() {
            let is_done = |next: &Next| done.get(*next as usize).copied().unwrap_or(true);
            if !done[index] && successors(node).iter().all(is_done) {
                done[index] = true;
                progress = true;
            }
        }
        if !progress {
            return done.contains(&false);
        }
    }
}

fn compile_after(
    table: &json::Table,
    info: &TableInfo,
    known: &Known,
    find: impl Fn(&Option<String>) -> Result<Next, LoadError>,
) -> Result<After, LoadError> {
    let none = find(&table.base_default_next)?;
    let next = |label: &str| match table.next_tables.get(label) {
        Some(next) => find(next),
        None => Ok(none),
    };
    if table.next_tables.contains_key("__HIT__") || table.next_tables.contains_key("__MISS__") {
        return Ok(After::Match {
            hit: next("__HIT__")?,
            miss: next("__MISS__")?,
        });
    }
    let actions = info.actions.iter();
    let actions = actions.map(|action| next(&known.actions[action.0].name));
    Ok(After::Action {
        next: actions.collect::<Result<_, _>>()?,
        none,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::model::action::Op;

    #[test]
    fn calls_without_arguments_that_follow_each_other_are_one() {
        let call = |header, next| ControlNode::Call {
            ops: [Op::RemoveHeader(header)].into(),
            args: Args::new(),
            next,
        };
        let with_argument = ControlNode::Call {
            ops: [Op::RemoveHeader(9)].into(),
            args: Args::from_slice(&[1]),
            next: END,
        };
        // 2 leads to 0, 0 to 1, and 1 to what has an argument.
        let mut nodes = [call(0, 1), call(1, 3), call(2, 0), with_argument];
        join_calls(&mut nodes);
        let seen = nodes.map(|node| match node {
            ControlNode::Call { ops, next, .. } => {
                let header = |op: &Op| match op {
                    Op::RemoveHeader(header) => *header,
                    _ => unreachable!(),
                };
                (ops.iter().map(header).collect::<Vec<_>>(), next)
            }
            _ => unreachable!(),
        });
        let expected = [
            (vec![0, 1], 3),
            (vec![1], 3),
            (vec![2, 0, 1], 3),
            (vec![9], END),
        ];
        assert_eq!(seen, expected);
    }
}
