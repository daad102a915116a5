// SPDX-License-Identifier: Apache-2.0

//! Programs that p4c compiled, run on packets. Their sources are in `tests/fixtures`.

mod arithmetic;
mod externs;
mod hash;
mod hostile;
mod leaf;
mod matching;
mod parsing;
mod refusal;
mod registers;
mod replication;
mod tables;
mod wire;

use std::sync::Arc;

use super::model::word::limbs_to_bytes;
use super::*;

/// A pipeline that runs `json`.
fn pipeline(json: &[u8]) -> Pipeline {
    Pipeline::new(Arc::new(Program::load(json).unwrap()), 1)
}

fn table(pipeline: &Pipeline, name: &str) -> TableId {
    pipeline.program().table_id(name).unwrap()
}

/// A call of an action of `table` with numbers as arguments.
fn call(pipeline: &Pipeline, table: TableId, action: &str, args: &[u64]) -> ActionCall {
    ActionCall {
        action: pipeline.program().action_id(table, action).unwrap(),
        args: args.iter().map(|arg| bytes(*arg)).collect(),
    }
}

/// Inserts an entry without priority.
fn insert(
    pipeline: &mut Pipeline,
    table_name: &str,
    matches: &[MatchValue],
    action: &str,
    args: &[u64],
) {
    insert_at(pipeline, table_name, 0, matches, action, args).unwrap();
}

fn insert_at(
    pipeline: &mut Pipeline,
    table_name: &str,
    priority: i32,
    matches: &[MatchValue],
    action: &str,
    args: &[u64],
) -> Result<(), StateError> {
    let table = table(pipeline, table_name);
    let entry = TableEntry {
        matches: matches.to_vec(),
        priority,
        action: call(pipeline, table, action, args),
    };
    pipeline.insert(table, &entry)
}

/// A number as P4Runtime writes it.
fn bytes(value: u64) -> Vec<u8> {
    limbs_to_bytes(&[value])
}

fn exact(value: u64) -> MatchValue {
    MatchValue::Exact(bytes(value))
}

fn lpm(value: u64, prefix_bits: u32) -> MatchValue {
    MatchValue::Lpm {
        value: bytes(value),
        prefix_bits,
    }
}

/// Sends a packet through ingress and, at once, egress: the frames that leave, with their ports,
/// and the digests.
fn send(
    pipeline: &mut Pipeline,
    port: u16,
    packet: &[u8],
    now: u64,
) -> (Vec<(u16, Vec<u8>)>, Vec<Digest>) {
    let mut effects = Effects::default();
    pipeline.ingress(port, &mut packet.to_vec(), now, &mut effects);
    let mut frames = Vec::new();
    let mut digests = Vec::new();
    while !effects.outputs.is_empty() {
        let output = effects.outputs.remove(0);
        let mut frame = Vec::new();
        let queue = QueueMetadata::default();
        if pipeline.egress(output.packet, queue, now, &mut frame, &mut effects) {
            frames.push((output.port, frame));
        }
        digests.append(&mut effects.digests);
    }
    digests.append(&mut effects.digests);
    (frames, digests)
}
