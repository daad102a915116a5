// SPDX-License-Identifier: Apache-2.0

//! The names of the objects that primitives may use.

use super::error::{LoadError, unsupported};
use super::expr::Names;
use super::json;
use crate::pipeline::model::info::{CounterInfo, MeterInfo, MeterUnit};

/// Maximum number of cells of a counter, meter or register array.
const MAX_ARRAY_SIZE: usize = 1 << 26;

/// Maximum width of register cells and action parameters, in bits.
pub const MAX_BITS: u32 = 1 << 14;

/// The names of the objects that primitives may use, in the order of the compiled objects.
#[derive(Debug, Default)]
pub struct Objects {
    pub calculations: Vec<String>,
    /// Indexed counters only.
    pub counters: Vec<String>,
    pub meters: Vec<String>,
    pub registers: Vec<String>,
    pub register_bits: Vec<u32>,
    /// Ids of digests.
    pub digests: Vec<u64>,
    /// Ids of field lists.
    pub field_lists: Vec<u64>,
}

impl Objects {
    /// The index of `name` in one of the lists.
    pub fn find(&self, list: &[String], name: &str, names: &Names) -> Result<usize, LoadError> {
        match list.iter().position(|known| known == name) {
            Some(index) => Ok(index),
            None => names.malformed(format!("{name} is not defined")),
        }
    }
}

pub fn name_objects(document: &json::Document) -> Result<Objects, LoadError> {
    for register in &document.register_arrays {
        let place = || format!("register {}", register.name);
        if register.size > MAX_ARRAY_SIZE {
            return Err(unsupported(place(), format!("{} cells", register.size)));
        }
        if !(1..=MAX_BITS).contains(&register.bitwidth) {
            return Err(unsupported(place(), format!("{} bits", register.bitwidth)));
        }
    }
    for counter in document
        .counter_arrays
        .iter()
        .filter(|array| !array.is_direct)
    {
        let size = counter.size.unwrap_or(0);
        if size > MAX_ARRAY_SIZE {
            let place = format!("counter {}", counter.name);
            return Err(unsupported(place, format!("{size} cells")));
        }
    }
    let registers = &document.register_arrays;
    let counters = describe_counters(document).into_iter();
    let meters = describe_meters(document)?.into_iter();
    Ok(Objects {
        calculations: document
            .calculations
            .iter()
            .map(|c| c.name.clone())
            .collect(),
        counters: counters.map(|counter| counter.name).collect(),
        meters: meters.map(|meter| meter.name).collect(),
        registers: registers.iter().map(|r| r.name.clone()).collect(),
        register_bits: registers.iter().map(|r| r.bitwidth).collect(),
        digests: document.learn_lists.iter().map(|list| list.id).collect(),
        field_lists: document.field_lists.iter().map(|list| list.id).collect(),
    })
}

pub fn describe_counters(document: &json::Document) -> Vec<CounterInfo> {
    let arrays = document
        .counter_arrays
        .iter()
        .filter(|array| !array.is_direct);
    let infos = arrays.map(|array| CounterInfo {
        name: array.name.clone(),
        size: array.size.unwrap_or(0),
    });
    infos.collect()
}

/// The meters, or why one of them cannot be run.
pub fn describe_meters(document: &json::Document) -> Result<Vec<MeterInfo>, LoadError> {
    let describe = |array: &json::MeterArray| {
        let refused = |what: String| unsupported(format!("meter {}", array.name), what);
        if array.is_direct {
            return Err(refused("a direct meter".to_owned()));
        }
        if array.rate_count != 2 {
            return Err(refused(format!("{} rates", array.rate_count)));
        }
        let size = array.size.unwrap_or(0);
        if size > MAX_ARRAY_SIZE {
            return Err(refused(format!("{size} cells")));
        }
        let unit = match array.unit.as_str() {
            "bytes" => MeterUnit::Bytes,
            "packets" => MeterUnit::Packets,
            other => return Err(refused(format!("type {other}"))),
        };
        Ok(MeterInfo {
            name: array.name.clone(),
            size,
            unit,
        })
    };
    document.meter_arrays.iter().map(describe).collect()
}
