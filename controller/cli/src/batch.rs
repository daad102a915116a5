// SPDX-License-Identifier: Apache-2.0

//! `weft run`: a lab that boots, runs flows, and stops.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};
use weft_lab::{BatchOptions, BatchProgress, LabSpec, run_batch};
use weft_load::report;
use weft_load::results::Results;
use weft_text::usage::{EXIT_USAGE, WrongUsage};

use crate::notices;
use crate::progress::RunBar;
use crate::shared_args::{BatchLabArgs, FlowArgs};
use crate::topo::MachineArgs;
use crate::{Failure, Outcome, display, outdir, switch_args};

/// Flows to run in a lab of their own.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    flows: FlowArgs,

    #[command(flatten)]
    lab: BatchLabArgs,

    #[command(flatten)]
    machine: MachineArgs,

    /// Check these flags and stop; boot nothing
    #[arg(long)]
    check: bool,

    /// Write what the run cost this machine to FILE, as JSON: cpu_s, memory_bytes. It is not
    /// part of the results, which are the same every time
    #[arg(long, value_name = "FILE")]
    usage: Option<PathBuf>,
}

/// Name of the results' folder inside.
pub const RESULTS: &str = "results";

/// Name of the captures' folder, inside and in the results.
const CAPTURE: &str = "capture";

/// Runs flows, shows progress, then the table.
pub async fn run(args: Args) -> Outcome {
    args.flows.workload.traffic().map_err(Failure::Usage)?;
    args.lab.check()?;
    let workload = args.flows.workload.clone();
    let workload = workload.absolute(&std::env::current_dir()?);
    // What the command line says wrong comes before what the machine lacks.
    let out = match args.check {
        true => None,
        false => Some(args.flows.out()?),
    };
    let scheduler = &args.flows.kernel.scheduler;
    let spec = args.lab.spec(&workload, scheduler, RESULTS)?;
    let Some(out) = out else {
        return Ok(());
    };
    display::out(switch_args::notice(&spec).unwrap_or_default())?;
    display::out(notices::of_classes(&spec, &workload, scheduler).unwrap_or_default())?;
    display::out(notices::of_load(spec.topology.as_ref(), &workload).unwrap_or_default())?;
    let done = execute(
        &spec,
        out.path(),
        &args.machine,
        RunBar::new(&args.flows.name()),
    )
    .await?;
    display::out(format!(
        "{}{}\nresults: {}\n",
        report::run_table(&done.results),
        display::time(spec.clock, done.virtual_ns, done.wall),
        out.path().display()
    ))?;
    if let Some(file) = &args.usage {
        write_usage(file)?;
    }
    done.check()
}

/// Processor time of all processes of the lab, and the memory of the largest: the
/// guest, which has all hosts and switches in it.
fn write_usage(file: &Path) -> Result<()> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let seconds = |time: TimeVal| time.num_microseconds() as f64 / 1e6;
    let cost = serde_json::json!({
        "cpu_s": seconds(usage.user_time()) + seconds(usage.system_time()),
        // The kernel counts in units of 1024 bytes.
        "memory_bytes": usage.max_rss() * 1024,
    });
    fs::write(file, format!("{cost}\n")).with_context(|| file.display().to_string())
}

/// A run that gave results.
#[derive(Debug)]
pub struct Done {
    /// What came out.
    pub results: Results,
    /// Virtual time from boot to power off.
    pub virtual_ns: u64,
    /// Real time of the whole run.
    pub wall: Duration,
}

impl Done {
    /// Flows that failed make the run one that failed.
    pub fn check(&self) -> Outcome {
        match self.results.info.outcome.failed {
            0 => Ok(()),
            failed => Err(Failure::Error(anyhow::anyhow!(
                "{failed} of {} flows failed; see the column `error` of flows.csv",
                self.results.flows.len()
            ))),
        }
    }
}

/// Runs `spec` and puts its results into the folder `out`, which nobody else has. What
/// else the lab wrote is kept only when there are none.
pub async fn execute(
    spec: &LabSpec,
    out: &Path,
    machine: &MachineArgs,
    mut bar: RunBar,
) -> Result<Done> {
    let work = outdir::work_of(out);
    let options = BatchOptions {
        cpu: machine.cpu,
        memory_bytes: machine.memory.bytes,
        ..BatchOptions::new(&work)
    };
    let outcome = run_batch(spec, &options, |news| match news {
        BatchProgress::Step(step) => bar.step(step),
        BatchProgress::Running { report, .. } => {
            if let Some(report) = report {
                bar.report(report);
            }
        }
    })
    .await;
    bar.clear();
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(error) => {
            // An interrupted run leaves nothing; a failed one, its logs.
            if matches!(error, weft_lab::Error::Interrupted) {
                let _ = fs::remove_dir_all(&work);
            }
            return Err(error.into());
        }
    };
    let inside = work.join(RESULTS);
    if !inside.exists() {
        let said = last_line(&work)
            .unwrap_or_else(|| format!("weft-load ended with status {}", outcome.exit_code));
        if outcome.exit_code == i32::from(EXIT_USAGE) {
            fs::remove_dir_all(&work).with_context(|| work.display().to_string())?;
            bail!(WrongUsage(said));
        }
        bail!("{said}\n  logs: {}", work.join("log").display());
    }
    let captured = work.join(CAPTURE);
    if captured.exists() {
        outdir::move_folder(&captured, &inside.join(CAPTURE))?;
    }
    outdir::move_folder(&inside, out)?;
    fs::remove_dir_all(&work).with_context(|| work.display().to_string())?;
    Ok(Done {
        results: Results::read(out)?,
        virtual_ns: outcome.virtual_ns,
        wall: outcome.wall,
    })
}

/// The last line that the generator printed.
fn last_line(work: &Path) -> Option<String> {
    let log = fs::read_to_string(work.join("log/batch.log")).ok()?;
    let line = log.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(line.trim().to_owned())
}
