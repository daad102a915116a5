// SPDX-License-Identifier: Apache-2.0

//! A compiled program, with lookup of its ids by name.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use weft_p4runtime::p4::config::v1::{Action, P4Info, Table, match_field::MatchType};
use weft_p4runtime::p4::v1::{
    self as p4, FieldMatch, TableAction, TableEntry, field_match, table_action,
};
use weft_p4runtime::{bytestring, p4info_from_text};
use weft_topology::Role;

/// Why a program cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of the program cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The I/O error.
        source: std::io::Error,
    },
    /// The P4Info is malformed.
    #[error("{path}: {source}")]
    P4Info {
        /// The file.
        path: PathBuf,
        /// The parse error.
        source: weft_p4runtime::TextError,
    },
    /// The program lacks something that the controller needs.
    #[error("{program}: no {kind} {name} in its P4Info")]
    Missing {
        /// The program.
        program: String,
        /// The kind of object: `table`, `action`, ...
        kind: &'static str,
        /// The missing name.
        name: String,
    },
}

/// P4Info and device configuration of one program.
#[derive(Debug, Clone)]
pub struct Program {
    /// `leaf` or `spine`.
    pub name: String,
    /// Its tables, actions and digests.
    pub info: P4Info,
    /// BMv2 JSON.
    pub device_config: Vec<u8>,
    /// Identifies the program; never 0.
    pub cookie: u64,
}

/// A match key of a table entry.
#[derive(Debug, Clone, Copy)]
pub enum Key {
    /// Exact match.
    Exact(u128),
    /// Longest prefix match: value and prefix length.
    Prefix(u128, i32),
}

impl Program {
    /// Reads the program for devices of `role` from the first of `folders` that has it.
    ///
    /// # Errors
    /// See [`Error`]; its text names the file, in the last folder if none has it.
    pub fn read<P: AsRef<Path>>(folders: &[P], role: Role) -> Result<Self, Error> {
        let name = role.program();
        let mut candidates = folders.iter().map(AsRef::as_ref);
        let has_it = |folder: &&Path| folder.join(format!("{name}.json")).exists();
        let folder = candidates
            .clone()
            .find(has_it)
            .or_else(|| candidates.next_back())
            .unwrap_or(Path::new(""));
        let read = |file: String| {
            let path = folder.join(file);
            match std::fs::read_to_string(&path) {
                Ok(text) => Ok((path, text)),
                Err(source) => Err(Error::Read { path, source }),
            }
        };
        let (_, json) = read(format!("{name}.json"))?;
        let (path, text) = read(format!("{name}.p4info.txtpb"))?;
        let info = p4info_from_text(&text).map_err(|source| Error::P4Info { path, source })?;
        // SipHash with fixed keys: the same files give the same cookie.
        let mut hasher = DefaultHasher::new();
        (&text, &json).hash(&mut hasher);
        Ok(Self {
            name: name.to_owned(),
            info,
            device_config: json.into_bytes(),
            cookie: hasher.finish().max(1),
        })
    }

    /// The entry of `table` that calls `action` for these keys.
    ///
    /// # Errors
    /// [`Error::Missing`] if the program lacks something that the entry needs.
    pub fn entry(
        &self,
        table: &str,
        keys: &[(&str, Key)],
        action: &str,
        parameters: &[(&str, u128)],
    ) -> Result<TableEntry, Error> {
        let table = self.table(table)?;
        let keys = keys
            .iter()
            .map(|&(name, key)| self.field_match(table, name, key))
            .collect::<Result<_, _>>()?;
        Ok(TableEntry {
            table_id: id(&table.preamble),
            r#match: keys,
            action: Some(self.action(action, parameters)?),
            ..TableEntry::default()
        })
    }

    /// The default entry of `table`, with this action.
    ///
    /// # Errors
    /// [`Error::Missing`] if the program lacks something that the entry needs.
    pub fn default_entry(
        &self,
        table: &str,
        action: &str,
        parameters: &[(&str, u128)],
    ) -> Result<TableEntry, Error> {
        Ok(TableEntry {
            is_default_action: true,
            ..self.entry(table, &[], action, parameters)?
        })
    }

    /// Id of the digest called `name`.
    ///
    /// # Errors
    /// [`Error::Missing`] when there is none.
    pub fn digest_id(&self, name: &str) -> Result<u32, Error> {
        self.info
            .digests
            .iter()
            .find(|digest| is_called(&digest.preamble, name))
            .map(|digest| id(&digest.preamble))
            .ok_or_else(|| self.missing("digest", name))
    }

    /// Id of the meter called `name`.
    ///
    /// # Errors
    /// [`Error::Missing`] when there is none.
    pub fn meter_id(&self, name: &str) -> Result<u32, Error> {
        self.info
            .meters
            .iter()
            .find(|meter| is_called(&meter.preamble, name))
            .map(|meter| id(&meter.preamble))
            .ok_or_else(|| self.missing("meter", name))
    }

    /// Indices of `fields` in the struct of the digest `name`.
    ///
    /// # Errors
    /// [`Error::Missing`] if the struct or a field is missing.
    pub fn struct_fields<const N: usize>(
        &self,
        name: &str,
        fields: [&str; N],
    ) -> Result<[usize; N], Error> {
        let members = &self
            .info
            .type_info
            .as_ref()
            .and_then(|types| types.structs.get(name))
            .ok_or_else(|| self.missing("struct", name))?
            .members;
        let mut places = [0; N];
        for (place, field) in places.iter_mut().zip(fields) {
            *place = members
                .iter()
                .position(|member| member.name == field)
                .ok_or_else(|| self.missing("field", &format!("{name}.{field}")))?;
        }
        Ok(places)
    }

    /// A packet-out of `payload` through `egress_port`. All other fields of the program's
    /// `packet_out` header are zero.
    #[must_use]
    pub fn packet_out(&self, egress_port: u16, payload: Vec<u8>) -> p4::PacketOut {
        let headers = self.info.controller_packet_metadata.iter();
        let header = headers
            .filter(|header| is_called(&header.preamble, "packet_out"))
            .flat_map(|header| &header.metadata);
        let metadata = header
            .map(|field| p4::PacketMetadata {
                metadata_id: field.id,
                value: bytestring::encode(if field.name == "egress_port" {
                    egress_port.into()
                } else {
                    0
                }),
            })
            .collect();
        p4::PacketOut { payload, metadata }
    }

    /// The ingress port of `packet`, if the program's `packet_in` header has it.
    #[must_use]
    pub fn ingress_port(&self, packet: &p4::PacketIn) -> Option<u16> {
        let mut headers = self.info.controller_packet_metadata.iter();
        let header = headers.find(|header| is_called(&header.preamble, "packet_in"))?;
        let mut fields = header.metadata.iter();
        let field = fields.find(|field| field.name == "ingress_port")?;
        let mut given = packet.metadata.iter();
        let value = &given.find(|given| given.metadata_id == field.id)?.value;
        u16::try_from(bytestring::decode(value, 16).ok()?).ok()
    }

    fn table(&self, name: &str) -> Result<&Table, Error> {
        self.info
            .tables
            .iter()
            .find(|table| is_called(&table.preamble, name))
            .ok_or_else(|| self.missing("table", name))
    }

    fn field_match(&self, table: &Table, name: &str, key: Key) -> Result<FieldMatch, Error> {
        use field_match::{Exact, FieldMatchType, Lpm};
        let (kind, field_match_type) = match key {
            Key::Exact(value) => (
                MatchType::Exact,
                FieldMatchType::Exact(Exact {
                    value: bytestring::encode(value),
                }),
            ),
            Key::Prefix(value, prefix_len) => (
                MatchType::Lpm,
                FieldMatchType::Lpm(Lpm {
                    value: bytestring::encode(value),
                    prefix_len,
                }),
            ),
        };
        let field = table
            .match_fields
            .iter()
            .find(|field| field.name == name)
            .filter(|field| {
                use weft_p4runtime::p4::config::v1::match_field::Match;
                field.r#match == Some(Match::MatchType(kind.into()))
            })
            .ok_or_else(|| self.missing(kind.as_str_name(), name))?;
        Ok(FieldMatch {
            field_id: field.id,
            field_match_type: Some(field_match_type),
        })
    }

    fn action(&self, name: &str, parameters: &[(&str, u128)]) -> Result<TableAction, Error> {
        let action: &Action = self
            .info
            .actions
            .iter()
            .find(|action| is_called(&action.preamble, name))
            .ok_or_else(|| self.missing("action", name))?;
        let params = parameters
            .iter()
            .map(|&(parameter, value)| {
                let found = action.params.iter().find(|param| param.name == parameter);
                Ok(p4::action::Param {
                    param_id: found
                        .ok_or_else(|| self.missing("parameter", &format!("{name}.{parameter}")))?
                        .id,
                    value: bytestring::encode(value),
                })
            })
            .collect::<Result<_, Error>>()?;
        Ok(TableAction {
            r#type: Some(table_action::Type::Action(p4::Action {
                action_id: id(&action.preamble),
                params,
            })),
        })
    }

    fn missing(&self, kind: &'static str, name: &str) -> Error {
        Error::Missing {
            program: self.name.clone(),
            kind,
            name: name.to_owned(),
        }
    }
}

type Preamble = Option<weft_p4runtime::p4::config::v1::Preamble>;

fn is_called(preamble: &Preamble, name: &str) -> bool {
    preamble
        .as_ref()
        .is_some_and(|preamble| preamble.name == name)
}

fn id(preamble: &Preamble) -> u32 {
    preamble.as_ref().map_or(0, |preamble| preamble.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::program;

    #[test]
    fn names_become_the_ids_of_the_compiled_program() {
        let leaf = program(Role::Leaf);
        let entry = leaf
            .entry(
                "routing.ipv4_lpm",
                &[("dst_addr", Key::Prefix(0x0a02_0000, 16))],
                "routing.to_fabric",
                &[("leaf", 2)],
            )
            .unwrap();
        assert_eq!(entry.table_id, 0x0200_0001);
        assert_eq!(entry.r#match.len(), 1);
    }

    #[test]
    fn a_missing_name_is_named() {
        let spine = program(Role::Spine);
        let error = spine.digest_id("rtt_sample_t").unwrap_err();
        assert_eq!(
            error.to_string(),
            "spine: no digest rtt_sample_t in its P4Info"
        );
        let error = spine
            .default_entry("telemetry.policy", "telemetry.sample_every", &[("x", 1)])
            .unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("telemetry.sample_every.x in its P4Info")
        );
    }

    #[test]
    fn a_packet_in_says_where_it_came_in() {
        let leaf = program(Role::Leaf);
        let packet = |metadata_id, value: &[u8]| p4::PacketIn {
            metadata: vec![p4::PacketMetadata {
                metadata_id,
                value: value.to_vec(),
            }],
            ..p4::PacketIn::default()
        };
        assert_eq!(leaf.ingress_port(&packet(1, &[1, 2])), Some(258));
        for nothing in [packet(2, &[6]), packet(1, &[]), p4::PacketIn::default()] {
            assert_eq!(leaf.ingress_port(&nothing), None);
        }
    }

    #[test]
    fn programs_are_told_apart_by_their_cookies() {
        let (leaf, spine) = (program(Role::Leaf), program(Role::Spine));
        assert_ne!(leaf.cookie, spine.cookie);
        assert_eq!(leaf.cookie, program(Role::Leaf).cookie);
    }
}
