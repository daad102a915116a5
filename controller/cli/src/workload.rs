// SPDX-License-Identifier: Apache-2.0

//! `weft workload`: flows in the lab that is running.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use weft_lab::guest::OWN_FOLDERS;
use weft_lab::{ClockMode, ExecRequest, Lab, LabSpec};
use weft_load::args::WorkloadArgs;
use weft_load::report;
use weft_load::results::Results;

use crate::client::running_lab;
use crate::generator::load_argv;
use crate::progress::RunBar;
use crate::shared_args::FlowArgs;
use crate::topo::{LabName, ended_with};
use crate::{Failure, Outcome, display, outdir};

/// Flows to run in a lab.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    flows: FlowArgs,

    #[command(flatten)]
    lab: LabName,
}

/// How often progress is looked at.
const REFRESH: Duration = Duration::from_millis(250);

/// Runs flows, shows progress, then the table.
pub async fn run(args: Args) -> Outcome {
    args.flows.workload.traffic().map_err(Failure::Usage)?;
    let name = args.flows.name();
    let out = args.flows.out()?;
    let workload = args.flows.workload;
    let workload = workload.absolute(&std::env::current_dir()?);

    let lab = running_lab(&args.lab.name)?;
    let status = lab.status().await?;
    check_visible(&workload, &status.spec)?;
    if status.clock == ClockMode::Paused {
        eprintln!(
            "weft: the clock of lab {name} stands still; flows start when `target/release/weft-lab \
             clock --name {name} free` lets it go on",
            name = status.name
        );
    }
    let paths = status.spec.paths;
    let results = format!("results-{}", std::process::id());
    let argv = load_argv(&paths, workload, &args.flows.kernel.scheduler, &results);
    let status = exec_with_progress(&lab, argv, &name).await?;
    let inside = lab.rundir().join(&results);
    if inside.exists() {
        let out = out.path();
        outdir::move_folder(&inside, out)?;
        let table = report::run_table(&Results::read(out)?);
        display::out(format!("{table}results: {}\n", out.display()))?;
    }
    ended_with(status)
}

/// Whether a lab that has booted can read what the workload is in.
fn check_visible(workload: &WorkloadArgs, lab: &LabSpec) -> Result<(), Failure> {
    let files = workload.files();
    let hidden = |file: &&PathBuf| {
        lab.clock != ClockMode::Native && OWN_FOLDERS.iter().any(|own| file.starts_with(own))
    };
    match files.iter().find(hidden) {
        Some(file) => Err(Failure::Usage(format!(
            "{}: the lab has folders {} of its own; put the file into another",
            file.display(),
            OWN_FOLDERS.join(", ")
        ))),
        None => Ok(()),
    }
}

async fn exec_with_progress(lab: &Lab, argv: Vec<String>, name: &str) -> anyhow::Result<i32> {
    let file = lab.rundir().join("progress.json");
    // What an earlier workload left there is no progress of this one.
    let _ = std::fs::remove_file(&file);
    let mut bar = RunBar::new(name);
    bar.say("opening connections");
    let request = ExecRequest {
        argv,
        ..ExecRequest::default()
    };
    let command = lab.exec_without_input(request);
    tokio::pin!(command);
    let mut refresh = tokio::time::interval(REFRESH);
    loop {
        tokio::select! {
            status = &mut command => return Ok(status?),
            _ = refresh.tick() => {
                if let Some(report) = read_progress(&file) {
                    bar.report(&report);
                }
            }
        }
    }
}

fn read_progress(file: &Path) -> Option<Value> {
    serde_json::from_str(&std::fs::read_to_string(file).ok()?).ok()
}
