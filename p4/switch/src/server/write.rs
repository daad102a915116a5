// SPDX-License-Identifier: Apache-2.0

//! `Write`: one update after the other.

use tonic::{Code, Status};
use weft_p4runtime::p4::v1 as p4;
use weft_p4runtime::p4::v1::entity::Entity;
use weft_p4runtime::p4::v1::packet_replication_engine_entry::Type as Replication;
use weft_p4runtime::p4::v1::update::Type;

use super::config::Table;
use super::device::{Setup, batch_outcome};
use super::entity;
use crate::pipeline::{CloneSession, CounterValue, Pipeline, Replica, StateError, TableEntry};

/// Carries out all `updates` that are valid, and fails if any is not.
pub(super) fn write(
    setup: &mut Setup,
    pipeline: &mut Pipeline,
    updates: &[p4::Update],
) -> Result<(), Status> {
    let outcomes = updates
        .iter()
        .map(|update| write_one(setup, pipeline, update));
    batch_outcome(outcomes.collect(), "updates")
}

fn write_one(
    setup: &mut Setup,
    pipeline: &mut Pipeline,
    update: &p4::Update,
) -> Result<(), Status> {
    let kind = update.r#type();
    if kind == Type::Unspecified {
        return Err(Status::invalid_argument("an update needs a type"));
    }
    let entity = update.entity.as_ref().and_then(|e| e.entity.as_ref());
    match entity {
        Some(Entity::TableEntry(entry)) => table_entry(setup, pipeline, kind, entry),
        Some(Entity::DigestEntry(entry)) => digest_entry(setup, kind, entry),
        Some(Entity::CounterEntry(entry)) => counter_entry(setup, pipeline, kind, entry),
        Some(Entity::MeterEntry(entry)) => meter_entry(setup, pipeline, kind, entry),
        Some(Entity::DirectCounterEntry(entry)) => {
            direct_counter_entry(setup, pipeline, kind, entry)
        }
        Some(Entity::PacketReplicationEngineEntry(entry)) => match &entry.r#type {
            Some(Replication::MulticastGroupEntry(group)) => {
                multicast_group(setup, pipeline, kind, group)
            }
            Some(Replication::CloneSessionEntry(session)) => {
                clone_session(setup, pipeline, kind, session)
            }
            None => Err(Status::invalid_argument("an empty replication entry")),
        },
        Some(_) => Err(Status::unimplemented(
            "this kind of entity is not implemented by weft-switch",
        )),
        None => Err(Status::invalid_argument("an update needs an entity")),
    }
}

fn table_entry(
    setup: &Setup,
    pipeline: &mut Pipeline,
    kind: Type,
    given: &p4::TableEntry,
) -> Result<(), Status> {
    let table = setup.config.table(given.table_id)?;
    if given.is_const {
        let text = "only the switch sets TableEntry.is_const; leave it false";
        return Err(Status::invalid_argument(text));
    }
    if given.is_default_action {
        return default_entry(table, pipeline, kind, given);
    }
    let matches = entity::key(table, &given.r#match)?;
    let priority = given.priority;
    if kind == Type::Delete {
        // Other parts of the message are ignored.
        return pipeline
            .delete(table.id, &matches, priority)
            .map_err(state_status);
    }
    refuse_unsupported(given)?;
    // Everything is checked before anything changes.
    let counter = counter(table, given)?;
    if kind == Type::Modify && given.action.is_none() {
        let found = pipeline
            .entry(table.id, &matches, priority)
            .map_err(state_status)?;
        found.ok_or_else(|| {
            Status::not_found(format!("{} has no entry with this key", table.name))
        })?;
    } else {
        let entry = TableEntry {
            matches: matches.clone(),
            priority,
            action: entity::action(table, given.action.as_ref(), false)?,
        };
        match kind {
            Type::Insert => pipeline.insert(table.id, &entry),
            _ => pipeline.modify(table.id, &entry),
        }
        .map_err(state_status)?;
    }
    if let Some(value) = counter {
        pipeline
            .write_direct_counter(table.id, &matches, priority, value)
            .map_err(state_status)?;
    }
    Ok(())
}

fn default_entry(
    table: &Table,
    pipeline: &mut Pipeline,
    kind: Type,
    given: &p4::TableEntry,
) -> Result<(), Status> {
    if kind != Type::Modify {
        let text = "a default action can only be modified";
        return Err(Status::invalid_argument(text));
    }
    if !given.r#match.is_empty() || given.priority != 0 {
        let text = "a default action has neither match fields nor a priority";
        return Err(Status::invalid_argument(text));
    }
    refuse_unsupported(given)?;
    let counter = counter(table, given)?;
    // Without an action, the table gets the program's own default back.
    let action = given.action.as_ref();
    let call = action.map(|action| entity::action(table, Some(action), true));
    pipeline
        .set_default(table.id, call.transpose()?.as_ref())
        .map_err(state_status)?;
    if let Some(value) = counter {
        pipeline
            .write_default_counter(table.id, value)
            .map_err(state_status)?;
    }
    Ok(())
}

/// The value to set the direct counter of an entry to, if the message has one.
fn counter(table: &Table, given: &p4::TableEntry) -> Result<Option<CounterValue>, Status> {
    let Some(data) = &given.counter_data else {
        return Ok(None);
    };
    if !table.counted {
        let text = format!("{} has no direct counter", table.name);
        return Err(Status::invalid_argument(text));
    }
    entity::counter_value(data).map(Some)
}

fn refuse_unsupported(given: &p4::TableEntry) -> Result<(), Status> {
    let fields = [
        ("idle_timeout_ns", given.idle_timeout_ns != 0),
        ("meter_config", given.meter_config.is_some()),
        ("metadata", !given.metadata.is_empty()),
    ];
    match fields.iter().find(|(_, present)| *present) {
        Some((name, _)) => Err(Status::unimplemented(format!(
            "TableEntry.{name} is not implemented by weft-switch"
        ))),
        None => Ok(()),
    }
}

fn digest_entry(setup: &mut Setup, kind: Type, given: &p4::DigestEntry) -> Result<(), Status> {
    let id = given.digest_id;
    if !setup.config.digests.contains_key(&id) {
        return Err(Status::not_found(format!("no digest has id {id:#010x}")));
    }
    let there = setup.digests.contains(id);
    match kind {
        Type::Insert if there => Err(Status::already_exists(format!(
            "digest {id:#010x} is configured"
        ))),
        Type::Modify | Type::Delete if !there => Err(Status::not_found(format!(
            "digest {id:#010x} is not configured"
        ))),
        Type::Delete => {
            setup.digests.remove(id);
            Ok(())
        }
        _ => {
            let config = given.config.unwrap_or_default();
            if config.max_timeout_ns < 0 || config.max_list_size < 0 || config.ack_timeout_ns < 0 {
                let text = "a digest's limits cannot be negative";
                return Err(Status::invalid_argument(text));
            }
            setup.digests.configure(id, config);
            Ok(())
        }
    }
}

fn counter_entry(
    setup: &Setup,
    pipeline: &mut Pipeline,
    kind: Type,
    given: &p4::CounterEntry,
) -> Result<(), Status> {
    only_modify(kind, "counters")?;
    let id = given.counter_id;
    let counter = setup.config.counters.get(&id).copied();
    let counter =
        counter.ok_or_else(|| Status::not_found(format!("no counter has id {id:#010x}")))?;
    let cells = pipeline.counter(counter).len();
    let index = given
        .index
        .map(|index| cell_index("counter", index.index, cells));
    let index = index.transpose()?;
    // Without data, the counter does not change.
    let Some(data) = &given.data else {
        return Ok(());
    };
    let value = entity::counter_value(data)?;
    match index {
        Some(index) => pipeline
            .write_counter(counter, index, value)
            .map_err(state_status),
        None => (0..cells).try_for_each(|index| {
            pipeline
                .write_counter(counter, index, value)
                .map_err(state_status)
        }),
    }
}

fn meter_entry(
    setup: &Setup,
    pipeline: &mut Pipeline,
    kind: Type,
    given: &p4::MeterEntry,
) -> Result<(), Status> {
    only_modify(kind, "meters")?;
    let id = given.meter_id;
    let meter = setup.config.meters.get(&id).copied();
    let meter = meter.ok_or_else(|| Status::not_found(format!("no meter has id {id:#010x}")))?;
    let cells = pipeline.meter(meter.id).len();
    let index = given
        .index
        .map(|index| cell_index("meter", index.index, cells));
    let index = index.transpose()?;
    // Without a configuration, packets are green again.
    let config = given.config.as_ref();
    let config = config.map(|config| entity::meter_rates(meter.kind, config));
    let config = config.transpose()?;
    let range = index.map_or(0..cells, |index| index..index + 1);
    for index in range {
        pipeline
            .write_meter(meter.id, index, config)
            .map_err(state_status)?;
    }
    Ok(())
}

fn cell_index(what: &str, index: i64, cells: usize) -> Result<usize, Status> {
    let text = || format!("{what} index {index}: it has {cells} cells");
    let index = usize::try_from(index).map_err(|_| Status::invalid_argument(text()))?;
    if index >= cells {
        return Err(Status::out_of_range(text()));
    }
    Ok(index)
}

fn direct_counter_entry(
    setup: &Setup,
    pipeline: &mut Pipeline,
    kind: Type,
    given: &p4::DirectCounterEntry,
) -> Result<(), Status> {
    only_modify(kind, "counters")?;
    let entry = given.table_entry.as_ref();
    let entry = entry.ok_or_else(|| Status::invalid_argument("a direct counter needs an entry"))?;
    let table = setup.config.table(entry.table_id)?;
    // Without data, the counter does not change.
    let Some(data) = &given.data else {
        return Ok(());
    };
    let value = entity::counter_value(data)?;
    if entry.is_default_action {
        pipeline.write_default_counter(table.id, value)
    } else {
        let key = entity::key(table, &entry.r#match)?;
        pipeline.write_direct_counter(table.id, &key, entry.priority, value)
    }
    .map_err(state_status)
}

fn only_modify(kind: Type, what: &str) -> Result<(), Status> {
    if kind == Type::Modify {
        return Ok(());
    }
    Err(Status::invalid_argument(format!(
        "{what} can only be modified"
    )))
}

fn multicast_group(
    setup: &mut Setup,
    pipeline: &mut Pipeline,
    kind: Type,
    given: &p4::MulticastGroupEntry,
) -> Result<(), Status> {
    let id = given.multicast_group_id;
    let there = setup.multicast_groups.contains_key(&id);
    let group = replication_id(id, "multicast group", kind, there)?;
    if kind == Type::Delete {
        pipeline
            .set_multicast_group(group, Vec::new())
            .map_err(state_status)?;
        setup.multicast_groups.remove(&id);
        return Ok(());
    }
    pipeline
        .set_multicast_group(group, replicas(&given.replicas)?)
        .map_err(state_status)?;
    setup.multicast_groups.insert(id, given.clone());
    Ok(())
}

fn clone_session(
    setup: &mut Setup,
    pipeline: &mut Pipeline,
    kind: Type,
    given: &p4::CloneSessionEntry,
) -> Result<(), Status> {
    let id = given.session_id;
    let there = setup.clone_sessions.contains_key(&id);
    let session = replication_id(id, "clone session", kind, there)?;
    if kind == Type::Delete {
        pipeline
            .set_clone_session(session, None)
            .map_err(state_status)?;
        setup.clone_sessions.remove(&id);
        return Ok(());
    }
    let to = CloneSession {
        replicas: replicas(&given.replicas)?,
        length_bytes: usize::try_from(given.packet_length_bytes)
            .map_err(|_| Status::invalid_argument("packet_length_bytes is negative"))?,
    };
    pipeline
        .set_clone_session(session, Some(to))
        .map_err(state_status)?;
    setup.clone_sessions.insert(id, given.clone());
    Ok(())
}

fn replication_id(id: u32, what: &str, kind: Type, there: bool) -> Result<u16, Status> {
    match kind {
        Type::Insert if there => {
            return Err(Status::already_exists(format!("{what} {id} exists")));
        }
        Type::Modify | Type::Delete if !there => {
            return Err(Status::not_found(format!("{what} {id} does not exist")));
        }
        _ => {}
    }
    match u16::try_from(id) {
        Ok(id @ 1..) => Ok(id),
        _ => Err(Status::invalid_argument(format!(
            "{what} {id}: ids are 1 to {}",
            u16::MAX
        ))),
    }
}

fn replicas(given: &[p4::Replica]) -> Result<Vec<Replica>, Status> {
    given
        .iter()
        .map(|replica| {
            let port = match &replica.port_kind {
                Some(p4::replica::PortKind::Port(port)) => {
                    weft_p4runtime::bytestring::decode(port, 9)
                        .map_err(|error| Status::invalid_argument(format!("port: {error}")))?
                        as u16
                }
                #[allow(deprecated)]
                Some(p4::replica::PortKind::EgressPort(port)) => u16::try_from(*port)
                    .map_err(|_| Status::invalid_argument(format!("no port {port}")))?,
                None => return Err(Status::invalid_argument("a replica needs a port")),
            };
            let instance = u16::try_from(replica.instance).map_err(|_| {
                Status::invalid_argument(format!("no instance {}", replica.instance))
            })?;
            Ok(Replica { port, instance })
        })
        .collect()
}

/// The gRPC status of a refused change.
pub(super) fn state_status(error: StateError) -> Status {
    let code = match error {
        StateError::AlreadyExists(_) => Code::AlreadyExists,
        StateError::NotFound(_) => Code::NotFound,
        StateError::InvalidArgument(_) => Code::InvalidArgument,
        StateError::ResourceExhausted(_) => Code::ResourceExhausted,
        StateError::PermissionDenied(_) => Code::PermissionDenied,
    };
    Status::new(code, error.to_string())
}
