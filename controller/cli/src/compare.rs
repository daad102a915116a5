// SPDX-License-Identifier: Apache-2.0

//! `weft compare`: the same flows under several schedulers, one run each, as
//! many at a time as there are CPUs.

use std::cell::Cell;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context, Result, anyhow, bail};
use futures::{StreamExt, stream};
use indicatif::MultiProgress;
use weft_lab::LabSpec;
use weft_load::args::{SCHEDULERS, WorkloadArgs, parse_scheduler};
use weft_load::report;
use weft_load::results::Results;
use weft_text::usage::plain;

use crate::batch::{Done, RESULTS, execute};
use crate::notices;
use crate::progress::RunBar;
use crate::shared_args::BatchLabArgs;
use crate::topo::{MachineArgs, MemoryArgs};
use crate::{Failure, Outcome, display, is_interrupt, outdir, switch_args};

/// Flows to run several times.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// MPTCP schedulers to compare
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "default,minrtt,roundrobin,rb",
        value_parser = parse_scheduler,
        help = format!("MPTCP schedulers to compare, of {SCHEDULERS}. default is the kernel's own")
    )]
    schedulers: Vec<String>,

    /// Maximum number of runs at the same time [default: the number of CPUs]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,

    #[command(flatten)]
    workload: WorkloadArgs,

    /// Folder for the results, with one folder per scheduler and compare.csv;
    /// must not exist [default: runs/compare-NAME, numbered]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    #[command(flatten)]
    lab: BatchLabArgs,

    #[command(flatten)]
    memory: MemoryArgs,
}

/// One run to do.
struct Job {
    scheduler: String,
    spec: LabSpec,
    out: PathBuf,
}

/// Runs them all and shows them side by side.
pub async fn run(args: Args) -> Outcome {
    args.workload.traffic().map_err(Failure::Usage)?;
    args.lab.check()?;
    check_distinct(&args.schedulers).map_err(Failure::Usage)?;
    let name = format!(
        "compare-{}-seed{}",
        args.workload.short_name(),
        args.workload.seed
    );
    let place = outdir::choose(args.out, &name)?;
    let out = place.path();
    let workload = args.workload.absolute(&std::env::current_dir()?);
    let mut jobs = Vec::new();
    for scheduler in &args.schedulers {
        jobs.push(Job {
            scheduler: scheduler.clone(),
            spec: args.lab.spec(&workload, scheduler, RESULTS)?,
            out: out.join(scheduler),
        });
    }
    if let Some(job) = jobs.first() {
        display::out(switch_args::notice(&job.spec).unwrap_or_default())?;
        display::out(notices::of_load(job.spec.topology.as_ref(), &workload).unwrap_or_default())?;
    }
    for job in &jobs {
        let notice = notices::of_classes(&job.spec, &workload, &job.scheduler);
        display::out(notice.unwrap_or_default())?;
    }
    let at_once = args.jobs.map_or_else(cpus, usize::from);
    let machine = MachineArgs {
        cpu: None,
        memory: args.memory,
    };
    let all = run_all(jobs, at_once, &machine).await;
    if all.iter().any(was_interrupted) {
        return Err(weft_lab::Error::Interrupted.into());
    }
    let mut runs = Vec::new();
    for (scheduler, done) in args.schedulers.iter().zip(all) {
        match done {
            Ok(done) => runs.push((scheduler.clone(), done.results)),
            Err(error) => eprintln!("weft: {scheduler}: {}", plain(error)),
        }
    }
    if !runs.is_empty() {
        write_table(&runs, out)?;
    }
    let missing = args.schedulers.len() - runs.len();
    if missing > 0 {
        return Err(anyhow!(
            "{missing} of {} runs gave no results",
            args.schedulers.len()
        )
        .into());
    }
    let lost: usize = runs.iter().map(|(_, run)| run.info.outcome.failed).sum();
    if lost > 0 {
        return Err(anyhow!("{lost} flows failed; see the column `error` of flows.csv").into());
    }
    Ok(())
}

fn write_table(runs: &[(String, Results)], out: &Path) -> Result<(), Failure> {
    check_same_flows(runs)?;
    let path = out.join("compare.csv");
    let file = File::create(&path).with_context(|| path.display().to_string())?;
    report::comparison_csv(runs, file)?;
    display::out(format!(
        "{}results: {}\n",
        report::comparison_table(runs),
        out.display()
    ))
}

/// Does all jobs, `at_once` at a time; what came out stands in their order.
/// After an interrupt no further one starts.
async fn run_all(jobs: Vec<Job>, at_once: usize, machine: &MachineArgs) -> Vec<Result<Done>> {
    let lines = MultiProgress::new();
    let interrupted = Cell::new(false);
    let (lines, interrupted) = (&lines, &interrupted);
    let runs = jobs.into_iter().map(|job| async move {
        if interrupted.get() {
            bail!("not started");
        }
        let bar = RunBar::among(lines, &job.scheduler);
        let done = execute(&job.spec, &job.out, machine, bar).await;
        interrupted.set(interrupted.get() || was_interrupted(&done));
        done
    });
    stream::iter(runs).buffered(at_once).collect().await
}

fn was_interrupted(outcome: &Result<Done>) -> bool {
    outcome.as_ref().is_err_and(is_interrupt)
}

fn cpus() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

fn check_distinct(schedulers: &[String]) -> Result<(), String> {
    for (i, scheduler) in schedulers.iter().enumerate() {
        if schedulers[..i].contains(scheduler) {
            return Err(format!(
                "--schedulers names {scheduler} twice; once is enough, runs are deterministic"
            ));
        }
    }
    Ok(())
}

/// A comparison of different flows would be none.
fn check_same_flows(runs: &[(String, Results)]) -> Result<()> {
    let flows = |results: &Results| -> Vec<_> {
        // What is stopped or fetched is as long, and starts, as it could.
        let workload = &results.info.workload;
        let stopped = workload.duration_ns.is_some();
        let fetched = workload.parallel.is_some();
        let key = |row: &weft_load::results::FlowRow| {
            let bytes = if stopped { 0 } else { row.bytes };
            let start_ns = if fetched { 0 } else { row.start_ns };
            (row.src.clone(), row.dst.clone(), bytes, start_ns)
        };
        results.flows.iter().map(key).collect()
    };
    let Some(((first, results), others)) = runs.split_first() else {
        return Ok(());
    };
    let expected = flows(results);
    for (name, results) in others {
        if flows(results) != expected {
            bail!("{first} and {name} ran different flows; this is a mistake in Weft");
        }
    }
    Ok(())
}
