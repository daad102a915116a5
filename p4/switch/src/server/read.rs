// SPDX-License-Identifier: Apache-2.0

//! `Read`: entities, one or all of a kind.

use tonic::Status;
use weft_p4runtime::p4::v1 as p4;
use weft_p4runtime::p4::v1::entity::Entity;
use weft_p4runtime::p4::v1::packet_replication_engine_entry::Type as Replication;

use super::config::{Config, Table};
use super::device::Setup;
use super::entity;
use super::write::state_status;
use crate::pipeline::{CounterValue, Pipeline, TableEntry};

/// The entities that `wanted` asks for, and the outcome of each request.
pub(super) fn read(
    setup: &Setup,
    pipeline: &Pipeline,
    wanted: &[p4::Entity],
) -> (Vec<p4::Entity>, Vec<Result<(), Status>>) {
    let mut found = Vec::new();
    let outcomes = wanted.iter().map(|wanted| {
        let entities = read_one(setup, pipeline, wanted)?;
        found.extend(entities.into_iter().map(|entity| p4::Entity {
            entity: Some(entity),
        }));
        Ok(())
    });
    let outcomes = outcomes.collect();
    (found, outcomes)
}

fn read_one(
    setup: &Setup,
    pipeline: &Pipeline,
    wanted: &p4::Entity,
) -> Result<Vec<Entity>, Status> {
    let mut found = Vec::new();
    match &wanted.entity {
        Some(Entity::TableEntry(entry)) => {
            let counters = entry.counter_data.is_some();
            each_entry(&setup.config, pipeline, entry, |entry, value| {
                let counter_data = counters.then(|| value.map(entity::counter_data));
                found.push(Entity::TableEntry(p4::TableEntry {
                    counter_data: counter_data.flatten(),
                    ..entry
                }));
            })?;
        }
        Some(Entity::DirectCounterEntry(entry)) => {
            let all = p4::TableEntry::default();
            let entry = entry.table_entry.as_ref().unwrap_or(&all);
            each_entry(&setup.config, pipeline, entry, |entry, value| {
                if let Some(value) = value {
                    found.push(Entity::DirectCounterEntry(p4::DirectCounterEntry {
                        table_entry: Some(p4::TableEntry {
                            action: None,
                            ..entry
                        }),
                        data: Some(entity::counter_data(value)),
                    }));
                }
            })?;
        }
        Some(Entity::CounterEntry(entry)) => {
            counters(&setup.config, pipeline, entry, &mut found)?;
        }
        Some(Entity::MeterEntry(entry)) => {
            meters(&setup.config, pipeline, entry, &mut found)?;
        }
        Some(Entity::DigestEntry(entry)) => {
            let all = setup.digests.entries();
            let wanted = |e: &p4::DigestEntry| [0, e.digest_id].contains(&entry.digest_id);
            found.extend(all.filter(wanted).map(Entity::DigestEntry));
        }
        Some(Entity::PacketReplicationEngineEntry(entry)) => {
            replication(setup, entry, &mut found)?;
        }
        Some(_) => {
            let text = "this kind of entity is not implemented by weft-switch";
            return Err(Status::unimplemented(text));
        }
        None => return Err(Status::invalid_argument("an empty entity")),
    }
    Ok(found)
}

/// Calls `found` with every entry that `wanted` selects, and its direct counter if the table has
/// them. Table id 0 stands for all tables, a key without fields for all entries.
fn each_entry(
    config: &Config,
    pipeline: &Pipeline,
    wanted: &p4::TableEntry,
    mut found: impl FnMut(p4::TableEntry, Option<CounterValue>),
) -> Result<(), Status> {
    let tables: Vec<(u32, &Table)> = match wanted.table_id {
        0 => config
            .tables
            .iter()
            .map(|(id, table)| (*id, table))
            .collect(),
        id => vec![(id, config.table(id)?)],
    };
    for (id, table) in tables {
        if wanted.is_default_action {
            let (call, counter) = pipeline.default_action(table.id);
            let Some(call) = call else { continue };
            let entry = p4::TableEntry {
                table_id: id,
                is_default_action: true,
                action: Some(entity::call(table, &call)),
                ..Default::default()
            };
            found(entry, table.counted.then_some(counter));
            continue;
        }
        let mut tell = |(entry, counter): (TableEntry, CounterValue)| {
            let counter = table.counted.then_some(counter);
            found(entity::entry(config, id, table, &entry), counter);
        };
        if wanted.r#match.is_empty() {
            let all = pipeline.entries(table.id).into_iter();
            all.filter(|(entry, _)| [0, entry.priority].contains(&wanted.priority))
                .for_each(&mut tell);
        } else {
            let key = entity::key(table, &wanted.r#match)?;
            let entry = pipeline.entry(table.id, &key, wanted.priority);
            entry.map_err(state_status)?.into_iter().for_each(&mut tell);
        }
    }
    Ok(())
}

fn counters(
    config: &Config,
    pipeline: &Pipeline,
    wanted: &p4::CounterEntry,
    found: &mut Vec<Entity>,
) -> Result<(), Status> {
    let id = wanted.counter_id;
    if id != 0 && !config.counters.contains_key(&id) {
        return Err(Status::not_found(format!("no counter has id {id:#010x}")));
    }
    for (&counter_id, &counter) in &config.counters {
        if ![0, counter_id].contains(&id) {
            continue;
        }
        let cells = pipeline.counter(counter);
        let what = format!("counter {counter_id:#010x}");
        let range = wanted_cells(wanted.index.as_ref(), cells.len(), &what)?;
        found.extend(range.map(|index| {
            Entity::CounterEntry(p4::CounterEntry {
                counter_id,
                index: Some(p4::Index {
                    index: index as i64,
                }),
                data: Some(entity::counter_data(cells[index])),
            })
        }));
    }
    Ok(())
}

fn meters(
    config: &Config,
    pipeline: &Pipeline,
    wanted: &p4::MeterEntry,
    found: &mut Vec<Entity>,
) -> Result<(), Status> {
    let id = wanted.meter_id;
    if id != 0 && !config.meters.contains_key(&id) {
        return Err(Status::not_found(format!("no meter has id {id:#010x}")));
    }
    for (&meter_id, meter) in &config.meters {
        if ![0, meter_id].contains(&id) {
            continue;
        }
        let cells = pipeline.meter(meter.id);
        let what = format!("meter {meter_id:#010x}");
        let range = wanted_cells(wanted.index.as_ref(), cells.len(), &what)?;
        let cells = cells.enumerate().skip(range.start).take(range.len());
        found.extend(cells.map(|(index, cell)| {
            Entity::MeterEntry(p4::MeterEntry {
                meter_id,
                index: Some(p4::Index {
                    index: index as i64,
                }),
                config: cell.map(entity::meter_config),
                counter_data: None,
            })
        }));
    }
    Ok(())
}

/// The cells that a client asks for: one, or all.
fn wanted_cells(
    index: Option<&p4::Index>,
    cells: usize,
    what: &str,
) -> Result<std::ops::Range<usize>, Status> {
    let Some(index) = index else {
        return Ok(0..cells);
    };
    match usize::try_from(index.index) {
        Ok(index) if index < cells => Ok(index..index + 1),
        _ => Err(Status::invalid_argument(format!(
            "{what} has {cells} cells"
        ))),
    }
}

fn replication(
    setup: &Setup,
    wanted: &p4::PacketReplicationEngineEntry,
    found: &mut Vec<Entity>,
) -> Result<(), Status> {
    let entries: Vec<Replication> = match &wanted.r#type {
        Some(Replication::MulticastGroupEntry(wanted)) => {
            let groups = setup.multicast_groups.iter();
            groups
                .filter(|(id, _)| [0, **id].contains(&wanted.multicast_group_id))
                .map(|(_, group)| Replication::MulticastGroupEntry(group.clone()))
                .collect()
        }
        Some(Replication::CloneSessionEntry(wanted)) => {
            let sessions = setup.clone_sessions.iter();
            sessions
                .filter(|(id, _)| [0, **id].contains(&wanted.session_id))
                .map(|(_, session)| Replication::CloneSessionEntry(session.clone()))
                .collect()
        }
        None => return Err(Status::invalid_argument("an empty replication entry")),
    };
    found.extend(entries.into_iter().map(|entry| {
        Entity::PacketReplicationEngineEntry(p4::PacketReplicationEngineEntry {
            r#type: Some(entry),
        })
    }));
    Ok(())
}
