// SPDX-License-Identifier: Apache-2.0

//! `weft experiment`: many runs, planned by a scenario file; and their report.
//!
//! What runs them is the Python package `weft_scenarios`; this process becomes it,
//! so that signals and the exit code are its own.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use crate::{Failure, Outcome, installation};

/// An experiment to run, or to go on with.
#[derive(Debug, clap::Args, serde::Serialize)]
pub struct Args {
    /// Scenario file; workloads/README.md explains how to write one
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Print what would run and how long it would take; run nothing
    #[arg(long)]
    plan: bool,

    /// Run the small subset that the file declares as quick
    #[arg(long)]
    quick: bool,

    /// Run at the scale that the file declares as full
    #[arg(long, conflicts_with = "quick")]
    full: bool,

    /// Maximum number of labs at the same time [default: the number of CPUs]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,

    /// Minimum number of seeds for every point [default: as the file says]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    seeds: Option<u32>,

    /// Folder of the results [default: runs/scenarios/NAME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Folder of finished runs, which are not run again. Experiments share it [default:
    /// runs/scenarios/runs]
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,

    /// Address of a Dask scheduler whose workers run the labs, such as tcp://10.0.0.1:8786
    /// [default: this machine runs them]
    #[arg(long, value_name = "ADDRESS", conflicts_with = "jobs")]
    cluster: Option<String>,
}

/// Becomes the program that does it.
pub fn run(args: &Args) -> Outcome {
    let document = serde_json::to_string(args).context("the options as JSON")?;
    become_python(
        &installation::root()?,
        &["experiment".into(), document.into()],
    )
}

/// Whether a folder has the results of an experiment, and not those of a run.
pub fn has_results(folder: &Path) -> bool {
    folder.join("scenario.toml").exists()
}

/// Becomes the program that writes the page of an experiment.
pub fn report(folder: &Path) -> Outcome {
    become_python(&installation::root()?, &["report".into(), folder.into()])
}

/// Replaces this process by `weft_scenarios`; returns only when that fails.
fn become_python(root: &Path, arguments: &[std::ffi::OsString]) -> Outcome {
    let python = root.join(".venv/bin/python");
    if !python.exists() {
        let missing = anyhow::anyhow!("{} is missing; run `make deps`", python.display());
        return Err(Failure::Error(missing));
    }
    let error = Command::new(&python)
        .args(["-m", "weft_scenarios"])
        .args(arguments)
        .exec();
    Err(error).with_context(|| python.display().to_string())?
}
