// SPDX-License-Identifier: Apache-2.0

//! From JSON to a program.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::action::compile_action;
use super::control::compile_control;
use super::error::{LoadError, malformed, unsupported};
use super::expr::Names;
use super::json;
use super::objects::{describe_counters, describe_meters, name_objects};
use super::parser::compile_parser;
use super::symbols::Symbols;
use super::table::Known;
use crate::pipeline::model::expr::{Dest, Expr};
use crate::pipeline::model::hash::{Calculation, Checksum};
use crate::pipeline::model::info::{
    ActionInfo, DigestInfo, FieldInfo, RegisterInfo, TableId, TableInfo,
};
use crate::pipeline::model::intrinsics::Intrinsics;
use crate::pipeline::model::program::Program;
use crate::pipeline::model::registers::RegisterPlan;
use crate::pipeline::model::slot::Slot;

impl Program {
    /// Compiles the JSON that `p4c-bm2-ss` wrote.
    ///
    /// Resolves everything that the program uses. A construct that is not implemented gives an
    /// error that names it, and is never skipped.
    pub fn load(json: &[u8]) -> Result<Program, LoadError> {
        let document: json::Document = serde_json::from_slice(json)?;
        refuse_unknown_parts(&document)?;
        let mut symbols = Symbols::build(&document)?;
        let intrinsics = Intrinsics::find(&document, &mut symbols)?;
        let objects = name_objects(&document)?;
        let calculations = document.calculations.iter();
        let calculations = calculations.map(|source| Calculation::compile(source, &symbols));
        let calculations = calculations.collect::<Result<Vec<_>, _>>()?;
        let field_lists = document.field_lists.iter();
        let field_lists = field_lists.map(|list| compile_field_list(list, &symbols));
        let field_lists = field_lists.collect::<Result<Vec<_>, _>>()?;
        let digests = document.learn_lists.iter();
        let digests = digests.map(|list| compile_digest(list, &symbols));
        let (digest_infos, digest_elements) =
            digests.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        let parser = compile_parser(&document, &symbols, &objects)?;
        let actions = document.actions.iter();
        let actions = actions.map(|action| compile_action(action, &symbols, &objects));
        let actions = actions.collect::<Result<Vec<_>, _>>()?;
        let ids = document.actions.iter().enumerate();
        let known = Known {
            symbols: &symbols,
            actions: &actions,
            action_ids: &ids.map(|(index, action)| (action.id, index)).collect(),
        };
        let (mut table_plans, mut table_infos) = (Vec::new(), Vec::new());
        let mut controls = HashMap::new();
        for source in &document.pipelines {
            let control = compile_control(source, &known, &mut table_plans, &mut table_infos)?;
            controls.insert(source.name.as_str(), control);
        }
        let mut control = |name: &str| {
            let control = controls.remove(name);
            control.ok_or_else(|| malformed("program".into(), format!("it has no {name} control")))
        };
        let (ingress, egress) = (control("ingress")?, control("egress")?);
        let checksums = document.checksums.iter();
        let checksums = checksums.map(|source| Checksum::compile(source, &symbols, &objects));
        let checksums = checksums.collect::<Result<Vec<_>, _>>()?;
        let emitted = compile_deparser(&document, &symbols)?;
        let direct_counters = bind_direct_counters(&document, &table_infos)?;
        let register_infos = describe_registers(&document);
        let ops = actions.iter().flat_map(|action| action.ops.iter());
        Ok(Program {
            registers: RegisterPlan::new(&register_infos, ops),
            layout: symbols.layout,
            intrinsics,
            parser,
            actions,
            table_plans,
            applied_tables: ingress
                .applied_tables()
                .chain(egress.applied_tables())
                .collect(),
            ingress,
            egress,
            calculations,
            checksums,
            emitted,
            field_lists,
            digest_elements,
            table_infos,
            action_infos: document.actions.iter().map(describe_action).collect(),
            counter_infos: describe_counters(&document),
            meter_infos: describe_meters(&document)?,
            direct_counters,
            register_infos,
            digest_infos,
        })
    }
}

/// Refuses everything in the document that this module does not read.
fn refuse_unknown_parts(document: &json::Document) -> Result<(), LoadError> {
    for (name, part) in &document.other {
        let is_empty = match part {
            Value::Array(items) => items.is_empty(),
            Value::Object(items) => items.is_empty(),
            other => other.is_null(),
        };
        // The program's name, its compiler, and names for numbers.
        let means_nothing = matches!(name.as_str(), "program" | "__meta__" | "enums");
        if !is_empty && !means_nothing {
            let first = part[0]["name"].as_str().unwrap_or_default();
            let construct = format!("{name} ({first})");
            return Err(unsupported("program".into(), construct));
        }
    }
    Ok(())
}

fn compile_field_list(list: &json::FieldList, symbols: &Symbols) -> Result<Box<[Slot]>, LoadError> {
    let place = format!("field list {}", list.name);
    let names = Names {
        symbols,
        params: &[],
        place: &place,
    };
    let slots = list
        .elements
        .iter()
        .map(|element| match names.dest(element)? {
            Dest::Field(slot) => Ok(slot),
            _ => names.unsupported("an element that is not a plain field"),
        });
    slots.collect()
}

type CompiledDigest = (DigestInfo, Box<[(Expr, u32)]>);

fn compile_digest(list: &json::FieldList, symbols: &Symbols) -> Result<CompiledDigest, LoadError> {
    let place = format!("digest {}", list.name);
    let names = Names {
        symbols,
        params: &[],
        place: &place,
    };
    let mut fields = Vec::new();
    let mut elements = Vec::new();
    for element in &list.elements {
        let bits = match element["type"].as_str() {
            Some("hexstr") => 64,
            _ => match names.dest(element) {
                Ok(field) => field.bits(),
                Err(_) => return names.unsupported(format!("{element} as a member")),
            },
        };
        let name = element["value"][1].as_str().unwrap_or_default().to_string();
        fields.push(FieldInfo { name, bits });
        elements.push((names.expr(element, bits)?, bits));
    }
    let name = list.name.clone();
    Ok((DigestInfo { name, fields }, elements.into()))
}

fn compile_deparser(document: &json::Document, symbols: &Symbols) -> Result<Vec<usize>, LoadError> {
    let place = "deparser";
    let deparser = match document.deparsers.as_slice() {
        [deparser] => deparser,
        [] => return Err(malformed("program".into(), "it has no deparser".into())),
        _ => return Err(unsupported("program".into(), "a second deparser".into())),
    };
    if let Some(primitive) = deparser.primitives.first() {
        let construct = format!("the primitive {}", primitive.op);
        return Err(unsupported(place.into(), construct));
    }
    let order = deparser.order.iter();
    order.map(|name| symbols.header(name, place)).collect()
}

fn bind_direct_counters(
    document: &json::Document,
    tables: &[TableInfo],
) -> Result<BTreeMap<String, TableId>, LoadError> {
    let direct = document
        .counter_arrays
        .iter()
        .filter(|array| array.is_direct);
    let bound = direct.map(|array| {
        let table = array.binding.as_deref().unwrap_or_default();
        match tables.iter().position(|info| info.name == table) {
            Some(index) => Ok((array.name.clone(), TableId(index))),
            None => Err(malformed(
                format!("counter {}", array.name),
                format!("no table {table}"),
            )),
        }
    });
    bound.collect()
}

fn describe_action(action: &json::Action) -> ActionInfo {
    let params = action.runtime_data.iter().map(|param| FieldInfo {
        name: param.name.clone(),
        bits: param.bitwidth,
    });
    ActionInfo {
        name: action.name.clone(),
        params: params.collect(),
    }
}

fn describe_registers(document: &json::Document) -> Vec<RegisterInfo> {
    let arrays = document.register_arrays.iter();
    let infos = arrays.map(|array| RegisterInfo {
        name: array.name.clone(),
        size: array.size,
        bits: array.bitwidth,
    });
    infos.collect()
}
