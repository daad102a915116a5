//! A loaded program: immutable, shared by all switches that run it.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::action::Op;
use super::compile_action::compile_op;
use super::compile_control::{Known, compile_control};
use super::compile_expr::Names;
use super::compile_parser::compile_parser;
use super::control::Control;
use super::deparser::Checksum;
use super::error::{malformed, unsupported};
use super::expr::Expr;
use super::hash::Calculation;
use super::intrinsics::Intrinsics;
use super::json;
use super::layout::{Layout, Slot};
use super::parser::Parser;
use super::registers::RegisterPlan;
use super::table::{Call, EntryKey, KeyField};
use super::word::limbs_for;
use super::{
    ActionId, ActionInfo, CounterId, CounterInfo, DigestInfo, FieldInfo, LoadError, RegisterId,
    RegisterInfo, TableId, TableInfo,
};

/// The most cells of a counter or register array.
const MAX_ARRAY_SIZE: usize = 1 << 26;
/// The widest register cell and action parameter, in bits.
const MAX_BITS: u32 = 1 << 14;

/// A BMv2 JSON program, compiled.
#[derive(Debug)]
pub struct Program {
    pub(super) layout: Layout,
    pub(super) intrinsics: Intrinsics,
    pub(super) parser: Parser,
    pub(super) registers: RegisterPlan,
    pub(super) actions: Vec<Action>,
    pub(super) table_plans: Vec<TablePlan>,
    pub(super) ingress: Control,
    pub(super) egress: Control,
    /// The tables that packets look anything up in.
    pub(super) applied_tables: Box<[usize]>,
    pub(super) calculations: Vec<Calculation>,
    pub(super) checksums: Vec<Checksum>,
    /// The headers that the deparser emits, in order.
    pub(super) emitted: Vec<usize>,
    /// What clones, resubmitted and recirculated packets keep.
    pub(super) field_lists: Vec<Box<[Slot]>>,
    /// The members of each digest: value and width.
    pub(super) digest_elements: Vec<Box<[(Expr, u32)]>>,
    table_infos: Vec<TableInfo>,
    action_infos: Vec<ActionInfo>,
    counter_infos: Vec<CounterInfo>,
    direct_counters: BTreeMap<String, TableId>,
    register_infos: Vec<RegisterInfo>,
    digest_infos: Vec<DigestInfo>,
}

/// An action, compiled.
#[derive(Debug)]
pub(super) struct Action {
    pub name: String,
    /// Where its parameters are among its arguments.
    pub params: Box<[Slot]>,
    pub ops: Box<[Op]>,
}

/// What a table starts as.
#[derive(Debug)]
pub(super) struct TablePlan {
    pub key: Box<[KeyField]>,
    pub default: Option<Call>,
    pub entries: Vec<(EntryKey, Call)>,
}

/// The names of what primitives may use, in the order of the compiled objects.
#[derive(Debug, Default)]
pub(super) struct Objects {
    pub calculations: Vec<String>,
    /// Indexed counters only.
    pub counters: Vec<String>,
    pub registers: Vec<String>,
    pub register_bits: Vec<u32>,
    /// Ids of digests.
    pub digests: Vec<u64>,
    /// Ids of field lists.
    pub field_lists: Vec<u64>,
}

impl Objects {
    /// The place of `name` in one of the lists.
    pub fn find(&self, list: &[String], name: &str, names: &Names) -> Result<usize, LoadError> {
        match list.iter().position(|known| known == name) {
            Some(index) => Ok(index),
            None => names.malformed(format!("{name} is not defined")),
        }
    }
}

impl Program {
    /// Compiles the JSON that `p4c-bm2-ss` wrote.
    ///
    /// Everything the program uses is resolved here; a construct that is not implemented is an
    /// error that names it, never skipped.
    pub fn load(json: &[u8]) -> Result<Program, LoadError> {
        let document: json::Document = serde_json::from_slice(json)?;
        refuse_unknown_parts(&document)?;
        let mut layout = Layout::build(&document)?;
        let intrinsics = Intrinsics::find(&document, &mut layout)?;
        let objects = name_objects(&document)?;
        let calculations = document.calculations.iter();
        let calculations = calculations.map(|source| Calculation::compile(source, &layout));
        let calculations = calculations.collect::<Result<Vec<_>, _>>()?;
        let field_lists = document.field_lists.iter();
        let field_lists = field_lists.map(|list| compile_field_list(list, &layout));
        let field_lists = field_lists.collect::<Result<Vec<_>, _>>()?;
        let digests = document.learn_lists.iter();
        let digests = digests.map(|list| compile_digest(list, &layout));
        let (digest_infos, digest_elements) =
            digests.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        let parser = compile_parser(&document, &layout, &objects)?;
        let actions = document.actions.iter();
        let actions = actions.map(|action| compile_action(action, &layout, &objects));
        let actions = actions.collect::<Result<Vec<_>, _>>()?;
        let ids = document.actions.iter().enumerate();
        let known = Known {
            layout: &layout,
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
        let checksums = checksums.map(|source| Checksum::compile(source, &layout, &objects));
        let checksums = checksums.collect::<Result<Vec<_>, _>>()?;
        let emitted = compile_deparser(&document, &layout)?;
        let direct_counters = bind_direct_counters(&document, &table_infos)?;
        let register_infos = describe_registers(&document);
        let ops = actions.iter().flat_map(|action| action.ops.iter());
        Ok(Program {
            registers: RegisterPlan::new(&register_infos, ops),
            layout,
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
            direct_counters,
            register_infos,
            digest_infos,
        })
    }

    /// The tables, those that p4c made up for plain statements (`tbl_...`) included.
    pub fn tables(&self) -> &[TableInfo] {
        &self.table_infos
    }

    /// The actions. P4 lets several tables have an action of the same name (`NoAction`).
    pub fn actions(&self) -> &[ActionInfo] {
        &self.action_infos
    }

    /// The indexed counters.
    pub fn counters(&self) -> &[CounterInfo] {
        &self.counter_infos
    }

    /// The register arrays.
    pub fn registers(&self) -> &[RegisterInfo] {
        &self.register_infos
    }

    /// The digests.
    pub fn digests(&self) -> &[DigestInfo] {
        &self.digest_infos
    }

    /// The table of that fully qualified name.
    pub fn table_id(&self, name: &str) -> Option<TableId> {
        let mut tables = self.table_infos.iter();
        tables.position(|table| table.name == name).map(TableId)
    }

    /// The action of that fully qualified name among those `table` may call.
    pub fn action_id(&self, table: TableId, name: &str) -> Option<ActionId> {
        let mut actions = self.table_infos.get(table.0)?.actions.iter().copied();
        actions.find(|id| self.action_infos[id.0].name == name)
    }

    /// The indexed counter of that fully qualified name.
    pub fn counter_id(&self, name: &str) -> Option<CounterId> {
        let mut counters = self.counter_infos.iter();
        let found = counters.position(|counter| counter.name == name);
        found.map(CounterId)
    }

    /// The table whose direct counter has that fully qualified name.
    pub fn direct_counter_table(&self, name: &str) -> Option<TableId> {
        self.direct_counters.get(name).copied()
    }

    /// The register array of that fully qualified name.
    pub fn register_id(&self, name: &str) -> Option<RegisterId> {
        let mut registers = self.register_infos.iter();
        let found = registers.position(|register| register.name == name);
        found.map(RegisterId)
    }
}

/// Refuses everything in the document that nothing here reads.
fn refuse_unknown_parts(document: &json::Document) -> Result<(), LoadError> {
    for (name, part) in &document.other {
        let is_empty = match part {
            Value::Array(items) => items.is_empty(),
            Value::Object(items) => items.is_empty(),
            other => other.is_null(),
        };
        // What the program is called, who compiled it, and names for numbers.
        let means_nothing = matches!(name.as_str(), "program" | "__meta__" | "enums");
        if !is_empty && !means_nothing {
            let first = part[0]["name"].as_str().unwrap_or_default();
            let construct = format!("{name} ({first})");
            return Err(unsupported("program".into(), construct));
        }
    }
    Ok(())
}

fn name_objects(document: &json::Document) -> Result<Objects, LoadError> {
    for register in &document.register_arrays {
        let place = || format!("register {}", register.name);
        if register.size > MAX_ARRAY_SIZE {
            return Err(unsupported(place(), format!("{} cells", register.size)));
        }
        if !(1..=MAX_BITS).contains(&register.bitwidth) {
            return Err(unsupported(place(), format!("{} bits", register.bitwidth)));
        }
    }
    for counter in document
        .counter_arrays
        .iter()
        .filter(|array| !array.is_direct)
    {
        let size = counter.size.unwrap_or(0);
        if size > MAX_ARRAY_SIZE {
            let place = format!("counter {}", counter.name);
            return Err(unsupported(place, format!("{size} cells")));
        }
    }
    let registers = &document.register_arrays;
    let counters = describe_counters(document).into_iter();
    Ok(Objects {
        calculations: document
            .calculations
            .iter()
            .map(|c| c.name.clone())
            .collect(),
        counters: counters.map(|counter| counter.name).collect(),
        registers: registers.iter().map(|r| r.name.clone()).collect(),
        register_bits: registers.iter().map(|r| r.bitwidth).collect(),
        digests: document.learn_lists.iter().map(|list| list.id).collect(),
        field_lists: document.field_lists.iter().map(|list| list.id).collect(),
    })
}

fn compile_action(
    action: &json::Action,
    layout: &Layout,
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
        layout,
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

fn compile_field_list(list: &json::FieldList, layout: &Layout) -> Result<Box<[Slot]>, LoadError> {
    let place = format!("field list {}", list.name);
    let names = Names {
        layout,
        params: &[],
        place: &place,
    };
    let slots = list
        .elements
        .iter()
        .map(|element| match names.dest(element)? {
            super::expr::Dest::Field(slot) => Ok(slot),
            _ => names.unsupported("an element that is no plain field"),
        });
    slots.collect()
}

type CompiledDigest = (DigestInfo, Box<[(Expr, u32)]>);

fn compile_digest(list: &json::FieldList, layout: &Layout) -> Result<CompiledDigest, LoadError> {
    let place = format!("digest {}", list.name);
    let names = Names {
        layout,
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

fn compile_deparser(document: &json::Document, layout: &Layout) -> Result<Vec<usize>, LoadError> {
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
    order.map(|name| layout.header(name, place)).collect()
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

fn describe_counters(document: &json::Document) -> Vec<CounterInfo> {
    let arrays = document
        .counter_arrays
        .iter()
        .filter(|array| !array.is_direct);
    let infos = arrays.map(|array| CounterInfo {
        name: array.name.clone(),
        size: array.size.unwrap_or(0),
    });
    infos.collect()
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
