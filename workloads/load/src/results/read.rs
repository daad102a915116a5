// SPDX-License-Identifier: Apache-2.0

//! A run's folder, read again.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::{FORMAT, FlowRow, RunInfo};

/// The contents of a run's folder.
#[derive(Debug, Clone)]
pub struct Results {
    /// `run.json`.
    pub info: RunInfo,
    /// `flows.csv`.
    pub flows: Vec<FlowRow>,
    /// The switches' counters; `None` if there are none.
    pub switches: Option<SwitchTotals>,
}

/// Packets that switches dropped or lost, in total.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SwitchTotals {
    /// Dropped at a full queue.
    pub dropped_packets: u64,
    /// Lost on a link: at random, or because the link was down.
    pub lost_packets: u64,
}

impl Results {
    /// The flows that count: those that arrived after the warm-up.
    pub fn measured(&self) -> impl Iterator<Item = &FlowRow> {
        let from_ns = self.info.workload.more.warmup_ns.unwrap_or(0);
        self.flows
            .iter()
            .filter(move |flow| flow.start_ns >= from_ns)
    }

    /// Reads the folder at `path`.
    ///
    /// # Errors
    /// If something is missing or malformed.
    pub fn read(path: &Path) -> Result<Self> {
        let file = path.join("run.json");
        let json = fs::read_to_string(&file)
            .with_context(|| format!("{}: not the folder of a run", path.display()))?;
        let info: RunInfo =
            serde_json::from_str(&json).with_context(|| file.display().to_string())?;
        if info.format != FORMAT {
            bail!(
                "{}: form {}, this program reads {FORMAT}",
                file.display(),
                info.format
            );
        }
        let file = path.join("flows.csv");
        let flows = csv::Reader::from_path(&file)
            .and_then(|mut table| table.deserialize().collect())
            .with_context(|| file.display().to_string())?;
        let file = path.join("queues.csv");
        let switches = if file.exists() {
            Some(sum_totals(&file).with_context(|| file.display().to_string())?)
        } else {
            None
        };
        Ok(Self {
            info,
            flows,
            switches,
        })
    }
}

/// Sums the last counters of every port.
fn sum_totals(path: &Path) -> Result<SwitchTotals> {
    #[derive(Deserialize)]
    struct Row {
        switch: String,
        port: u16,
        dropped_packets: u64,
        /// Runs of older versions don't have this column.
        #[serde(default)]
        lost_packets: u64,
    }
    let mut last = BTreeMap::new();
    for row in csv::Reader::from_path(path)?.deserialize() {
        let row: Row = row?;
        last.insert(
            (row.switch, row.port),
            (row.dropped_packets, row.lost_packets),
        );
    }
    let totals = last.values();
    Ok(
        totals.fold(SwitchTotals::default(), |sum, (dropped, lost)| {
            SwitchTotals {
                dropped_packets: sum.dropped_packets + dropped,
                lost_packets: sum.lost_packets + lost,
            }
        }),
    )
}
