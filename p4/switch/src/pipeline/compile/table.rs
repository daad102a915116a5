// SPDX-License-Identifier: Apache-2.0

//! From JSON to tables, with the entries that the program gives them.

use std::collections::HashMap;

use super::error::{LoadError, malformed, unsupported};
use super::expr::parse_hex;
use super::json;
use super::symbols::Symbols;
use crate::pipeline::model::action::Action;
use crate::pipeline::model::info::{ActionId, KeyInfo, MatchKind, TableInfo};
use crate::pipeline::model::slot::Slot;
use crate::pipeline::model::table::{
    Args, Call, EntryKey, KeyField, Match, TablePlan, prefix_limbs,
};
use crate::pipeline::model::word::{Word, limbs_for, mask_limbs};

/// Maximum declared size of a table.
const MAX_TABLE_SIZE: usize = 1 << 24;

/// The objects that controls may refer to.
pub struct Known<'a> {
    pub symbols: &'a Symbols,
    pub actions: &'a [Action],
    /// Action ids to indices of actions.
    pub action_ids: &'a HashMap<u64, usize>,
}

pub fn compile_table(
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
    // In BMv2 the smallest number has precedence, in P4Runtime the greatest.
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
    let field = known.symbols.field(header, field, place)?;
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
            format!("action {id} is not one of its actions"),
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
        return Err(malformed(place.into(), format!("{text} is not a number")));
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
