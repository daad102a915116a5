// SPDX-License-Identifier: Apache-2.0

//! A forwarding pipeline configuration: a program and what P4Info calls its parts.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tonic::Status;
use weft_p4runtime::p4::config::v1 as info;
use weft_p4runtime::p4::v1::ForwardingPipelineConfig;
use weft_p4runtime::p4::v1::forwarding_pipeline_config::Cookie;

use super::packet::Header;
use crate::pipeline::{ActionId, CounterId, MatchKind, MeterId, Program, TableId};

/// A verified configuration of one switch.
#[derive(Debug)]
pub(super) struct Config {
    pub cookie: Option<Cookie>,
    verified: Arc<Verified>,
}

impl Deref for Config {
    type Target = Verified;

    fn deref(&self) -> &Verified {
        &self.verified
    }
}

/// The verified configurations that are in use. Switches with the same program share one, because a
/// large network has hundreds of them, and loading a program takes milliseconds and megabytes.
static KNOWN: Mutex<Vec<Weak<Verified>>> = Mutex::new(Vec::new());

/// A program and what P4Info calls its parts.
#[derive(Debug)]
pub(super) struct Verified {
    pub p4info: info::P4Info,
    pub device_config: Vec<u8>,
    pub program: Arc<Program>,
    pub tables: BTreeMap<u32, Table>,
    pub counters: BTreeMap<u32, CounterId>,
    pub meters: BTreeMap<u32, Meter>,
    /// Digest id to its places in the program: it has one for each call in the source.
    pub digests: BTreeMap<u32, Vec<usize>>,
    pub packet_in: Header,
    pub packet_out: Header,
}

/// A table, as P4Info has it.
#[derive(Debug)]
pub(super) struct Table {
    pub name: String,
    pub id: TableId,
    /// In the order of the program's key.
    pub fields: Vec<Field>,
    pub actions: Vec<Action>,
    pub counted: bool,
}

/// A meter, as P4Info has it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Meter {
    pub id: MeterId,
    pub kind: info::meter_spec::Type,
}

/// A match field.
#[derive(Debug)]
pub(super) struct Field {
    pub id: u32,
    pub name: String,
    pub kind: MatchKind,
}

/// An action that a table may call.
#[derive(Debug)]
pub(super) struct Action {
    /// Its P4Info id.
    pub p4_id: u32,
    pub name: String,
    pub id: ActionId,
    /// Parameter ids, in the order of the program's parameters.
    pub params: Vec<u32>,
    /// Whether it may be the default action.
    pub as_default: bool,
    /// Whether entries may call it.
    pub in_entries: bool,
}

impl Config {
    /// Verifies `message`: loads the program and finds everything P4Info names in it.
    pub fn verify(message: ForwardingPipelineConfig) -> Result<Self, Status> {
        let p4info = message
            .p4info
            .ok_or_else(|| Status::invalid_argument("the configuration has no P4Info"))?;
        let (cookie, program) = (message.cookie, message.p4_device_config);
        // A thread that panicked while it held the lock left the list consistent.
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|known| known.strong_count() > 0);
        let same = known
            .iter()
            .filter_map(Weak::upgrade)
            .find(|known| known.is(&p4info, &program));
        let verified = match same {
            Some(verified) => verified,
            None => {
                let verified = Arc::new(Verified::new(p4info, program)?);
                known.push(Arc::downgrade(&verified));
                verified
            }
        };
        Ok(Self { cookie, verified })
    }

    /// Whether `other` is the same program with the same names.
    pub fn is_same_program(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.verified, &other.verified) || self.is(&other.p4info, &other.device_config)
    }
}

impl Verified {
    fn new(p4info: info::P4Info, device_config: Vec<u8>) -> Result<Self, Status> {
        let program = Program::load(&device_config)
            .map_err(|error| Status::invalid_argument(format!("p4_device_config: {error}")))?;
        refuse_unsupported(&p4info)?;
        let mut verified = Self {
            tables: BTreeMap::new(),
            counters: BTreeMap::new(),
            meters: BTreeMap::new(),
            digests: BTreeMap::new(),
            packet_in: Header::of(&p4info, "packet_in")?,
            packet_out: Header::of(&p4info, "packet_out")?,
            device_config,
            program: Arc::new(program),
            p4info,
        };
        verified.find_tables()?;
        verified.find_externs()?;
        Ok(verified)
    }

    fn is(&self, p4info: &info::P4Info, device_config: &[u8]) -> bool {
        self.device_config == device_config && self.p4info == *p4info
    }

    /// The table with that P4Info id.
    pub fn table(&self, id: u32) -> Result<&Table, Status> {
        self.tables
            .get(&id)
            .ok_or_else(|| Status::not_found(format!("no table has id {id:#010x}")))
    }

    /// Finds the tables, and marks those with a direct counter as counted.
    fn find_tables(&mut self) -> Result<(), Status> {
        for table in &self.p4info.tables {
            let (p4_id, name) = identity(table.preamble.as_ref(), "table")?;
            let id = self
                .program
                .table_id(name)
                .ok_or_else(|| missing("table", name))?;
            let mut fields = Vec::new();
            for key in &self.program.tables()[id.0].key {
                let mut named = table.match_fields.iter();
                let field = named
                    .find(|field| field.name == key.name)
                    .ok_or_else(|| missing(&format!("{name}: match field"), &key.name))?;
                fields.push(Field {
                    id: field.id,
                    name: key.name.clone(),
                    kind: key.kind,
                });
            }
            if fields.len() != table.match_fields.len() {
                let text = format!("{name}: P4Info has more match fields than the program");
                return Err(Status::invalid_argument(text));
            }
            let actions = table
                .action_refs
                .iter()
                .map(|reference| self.find_action(id, name, reference))
                .collect::<Result<_, _>>()?;
            let table = Table {
                name: name.to_owned(),
                id,
                fields,
                actions,
                counted: self.program.tables()[id.0].counted,
            };
            self.tables.insert(p4_id, table);
        }
        Ok(())
    }

    fn find_action(
        &self,
        table: TableId,
        table_name: &str,
        reference: &info::ActionRef,
    ) -> Result<Action, Status> {
        let mut actions = self.p4info.actions.iter();
        let action = actions
            .find(|action| action.preamble.as_ref().map(|p| p.id) == Some(reference.id))
            .ok_or_else(|| missing(&format!("{table_name}: action id"), reference.id))?;
        let (p4_id, name) = identity(action.preamble.as_ref(), "action")?;
        let id = self
            .program
            .action_id(table, name)
            .ok_or_else(|| missing(&format!("{table_name}: action"), name))?;
        let params = self.program.actions()[id.0]
            .params
            .iter()
            .map(|param| {
                let mut named = action.params.iter();
                named
                    .find(|candidate| candidate.name == param.name)
                    .map(|candidate| candidate.id)
                    .ok_or_else(|| missing(&format!("{name}: parameter"), &param.name))
            })
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Action {
            p4_id,
            name: name.to_owned(),
            id,
            params,
            as_default: reference.scope() != info::action_ref::Scope::TableOnly,
            in_entries: reference.scope() != info::action_ref::Scope::DefaultOnly,
        })
    }

    fn find_externs(&mut self) -> Result<(), Status> {
        for counter in &self.p4info.counters {
            let (id, name) = identity(counter.preamble.as_ref(), "counter")?;
            let counter = self.program.counter_id(name);
            self.counters
                .insert(id, counter.ok_or_else(|| missing("counter", name))?);
        }
        for meter in &self.p4info.meters {
            let (p4_id, name) = identity(meter.preamble.as_ref(), "meter")?;
            let id = self.program.meter_id(name);
            let meter = Meter {
                id: id.ok_or_else(|| missing("meter", name))?,
                kind: meter.spec.unwrap_or_default().r#type(),
            };
            self.meters.insert(p4_id, meter);
        }
        for digest in &self.p4info.digests {
            let (id, name) = identity(digest.preamble.as_ref(), "digest")?;
            let candidates = self.program.digests().iter().enumerate();
            let places: Vec<usize> = candidates
                .filter(|(_, candidate)| candidate.name == name)
                .map(|(place, _)| place)
                .collect();
            if places.is_empty() {
                return Err(missing("digest", name));
            }
            self.digests.insert(id, places);
        }
        Ok(())
    }
}

/// Refuses what P4Info may have but this server does not implement.
fn refuse_unsupported(p4info: &info::P4Info) -> Result<(), Status> {
    let found = [
        ("action_profile", p4info.action_profiles.len()),
        ("direct_meter", p4info.direct_meters.len()),
        ("value_set", p4info.value_sets.len()),
        ("extern", p4info.externs.len()),
    ];
    match found.iter().find(|(_, number)| *number > 0) {
        Some((what, _)) => Err(Status::invalid_argument(format!(
            "P4Info: {what} is not implemented by weft-switch"
        ))),
        None => Ok(()),
    }
}

fn identity<'a>(
    preamble: Option<&'a info::Preamble>,
    what: &str,
) -> Result<(u32, &'a str), Status> {
    preamble
        .map(|preamble| (preamble.id, preamble.name.as_str()))
        .ok_or_else(|| Status::invalid_argument(format!("P4Info: a {what} has no preamble")))
}

fn missing(what: &str, name: impl std::fmt::Display) -> Status {
    Status::invalid_argument(format!(
        "P4Info does not match the program: {what} {name} is not in both"
    ))
}
