//! One switch's pipeline: a shared program and the state that packets and control plane change.

use std::sync::Arc;

use super::{
    ActionCall, CloneSession, CounterId, CounterValue, Effects, InFlight, MatchValue, Program,
    QueueMetadata, RegisterId, Replica, StateError, TableEntry, TableId,
};

/// The parsed form of a packet.
#[derive(Debug)]
pub(super) struct PacketState {}

/// A running program: tables, counters, registers, replication state.
#[derive(Debug)]
pub struct Pipeline {
    program: Arc<Program>,
}

impl Pipeline {
    /// A pipeline with the program's initial state. `seed` starts what `random` draws.
    pub fn new(program: Arc<Program>, _seed: u64) -> Self {
        Pipeline { program }
    }

    /// The program it runs.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Runs a packet that came in at `port` at `timestamp` up to the traffic manager.
    ///
    /// `timestamp` becomes `ingress_global_timestamp` (its low 48 bits), in whatever unit the
    /// caller counts. Appends nothing to `effects.outputs` when the packet is dropped.
    pub fn ingress(&mut self, _port: u16, _packet: &[u8], _timestamp: u64, _effects: &mut Effects) {
    }

    /// Runs egress for a packet taken from the queue of its port at `timestamp`.
    ///
    /// Returns whether there is a frame to send; it then is the whole content of `frame`. Clones
    /// and recirculated packets are appended to `effects` for the caller to queue.
    pub fn egress(
        &mut self,
        _packet: InFlight,
        _queue: QueueMetadata,
        _timestamp: u64,
        _frame: &mut Vec<u8>,
        _effects: &mut Effects,
    ) -> bool {
        false
    }

    /// Takes back a packet that found its queue full.
    pub fn discard(&mut self, _packet: InFlight) {}

    /// Adds an entry.
    pub fn insert(&mut self, _table: TableId, _entry: &TableEntry) -> Result<(), StateError> {
        unimplemented()
    }

    /// Gives the entry of that key another action.
    pub fn modify(&mut self, _table: TableId, _entry: &TableEntry) -> Result<(), StateError> {
        unimplemented()
    }

    /// Removes the entry of that key.
    pub fn delete(
        &mut self,
        _table: TableId,
        _matches: &[MatchValue],
        _priority: i32,
    ) -> Result<(), StateError> {
        unimplemented()
    }

    /// The entries of a table, in a fixed order, with what their direct counters hold.
    pub fn entries(&self, _table: TableId) -> Vec<(TableEntry, CounterValue)> {
        Vec::new()
    }

    /// The entry of that key, if there is one.
    pub fn entry(
        &self,
        _table: TableId,
        _matches: &[MatchValue],
        _priority: i32,
    ) -> Result<Option<(TableEntry, CounterValue)>, StateError> {
        unimplemented()
    }

    /// Sets the default action; `None` puts back the program's own.
    pub fn set_default(
        &mut self,
        _table: TableId,
        _action: Option<&ActionCall>,
    ) -> Result<(), StateError> {
        unimplemented()
    }

    /// The default action and the packets it was called for; `None` when a miss does nothing.
    pub fn default_action(&self, _table: TableId) -> (Option<ActionCall>, CounterValue) {
        (None, CounterValue::default())
    }

    /// Sets the direct counter of an entry.
    pub fn write_direct_counter(
        &mut self,
        _table: TableId,
        _matches: &[MatchValue],
        _priority: i32,
        _value: CounterValue,
    ) -> Result<(), StateError> {
        unimplemented()
    }

    /// Sets the direct counter of the default action.
    pub fn write_default_counter(
        &mut self,
        _table: TableId,
        _value: CounterValue,
    ) -> Result<(), StateError> {
        unimplemented()
    }

    /// The cells of an indexed counter.
    pub fn counter(&self, _counter: CounterId) -> &[CounterValue] {
        &[]
    }

    /// Sets a cell of an indexed counter.
    pub fn write_counter(
        &mut self,
        _counter: CounterId,
        _index: usize,
        _value: CounterValue,
    ) -> Result<(), StateError> {
        unimplemented()
    }

    /// What a register cell holds, big-endian without leading zeros.
    pub fn register(&self, _register: RegisterId, _index: usize) -> Result<Vec<u8>, StateError> {
        unimplemented()
    }

    /// Sets a register cell.
    pub fn write_register(
        &mut self,
        _register: RegisterId,
        _index: usize,
        _value: &[u8],
    ) -> Result<(), StateError> {
        unimplemented()
    }

    /// Sets the copies made for multicast group `group` (from 1); an empty list removes it.
    pub fn set_multicast_group(
        &mut self,
        _group: u16,
        _replicas: Vec<Replica>,
    ) -> Result<(), StateError> {
        unimplemented()
    }

    /// The copies made for a multicast group.
    pub fn multicast_group(&self, _group: u16) -> Option<&[Replica]> {
        None
    }

    /// Sets or (`None`) removes a clone session.
    pub fn set_clone_session(
        &mut self,
        _session: u16,
        _to: Option<CloneSession>,
    ) -> Result<(), StateError> {
        unimplemented()
    }

    /// A clone session.
    pub fn clone_session(&self, _session: u16) -> Option<&CloneSession> {
        None
    }
}

fn unimplemented<T>() -> Result<T, StateError> {
    Err(StateError::InvalidArgument("not yet".into()))
}
