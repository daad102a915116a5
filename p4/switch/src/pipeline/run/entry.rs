// SPDX-License-Identifier: Apache-2.0

//! An entry of a table as lookups see it.

use super::api::CounterValue;
use crate::pipeline::model::table::{Call, EntryKey};

/// An entry of a table. It fits into one cache line, because hundreds of switches have many
/// entries.
#[derive(Debug, Clone)]
#[repr(C, align(64))]
pub struct Entry {
    pub call: Call,
    pub counter: CounterValue,
    pub key: Box<EntryKey>,
}
