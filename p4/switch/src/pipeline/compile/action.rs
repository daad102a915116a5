// SPDX-License-Identifier: Apache-2.0

//! From JSON to actions and their primitives.

use serde_json::Value;

use super::error::{LoadError, unsupported};
use super::expr::Names;
use super::json::{self, Primitive};
use super::objects::{MAX_BITS, Objects};
use super::symbols::Symbols;
use crate::pipeline::model::action::{Action, Op};
use crate::pipeline::model::expr::{Dest, Expr, Node};
use crate::pipeline::model::slot::{Field, Slot};
use crate::pipeline::model::word::{limbs_for, mask64};

pub fn compile_action(
    action: &json::Action,
    symbols: &Symbols,
    objects: &Objects,
) -> Result<Action, LoadError> {
    let place = format!("action {}", action.name);
    let mut word = 0;
    let mut params = Vec::new();
    for param in &action.runtime_data {
        if !(1..=MAX_BITS).contains(&param.bitwidth) {
            let construct = format!("{} bits in parameter {}", param.bitwidth, param.name);
            return Err(unsupported(place, construct));
        }
        params.push(Slot {
            word,
            bits: param.bitwidth,
            signed: false,
        });
        word += limbs_for(param.bitwidth) as u32;
    }
    let names = Names {
        symbols,
        params: &params,
        place: &place,
    };
    let ops = action.primitives.iter();
    let ops = ops.map(|primitive| compile_op(primitive, &names, objects));
    let ops = ops.collect::<Result<_, _>>()?;
    Ok(Action {
        name: action.name.clone(),
        params: params.into(),
        ops,
    })
}

/// Compiles one primitive. `objects` has the names of the objects that it may use.
pub fn compile_op(
    primitive: &Primitive,
    names: &Names,
    objects: &Objects,
) -> Result<Op, LoadError> {
    let place = format!("{}, primitive {}", names.place, primitive.op);
    let names = &Names {
        place: &place,
        ..*names
    };
    let param = |index: usize| primitive.parameters.get(index);
    let value = |index: usize| param(index).unwrap_or(&Value::Null);
    Ok(match primitive.op.as_str() {
        "assign" | "set" => {
            let to = names.dest(value(0))?;
            let value = names.expr(value(1), to.bits())?;
            assignment(to, value)
        }
        "assign_VL" => {
            let (to, from) = (variable(value(0), names)?, variable(value(1), names)?);
            if to.slot.bits != from.slot.bits {
                return names.unsupported("assignment between varbits of different sizes");
            }
            copy_variable(from, to)
        }
        "assign_header" => {
            let (to, from) = (header(param(0), names)?, header(param(1), names)?);
            let headers = &names.symbols.layout.headers;
            let (to, from) = (&headers[to], &headers[from]);
            if to.kind != from.kind {
                return names.malformed("the headers are of different types");
            }
            Op::Copy {
                from: from.base,
                to: to.base,
                words: to.words,
            }
        }
        "assign_header_stack" => {
            let (to, from) = (stack(param(0), names)?, stack(param(1), names)?);
            let stacks = &names.symbols.layout.stacks;
            let kind = |index: usize| names.symbols.layout.headers[stacks[index].headers[0]].kind;
            if kind(to) != kind(from) || stacks[to].headers.len() != stacks[from].headers.len() {
                return names.malformed("the stacks are of different types");
            }
            Op::CopyStack { from, to }
        }
        "add_header" => Op::AddHeader(header(param(0), names)?),
        "remove_header" => Op::RemoveHeader(header(param(0), names)?),
        "push" => Op::Push {
            stack: stack(param(0), names)?,
            count: count(param(1), names)?,
        },
        "pop" => Op::Pop {
            stack: stack(param(0), names)?,
            count: count(param(1), names)?,
        },
        "modify_field_with_hash_based_offset" => {
            let calculation = names.name(param(2), "calculation")?;
            Op::Hash {
                to: names.dest(value(0))?,
                calculation: objects.find(&objects.calculations, calculation, names)?,
                base_and_size: Box::new([names.exact(value(1))?, names.exact(value(3))?]),
            }
        }
        "modify_field_rng_uniform" => Op::Random {
            to: names.dest(value(0))?,
            bounds: Box::new([names.exact(value(1))?, names.exact(value(2))?]),
        },
        "mark_to_drop" | "drop" => Op::Drop,
        "count" => {
            let counter = names.name(param(0), "counter_array")?;
            Op::Count {
                counter: objects.find(&objects.counters, counter, names)?,
                index: names.exact(value(1))?,
            }
        }
        "execute_meter" => {
            let meter = names.name(param(0), "meter_array")?;
            Op::Meter {
                meter: objects.find(&objects.meters, meter, names)? as u32,
                index: names.exact(value(1))?,
                to: names.dest(value(2))?,
            }
        }
        "register_read" => Op::RegisterRead {
            to: names.dest(value(0))?,
            register: register(param(1), names, objects)?,
            index: names.exact(value(2))?,
        },
        "register_write" => {
            let register = register(param(0), names, objects)?;
            Op::RegisterWrite {
                register,
                index: names.exact(value(1))?,
                value: names.expr(value(2), objects.register_bits[register as usize])?,
            }
        }
        // The first parameter names the receiver. v1model targets have only one.
        "generate_digest" => Op::Digest(list(param(1), names, &objects.digests)?),
        "truncate" => Op::Truncate(names.exact(value(0))?),
        "clone_ingress_pkt_to_egress" | "clone_egress_pkt_to_egress" => Op::Clone {
            session: names.exact(value(0))?,
            list: list(param(1), names, &objects.field_lists)?,
        },
        "resubmit" => Op::Resubmit(list(param(0), names, &objects.field_lists)?),
        "recirculate" => Op::Recirculate(list(param(0), names, &objects.field_lists)?),
        "log_msg" => {
            let text = names.name(param(0), "string")?.to_string();
            let values = value(1)["value"].as_array().map_or(&[][..], Vec::as_slice);
            let values = values.iter().map(|value| names.exact(value));
            Op::Log {
                text,
                values: values.collect::<Result<_, _>>()?,
            }
        }
        "assert" | "assume" => Op::Assert {
            condition: names.exact(value(0))?,
            place: names.place.to_string(),
        },
        "exit" => Op::Exit,
        op => return names.unsupported(format!("the primitive {op}")),
    })
}

fn header(param: Option<&Value>, names: &Names) -> Result<usize, LoadError> {
    let name = names.name(param, "header")?;
    names.symbols.header(name, names.place)
}

fn stack(param: Option<&Value>, names: &Names) -> Result<usize, LoadError> {
    let name = names.name(param, "header_stack")?;
    names.symbols.stack(name, names.place)
}

fn count(param: Option<&Value>, names: &Names) -> Result<usize, LoadError> {
    Ok(usize::try_from(names.constant(param)?).unwrap_or(usize::MAX))
}

fn variable(value: &Value, names: &Names) -> Result<Field, LoadError> {
    let name = &value["value"];
    match (value["type"].as_str(), name[0].as_str(), name[1].as_str()) {
        (Some("field"), Some(header), Some(field)) => {
            let field = names.symbols.field(header, field, names.place)?;
            if field.variable {
                Ok(field)
            } else {
                names.malformed("the field is not a varbit")
            }
        }
        _ => names.unsupported("a varbit that is not a field"),
    }
}

fn register(param: Option<&Value>, names: &Names, objects: &Objects) -> Result<u32, LoadError> {
    let name = names.name(param, "register_array")?;
    let register = objects.find(&objects.registers, name, names)?;
    Ok(register as u32)
}

/// The index of the list whose id a constant parameter gives.
fn list(param: Option<&Value>, names: &Names, ids: &[u64]) -> Result<usize, LoadError> {
    let id = names.constant(param)?;
    match ids.iter().position(|known| *known == id) {
        Some(list) => Ok(list),
        None => names.malformed(format!("no field list {id}")),
    }
}

/// Assignment of an expression to a destination, as the cheapest primitive.
pub fn assignment(to: Dest, value: Expr) -> Op {
    match (to, value) {
        (Dest::Field(slot), Expr::Word(value, _)) if slot.bits <= u64::BITS => {
            set(slot.word, mask64(slot.bits), value)
        }
        (Dest::Field(to), value) => match field(&value) {
            Some(from) if fits(from, to) => copy(from, to),
            _ => Op::Assign {
                to: Dest::Field(to),
                value,
            },
        },
        (to, value) => Op::Assign { to, value },
    }
}

/// Assignment of `value` under `mask`.
fn set(word: u32, mask: u64, value: Node<u64>) -> Op {
    match value {
        Node::Const(value) => Op::SetConst {
            word,
            value: value & mask,
        },
        Node::Word(from) => Op::SetWord { word, mask, from },
        Node::BitAnd(of) => match *of {
            // p4c masks every sum to its width, which the assignment does anyway.
            [value, Node::Const(own)] if own & mask == mask => set(word, mask, value),
            of => Op::Set {
                word,
                mask,
                value: Node::BitAnd(Box::new(of)),
            },
        },
        value => Op::Set { word, mask, value },
    }
}

/// The field, if the expression is a wide one.
fn field(value: &Expr) -> Option<Slot> {
    match value {
        Expr::Double(node, _) => match **node {
            Node::Field(from) => Some(from),
            _ => None,
        },
        Expr::Big(node) => match **node {
            Node::Field(from) => Some(from),
            _ => None,
        },
        Expr::Word(..) => None,
    }
}

/// Whether `from` can be assigned to `to` by copying limbs.
fn fits(from: Slot, to: Slot) -> bool {
    from.bits == to.bits || !from.signed && from.limbs() == to.limbs() && from.bits < to.bits
}

fn copy(from: Slot, to: Slot) -> Op {
    Op::Copy {
        from: from.word,
        to: to.word,
        words: to.limbs() as u32,
    }
}

/// Copies a varbit field with its length.
pub fn copy_variable(from: Field, to: Field) -> Op {
    Op::Copy {
        from: from.slot.word - 1,
        to: to.slot.word - 1,
        words: to.slot.limbs() as u32 + 1,
    }
}
