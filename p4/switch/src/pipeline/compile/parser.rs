// SPDX-License-Identifier: Apache-2.0

//! From JSON to the parser's state machine.

use std::collections::HashMap;

use serde_json::Value;

use super::action::compile_op;
use super::error::{LoadError, malformed, unsupported};
use super::expr::{Names, parse_hex};
use super::json;
use super::objects::Objects;
use super::symbols::Symbols;
use crate::pipeline::model::parser::{
    ACCEPT, ErrorCodes, KeyPart, KeySource, Parser, State, Step, Transition,
};

/// Maximum width of a select key.
const MAX_KEY_BITS: u32 = 128;

pub fn compile_parser(
    document: &json::Document,
    symbols: &Symbols,
    objects: &Objects,
) -> Result<Parser, LoadError> {
    let source = match document.parsers.as_slice() {
        [parser] => parser,
        [] => return Err(malformed("program".into(), "it has no parser".into())),
        _ => return Err(unsupported("program".into(), "a second parser".into())),
    };
    let names: HashMap<&str, usize> = source
        .parse_states
        .iter()
        .enumerate()
        .map(|(index, state)| (state.name.as_str(), index))
        .collect();
    let find = |name: &Option<String>, place: &str| match name {
        None => Ok(ACCEPT),
        Some(name) => match names.get(name.as_str()) {
            Some(index) => Ok(*index),
            None => Err(malformed(place.into(), format!("no parser state {name}"))),
        },
    };
    let states = source.parse_states.iter().map(|state| {
        let place = format!("parser state {}", state.name);
        let names = Names {
            symbols,
            params: &[],
            place: &place,
        };
        let steps = state.parser_ops.iter().map(|op| step(op, &names, objects));
        let steps = steps.collect::<Result<Box<[Step]>, LoadError>>()?;
        let key = state
            .transition_key
            .iter()
            .map(|part| key_part(part, &names));
        let key = key.collect::<Result<Box<[KeyPart]>, LoadError>>()?;
        if key.iter().map(|part| part.padded_bits()).sum::<u32>() > MAX_KEY_BITS {
            return names.unsupported("a select key of more than 128 bits");
        }
        let transitions = state.transitions.iter().map(|transition| {
            let next = find(&transition.next_state, &place)?;
            compile_transition(transition, next, &names)
        });
        Ok(State {
            steps,
            key,
            transitions: transitions.collect::<Result<_, LoadError>>()?,
        })
    });
    Ok(Parser {
        states: states.collect::<Result<_, LoadError>>()?,
        start: find(&source.init_state, "parser")?,
        errors: error_codes(document),
    })
}

/// The program's numbers for the errors that the parser itself raises.
fn error_codes(document: &json::Document) -> ErrorCodes {
    let code = |name: &str, otherwise: u64| {
        let found = document.errors.iter().find(|(known, _)| known == name);
        found.map_or(otherwise, |(_, code)| *code)
    };
    ErrorCodes {
        no_error: code("NoError", 0),
        packet_too_short: code("PacketTooShort", 1),
        no_match: code("NoMatch", 2),
        stack_out_of_bounds: code("StackOutOfBounds", 3),
        header_too_short: code("HeaderTooShort", 4),
        parser_timeout: code("ParserTimeout", 5),
        parser_invalid_argument: code("ParserInvalidArgument", 6),
    }
}

fn step(op: &json::Primitive, names: &Names, objects: &Objects) -> Result<Step, LoadError> {
    let value = |index: usize| op.parameters.get(index).unwrap_or(&Value::Null);
    match op.op.as_str() {
        "extract" => match value(0)["type"].as_str() {
            Some("stack") => {
                let stack = names.name(op.parameters.first(), "stack")?;
                let stack = names.symbols.stack(stack, names.place)?;
                let first = names.symbols.layout.stacks[stack].headers[0];
                if names.symbols.layout.headers[first].max_bytes.is_some() {
                    return names.unsupported("a header stack with a varbit field");
                }
                Ok(Step::ExtractNext(stack))
            }
            _ => {
                let header = extracted(op, names)?;
                if names.symbols.layout.headers[header].max_bytes.is_some() {
                    return names.malformed("extract of a varbit field without a length");
                }
                Ok(Step::Extract(header, None))
            }
        },
        "extract_VL" => {
            let bits = names.exact(value(1))?;
            Ok(Step::Extract(extracted(op, names)?, Some(bits)))
        }
        "set" if value(1)["type"] == "lookahead" => {
            let (offset, bits) = lookahead(value(1), names)?;
            let to = names.dest(value(0))?;
            Ok(Step::Lookahead { to, offset, bits })
        }
        "set" => Ok(Step::Do(compile_op(op, names, objects)?)),
        "advance" => Ok(Step::Advance(names.exact(value(0))?)),
        "verify" => {
            let error = names.constant(op.parameters.get(1))?;
            Ok(Step::Verify(names.exact(value(0))?, error))
        }
        "primitive" => match serde_json::from_value::<json::Primitive>(value(0).clone()) {
            Ok(inner) => Ok(Step::Do(compile_op(&inner, names, objects)?)),
            Err(error) => names.malformed(format!("an invalid primitive: {error}")),
        },
        other => names.unsupported(format!("the parser operation {other}")),
    }
}

fn extracted(op: &json::Primitive, names: &Names) -> Result<usize, LoadError> {
    let header = names.name(op.parameters.first(), "regular")?;
    let header = names.symbols.header(header, names.place)?;
    let layout = &names.symbols.layout.headers[header];
    if layout.metadata || layout.max_bytes.is_none() && layout.fixed_bits % 8 != 0 {
        return names.malformed("extract of something that is not a header of whole bytes");
    }
    Ok(header)
}

fn lookahead(value: &Value, names: &Names) -> Result<(u32, u32), LoadError> {
    match (value["value"][0].as_u64(), value["value"][1].as_u64()) {
        (Some(offset @ 0..=0x4000), Some(bits @ 1..=0x4000)) => Ok((offset as u32, bits as u32)),
        _ => names.malformed("a lookahead without offset and width"),
    }
}

fn key_part(part: &Value, names: &Names) -> Result<KeyPart, LoadError> {
    let (source, bits) = if part["type"] == "lookahead" {
        let (offset, bits) = lookahead(part, names)?;
        (KeySource::Lookahead { offset }, bits)
    } else {
        let Ok(field) = names.dest(part) else {
            return names.unsupported(format!("{part} as select key"));
        };
        let bits = field.bits();
        (KeySource::Value(names.expr(part, bits)?), bits)
    };
    if bits > MAX_KEY_BITS {
        return names.unsupported("a select key of more than 128 bits");
    }
    Ok(KeyPart { source, bits })
}

fn compile_transition(
    transition: &json::Transition,
    next: usize,
    names: &Names,
) -> Result<Transition, LoadError> {
    let number = |text: &Option<String>| match text.as_deref().map(parse_hex) {
        Some(Some(number)) => match u128::try_from(number) {
            Ok(number) => Ok(number),
            Err(_) => names.unsupported("a select value that is negative or beyond 128 bits"),
        },
        _ => names.malformed("a transition without a value"),
    };
    match transition.kind.as_str() {
        "default" => Ok(Transition {
            value: 0,
            mask: 0,
            next,
        }),
        "hexstr" => {
            let mask = match &transition.mask {
                Some(_) => number(&transition.mask)?,
                None => u128::MAX,
            };
            Ok(Transition {
                value: number(&transition.value)? & mask,
                mask,
                next,
            })
        }
        kind => names.unsupported(format!("a transition of type {kind}")),
    }
}
