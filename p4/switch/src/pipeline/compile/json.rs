// SPDX-License-Identifier: Apache-2.0

//! The structure of BMv2 JSON.
//!
//! Expressions, primitives and their parameters stay [`Value`]s, which are interpreted where they
//! are compiled. Source locations are ignored. [`super::program`] refuses everything else that is
//! not read here.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Deserialize)]
pub struct Document {
    #[serde(default)]
    pub header_types: Vec<HeaderType>,
    #[serde(default)]
    pub headers: Vec<Header>,
    #[serde(default)]
    pub header_stacks: Vec<HeaderStack>,
    #[serde(default)]
    pub field_lists: Vec<FieldList>,
    #[serde(default)]
    pub errors: Vec<(String, u64)>,
    #[serde(default)]
    pub parsers: Vec<Parser>,
    #[serde(default)]
    pub deparsers: Vec<Deparser>,
    #[serde(default)]
    pub counter_arrays: Vec<CounterArray>,
    #[serde(default)]
    pub meter_arrays: Vec<MeterArray>,
    #[serde(default)]
    pub register_arrays: Vec<RegisterArray>,
    #[serde(default)]
    pub calculations: Vec<Calculation>,
    #[serde(default)]
    pub learn_lists: Vec<FieldList>,
    #[serde(default)]
    pub actions: Vec<Action>,
    #[serde(default)]
    pub pipelines: Vec<Pipeline>,
    #[serde(default)]
    pub checksums: Vec<Checksum>,
    #[serde(default)]
    pub field_aliases: Vec<(String, (String, String))>,
    /// Everything else. It is refused unless it is empty or known to be irrelevant.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

#[derive(Debug, Deserialize)]
pub struct HeaderType {
    pub name: String,
    /// `[name, bits or "*", signed]`, the last optional.
    pub fields: Vec<Vec<Value>>,
    /// Maximum length in bytes of a header with a `"*"` field.
    pub max_length: Option<u32>,
}

#[derive(Debug, Deserialize)]
pub struct Header {
    pub name: String,
    pub id: u64,
    pub header_type: String,
    #[serde(default)]
    pub metadata: bool,
}

#[derive(Debug, Deserialize)]
pub struct HeaderStack {
    pub name: String,
    pub header_ids: Vec<u64>,
}

#[derive(Debug, Deserialize)]
pub struct FieldList {
    pub id: u64,
    pub name: String,
    pub elements: Vec<Value>,
}

#[derive(Debug, Deserialize)]
pub struct Parser {
    pub init_state: Option<String>,
    pub parse_states: Vec<ParseState>,
}

#[derive(Debug, Deserialize)]
pub struct ParseState {
    pub name: String,
    #[serde(default)]
    pub parser_ops: Vec<Primitive>,
    #[serde(default)]
    pub transitions: Vec<Transition>,
    #[serde(default)]
    pub transition_key: Vec<Value>,
}

#[derive(Debug, Deserialize)]
pub struct Primitive {
    pub op: String,
    #[serde(default)]
    pub parameters: Vec<Value>,
}

#[derive(Debug, Deserialize)]
pub struct Transition {
    #[serde(rename = "type")]
    pub kind: String,
    pub value: Option<String>,
    pub mask: Option<String>,
    pub next_state: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct Deparser {
    pub order: Vec<String>,
    #[serde(default)]
    pub primitives: Vec<Primitive>,
}

#[derive(Debug, Deserialize)]
pub struct CounterArray {
    pub name: String,
    #[serde(default)]
    pub is_direct: bool,
    pub size: Option<usize>,
    pub binding: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct MeterArray {
    pub name: String,
    #[serde(default)]
    pub is_direct: bool,
    pub size: Option<usize>,
    pub rate_count: u32,
    #[serde(rename = "type")]
    pub unit: String,
}

#[derive(Debug, Deserialize)]
pub struct RegisterArray {
    pub name: String,
    pub size: usize,
    pub bitwidth: u32,
}

#[derive(Debug, Deserialize)]
pub struct Calculation {
    pub name: String,
    pub algo: String,
    pub input: Vec<Value>,
}

#[derive(Debug, Deserialize)]
pub struct Action {
    pub name: String,
    pub id: u64,
    #[serde(default)]
    pub runtime_data: Vec<RuntimeData>,
    pub primitives: Vec<Primitive>,
}

#[derive(Debug, Deserialize)]
pub struct RuntimeData {
    pub name: String,
    pub bitwidth: u32,
}

#[derive(Debug, Deserialize)]
pub struct Pipeline {
    pub name: String,
    pub init_table: Option<String>,
    #[serde(default)]
    pub tables: Vec<Table>,
    #[serde(default)]
    pub conditionals: Vec<Conditional>,
    #[serde(default)]
    pub action_profiles: Vec<Named>,
    #[serde(default)]
    pub action_calls: Vec<Named>,
}

#[derive(Debug, Deserialize)]
pub struct Named {
    pub name: String,
}

#[derive(Debug, Deserialize)]
pub struct Table {
    pub name: String,
    pub key: Vec<Key>,
    pub match_type: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub max_size: usize,
    #[serde(default)]
    pub with_counters: bool,
    #[serde(default)]
    pub support_timeout: bool,
    pub direct_meters: Option<String>,
    pub action_ids: Vec<u64>,
    pub base_default_next: Option<String>,
    pub next_tables: BTreeMap<String, Option<String>>,
    pub default_entry: Option<DefaultEntry>,
    #[serde(default)]
    pub entries: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
pub struct Key {
    pub match_type: String,
    pub name: Option<String>,
    pub target: (String, String),
    pub mask: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct DefaultEntry {
    pub action_id: u64,
    #[serde(default)]
    pub action_const: bool,
    #[serde(default)]
    pub action_data: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub struct Entry {
    pub match_key: Vec<EntryKey>,
    pub action_entry: EntryAction,
    #[serde(default)]
    pub priority: i32,
}

#[derive(Debug, Deserialize)]
pub struct EntryKey {
    pub key: Option<Value>,
    pub mask: Option<String>,
    pub prefix_length: Option<u32>,
    pub start: Option<String>,
    pub end: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct EntryAction {
    pub action_id: u64,
    #[serde(default)]
    pub action_data: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub struct Conditional {
    pub name: String,
    pub expression: Value,
    pub true_next: Option<String>,
    pub false_next: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct Checksum {
    pub name: String,
    pub target: (String, String),
    #[serde(rename = "type")]
    pub kind: String,
    pub calculation: String,
    #[serde(default)]
    pub verify: bool,
    #[serde(default)]
    pub update: bool,
    pub if_cond: Option<Value>,
}
