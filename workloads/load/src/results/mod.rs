// SPDX-License-Identifier: Apache-2.0

//! A run's folder. It is written completely or not at all; reports and plots read it.
//!
//! | file           | what                                                      |
//! |----------------|-----------------------------------------------------------|
//! | `run.json`     | every parameter, the seed, versions; see [`RunInfo`]      |
//! | `flows.csv`    | a row per flow; see [`FlowRow`]                           |
//! | `subflows.csv` | a row per subflow of each flow; see [`SubflowRow`]         |
//! | `samples.csv`  | the same during flows, if requested; see [`SampleRow`]    |
//! | `background.csv` | what TCP flows in the background delivered, if there were any; see [`BackgroundRow`] |
//! | `queues.csv`   | queue of every switch port, every ms in which it changed  |
//! | `patterns.csv` | every allocation pattern that was in force                |
//! | `loop.csv`     | when each pattern reached each kernel; see `weft-controller` |
//! | `capture/`     | packets, if captured; see `weft-evidence`                 |
//!
//! Times count from the start of the run. Nothing depends on the time of day or on paths, so
//! equal runs give equal bytes.

mod info;
mod read;
mod rows;
pub mod window;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;

pub use info::{LinkSummary, More, RunInfo, RunOutcome, TopologySummary, Workload};
pub use read::{Results, SwitchTotals};
pub use rows::{BackgroundRow, FlowRow, SampleRow, SubflowRow};
use window::Window;

/// Version of the folder's format.
pub const FORMAT: u32 = 1;

/// The tables of a run.
#[derive(Debug, Clone, Copy)]
pub struct Tables<'a> {
    /// `flows.csv`.
    pub flows: &'a [FlowRow],
    /// `subflows.csv`.
    pub subflows: &'a [SubflowRow],
    /// `samples.csv`, if requested.
    pub samples: Option<&'a [SampleRow]>,
    /// `background.csv`; no file if there is no row.
    pub background: &'a [BackgroundRow],
}

/// Writes the folder `out`, which must not exist, completely or not at all. Copies telemetry from
/// `stats`, if there is any.
///
/// # Errors
/// If a file cannot be read or written.
pub fn write(
    out: &Path,
    info: &RunInfo,
    tables: Tables<'_>,
    stats: &Path,
    window: Window,
) -> Result<()> {
    let partial = partial_path(out);
    if partial.exists() {
        fs::remove_dir_all(&partial).with_context(|| partial.display().to_string())?;
    }
    fs::create_dir_all(&partial).with_context(|| partial.display().to_string())?;
    let written = write_files(&partial, info, tables, stats, window)
        .and_then(|()| fs::rename(&partial, out).with_context(|| out.display().to_string()));
    if written.is_err() {
        let _ = fs::remove_dir_all(&partial);
    }
    written
}

fn write_files(
    folder: &Path,
    info: &RunInfo,
    tables: Tables<'_>,
    stats: &Path,
    window: Window,
) -> Result<()> {
    write_rows(&folder.join("flows.csv"), tables.flows)?;
    write_rows(&folder.join("subflows.csv"), tables.subflows)?;
    if let Some(samples) = tables.samples {
        write_rows(&folder.join("samples.csv"), samples)?;
    }
    if !tables.background.is_empty() {
        write_rows(&folder.join("background.csv"), tables.background)?;
    }
    let (from, to) = (|name| stats.join(name), |name| folder.join(name));
    window.copy_queues(&from("queues.csv"), &to("queues.csv"))?;
    window.copy_patterns(&from("patterns.csv"), &to("patterns.csv"))?;
    window.copy_loops(&from("loop.csv"), &to("loop.csv"))?;
    let mut json = serde_json::to_string_pretty(info)?;
    json.push('\n');
    fs::write(folder.join("run.json"), json)?;
    Ok(())
}

fn write_rows<Row: Serialize>(path: &Path, rows: &[Row]) -> Result<()> {
    let mut table = csv::Writer::from_path(path).with_context(|| path.display().to_string())?;
    for row in rows {
        table.serialize(row)?;
    }
    table.flush()?;
    Ok(())
}

/// The temporary folder, next to the final one.
fn partial_path(out: &Path) -> PathBuf {
    let mut name = out.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    out.with_file_name(name)
}

#[cfg(test)]
pub(crate) mod tests;
