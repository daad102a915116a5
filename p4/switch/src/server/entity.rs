// SPDX-License-Identifier: Apache-2.0

//! P4Runtime's table entities in the pipeline's terms, and back.

use tonic::Status;
use weft_p4runtime::p4::v1 as p4;
use weft_p4runtime::p4::v1::field_match::{Exact, FieldMatchType, Lpm, Range, Ternary};

use super::config::{Action, Config, Field, Table};
use weft_p4runtime::p4::config::v1::meter_spec::Type as MeterType;

use crate::pipeline::{
    ActionCall, CounterValue, MatchKind, MatchValue, MeterConfig, MeterRates, TableEntry,
};

/// The key of an entry: one value for each match field.
pub(super) fn key(table: &Table, given: &[p4::FieldMatch]) -> Result<Vec<MatchValue>, Status> {
    let invalid = |text: String| Status::invalid_argument(format!("{}: {text}", table.name));
    for (place, field) in given.iter().enumerate() {
        if !table.fields.iter().any(|known| known.id == field.field_id) {
            return Err(invalid(format!("no match field has id {}", field.field_id)));
        }
        if given[..place].iter().any(|f| f.field_id == field.field_id) {
            return Err(invalid(format!("match field {} twice", field.field_id)));
        }
    }
    let mut key = Vec::with_capacity(table.fields.len());
    for field in &table.fields {
        let value = given.iter().find(|value| value.field_id == field.id);
        let value = match value.map(|value| &value.field_match_type) {
            None if field.kind == MatchKind::Exact => {
                return Err(invalid(format!("{} is missing", field.name)));
            }
            None => MatchValue::Any,
            Some(value) => match_value(field, value.as_ref())
                .map_err(|text| invalid(format!("{}: {text}", field.name)))?,
        };
        key.push(value);
    }
    Ok(key)
}

fn match_value(field: &Field, given: Option<&FieldMatchType>) -> Result<MatchValue, String> {
    let dont_care = "leave the field out to match anything".to_owned();
    match (field.kind, given) {
        (MatchKind::Exact, Some(FieldMatchType::Exact(exact))) => {
            Ok(MatchValue::Exact(exact.value.clone()))
        }
        (MatchKind::Lpm, Some(FieldMatchType::Lpm(lpm))) => match u32::try_from(lpm.prefix_len) {
            Ok(0) => Err(dont_care),
            Ok(prefix_bits) => Ok(MatchValue::Lpm {
                value: lpm.value.clone(),
                prefix_bits,
            }),
            Err(_) => Err(format!("prefix length {}", lpm.prefix_len)),
        },
        (MatchKind::Ternary, Some(FieldMatchType::Ternary(ternary))) => {
            if ternary.mask.iter().all(|byte| *byte == 0) {
                return Err(dont_care);
            }
            Ok(MatchValue::Ternary {
                value: ternary.value.clone(),
                mask: ternary.mask.clone(),
            })
        }
        (MatchKind::Range, Some(FieldMatchType::Range(range))) => Ok(MatchValue::Range {
            low: range.low.clone(),
            high: range.high.clone(),
        }),
        (kind, _) => Err(format!("the table matches it as {kind:?}")),
    }
}

/// The action of an entry or, `as_default`, of a table.
pub(super) fn action(
    table: &Table,
    given: Option<&p4::TableAction>,
    as_default: bool,
) -> Result<ActionCall, Status> {
    let invalid = |text: String| Status::invalid_argument(format!("{}: {text}", table.name));
    let given = match given.and_then(|action| action.r#type.as_ref()) {
        Some(p4::table_action::Type::Action(action)) => action,
        Some(_) => return Err(invalid("it has no action profile".to_owned())),
        None => return Err(invalid("no action".to_owned())),
    };
    let id = given.action_id;
    let known = table.actions.iter().find(|action| action.p4_id == id);
    let known = known.ok_or_else(|| invalid(format!("it has no action {id:#010x}")))?;
    let allowed = if as_default {
        known.as_default
    } else {
        known.in_entries
    };
    if !allowed {
        let place = if as_default { "the default" } else { "entries" };
        let text = format!("{}: {} is not for {place}", table.name, known.name);
        return Err(Status::permission_denied(text));
    }
    Ok(ActionCall {
        action: known.id,
        args: arguments(known, given).map_err(invalid)?,
    })
}

fn arguments(action: &Action, given: &p4::Action) -> Result<Vec<Vec<u8>>, String> {
    if given.params.len() != action.params.len() {
        return Err(format!(
            "{} takes {} arguments, not {}",
            action.name,
            action.params.len(),
            given.params.len()
        ));
    }
    let argument = |id: &u32| {
        let param = given.params.iter().find(|param| param.param_id == *id);
        param
            .map(|param| param.value.clone())
            .ok_or_else(|| format!("{}: argument {id} is missing", action.name))
    };
    action.params.iter().map(argument).collect()
}

/// An entry of `table` as clients read it back.
pub(super) fn entry(config: &Config, id: u32, table: &Table, entry: &TableEntry) -> p4::TableEntry {
    p4::TableEntry {
        table_id: id,
        r#match: fields(table, &entry.matches),
        action: Some(call(table, &entry.action)),
        priority: entry.priority,
        is_const: config.program.tables()[table.id.0].const_entries,
        ..Default::default()
    }
}

/// A key as clients read it back. It leaves out fields that match anything.
fn fields(table: &Table, matches: &[MatchValue]) -> Vec<p4::FieldMatch> {
    let field = |(field, value): (&Field, &MatchValue)| {
        let value = match value.clone() {
            MatchValue::Any => return None,
            MatchValue::Exact(value) => FieldMatchType::Exact(Exact { value }),
            MatchValue::Lpm { value, prefix_bits } => FieldMatchType::Lpm(Lpm {
                value,
                prefix_len: i32::try_from(prefix_bits).unwrap_or(i32::MAX),
            }),
            MatchValue::Ternary { value, mask } => FieldMatchType::Ternary(Ternary { value, mask }),
            MatchValue::Range { low, high } => FieldMatchType::Range(Range { low, high }),
        };
        Some(p4::FieldMatch {
            field_id: field.id,
            field_match_type: Some(value),
        })
    };
    table.fields.iter().zip(matches).filter_map(field).collect()
}

/// An action call as clients read it back.
pub(super) fn call(table: &Table, call: &ActionCall) -> p4::TableAction {
    let known = table.actions.iter().find(|action| action.id == call.action);
    let (action_id, ids) = known.map_or((0, [].as_slice()), |known| {
        (known.p4_id, known.params.as_slice())
    });
    let params = ids
        .iter()
        .zip(&call.args)
        .map(|(id, value)| p4::action::Param {
            param_id: *id,
            value: value.clone(),
        });
    p4::TableAction {
        r#type: Some(p4::table_action::Type::Action(p4::Action {
            action_id,
            params: params.collect(),
        })),
    }
}

/// A counter as clients read it back. A value beyond the format's range becomes its maximum.
pub(super) fn counter_data(value: CounterValue) -> p4::CounterData {
    p4::CounterData {
        packet_count: i64::try_from(value.packets).unwrap_or(i64::MAX),
        byte_count: i64::try_from(value.bytes).unwrap_or(i64::MAX),
    }
}

/// The configuration of a meter's cell as clients read it back.
pub(super) fn meter_config(config: MeterConfig) -> p4::MeterConfig {
    // Clients wrote them, so they are in the format's range.
    let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let (cir, cburst) = (
        number(config.committed_rate),
        number(config.committed_burst),
    );
    match config.rates {
        MeterRates::Two {
            peak_rate,
            peak_burst,
        } => p4::MeterConfig {
            cir,
            cburst,
            pir: number(peak_rate),
            pburst: number(peak_burst),
            eburst: 0,
        },
        MeterRates::One { excess_burst } => p4::MeterConfig {
            cir,
            cburst,
            pir: cir,
            pburst: cburst,
            eburst: number(excess_burst),
        },
    }
}

/// The configuration that a client writes into a cell of a meter of `kind`.
pub(super) fn meter_rates(
    kind: MeterType,
    config: &p4::MeterConfig,
) -> Result<MeterConfig, Status> {
    let refused = |text: String| Err(Status::invalid_argument(text));
    let values = [
        ("cir", config.cir),
        ("cburst", config.cburst),
        ("pir", config.pir),
        ("pburst", config.pburst),
        ("eburst", config.eburst),
    ];
    for (name, value) in values {
        if value < 0 {
            return refused(format!("meter: {name} {value} is negative"));
        }
    }
    let number = |value: i64| value.unsigned_abs();
    let rates = match kind {
        MeterType::TwoRateThreeColor => {
            if config.eburst != 0 {
                return refused("meter: one of two rates has no eburst".to_owned());
            }
            if config.pir < config.cir || config.pburst < config.cburst {
                return refused("meter: pir and pburst are at least cir and cburst".to_owned());
            }
            MeterRates::Two {
                peak_rate: number(config.pir),
                peak_burst: number(config.pburst),
            }
        }
        MeterType::SingleRateThreeColor | MeterType::SingleRateTwoColor => {
            if config.pir != config.cir || config.pburst != config.cburst {
                return refused("meter: of one rate, pir and pburst are cir and cburst".to_owned());
            }
            if kind == MeterType::SingleRateTwoColor && config.eburst != 0 {
                return refused("meter: one of two colours has no eburst".to_owned());
            }
            MeterRates::One {
                excess_burst: number(config.eburst),
            }
        }
    };
    Ok(MeterConfig {
        committed_rate: number(config.cir),
        committed_burst: number(config.cburst),
        rates,
    })
}

/// The counter value that a client writes.
pub(super) fn counter_value(data: &p4::CounterData) -> Result<CounterValue, Status> {
    let number = |value: i64| {
        u64::try_from(value)
            .map_err(|_| Status::invalid_argument(format!("counter value {value} is negative")))
    };
    Ok(CounterValue {
        packets: number(data.packet_count)?,
        bytes: number(data.byte_count)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meter_reads_back_as_it_was_written() {
        let two = p4::MeterConfig {
            cir: 1,
            cburst: 2,
            pir: 3,
            pburst: 4,
            eburst: 0,
        };
        let one = p4::MeterConfig {
            cir: 1,
            cburst: 2,
            pir: 1,
            pburst: 2,
            eburst: 5,
        };
        for (kind, config) in [
            (MeterType::TwoRateThreeColor, two),
            (MeterType::SingleRateThreeColor, one),
        ] {
            assert_eq!(meter_config(meter_rates(kind, &config).unwrap()), config);
        }
    }

    #[test]
    fn rates_that_make_no_meter_are_refused_with_the_reason() {
        use MeterType::{SingleRateThreeColor, SingleRateTwoColor, TwoRateThreeColor};
        let refusal = |kind, change: fn(&mut p4::MeterConfig)| {
            let mut config = p4::MeterConfig {
                cir: 1,
                cburst: 2,
                pir: 1,
                pburst: 2,
                eburst: 0,
            };
            change(&mut config);
            meter_rates(kind, &config).unwrap_err().message().to_owned()
        };
        let is_negative = refusal(TwoRateThreeColor, |config| config.cir = -1);
        assert_eq!(is_negative, "meter: cir -1 is negative");
        let below = refusal(TwoRateThreeColor, |config| config.pburst = 1);
        assert_eq!(below, "meter: pir and pburst are at least cir and cburst");
        let two_rates = refusal(TwoRateThreeColor, |config| config.eburst = 1);
        assert_eq!(two_rates, "meter: one of two rates has no eburst");
        let one_rate = refusal(SingleRateThreeColor, |config| config.pir = 2);
        assert_eq!(
            one_rate,
            "meter: of one rate, pir and pburst are cir and cburst"
        );
        let two_colors = refusal(SingleRateTwoColor, |config| config.eburst = 1);
        assert_eq!(two_colors, "meter: one of two colours has no eburst");
    }
}
