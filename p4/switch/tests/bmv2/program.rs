// SPDX-License-Identifier: Apache-2.0

//! One program on both targets, with the same tables.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use weft_p4runtime::p4::config::v1::{P4Info, Preamble};
use weft_p4runtime::p4::v1 as p4;
use weft_p4runtime::p4::v1::entity::Entity;
use weft_p4runtime::p4::v1::field_match::{self, FieldMatchType};
use weft_p4runtime::p4::v1::p4_runtime_client::P4RuntimeClient;
use weft_p4runtime::p4::v1::set_forwarding_pipeline_config_request::Action;
use weft_p4runtime::p4::v1::stream_message_request::Update as ToSwitch;
use weft_p4runtime::p4::v1::update::Type;
use weft_switch::pipeline::{
    ActionCall, Effects, MatchValue, Pipeline, Program, QueueMetadata, TableEntry,
};

use crate::target::{Bmv2, DEVICE, Frame};

/// Our own interpreter with a program.
pub struct Ours(pub Pipeline);

impl Ours {
    pub fn new(json: &[u8]) -> Self {
        Self(Pipeline::new(Arc::new(Program::load(json).unwrap()), 1))
    }

    /// Sends packets one after another through empty queues; what came out for each.
    pub fn run(&mut self, packets: &[Frame]) -> Vec<Vec<Frame>> {
        packets.iter().map(|packet| self.send(packet)).collect()
    }

    fn send(&mut self, (port, packet): &Frame) -> Vec<Frame> {
        let mut effects = Effects::default();
        self.0.ingress(*port, &mut packet.clone(), 0, &mut effects);
        let mut came = Vec::new();
        while !effects.outputs.is_empty() {
            let output = effects.outputs.remove(0);
            let mut frame = Vec::new();
            let queue = QueueMetadata::default();
            if self
                .0
                .egress(output.packet, queue, 0, &mut frame, &mut effects)
            {
                came.push((output.port, frame));
            }
        }
        came
    }

    /// Inserts an entry, or sets a default when it has no key.
    fn insert(&mut self, entry: &Entry) {
        let table = self.0.program().table_id(entry.table).unwrap();
        let action = ActionCall {
            action: self.0.program().action_id(table, entry.action).unwrap(),
            args: entry.args.iter().map(|arg| bytes(*arg)).collect(),
        };
        if entry.key.is_empty() {
            return self.0.set_default(table, Some(&action)).unwrap();
        }
        let entry = TableEntry {
            matches: entry.key.clone(),
            priority: 0,
            action,
        };
        self.0.insert(table, &entry).unwrap();
    }
}

/// An entry of a table, or, without a key, its default action.
#[derive(Debug, Clone)]
pub struct Entry {
    pub table: &'static str,
    pub key: Vec<MatchValue>,
    pub action: &'static str,
    pub args: Vec<u64>,
}

impl Entry {
    pub fn new(table: &'static str, key: Vec<MatchValue>, action: &'static str) -> Self {
        Self {
            table,
            key,
            action,
            args: Vec::new(),
        }
    }

    pub fn args(self, args: &[u64]) -> Self {
        Self {
            args: args.to_vec(),
            ..self
        }
    }
}

/// A number as P4Runtime writes it: no leading zeros, and a byte at least.
pub fn bytes(value: u64) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    bytes[zeros.min(7)..].to_vec()
}

/// Gives both targets the program and its entries.
pub async fn programmed(bmv2: &Bmv2, json: &[u8], info: &str, entries: &[Entry]) -> Ours {
    let mut ours = Ours::new(json);
    for entry in entries {
        ours.insert(entry);
    }
    let info = weft_p4runtime::p4info_from_text(info).unwrap();
    let updates = entries.iter().map(|entry| update(&info, entry)).collect();
    let election_id = Some(p4::Uint128 { high: 0, low: 1 });
    let mut rpc = P4RuntimeClient::new(bmv2.control.clone());
    let (to_switch, requests) = mpsc::channel(1);
    let bid = p4::MasterArbitrationUpdate {
        device_id: DEVICE,
        election_id,
        ..Default::default()
    };
    let bid = p4::StreamMessageRequest {
        update: Some(ToSwitch::Arbitration(bid)),
    };
    to_switch.send(bid).await.unwrap();
    let answers = rpc.stream_channel(ReceiverStream::new(requests)).await;
    answers.unwrap().into_inner().message().await.unwrap();
    let config = p4::SetForwardingPipelineConfigRequest {
        device_id: DEVICE,
        election_id,
        action: Action::VerifyAndCommit.into(),
        config: Some(p4::ForwardingPipelineConfig {
            p4info: Some(info),
            p4_device_config: json.to_vec(),
            cookie: None,
        }),
        ..Default::default()
    };
    rpc.set_forwarding_pipeline_config(config).await.unwrap();
    let write = p4::WriteRequest {
        device_id: DEVICE,
        election_id,
        updates,
        ..Default::default()
    };
    rpc.write(write).await.unwrap();
    ours
}

fn update(info: &P4Info, entry: &Entry) -> p4::Update {
    let tables = info.tables.iter().map(|table| &table.preamble);
    let actions = info.actions.iter().map(|action| &action.preamble);
    let params = (1..)
        .zip(&entry.args)
        .map(|(param_id, value)| p4::action::Param {
            param_id,
            value: bytes(*value),
        });
    let action = p4::Action {
        action_id: id(actions, entry.action),
        params: params.collect(),
    };
    let fields = (1..).zip(&entry.key).filter_map(|(field_id, value)| {
        Some(p4::FieldMatch {
            field_id,
            field_match_type: Some(field(value)?),
        })
    });
    let is_default_action = entry.key.is_empty();
    let entry = p4::TableEntry {
        table_id: id(tables, entry.table),
        r#match: fields.collect(),
        action: Some(p4::TableAction {
            r#type: Some(p4::table_action::Type::Action(action)),
        }),
        is_default_action,
        ..Default::default()
    };
    let kind = match is_default_action {
        true => Type::Modify,
        false => Type::Insert,
    };
    p4::Update {
        r#type: kind.into(),
        entity: Some(p4::Entity {
            entity: Some(Entity::TableEntry(entry)),
        }),
    }
}

/// The P4Info id of what is called `name`.
fn id<'a>(mut all: impl Iterator<Item = &'a Option<Preamble>>, name: &str) -> u32 {
    let found = all.find_map(|preamble| {
        let preamble = preamble.as_ref()?;
        (preamble.name == name || preamble.alias == name).then_some(preamble.id)
    });
    found.unwrap_or_else(|| panic!("the program has no {name}"))
}

fn field(value: &MatchValue) -> Option<FieldMatchType> {
    Some(match value.clone() {
        MatchValue::Any => return None,
        MatchValue::Exact(value) => FieldMatchType::Exact(field_match::Exact { value }),
        MatchValue::Lpm { value, prefix_bits } => FieldMatchType::Lpm(field_match::Lpm {
            value,
            prefix_len: prefix_bits as i32,
        }),
        MatchValue::Ternary { value, mask } => {
            FieldMatchType::Ternary(field_match::Ternary { value, mask })
        }
        MatchValue::Range { low, high } => FieldMatchType::Range(field_match::Range { low, high }),
    })
}
