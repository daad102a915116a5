//! An entry of a table as packets meet it.

use super::api::CounterValue;
use crate::pipeline::model::table::{Call, EntryKey};

/// An entry of a table: a line of the cache, of which hundreds of switches have many.
#[derive(Debug, Clone)]
#[repr(C, align(64))]
pub struct Entry {
    pub call: Call,
    pub counter: CounterValue,
    pub key: Box<EntryKey>,
}
