// SPDX-License-Identifier: Apache-2.0

//! The parts of a program that its control plane can see.

/// A table, by its place in [`Program::tables`](crate::pipeline::Program::tables).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub usize);

/// An action, by its place in [`Program::actions`](crate::pipeline::Program::actions).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActionId(pub usize);

/// An indexed meter, by its place in [`Program::meters`](crate::pipeline::Program::meters).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MeterId(pub usize);

/// An indexed counter, by its place in [`Program::counters`](crate::pipeline::Program::counters).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CounterId(pub usize);

/// A register array, by its place in [`Program::registers`](crate::pipeline::Program::registers).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegisterId(pub usize);

/// How a key field is matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchKind {
    /// The exact value.
    Exact,
    /// The longest prefix.
    Lpm,
    /// The value under a mask. Priorities decide between entries. P4Info's `OPTIONAL` fields are
    /// ternary in BMv2 JSON.
    Ternary,
    /// A value between two bounds, inclusive. Priorities decide between entries.
    Range,
}

/// One field of a table's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyInfo {
    /// The name P4Info gives it.
    pub name: String,
    /// How it is matched.
    pub kind: MatchKind,
    /// Its width in bits.
    pub bits: u32,
}

/// A table of the program, its key in P4Info's order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableInfo {
    /// Fully qualified name (`routing.ipv4_lpm`).
    pub name: String,
    /// Key fields; match field id N of P4Info is at N - 1.
    pub key: Vec<KeyInfo>,
    /// The actions that an entry or the default may call.
    pub actions: Vec<ActionId>,
    /// Maximum number of entries.
    pub max_size: usize,
    /// Whether it has a direct counter.
    pub counted: bool,
    /// Whether its entries are `const`, so that the control plane cannot insert, modify or delete
    /// them.
    pub const_entries: bool,
    /// Whether its default action is `const`.
    pub const_default: bool,
    /// Whether entries carry a priority (a ternary or range key field).
    pub prioritised: bool,
}

/// A named bit field: an action parameter or a digest member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldInfo {
    /// Its name.
    pub name: String,
    /// Its width in bits.
    pub bits: u32,
}

/// An action of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionInfo {
    /// Fully qualified name (`routing.to_host`).
    pub name: String,
    /// Parameters; parameter id N of P4Info is at N - 1.
    pub params: Vec<FieldInfo>,
}

/// A digest (learn list) of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DigestInfo {
    /// The name of the struct it carries (`rtt_sample_t`), which is its P4Info name.
    pub name: String,
    /// Its members in order, by the names of the fields that they are filled from, as in BMv2 JSON.
    pub fields: Vec<FieldInfo>,
}

/// An indexed counter of the program (direct counters belong to their table).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterInfo {
    /// Fully qualified name.
    pub name: String,
    /// Number of cells.
    pub size: usize,
}

/// What a meter counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeterUnit {
    /// Bytes of frames.
    Bytes,
    /// Packets.
    Packets,
}

/// An indexed meter of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeterInfo {
    /// Fully qualified name.
    pub name: String,
    /// Number of cells.
    pub size: usize,
    /// What it counts.
    pub unit: MeterUnit,
}

/// A register array of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisterInfo {
    /// Fully qualified name.
    pub name: String,
    /// Number of cells.
    pub size: usize,
    /// The width of a cell in bits.
    pub bits: u32,
}
