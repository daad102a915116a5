//! From JSON to controls and their tables.

use std::collections::HashMap;

use super::compile_expr::{Names, parse_hex};
use super::control::{After, Control, ControlNode, END, Next};
use super::error::{malformed, unsupported};
use super::json;
use super::layout::{Layout, Slot};
use super::program::{Action, TablePlan};
use super::table::{Args, Call, EntryKey, KeyField, Match, prefix_limbs};
use super::word::{Word, limbs_for, mask_limbs};
use super::{ActionId, KeyInfo, LoadError, MatchKind, TableInfo};

/// The most entries a table may be declared with.
const MAX_TABLE_SIZE: usize = 1 << 24;

/// What controls may refer to.
pub(super) struct Known<'a> {
    pub layout: &'a Layout,
    pub actions: &'a [Action],
    /// Action ids to places among the actions.
    pub action_ids: &'a HashMap<u64, usize>,
}

/// Compiles a control; its tables are appended to `plans` and `infos`.
pub(super) fn compile_control(
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
            layout: known.layout,
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

/// Makes calls that follow each other without a choice one. p4c wraps every statement between two
/// tables in an action of its own.
fn join_calls(nodes: &mut [ControlNode]) {
    for index in 0..nodes.len() {
        while let Some(joined) = join_next(nodes, index) {
            nodes[index] = joined;
        }
    }
}

/// The call with that which follows it, if both are calls without arguments.
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

/// Whether a packet could walk in circles. A node is done when all it leads to is.
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

fn compile_table(
    table: &json::Table,
    known: &Known,
    place: &str,
) -> Result<(TablePlan, TableInfo), LoadError> {
    let refuse = |construct: &str| Err(unsupported(place.into(), construct.into()));
    if table.kind != "simple" {
        return refuse(&format!("a table of type {}", table.kind));
    }
    if table.support_timeout {
        return refuse("support_timeout");
    }
    if let Some(meter) = &table.direct_meters {
        return refuse(&format!("direct meter {meter}"));
    }
    if table.max_size > MAX_TABLE_SIZE {
        return refuse(&format!("a table of {} entries", table.max_size));
    }
    let key = table.key.iter().map(|key| compile_key(key, known, place));
    let (fields, key): (Vec<_>, Vec<_>) = key.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
    let of_kind = |kind: MatchKind| key.iter().any(|key: &KeyInfo| key.kind == kind);
    let prioritised = of_kind(MatchKind::Ternary) || of_kind(MatchKind::Range);
    let expected = match table.match_type.as_str() {
        "exact" => !prioritised && !of_kind(MatchKind::Lpm),
        "lpm" => !prioritised,
        "ternary" | "range" => prioritised,
        other => return refuse(&format!("match type {other}")),
    };
    if !expected || key.iter().filter(|key| key.kind == MatchKind::Lpm).count() > 1 {
        return Err(malformed(
            place.into(),
            "its match type does not suit its key".into(),
        ));
    }
    let actions = table
        .action_ids
        .iter()
        .map(|id| find_action(*id, known, place));
    let actions: Vec<usize> = actions.collect::<Result<_, _>>()?;
    let call = |id: u64, data: &[String]| compile_call(id, data, &actions, known, place);
    let default = match &table.default_entry {
        Some(default) => Some(call(default.action_id, &default.action_data)?),
        None => None,
    };
    let entries = table.entries.iter().map(|entry| {
        let matches = key.iter().zip(&fields).zip(&entry.match_key);
        let matches = matches
            .map(|((key, field), value)| compile_match(key, field, value, prioritised, place));
        let matches: Box<[Match]> = matches.collect::<Result<_, LoadError>>()?;
        if matches.len() != key.len() {
            return Err(malformed(place.into(), "an entry without its key".into()));
        }
        let action = &entry.action_entry;
        let priority = if prioritised { entry.priority } else { 0 };
        let key = EntryKey { matches, priority };
        Ok((key, call(action.action_id, &action.action_data)?))
    });
    let mut entries: Vec<(EntryKey, Call)> = entries.collect::<Result<_, LoadError>>()?;
    // In BMv2 the least number comes first, in P4Runtime the greatest.
    let last = entries.iter().map(|(key, _)| key.priority).max();
    for (key, _) in &mut entries {
        if prioritised {
            key.priority = last
                .unwrap_or(0)
                .saturating_sub(key.priority)
                .saturating_add(1);
        }
    }
    let info = TableInfo {
        name: table.name.clone(),
        key,
        actions: actions.iter().copied().map(ActionId).collect(),
        max_size: table.max_size,
        counted: table.with_counters,
        const_entries: !table.entries.is_empty(),
        const_default: table
            .default_entry
            .as_ref()
            .is_some_and(|default| default.action_const),
        prioritised,
    };
    let plan = TablePlan {
        key: fields.into(),
        default,
        entries,
    };
    Ok((plan, info))
}

fn compile_key(
    key: &json::Key,
    known: &Known,
    place: &str,
) -> Result<(KeyField, KeyInfo), LoadError> {
    let (header, field) = (&key.target.0, &key.target.1);
    let field = known.layout.field(header, field, place)?;
    if field.variable {
        return Err(unsupported(place.into(), "a varbit key field".into()));
    }
    let slot = field.slot;
    let kind = match key.match_type.as_str() {
        "exact" | "valid" => MatchKind::Exact,
        "lpm" => MatchKind::Lpm,
        "ternary" => MatchKind::Ternary,
        "range" => MatchKind::Range,
        other => return Err(unsupported(place.into(), format!("match type {other}"))),
    };
    let mask = match &key.mask {
        Some(mask) => Some(hex_limbs(mask, slot.bits, place)?),
        None => None,
    };
    let name = key.name.clone();
    let info = KeyInfo {
        name: name.unwrap_or_else(|| format!("{}.{}", key.target.0, key.target.1)),
        kind,
        bits: slot.bits,
    };
    Ok((KeyField { slot, mask }, info))
}

fn find_action(id: u64, known: &Known, place: &str) -> Result<usize, LoadError> {
    let action = known.action_ids.get(&id).copied();
    action.ok_or_else(|| malformed(place.into(), format!("no action {id}")))
}

fn compile_call(
    id: u64,
    data: &[String],
    actions: &[usize],
    known: &Known,
    place: &str,
) -> Result<Call, LoadError> {
    let action = find_action(id, known, place)?;
    let Some(position) = actions.iter().position(|other| *other == action) else {
        return Err(malformed(
            place.into(),
            format!("action {id} is none of its actions"),
        ));
    };
    let params: &[Slot] = &known.actions[action].params;
    if params.len() != data.len() {
        return Err(malformed(
            place.into(),
            format!("action {id} has {} parameters", params.len()),
        ));
    }
    let args = params.iter().zip(data);
    let args = args.map(|(slot, value)| hex_limbs(value, slot.bits, place));
    let args: Vec<Box<[u64]>> = args.collect::<Result<_, _>>()?;
    Ok(Call {
        action,
        position,
        args: Args::from_slice(&args.concat()),
    })
}

/// A constant as limbs, a negative one as two's complement.
fn hex_limbs(text: &str, bits: u32, place: &str) -> Result<Box<[u64]>, LoadError> {
    let Some(value) = parse_hex(text) else {
        return Err(malformed(place.into(), format!("{text} is no number")));
    };
    let mut limbs = vec![0; limbs_for(bits)];
    value.to_limbs(true, &mut limbs);
    mask_limbs(&mut limbs, bits);
    Ok(limbs.into())
}

fn compile_match(
    key: &KeyInfo,
    field: &KeyField,
    value: &json::EntryKey,
    prioritised: bool,
    place: &str,
) -> Result<Match, LoadError> {
    let bits = field.slot.bits;
    let missing = || malformed(place.into(), "an entry's key is incomplete".into());
    let limbs = |text: Option<&str>| hex_limbs(text.ok_or_else(missing)?, bits, place);
    let text = || value.key.as_ref().and_then(|key| key.as_str());
    let masked = |mut limbs: Box<[u64]>, mask: &[u64]| {
        for (limb, mask) in limbs.iter_mut().zip(mask) {
            *limb &= mask;
        }
        limbs
    };
    Ok(match key.kind {
        MatchKind::Exact => match value.key.as_ref().and_then(serde_json::Value::as_bool) {
            Some(valid) => Match::Exact(Box::new([valid.into()])),
            None => Match::Exact(limbs(text())?),
        },
        MatchKind::Lpm => {
            let prefix_bits = value.prefix_length.ok_or_else(missing)?.min(bits);
            let mask = prefix_limbs(prefix_bits, bits);
            let value = masked(limbs(text())?, &mask);
            if prioritised {
                Match::Ternary { value, mask }
            } else {
                Match::Lpm { value, prefix_bits }
            }
        }
        MatchKind::Ternary => {
            let mask = limbs(value.mask.as_deref())?;
            let value = masked(limbs(text())?, &mask);
            Match::Ternary { value, mask }
        }
        MatchKind::Range => Match::Range {
            low: limbs(value.start.as_deref())?,
            high: limbs(value.end.as_deref())?,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::super::action::Op;
    use super::*;

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
