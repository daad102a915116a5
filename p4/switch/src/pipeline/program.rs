//! A loaded program: immutable, shared by all switches that run it.

use super::{
    ActionId, ActionInfo, CounterId, CounterInfo, DigestInfo, LoadError, RegisterId, RegisterInfo,
    TableId, TableInfo,
};

/// A BMv2 JSON program, compiled.
#[derive(Debug)]
pub struct Program {}

impl Program {
    /// Compiles the JSON that `p4c-bm2-ss` wrote.
    ///
    /// Everything the program uses is resolved here; a construct that is not implemented is an
    /// error that names it, never skipped.
    pub fn load(json: &[u8]) -> Result<Program, LoadError> {
        let _: serde_json::Value = serde_json::from_slice(json)?;
        Ok(Program {})
    }

    /// The tables, those that p4c made up for plain statements (`tbl_...`) included.
    pub fn tables(&self) -> &[TableInfo] {
        &[]
    }

    /// The actions. P4 lets several tables have an action of the same name (`NoAction`).
    pub fn actions(&self) -> &[ActionInfo] {
        &[]
    }

    /// The indexed counters.
    pub fn counters(&self) -> &[CounterInfo] {
        &[]
    }

    /// The register arrays.
    pub fn registers(&self) -> &[RegisterInfo] {
        &[]
    }

    /// The digests.
    pub fn digests(&self) -> &[DigestInfo] {
        &[]
    }

    /// The table of that fully qualified name.
    pub fn table_id(&self, name: &str) -> Option<TableId> {
        self.tables()
            .iter()
            .position(|table| table.name == name)
            .map(TableId)
    }

    /// The action of that fully qualified name among those `table` may call.
    pub fn action_id(&self, table: TableId, name: &str) -> Option<ActionId> {
        let table = self.tables().get(table.0)?;
        let mut actions = table.actions.iter().copied();
        actions.find(|id| self.actions()[id.0].name == name)
    }

    /// The indexed counter of that fully qualified name.
    pub fn counter_id(&self, name: &str) -> Option<CounterId> {
        self.counters()
            .iter()
            .position(|counter| counter.name == name)
            .map(CounterId)
    }

    /// The table whose direct counter has that fully qualified name.
    pub fn direct_counter_table(&self, _name: &str) -> Option<TableId> {
        None
    }

    /// The register array of that fully qualified name.
    pub fn register_id(&self, name: &str) -> Option<RegisterId> {
        self.registers()
            .iter()
            .position(|register| register.name == name)
            .map(RegisterId)
    }
}
