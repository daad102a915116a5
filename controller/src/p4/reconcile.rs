// SPDX-License-Identifier: Apache-2.0

//! Computes the writes that bring a switch to its desired state. There are as few as possible:
//! none after a restart of the controller.

use std::collections::BTreeMap;

use weft_p4runtime::p4::v1::{
    Action, DigestEntry, Entity, FieldMatch, TableAction, TableEntry, Update, entity, field_match,
    table_action, update,
};

use super::desired::Desired;

/// The state that was read from a switch.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// Its table entries, including default entries.
    pub entries: Vec<TableEntry>,
    /// Its digest subscriptions.
    pub digests: Vec<DigestEntry>,
}

impl Found {
    /// Adds the entities of a Read response.
    pub fn extend(&mut self, entities: Vec<Entity>) {
        for entity in entities {
            match entity.entity {
                Some(entity::Entity::TableEntry(entry)) => self.entries.push(entry),
                Some(entity::Entity::DigestEntry(digest)) => self.digests.push(digest),
                _ => {}
            }
        }
    }
}

/// The writes that turn `found` into `desired`. Unknown entries are deleted first.
#[must_use]
pub fn plan(desired: &Desired, found: &Found) -> Vec<Update> {
    let mut present: BTreeMap<EntryKey, &TableEntry> = found
        .entries
        .iter()
        .map(|entry| (EntryKey::of(entry), entry))
        .collect();
    let mut updates = Vec::new();
    for entry in &desired.entries {
        let kind = match present.remove(&EntryKey::of(entry)) {
            Some(there) if same_action(&there.action, &entry.action) => continue,
            Some(_) => update::Type::Modify,
            // A default entry always exists.
            None if entry.is_default_action => update::Type::Modify,
            None => update::Type::Insert,
        };
        updates.push(write(kind, entity::Entity::TableEntry(entry.clone())));
    }
    let strange = present
        .into_values()
        .filter(|entry| !entry.is_default_action)
        .map(|entry| {
            let named = TableEntry {
                table_id: entry.table_id,
                r#match: entry.r#match.clone(),
                priority: entry.priority,
                ..TableEntry::default()
            };
            write(update::Type::Delete, entity::Entity::TableEntry(named))
        });
    updates.splice(0..0, strange);
    for digest in &desired.digests {
        let there = found
            .digests
            .iter()
            .find(|there| there.digest_id == digest.digest_id);
        let kind = match there {
            Some(there) if there.config == digest.config => continue,
            Some(_) => update::Type::Modify,
            None => update::Type::Insert,
        };
        updates.push(write(kind, entity::Entity::DigestEntry(*digest)));
    }
    updates
}

fn write(kind: update::Type, entity: entity::Entity) -> Update {
    Update {
        r#type: kind.into(),
        entity: Some(Entity {
            entity: Some(entity),
        }),
    }
}

/// The identity of a table entry.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct EntryKey {
    table_id: u32,
    is_default: bool,
    priority: i32,
    /// Field id, value, and prefix length or the like.
    fields: Vec<(u32, Vec<u8>, Vec<u8>)>,
}

impl EntryKey {
    fn of(entry: &TableEntry) -> Self {
        let mut fields: Vec<_> = entry.r#match.iter().map(field).collect();
        fields.sort();
        Self {
            table_id: entry.table_id,
            is_default: entry.is_default_action,
            priority: entry.priority,
            fields,
        }
    }
}

fn field(field: &FieldMatch) -> (u32, Vec<u8>, Vec<u8>) {
    use field_match::FieldMatchType;
    let (value, rest) = match &field.field_match_type {
        Some(FieldMatchType::Exact(exact)) => (canonical(&exact.value), Vec::new()),
        Some(FieldMatchType::Lpm(lpm)) => {
            (canonical(&lpm.value), lpm.prefix_len.to_be_bytes().to_vec())
        }
        // None of our tables has other match kinds, but those of an unknown program must still
        // be distinguished.
        other => (format!("{other:?}").into_bytes(), Vec::new()),
    };
    (field.field_id, value, rest)
}

fn same_action(a: &Option<TableAction>, b: &Option<TableAction>) -> bool {
    let direct = |action: &Option<TableAction>| match action.as_ref()?.r#type.as_ref()? {
        table_action::Type::Action(action) => Some(signature(action)),
        _ => None,
    };
    let (a, b) = (direct(a), direct(b));
    a.is_some() && a == b
}

fn signature(action: &Action) -> (u32, BTreeMap<u32, Vec<u8>>) {
    let parameters = action
        .params
        .iter()
        .map(|param| (param.param_id, canonical(&param.value)))
        .collect();
    (action.action_id, parameters)
}

/// Strips leading zeros, which servers may add.
fn canonical(bytes: &[u8]) -> Vec<u8> {
    let significant = bytes.iter().position(|&byte| byte != 0);
    bytes[significant.unwrap_or(bytes.len())..].to_vec()
}

#[cfg(test)]
mod tests {
    use weft_topology::Role;

    use super::*;
    use crate::p4::desired::desired;
    use crate::p4::timestamps::TimestampUnit;
    use crate::testing::{fabric, program};

    fn leaf1() -> Desired {
        let fabric = fabric(2, 2, 4);
        let switch = fabric.topology().switch("leaf1").unwrap();
        let unit = TimestampUnit::Nanoseconds;
        desired(&fabric, switch, &program(Role::Leaf), unit).unwrap()
    }

    /// A switch in exactly the desired state.
    fn complete(desired: &Desired) -> Found {
        Found {
            entries: desired.entries.clone(),
            digests: desired.digests.clone(),
        }
    }

    fn kinds(updates: &[Update]) -> Vec<update::Type> {
        updates.iter().map(Update::r#type).collect()
    }

    #[test]
    fn an_empty_switch_gets_everything() {
        let desired = leaf1();
        let updates = plan(&desired, &Found::default());
        assert_eq!(updates.len(), desired.entries.len() + desired.digests.len());
        assert!(!kinds(&updates).contains(&update::Type::Delete));
    }

    #[test]
    fn a_complete_switch_gets_nothing() {
        let desired = leaf1();
        let mut found = complete(&desired);
        assert_eq!(plan(&desired, &found), []);
        // The order and leading zeros don't matter.
        found.entries.reverse();
        for entry in &mut found.entries {
            if let Some(field_match::FieldMatchType::Exact(exact)) = entry
                .r#match
                .first_mut()
                .and_then(|field| field.field_match_type.as_mut())
            {
                exact.value.insert(0, 0);
            }
        }
        assert_eq!(plan(&desired, &found), []);
    }

    #[test]
    fn a_strange_entry_goes_and_a_changed_one_is_corrected() {
        let desired = leaf1();
        let mut found = complete(&desired);
        let host_route = found.entries[0].clone();
        // The routes of two hosts swap their actions, and a third prefix appears.
        found.entries[0].action = found.entries[2].action.clone();
        let mut strange = host_route;
        if let Some(field_match::FieldMatchType::Lpm(lpm)) =
            strange.r#match[0].field_match_type.as_mut()
        {
            lpm.value = vec![192, 0, 2, 0];
        }
        found.entries.push(strange);
        assert_eq!(
            kinds(&plan(&desired, &found)),
            [update::Type::Delete, update::Type::Modify]
        );
    }

    #[test]
    fn another_default_action_is_modified() {
        let desired = leaf1();
        let mut found = complete(&desired);
        found.entries.retain(|entry| !entry.is_default_action);
        let updates = plan(&desired, &found);
        assert_eq!(kinds(&updates), [update::Type::Modify; 3]);
    }
}
