// SPDX-License-Identifier: Apache-2.0

//! Table entries as the control plane sees them: checked, converted, stored.

use super::error::StateError;
use crate::pipeline::model::info::{ActionId, KeyInfo, MatchKind, TableId, TableInfo};
use crate::pipeline::model::program::Program;
use crate::pipeline::model::table::{Args, Call, EntryKey, Match, prefix_limbs};
use crate::pipeline::model::word::{bytes_to_limbs, limbs_for, limbs_to_bytes};
use crate::pipeline::run::api::{ActionCall, CounterValue, MatchValue, TableEntry};
use crate::pipeline::run::entry::Entry;
use crate::pipeline::run::table::Table;

type Result<T> = std::result::Result<T, StateError>;

fn invalid<T>(message: String) -> Result<T> {
    Err(StateError::InvalidArgument(message))
}

/// The table's description, or `NOT_FOUND`.
pub(in crate::pipeline) fn table_info(program: &Program, table: TableId) -> Result<&TableInfo> {
    let info = program.tables().get(table.0);
    info.ok_or_else(|| StateError::NotFound(format!("no table {}", table.0)))
}

/// The table's description, or why its entries cannot be changed.
fn writable(program: &Program, table: TableId) -> Result<&TableInfo> {
    let info = table_info(program, table)?;
    if info.const_entries {
        let message = format!("the entries of {} are const", info.name);
        return Err(StateError::PermissionDenied(message));
    }
    if info.key.is_empty() {
        return invalid(format!("{} has no key: set its default action", info.name));
    }
    Ok(info)
}

/// The table's description, and the checked key and action call of `entry`.
fn checked<'a>(
    program: &'a Program,
    id: TableId,
    entry: &TableEntry,
) -> Result<(&'a TableInfo, EntryKey, Call)> {
    let info = writable(program, id)?;
    let key = entry_key(info, &entry.matches, entry.priority)?;
    let call = call(program, info, &entry.action)?;
    Ok((info, key, call))
}

pub(in crate::pipeline) fn insert(
    program: &Program,
    id: TableId,
    table: &mut Table,
    entry: &TableEntry,
) -> Result<()> {
    let (info, key, call) = checked(program, id, entry)?;
    if table.get(&key).is_some() {
        let message = format!("{} has an entry with this key", info.name);
        return Err(StateError::AlreadyExists(message));
    }
    if table.len() >= info.max_size {
        let message = format!("{} is full: it holds {} entries", info.name, info.max_size);
        return Err(StateError::ResourceExhausted(message));
    }
    table.insert(Entry {
        call,
        counter: CounterValue::default(),
        key: Box::new(key),
    });
    Ok(())
}

pub(in crate::pipeline) fn modify(
    program: &Program,
    id: TableId,
    table: &mut Table,
    entry: &TableEntry,
) -> Result<()> {
    let (info, key, call) = checked(program, id, entry)?;
    existing(info, table.get_mut(&key))?.call = call;
    Ok(())
}

pub(in crate::pipeline) fn delete(
    program: &Program,
    id: TableId,
    table: &mut Table,
    matches: &[MatchValue],
    priority: i32,
) -> Result<()> {
    let info = writable(program, id)?;
    let key = entry_key(info, matches, priority)?;
    let removed = table.remove(&key).then_some(());
    existing(info, removed)
}

pub(in crate::pipeline) fn find(
    program: &Program,
    id: TableId,
    table: &Table,
    matches: &[MatchValue],
    priority: i32,
) -> Result<Option<(TableEntry, CounterValue)>> {
    let info = table_info(program, id)?;
    let key = entry_key(info, matches, priority)?;
    Ok(table.get(&key).map(|entry| read(program, info, entry)))
}

pub(in crate::pipeline) fn write_counter(
    program: &Program,
    id: TableId,
    table: &mut Table,
    (matches, priority): (&[MatchValue], i32),
    value: CounterValue,
) -> Result<()> {
    let info = counted(program, id)?;
    let key = entry_key(info, matches, priority)?;
    existing(info, table.get_mut(&key))?.counter = value;
    Ok(())
}

/// The table's description, if it has a direct counter.
pub(in crate::pipeline) fn counted(program: &Program, id: TableId) -> Result<&TableInfo> {
    let info = table_info(program, id)?;
    if info.counted {
        Ok(info)
    } else {
        invalid(format!("{} has no direct counter", info.name))
    }
}

pub(in crate::pipeline) fn set_default(
    program: &Program,
    id: TableId,
    table: &mut Table,
    action: Option<&ActionCall>,
) -> Result<()> {
    let info = table_info(program, id)?;
    if info.const_default {
        let message = format!("the default action of {} is const", info.name);
        return Err(StateError::PermissionDenied(message));
    }
    match action {
        Some(action) => table.default = Some(call(program, info, action)?),
        None => {
            table.default = program.table_plans[id.0].default.clone();
            table.rest.default_counter = CounterValue::default();
        }
    }
    Ok(())
}

fn existing<T>(info: &TableInfo, found: Option<T>) -> Result<T> {
    let message = || format!("{} has no entry with this key", info.name);
    found.ok_or_else(|| StateError::NotFound(message()))
}

/// An entry as the control plane sees it.
pub(in crate::pipeline) fn read(
    program: &Program,
    info: &TableInfo,
    entry: &Entry,
) -> (TableEntry, CounterValue) {
    let fields = info.key.iter().zip(&entry.key.matches);
    let entry_seen = TableEntry {
        matches: fields.map(|(key, value)| read_match(key, value)).collect(),
        priority: entry.key.priority,
        action: read_call(program, &entry.call),
    };
    (entry_seen, entry.counter)
}

/// An action call as the control plane sees it.
pub(in crate::pipeline) fn read_call(program: &Program, call: &Call) -> ActionCall {
    let params = program.actions[call.action].params.iter();
    ActionCall {
        action: ActionId(call.action),
        args: params
            .map(|slot| limbs_to_bytes(&call.args[slot.range()]))
            .collect(),
    }
}

fn read_match(key: &KeyInfo, value: &Match) -> MatchValue {
    let zero = |limbs: &[u64]| limbs.iter().all(|limb| *limb == 0);
    match value {
        Match::Exact(value) => MatchValue::Exact(limbs_to_bytes(value)),
        Match::Lpm { prefix_bits: 0, .. } => MatchValue::Any,
        Match::Lpm { value, prefix_bits } => MatchValue::Lpm {
            value: limbs_to_bytes(value),
            prefix_bits: *prefix_bits,
        },
        Match::Ternary { mask, .. } if zero(mask) => MatchValue::Any,
        Match::Ternary { value, mask } if key.kind == MatchKind::Lpm => MatchValue::Lpm {
            value: limbs_to_bytes(value),
            prefix_bits: mask.iter().map(|limb| limb.count_ones()).sum(),
        },
        Match::Ternary { value, mask } => MatchValue::Ternary {
            value: limbs_to_bytes(value),
            mask: limbs_to_bytes(mask),
        },
        Match::Range { low, high } if zero(low) && *high == prefix_limbs(key.bits, key.bits) => {
            MatchValue::Any
        }
        Match::Range { low, high } => MatchValue::Range {
            low: limbs_to_bytes(low),
            high: limbs_to_bytes(high),
        },
    }
}

/// Checks and converts the key of an entry.
fn entry_key(info: &TableInfo, matches: &[MatchValue], priority: i32) -> Result<EntryKey> {
    let table = &info.name;
    if matches.len() != info.key.len() {
        let (given, wanted) = (matches.len(), info.key.len());
        return invalid(format!(
            "{table} has {wanted} key fields, but {given} are given"
        ));
    }
    if info.prioritised && priority <= 0 {
        return invalid(format!("entries of {table} need a priority above 0"));
    }
    if !info.prioritised && priority != 0 {
        return invalid(format!("entries of {table} have no priority"));
    }
    let fields = info.key.iter().zip(matches);
    let matches = fields.map(|(key, value)| match key_match(info, key, value) {
        Ok(value) => Ok(value),
        Err(problem) => invalid(format!("{table}, key field {}: {problem}", key.name)),
    });
    Ok(EntryKey {
        matches: matches.collect::<Result<_>>()?,
        priority,
    })
}

/// Checks and converts the value of a key field; the error says what is wrong with it.
fn key_match(
    info: &TableInfo,
    key: &KeyInfo,
    value: &MatchValue,
) -> std::result::Result<Match, String> {
    let limbs = |bytes: &[u8]| value_limbs(bytes, key.bits).map(Vec::into_boxed_slice);
    let under = |value: &[u8], mask: Box<[u64]>| {
        let value = limbs(value)?;
        if value
            .iter()
            .zip(&mask)
            .any(|(value, mask)| value & !mask != 0)
        {
            return Err("the value has bits outside its mask".to_string());
        }
        Ok((value, mask))
    };
    let all = || prefix_limbs(key.bits, key.bits);
    let none = || prefix_limbs(0, key.bits);
    let lpm = |value, prefix_bits, mask| {
        if info.prioritised {
            Match::Ternary { value, mask }
        } else {
            Match::Lpm { value, prefix_bits }
        }
    };
    match (key.kind, value) {
        (MatchKind::Exact, MatchValue::Exact(value)) => Ok(Match::Exact(limbs(value)?)),
        (MatchKind::Exact, MatchValue::Any) => Err("an exact field needs a value".into()),
        (MatchKind::Lpm, MatchValue::Any) => Ok(lpm(none(), 0, none())),
        (MatchKind::Lpm, MatchValue::Lpm { value, prefix_bits }) => {
            if !(1..=key.bits).contains(prefix_bits) {
                return Err(format!("a prefix has 1 to {} bits", key.bits));
            }
            let (value, mask) = under(value, prefix_limbs(*prefix_bits, key.bits))?;
            Ok(lpm(value, *prefix_bits, mask))
        }
        (MatchKind::Ternary, MatchValue::Any) => Ok(Match::Ternary {
            value: none(),
            mask: none(),
        }),
        (MatchKind::Ternary, MatchValue::Exact(value)) => Ok(Match::Ternary {
            value: limbs(value)?,
            mask: all(),
        }),
        (MatchKind::Ternary, MatchValue::Ternary { value, mask }) => {
            let mask = limbs(mask)?;
            if mask.iter().all(|limb| *limb == 0) {
                return Err("leave out a field that matches anything".into());
            }
            let (value, mask) = under(value, mask)?;
            Ok(Match::Ternary { value, mask })
        }
        (MatchKind::Range, MatchValue::Any) => Ok(Match::Range {
            low: none(),
            high: all(),
        }),
        (MatchKind::Range, MatchValue::Range { low, high }) => {
            let (low, high) = (limbs(low)?, limbs(high)?);
            if low.iter().rev().gt(high.iter().rev()) {
                return Err("the range is empty".into());
            }
            Ok(Match::Range { low, high })
        }
        (kind, _) => Err(format!("the value is not of kind {kind:?}")),
    }
}

/// Checks and converts an action with its arguments.
fn call(program: &Program, info: &TableInfo, action: &ActionCall) -> Result<Call> {
    let position = info
        .actions
        .iter()
        .position(|known| *known == action.action);
    let Some(position) = position else {
        return invalid(format!("{} has no such action", info.name));
    };
    let described = &program.actions()[action.action.0];
    if described.params.len() != action.args.len() {
        let (given, wanted) = (action.args.len(), described.params.len());
        let name = &described.name;
        return invalid(format!(
            "{name} has {wanted} parameters, but {given} are given"
        ));
    }
    let mut args = Args::new();
    for (param, arg) in described.params.iter().zip(&action.args) {
        match value_limbs(arg, param.bits) {
            Ok(limbs) => args.extend(limbs),
            Err(problem) => {
                let (action, name) = (&described.name, &param.name);
                return invalid(format!("{action}, parameter {name}: {problem}"));
            }
        }
    }
    debug_assert_eq!(
        args.len(),
        described
            .params
            .iter()
            .map(|param| limbs_for(param.bits))
            .sum::<usize>()
    );
    Ok(Call {
        action: action.action.0,
        position,
        args,
    })
}

/// The limbs of a value as the control plane writes it; the error says what is wrong with it.
fn value_limbs(bytes: &[u8], bits: u32) -> std::result::Result<Vec<u64>, String> {
    if bytes.is_empty() {
        return Err("the value is empty; zero is one byte".into());
    }
    bytes_to_limbs(bytes, bits).ok_or_else(|| format!("the value does not fit in {bits} bits"))
}
