// SPDX-License-Identifier: Apache-2.0

//! A loaded program: immutable, shared by all switches that run it.

use std::collections::BTreeMap;

use super::action::Action;
use super::control::Control;
use super::expr::Expr;
use super::hash::{Calculation, Checksum};
use super::info::{
    ActionId, ActionInfo, CounterId, CounterInfo, DigestInfo, MeterId, MeterInfo, RegisterId,
    RegisterInfo, TableId, TableInfo,
};
use super::intrinsics::Intrinsics;
use super::layout::Layout;
use super::parser::Parser;
use super::registers::RegisterPlan;
use super::slot::Slot;
use super::table::TablePlan;

/// A BMv2 JSON program, compiled.
#[derive(Debug)]
pub struct Program {
    pub(in crate::pipeline) layout: Layout,
    pub(in crate::pipeline) intrinsics: Intrinsics,
    pub(in crate::pipeline) parser: Parser,
    pub(in crate::pipeline) registers: RegisterPlan,
    pub(in crate::pipeline) actions: Vec<Action>,
    pub(in crate::pipeline) table_plans: Vec<TablePlan>,
    pub(in crate::pipeline) ingress: Control,
    pub(in crate::pipeline) egress: Control,
    /// The tables that packets are looked up in.
    pub(in crate::pipeline) applied_tables: Box<[usize]>,
    pub(in crate::pipeline) calculations: Vec<Calculation>,
    pub(in crate::pipeline) checksums: Vec<Checksum>,
    /// The headers that the deparser emits, in order.
    pub(in crate::pipeline) emitted: Vec<usize>,
    /// The fields that cloned, resubmitted and recirculated packets keep.
    pub(in crate::pipeline) field_lists: Vec<Box<[Slot]>>,
    /// The members of each digest: value and width.
    pub(in crate::pipeline) digest_elements: Vec<Box<[(Expr, u32)]>>,
    pub(in crate::pipeline) table_infos: Vec<TableInfo>,
    pub(in crate::pipeline) action_infos: Vec<ActionInfo>,
    pub(in crate::pipeline) counter_infos: Vec<CounterInfo>,
    pub(in crate::pipeline) meter_infos: Vec<MeterInfo>,
    pub(in crate::pipeline) direct_counters: BTreeMap<String, TableId>,
    pub(in crate::pipeline) register_infos: Vec<RegisterInfo>,
    pub(in crate::pipeline) digest_infos: Vec<DigestInfo>,
}

impl Program {
    /// The tables, including those that p4c generates for plain statements (`tbl_...`).
    pub fn tables(&self) -> &[TableInfo] {
        &self.table_infos
    }

    /// The actions. P4 lets several tables have an action of the same name (`NoAction`).
    pub fn actions(&self) -> &[ActionInfo] {
        &self.action_infos
    }

    /// The indexed counters.
    pub fn counters(&self) -> &[CounterInfo] {
        &self.counter_infos
    }

    /// The indexed meters.
    pub fn meters(&self) -> &[MeterInfo] {
        &self.meter_infos
    }

    /// The register arrays.
    pub fn registers(&self) -> &[RegisterInfo] {
        &self.register_infos
    }

    /// The digests.
    pub fn digests(&self) -> &[DigestInfo] {
        &self.digest_infos
    }

    /// The table of that fully qualified name.
    pub fn table_id(&self, name: &str) -> Option<TableId> {
        let mut tables = self.table_infos.iter();
        tables.position(|table| table.name == name).map(TableId)
    }

    /// The action of that fully qualified name among those that `table` may call.
    pub fn action_id(&self, table: TableId, name: &str) -> Option<ActionId> {
        let mut actions = self.table_infos.get(table.0)?.actions.iter().copied();
        actions.find(|id| self.action_infos[id.0].name == name)
    }

    /// The indexed counter of that fully qualified name.
    pub fn counter_id(&self, name: &str) -> Option<CounterId> {
        let mut counters = self.counter_infos.iter();
        let found = counters.position(|counter| counter.name == name);
        found.map(CounterId)
    }

    /// The indexed meter of that fully qualified name.
    pub fn meter_id(&self, name: &str) -> Option<MeterId> {
        let mut meters = self.meter_infos.iter();
        meters.position(|meter| meter.name == name).map(MeterId)
    }

    /// The table whose direct counter has that fully qualified name.
    pub fn direct_counter_table(&self, name: &str) -> Option<TableId> {
        self.direct_counters.get(name).copied()
    }

    /// The register array of that fully qualified name.
    pub fn register_id(&self, name: &str) -> Option<RegisterId> {
        let mut registers = self.register_infos.iter();
        let found = registers.position(|register| register.name == name);
        found.map(RegisterId)
    }
}
