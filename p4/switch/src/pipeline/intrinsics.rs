//! The metadata through which program and target talk (`standard_metadata`).

use super::LoadError;
use super::error::malformed;
use super::json;
use super::layout::{Layout, Slot};

/// Why a packet is in the pipeline, as `instance_type` says it.
pub(super) mod instance_type {
    pub const NORMAL: u64 = 0;
    pub const INGRESS_CLONE: u64 = 1;
    pub const EGRESS_CLONE: u64 = 2;
    pub const RECIRCULATED: u64 = 4;
    pub const REPLICATION: u64 = 5;
    pub const RESUBMITTED: u64 = 6;
}

/// Where the intrinsic fields are. One that a program lacks is a word nobody reads.
#[derive(Debug, Clone)]
pub(super) struct Intrinsics {
    pub ingress_port: Slot,
    pub egress_spec: Slot,
    pub egress_port: Slot,
    pub instance_type: Slot,
    pub packet_length: Slot,
    pub enq_timestamp: Slot,
    pub enq_qdepth: Slot,
    pub deq_timedelta: Slot,
    pub deq_qdepth: Slot,
    pub ingress_global_timestamp: Slot,
    pub egress_global_timestamp: Slot,
    pub mcast_grp: Slot,
    pub egress_rid: Slot,
    pub checksum_error: Slot,
    pub parser_error: Slot,
}

impl Intrinsics {
    pub fn find(document: &json::Document, layout: &mut Layout) -> Result<Self, LoadError> {
        let unread = layout.spare();
        let no_group = layout.spare();
        let layout = &*layout;
        // p4c renames some fields for BMv2 and says so in the aliases.
        let aliased = |name: &str| {
            let mut aliases = document.field_aliases.iter();
            let alias =
                aliases.find(|(alias, _)| alias.split_once('.').is_some_and(|a| a.1 == name));
            let (header, field) = &alias?.1;
            layout.field(header, field, "").ok()
        };
        let slot = |name: &str| {
            let field = layout.field("standard_metadata", name, "").ok();
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
            instance_type: optional("instance_type"),
            packet_length: optional("packet_length"),
            enq_timestamp: optional("enq_timestamp"),
            enq_qdepth: optional("enq_qdepth"),
            deq_timedelta: optional("deq_timedelta"),
            deq_qdepth: optional("deq_qdepth"),
            ingress_global_timestamp: optional("ingress_global_timestamp"),
            egress_global_timestamp: optional("egress_global_timestamp"),
            mcast_grp: slot("mcast_grp").unwrap_or(no_group),
            egress_rid: optional("egress_rid"),
            checksum_error: optional("checksum_error"),
            parser_error: optional("parser_error"),
        })
    }
}
