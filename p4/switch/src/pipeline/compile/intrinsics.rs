// SPDX-License-Identifier: Apache-2.0

//! Finds the intrinsic metadata of a program.

use super::error::{LoadError, malformed};
use super::json;
use super::symbols::Symbols;
use crate::pipeline::model::intrinsics::Intrinsics;

impl Intrinsics {
    pub fn find(document: &json::Document, symbols: &mut Symbols) -> Result<Self, LoadError> {
        let unread = symbols.spare();
        let none = symbols.spare();
        let symbols = &*symbols;
        // p4c renames some fields for BMv2 and says so in the aliases.
        let aliased = |name: &str| {
            let mut aliases = document.field_aliases.iter();
            let alias =
                aliases.find(|(alias, _)| alias.split_once('.').is_some_and(|a| a.1 == name));
            let (header, field) = &alias?.1;
            symbols.field(header, field, "").ok()
        };
        let slot = |name: &str| {
            let field = symbols.field("standard_metadata", name, "").ok();
            match field.or_else(|| aliased(name)) {
                Some(field) if field.slot.bits <= 64 && !field.variable => Some(field.slot),
                _ => None,
            }
        };
        let needed = |name: &str| {
            let missing = || malformed("standard_metadata".into(), format!("no field {name}"));
            slot(name).ok_or_else(missing)
        };
        let optional = |name: &str| slot(name).unwrap_or(unread);
        Ok(Intrinsics {
            ingress_port: needed("ingress_port")?,
            egress_spec: needed("egress_spec")?,
            egress_port: needed("egress_port")?,
            priority: slot("priority").unwrap_or(none),
            instance_type: optional("instance_type"),
            packet_length: optional("packet_length"),
            enq_timestamp: optional("enq_timestamp"),
            enq_qdepth: optional("enq_qdepth"),
            deq_timedelta: optional("deq_timedelta"),
            deq_qdepth: optional("deq_qdepth"),
            ingress_global_timestamp: optional("ingress_global_timestamp"),
            egress_global_timestamp: optional("egress_global_timestamp"),
            mcast_grp: slot("mcast_grp").unwrap_or(none),
            egress_rid: optional("egress_rid"),
            checksum_error: optional("checksum_error"),
            parser_error: optional("parser_error"),
        })
    }
}
