// SPDX-License-Identifier: Apache-2.0

//! The pipeline of one switch: a shared program, and the state that packets and the control plane
//! change.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::api::{
    CloneSession, CounterValue, Effects, InFlight, Output, PRIORITIES, QueueMetadata, Replica,
};
use super::deparser::{deparse, update_checksums, verify_checksums};
use super::entry::Entry;
use super::externs::{Externs, Random};
use super::machine::Machine;
use super::registers::Registers;
use super::table::Table;
use crate::pipeline::model::intrinsics::{DROP_PORT, instance_type};
use crate::pipeline::model::program::Program;
use crate::pipeline::model::slot::Slot;

/// How often a packet may be resubmitted before it is dropped.
const MAX_RESUBMISSIONS: usize = 16;

const NANOSECONDS_PER_S: u64 = 1_000_000_000;

/// A running program: tables, counters, registers, replication state.
#[derive(Debug)]
pub struct Pipeline {
    pub(in crate::pipeline) program: Arc<Program>,
    pub(in crate::pipeline) tables: Vec<Table>,
    pub(in crate::pipeline) externs: Externs,
    pub(in crate::pipeline) multicast_groups: BTreeMap<u16, Vec<Replica>>,
    pub(in crate::pipeline) clone_sessions: BTreeMap<u16, CloneSession>,
    kept_words: Vec<u64>,
}

impl Pipeline {
    /// Creates a pipeline with the program's initial state. `seed` seeds `random`.
    pub fn new(program: Arc<Program>, seed: u64) -> Self {
        let counters = program.counters().iter();
        let counters = counters.map(|info| vec![CounterValue::default(); info.size]);
        let meters = program.meters().iter();
        let meters = meters.map(|info| vec![None; info.size]);
        let externs = Externs {
            registers: Registers::new(&program.registers),
            counters: counters.collect(),
            meters: meters.collect(),
            now: 0,
            ticks_per_s: NANOSECONDS_PER_S,
            random: Random::new(seed),
            scratch: Vec::new(),
            limbs: Vec::new(),
        };
        let tables = (0..program.tables().len()).map(|table| initial_table(&program, table));
        Pipeline {
            tables: tables.collect(),
            externs,
            multicast_groups: BTreeMap::new(),
            clone_sessions: BTreeMap::new(),
            kept_words: Vec::new(),
            program,
        }
    }

    /// Makes timestamps count so many ticks in a second, which are nanoseconds otherwise. Set it
    /// before meters are configured.
    pub fn set_ticks_per_second(&mut self, ticks_per_s: u64) {
        self.externs.ticks_per_s = ticks_per_s;
    }

    /// The program it runs.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Prefetches what any packet at `port` will need.
    pub(crate) fn prefetch(&self, port: u16) {
        for table in &self.program.applied_tables {
            self.tables[*table].prefetch(port);
        }
        self.externs
            .registers
            .prefetch(&self.program.registers, port);
    }

    /// Runs a packet that came in at `port` at `timestamp` up to the traffic manager.
    ///
    /// The low 48 bits of `timestamp` become `ingress_global_timestamp`, in the unit that the
    /// caller chose. If the packet is dropped, nothing is appended to `effects.outputs`. Takes the
    /// packet's bytes, and leaves a buffer for reuse in their place.
    pub fn ingress(
        &mut self,
        port: u16,
        packet: &mut Vec<u8>,
        timestamp: u64,
        effects: &mut Effects,
    ) {
        let mut state = effects.take();
        std::mem::swap(&mut state.0.data, packet);
        state.0.start(&self.program.layout);
        self.run_ingress(state, port, timestamp, effects);
    }

    /// Runs egress for a packet taken from the queue of its port at `timestamp`.
    ///
    /// Returns whether there is a frame to send, which is then in `frame`. Clones and recirculated
    /// packets are appended to `effects` for the caller to queue.
    pub fn egress(
        &mut self,
        packet: InFlight,
        queue: QueueMetadata,
        timestamp: u64,
        frame: &mut Vec<u8>,
        effects: &mut Effects,
    ) -> bool {
        let mut packet = packet;
        let state = &mut *packet.0;
        self.externs.now = timestamp;
        let program = &*self.program;
        let fields = &program.intrinsics;
        let length = state.length() as u64;
        let words = &mut state.words;
        fields.egress_port.set(words, state.port.into());
        fields.egress_spec.set(words, 0);
        fields.enq_timestamp.set(words, queue.enq_timestamp);
        // 32 bits of nanoseconds are 4.29 s: a longer wait must not look like a short one.
        fields
            .enq_qdepth
            .set_at_most(words, queue.enq_qdepth.into());
        fields.deq_timedelta.set_at_most(words, queue.deq_timedelta);
        fields
            .deq_qdepth
            .set_at_most(words, queue.deq_qdepth.into());
        fields.egress_global_timestamp.set(words, timestamp);
        fields.packet_length.set(words, length);
        let mut machine = Machine {
            program,
            packet: state,
            externs: &mut self.externs,
            digests: &mut effects.digests,
        };
        program.egress.run(&mut machine, &mut self.tables);
        if state.condemned {
            effects.discard(packet);
            return false;
        }
        if let Some((session, list)) = packet.0.clone {
            self.clone_from_egress(&packet, session, list, effects);
        }
        let program = &*self.program;
        let egress_spec = program.intrinsics.egress_spec.get(&packet.0.words);
        if egress_spec == u64::from(DROP_PORT) {
            effects.discard(packet);
            return false;
        }
        update_checksums(program, &mut packet.0, &mut self.externs.scratch);
        deparse(program, &mut packet.0, frame);
        if let Some(list) = packet.0.recirculate {
            self.recirculate(packet, list, frame, timestamp, effects);
            return false;
        }
        effects.discard(packet);
        true
    }

    /// Runs parser and ingress for a packet whose metadata comes from earlier passes.
    fn run_ingress(
        &mut self,
        mut packet: InFlight,
        port: u16,
        timestamp: u64,
        effects: &mut Effects,
    ) {
        for _ in 0..=MAX_RESUBMISSIONS {
            self.run_ingress_once(&mut packet, port, timestamp, effects);
            if packet.0.condemned {
                break;
            }
            if let Some((session, list)) = packet.0.clone {
                self.clone_from_ingress(&packet, port, session, list, effects);
            }
            let Some(list) = packet.0.resubmit else {
                self.route(packet, effects);
                return;
            };
            let program = &*self.program;
            self.kept_words.clone_from(&packet.0.words);
            let state = &mut *packet.0;
            state.restart(&program.layout);
            state.copy_fields(&program.field_lists[list], &self.kept_words);
            let instance_type = program.intrinsics.instance_type;
            instance_type.set(&mut state.words, instance_type::RESUBMITTED);
        }
        effects.discard(packet);
    }

    fn run_ingress_once(
        &mut self,
        packet: &mut InFlight,
        port: u16,
        timestamp: u64,
        effects: &mut Effects,
    ) {
        self.externs.now = timestamp;
        let program = &*self.program;
        let fields = &program.intrinsics;
        let packet = &mut *packet.0;
        let length = packet.length() as u64;
        fields.ingress_port.set(&mut packet.words, port.into());
        fields.packet_length.set(&mut packet.words, length);
        let ingress_timestamp = fields.ingress_global_timestamp;
        ingress_timestamp.set(&mut packet.words, timestamp);
        let mut machine = Machine {
            program,
            packet,
            externs: &mut self.externs,
            digests: &mut effects.digests,
        };
        let error = program.parser.parse(&mut machine);
        if machine.packet.condemned {
            return;
        }
        fields.parser_error.set(&mut machine.packet.words, error);
        if !verify_checksums(program, machine.packet, &mut machine.externs.scratch) {
            fields.checksum_error.set(&mut machine.packet.words, 1);
        }
        program.ingress.run(&mut machine, &mut self.tables);
    }

    /// Forwards a packet at the end of ingress, as its metadata says.
    fn route(&mut self, mut packet: InFlight, effects: &mut Effects) {
        let fields = &self.program.intrinsics;
        let words = &mut packet.0.words;
        let group = fields.mcast_grp.get(words) as u16;
        if group != 0 {
            fields.instance_type.set(words, instance_type::REPLICATION);
            // A group that was not configured has no members.
            let replicas = self.multicast_groups.remove(&group);
            if let Some(replicas) = replicas {
                self.replicate(&packet, &replicas, None, effects);
                self.multicast_groups.insert(group, replicas);
            }
            effects.discard(packet);
            return;
        }
        let port = fields.egress_spec.get(words) as u16;
        if port == DROP_PORT {
            effects.discard(packet);
            return;
        }
        fields.instance_type.set(words, instance_type::NORMAL);
        packet.0.clear_requests();
        packet.0.port = port;
        let priority = priority_of(fields.priority, &packet);
        effects.outputs.push(Output {
            port,
            packet,
            priority,
        });
    }

    /// Queues a copy of a packet for each replica, truncated to `length` bytes if that is given.
    fn replicate(
        &mut self,
        packet: &InFlight,
        replicas: &[Replica],
        length: Option<usize>,
        effects: &mut Effects,
    ) {
        for replica in replicas.iter().filter(|replica| replica.port != DROP_PORT) {
            let mut copy = effects.take();
            copy.0.copy_from(&packet.0);
            copy.0.port = replica.port;
            let egress_rid = self.program.intrinsics.egress_rid;
            egress_rid.set(&mut copy.0.words, replica.instance.into());
            if let Some(length) = length {
                copy.0.truncate = Some(copy.0.truncate.map_or(length, |cut| cut.min(length)));
            }
            let priority = priority_of(self.program.intrinsics.priority, &copy);
            effects.outputs.push(Output {
                port: replica.port,
                packet: copy,
                priority,
            });
        }
    }

    /// Sends a clone made in ingress: the packet as it arrived, parsed again.
    fn clone_from_ingress(
        &mut self,
        packet: &InFlight,
        port: u16,
        session: u16,
        list: usize,
        effects: &mut Effects,
    ) {
        let Some(session) = self.clone_sessions.get(&session).cloned() else {
            return;
        };
        let mut copy = effects.take();
        let program = &*self.program;
        let fields = &program.intrinsics;
        let state = &mut *copy.0;
        state.load(&program.layout, &packet.0.data);
        fields.ingress_port.set(&mut state.words, port.into());
        let mut machine = Machine {
            program,
            packet: state,
            externs: &mut self.externs,
            digests: &mut effects.digests,
        };
        program.parser.parse(&mut machine);
        state.copy_fields(&program.field_lists[list], &packet.0.words);
        let instance = instance_type::INGRESS_CLONE;
        fields.instance_type.set(&mut state.words, instance);
        self.send_to_session(copy, &session, effects);
    }

    /// Sends a clone made in egress: the packet as it is now, with its metadata reset.
    fn clone_from_egress(
        &mut self,
        packet: &InFlight,
        session: u16,
        list: usize,
        effects: &mut Effects,
    ) {
        let Some(session) = self.clone_sessions.get(&session).cloned() else {
            return;
        };
        let mut copy = effects.take();
        let program = &*self.program;
        let state = &mut *copy.0;
        state.copy_from(&packet.0);
        for header in program
            .layout
            .headers
            .iter()
            .filter(|header| header.metadata)
        {
            let range = header.range();
            state.words[range.clone()].copy_from_slice(&program.layout.initial[range]);
        }
        state.copy_fields(&program.field_lists[list], &packet.0.words);
        let instance_type: Slot = program.intrinsics.instance_type;
        instance_type.set(&mut state.words, instance_type::EGRESS_CLONE);
        self.send_to_session(copy, &session, effects);
    }

    fn send_to_session(&mut self, packet: InFlight, session: &CloneSession, effects: &mut Effects) {
        let length = (session.length_bytes > 0).then_some(session.length_bytes);
        self.replicate(&packet, &session.replicas, length, effects);
        effects.discard(packet);
    }

    /// Sends a deparsed packet back to ingress.
    fn recirculate(
        &mut self,
        packet: InFlight,
        list: usize,
        frame: &[u8],
        timestamp: u64,
        effects: &mut Effects,
    ) {
        let mut again = effects.take();
        let program = &*self.program;
        let fields = &program.intrinsics;
        let state = &mut *again.0;
        state.load(&program.layout, frame);
        state.copy_fields(&program.field_lists[list], &packet.0.words);
        let instance = instance_type::RECIRCULATED;
        fields.instance_type.set(&mut state.words, instance);
        let port = fields.ingress_port.get(&packet.0.words) as u16;
        effects.discard(packet);
        self.run_ingress(again, port, timestamp, effects);
    }
}

/// A priority above the greatest counts as that.
fn priority_of(priority: Slot, packet: &InFlight) -> u8 {
    priority.get(&packet.0.words).min(PRIORITIES as u64 - 1) as u8
}

/// A table with the program's entries and default action.
fn initial_table(program: &Program, table: usize) -> Table {
    let (plan, info) = (&program.table_plans[table], &program.tables()[table]);
    let mut table = Table::new(&plan.key, info);
    table.default = plan.default.clone();
    for (key, call) in &plan.entries {
        if table.get(key).is_none() {
            table.insert(Entry {
                call: call.clone(),
                counter: CounterValue::default(),
                key: Box::new(key.clone()),
            });
        }
    }
    table
}
