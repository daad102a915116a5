// SPDX-License-Identifier: Apache-2.0

//! A pipeline's state as the control plane reads and writes it.

pub mod entries;
pub mod error;

use crate::pipeline::model::info::{CounterId, MeterId, RegisterId, RegisterInfo, TableId};
use crate::pipeline::run::api::{
    ActionCall, CloneSession, CounterValue, MatchValue, MeterConfig, Replica, TableEntry,
};
use crate::pipeline::run::meter::Meter;
use crate::pipeline::run::pipeline::Pipeline;
use error::StateError;

impl Pipeline {
    /// Adds an entry.
    pub fn insert(&mut self, table: TableId, entry: &TableEntry) -> Result<(), StateError> {
        entries::table_info(&self.program, table)?;
        entries::insert(&self.program, table, &mut self.tables[table.0], entry)
    }

    /// Gives the entry with that key another action. Its direct counter keeps its value.
    pub fn modify(&mut self, table: TableId, entry: &TableEntry) -> Result<(), StateError> {
        entries::table_info(&self.program, table)?;
        entries::modify(&self.program, table, &mut self.tables[table.0], entry)
    }

    /// Removes the entry with that key.
    pub fn delete(
        &mut self,
        table: TableId,
        matches: &[MatchValue],
        priority: i32,
    ) -> Result<(), StateError> {
        entries::table_info(&self.program, table)?;
        let state = &mut self.tables[table.0];
        entries::delete(&self.program, table, state, matches, priority)
    }

    /// The entries of a table in a fixed order, with their direct counters.
    pub fn entries(&self, table: TableId) -> Vec<(TableEntry, CounterValue)> {
        let (Some(info), Some(state)) =
            (self.program.tables().get(table.0), self.tables.get(table.0))
        else {
            return Vec::new();
        };
        let entries = state.iter();
        let entries = entries.map(|entry| entries::read(&self.program, info, entry));
        entries.collect()
    }

    /// The entry with that key, if there is one.
    pub fn entry(
        &self,
        table: TableId,
        matches: &[MatchValue],
        priority: i32,
    ) -> Result<Option<(TableEntry, CounterValue)>, StateError> {
        entries::table_info(&self.program, table)?;
        let state = &self.tables[table.0];
        entries::find(&self.program, table, state, matches, priority)
    }

    /// Sets the default action. `None` restores the program's own, and resets the direct counter.
    pub fn set_default(
        &mut self,
        table: TableId,
        action: Option<&ActionCall>,
    ) -> Result<(), StateError> {
        entries::table_info(&self.program, table)?;
        entries::set_default(&self.program, table, &mut self.tables[table.0], action)
    }

    /// The default action, and the packets that it was called for; `None` if a miss does nothing.
    pub fn default_action(&self, table: TableId) -> (Option<ActionCall>, CounterValue) {
        let Some(state) = self.tables.get(table.0) else {
            return (None, CounterValue::default());
        };
        let call = state.default.as_ref();
        let call = call.map(|call| entries::read_call(&self.program, call));
        (call, state.rest.default_counter)
    }

    /// Sets the direct counter of an entry.
    pub fn write_direct_counter(
        &mut self,
        table: TableId,
        matches: &[MatchValue],
        priority: i32,
        value: CounterValue,
    ) -> Result<(), StateError> {
        entries::table_info(&self.program, table)?;
        let state = &mut self.tables[table.0];
        entries::write_counter(&self.program, table, state, (matches, priority), value)
    }

    /// Sets the direct counter of the default action.
    pub fn write_default_counter(
        &mut self,
        table: TableId,
        value: CounterValue,
    ) -> Result<(), StateError> {
        entries::counted(&self.program, table)?;
        self.tables[table.0].rest.default_counter = value;
        Ok(())
    }

    /// The cells of an indexed counter.
    pub fn counter(&self, counter: CounterId) -> &[CounterValue] {
        let cells = self.externs.counters.get(counter.0);
        cells.map_or(&[], Vec::as_slice)
    }

    /// Sets a cell of an indexed counter.
    pub fn write_counter(
        &mut self,
        counter: CounterId,
        index: usize,
        value: CounterValue,
    ) -> Result<(), StateError> {
        let cells = self.externs.counters.get_mut(counter.0);
        let missing = || StateError::NotFound(format!("no counter {}", counter.0));
        let cells = cells.ok_or_else(missing)?;
        let size = cells.len();
        let beyond = || StateError::InvalidArgument(format!("the counter has {size} cells"));
        *cells.get_mut(index).ok_or_else(beyond)? = value;
        Ok(())
    }

    /// How the cells of a meter are configured; `None` colours every packet green.
    pub fn meter(&self, meter: MeterId) -> impl ExactSizeIterator<Item = Option<MeterConfig>> + '_ {
        let cells = self.externs.meters.get(meter.0);
        let cells = cells.map_or(&[][..], Vec::as_slice);
        let configs = cells.iter();
        configs.map(|cell| cell.as_ref().map(|cell| cell.config))
    }

    /// Configures a cell of a meter. Its buckets are full then.
    pub fn write_meter(
        &mut self,
        meter: MeterId,
        index: usize,
        config: Option<MeterConfig>,
    ) -> Result<(), StateError> {
        let (now, ticks_per_s) = (self.externs.now, self.externs.ticks_per_s);
        let cells = self.externs.meters.get_mut(meter.0);
        let missing = || StateError::NotFound(format!("no meter {}", meter.0));
        let cells = cells.ok_or_else(missing)?;
        let size = cells.len();
        let beyond = || StateError::InvalidArgument(format!("the meter has {size} cells"));
        *cells.get_mut(index).ok_or_else(beyond)? =
            config.map(|config| Box::new(Meter::new(config, ticks_per_s, now)));
        Ok(())
    }

    /// The value of a register cell, big-endian without leading zeros.
    pub fn register(&self, register: RegisterId, index: usize) -> Result<Vec<u8>, StateError> {
        let size = self.register_info(register)?.size;
        let beyond = || StateError::InvalidArgument(format!("the register has {size} cells"));
        let registers = &self.externs.registers;
        let value = registers.read(&self.program.registers, register, index);
        value.ok_or_else(beyond)
    }

    /// Sets a register cell.
    pub fn write_register(
        &mut self,
        register: RegisterId,
        index: usize,
        value: &[u8],
    ) -> Result<(), StateError> {
        let &RegisterInfo { size, bits, .. } = self.register_info(register)?;
        let refused = || {
            let message = format!("the register has {size} cells of {bits} bits");
            StateError::InvalidArgument(message)
        };
        let registers = &mut self.externs.registers;
        let written = registers.write(&self.program.registers, register, index, value);
        written.ok_or_else(refused)
    }

    fn register_info(&self, register: RegisterId) -> Result<&RegisterInfo, StateError> {
        let info = self.program.registers().get(register.0);
        info.ok_or_else(|| StateError::NotFound(format!("no register {}", register.0)))
    }

    /// Sets the copies to make for multicast group `group` (from 1). An empty list removes the
    /// group.
    pub fn set_multicast_group(
        &mut self,
        group: u16,
        replicas: Vec<Replica>,
    ) -> Result<(), StateError> {
        if group == 0 {
            let message = "multicast group 0 means no multicast: groups start at 1";
            return Err(StateError::InvalidArgument(message.into()));
        }
        if replicas.is_empty() {
            self.multicast_groups.remove(&group);
        } else {
            self.multicast_groups.insert(group, replicas);
        }
        Ok(())
    }

    /// The copies to make for a multicast group.
    pub fn multicast_group(&self, group: u16) -> Option<&[Replica]> {
        self.multicast_groups.get(&group).map(Vec::as_slice)
    }

    /// Sets or (`None`) removes a clone session.
    pub fn set_clone_session(
        &mut self,
        session: u16,
        to: Option<CloneSession>,
    ) -> Result<(), StateError> {
        match to {
            Some(to) => self.clone_sessions.insert(session, to),
            None => self.clone_sessions.remove(&session),
        };
        Ok(())
    }

    /// A clone session.
    pub fn clone_session(&self, session: u16) -> Option<&CloneSession> {
        self.clone_sessions.get(&session)
    }
}
