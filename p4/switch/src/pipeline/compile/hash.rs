// SPDX-License-Identifier: Apache-2.0

//! From JSON to hashes and checksums.

use serde_json::Value;

use super::error::{LoadError, malformed, unsupported};
use super::expr::{Names, parse_hex};
use super::json;
use super::objects::Objects;
use super::symbols::Symbols;
use super::wire::group_fields;
use crate::pipeline::model::hash::{Algorithm, Calculation, Checksum, Input};
use crate::pipeline::model::slot::{Field, Slot};
use crate::pipeline::model::word::bytes_to_limbs;

impl Algorithm {
    /// The algorithm of that name. The `_custom` ones have BMv2's initial parameters, which only
    /// BMv2's own command line could change.
    fn parse(name: &str) -> Option<Algorithm> {
        Some(match name {
            "crc16" | "crc16_custom" => Algorithm::Crc16,
            "crc32" | "crc32_custom" => Algorithm::Crc32,
            "csum16" | "cksum16" => Algorithm::Csum16,
            "xor16" => Algorithm::Xor16,
            "identity" => Algorithm::Identity,
            _ => return None,
        })
    }
}

impl Calculation {
    pub fn compile(source: &json::Calculation, symbols: &Symbols) -> Result<Self, LoadError> {
        let place = format!("calculation {}", source.name);
        let names = Names {
            symbols,
            params: &[],
            place: &place,
        };
        let Some(algorithm) = Algorithm::parse(&source.algo) else {
            return Err(unsupported(
                place,
                format!("hash algorithm {}", source.algo),
            ));
        };
        let mut inputs = Vec::new();
        let mut fields: Vec<(Field, Option<Slot>)> = Vec::new();
        for input in &source.input {
            let next = match input["type"].as_str() {
                Some("field") => Some(field_input(input, &names)?),
                _ => None,
            };
            let goes_on = match (next, fields.last()) {
                (Some((_, valid)), Some((_, last))) => valid == *last,
                _ => false,
            };
            if !goes_on {
                close_fields(&mut fields, &mut inputs);
            }
            match next {
                Some(field) => fields.push(field),
                None => inputs.push(compile_input(input, &names)?),
            }
        }
        close_fields(&mut fields, &mut inputs);
        Ok(Calculation {
            algorithm,
            inputs: inputs.into(),
        })
    }
}

/// Makes one input from the fields collected so far.
fn close_fields(fields: &mut Vec<(Field, Option<Slot>)>, inputs: &mut Vec<Input>) {
    if let Some((_, valid)) = fields.first().copied() {
        let fields: Vec<Field> = fields.drain(..).map(|(field, _)| field).collect();
        let groups = group_fields(&fields);
        inputs.push(Input::Fields { groups, valid });
    }
}

/// A field, and the validity of its header unless it is metadata.
fn field_input(input: &Value, names: &Names) -> Result<(Field, Option<Slot>), LoadError> {
    let value = &input["value"];
    match (value[0].as_str(), value[1].as_str()) {
        (Some(header), Some(field)) => {
            let field = names.symbols.field(header, field, names.place)?;
            let header = names.symbols.header(header, names.place)?;
            let header = &names.symbols.layout.headers[header];
            Ok((field, (!header.metadata).then(|| header.validity())))
        }
        _ => names.malformed(format!("{value} does not name a field")),
    }
}

/// An input that is not a field.
fn compile_input(input: &Value, names: &Names) -> Result<Input, LoadError> {
    match input["type"].as_str() {
        Some("header") => {
            let header = names.name(Some(input), "header")?;
            Ok(Input::Header(names.symbols.header(header, names.place)?))
        }
        Some("hexstr") => constant_input(input, names),
        Some("payload") => Ok(Input::Payload),
        Some(kind) => names.unsupported(format!("a {kind} as hash input")),
        None => names.malformed("a hash input without a type"),
    }
}

fn constant_input(input: &Value, names: &Names) -> Result<Input, LoadError> {
    let text = input["value"].as_str().unwrap_or_default();
    let bits = input["bitwidth"].as_u64().unwrap_or(0);
    if !(1..=0x4000).contains(&bits) {
        return names.malformed(format!("the constant {text} has no width"));
    }
    let bits = bits as u32;
    let bytes = parse_hex(text).and_then(|value| value.to_biguint());
    match bytes.and_then(|value| bytes_to_limbs(&value.to_bytes_be(), bits)) {
        Some(limbs) => Ok(Input::Const {
            limbs: limbs.into(),
            bits,
        }),
        None => Err(malformed(
            names.place.into(),
            format!("{text} is not a constant of {bits} bits"),
        )),
    }
}

impl Checksum {
    pub fn compile(
        source: &json::Checksum,
        symbols: &Symbols,
        objects: &Objects,
    ) -> Result<Self, LoadError> {
        let place = format!("checksum {}", source.name);
        let names = Names {
            symbols,
            params: &[],
            place: &place,
        };
        if source.kind != "generic" {
            let construct = format!("a checksum of type {}", source.kind);
            return Err(unsupported(place, construct));
        }
        let target = symbols.field(&source.target.0, &source.target.1, &place)?;
        if target.slot.bits > 64 || target.variable {
            return Err(malformed(place, "its target is too wide".into()));
        }
        let valid = symbols.field(&source.target.0, "$valid$", &place)?;
        let condition = match &source.if_cond {
            Some(condition) if !condition.is_null() => Some(names.exact(condition)?),
            _ => None,
        };
        Ok(Checksum {
            target: target.slot,
            valid: valid.slot,
            calculation: objects.find(&objects.calculations, &source.calculation, &names)?,
            condition,
            verify: source.verify,
            update: source.update,
        })
    }
}
