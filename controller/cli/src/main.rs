// SPDX-License-Identifier: Apache-2.0

//! `weft`: the command line of the lab, its controller and its workloads.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod batch;
mod capture_args;
mod classes;
mod client;
mod compare;
mod display;
mod evidence;
mod experiment;
mod explain;
mod fabric_args;
mod generator;
mod installation;
mod notices;
mod outdir;
mod progress;
mod query;
mod shared_args;
mod show;
mod switch_args;
mod telemetry;
mod topo;
mod workload;
mod wrong_usage;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use weft_load::report;
use weft_load::results::Results;
use weft_text::usage::{EXIT_INTERRUPTED, EXIT_USAGE, WrongUsage, plain};

/// Data-center MPTCP whose network tells the hosts how to interleave.
///
/// `weft topo up` boots a fabric on one virtual clock and leaves it running;
/// `weft workload`, `weft patterns` and `weft shell` use it. `weft run` and
/// `weft compare` boot a fabric for each run, as fast as the machine can, and
/// the same flags give the same results every time.
#[derive(Debug, Parser)]
#[command(name = "weft", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start, stop and watch a lab that stays up
    #[command(subcommand)]
    Topo(topo::Topo),
    /// Show the allocation pattern of every pair of leaves
    Patterns(query::PatternsArgs),
    /// Explain the pattern between two hosts: samples, path costs, and the rule that applied
    Explain(explain::ExplainArgs),
    /// Show the classes of what connections have left to send: their thresholds and why, and how
    /// much of each a host may send (--priorities)
    Classes(query::QueryArgs),
    /// Show the RTT and queue of every path
    Paths(query::QueryArgs),
    /// Show the switches' samples as they arrive
    Telemetry(query::QueryArgs),
    /// Show the MPTCP connections in the hosts' kernels and their patterns
    Flows(topo::FlowsArgs),
    /// Open a Mininet prompt in the running lab
    Shell(topo::LabName),
    /// Run flows in the running lab
    Workload(workload::Args),
    /// Boot a lab, run flows in it, stop it: the same results every time
    Run(batch::Args),
    /// Run the same flows under several schedulers, side by side
    Compare(compare::Args),
    /// Run the experiment of a scenario file: on all cores, resumed if interrupted, with verdicts
    Experiment(experiment::Args),
    /// Evaluate every packet of runs with --capture: order, delays, bursts, drops
    Evidence(evidence::Args),
    /// Write report.html and the figures of an experiment; or show the table of runs again,
    /// several side by side
    Report {
        /// Folder of an experiment, or folders of runs
        #[arg(required = true, value_name = "DIR")]
        folders: Vec<PathBuf>,
    },
}

/// Why a command did not do what it should.
#[derive(Debug)]
enum Failure {
    /// Wrong usage: one line, status 2.
    Usage(String),
    /// It failed: status 1.
    Error(anyhow::Error),
    /// A command inside the lab failed and said why; its exit status.
    Status(u8),
}

type Outcome = Result<(), Failure>;

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}

fn main() -> ExitCode {
    exit(run(std::env::args_os()))
}

/// Says what went wrong, if anything.
fn exit(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Usage(line)) => {
            eprintln!("weft: {}", plain(line));
            ExitCode::from(EXIT_USAGE)
        }
        // The reader of our output closed the pipe.
        Err(Failure::Error(error)) if display::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(Failure::Error(error)) => {
            eprintln!("weft: {}", plain(&error));
            if is_interrupt(&error) {
                ExitCode::from(EXIT_INTERRUPTED)
            } else if error.is::<WrongUsage>() {
                ExitCode::from(EXIT_USAGE)
            } else {
                ExitCode::FAILURE
            }
        }
        Err(Failure::Status(status)) => ExitCode::from(status),
    }
}

/// Whether the user interrupted it.
fn is_interrupt(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(weft_lab::Error::Interrupted))
}

fn run(arguments: impl Iterator<Item = OsString>) -> Outcome {
    let arguments: Vec<OsString> = arguments.collect();
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => return wrong_usage::refuse(&error, &arguments),
    };
    if let Command::Report { folders } = &cli.command {
        return report(folders);
    }
    if let Command::Evidence(args) = &cli.command {
        return evidence::run(args);
    }
    if let Command::Experiment(args) = &cli.command {
        return experiment::run(args);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        match cli.command {
            Command::Topo(topo) => topo.run().await,
            Command::Patterns(args) if args.history => explain::history(&args.query).await,
            Command::Patterns(args) => query::patterns(&args.query).await,
            Command::Explain(args) => explain::explain(&args).await,
            Command::Classes(args) => classes::classes(&args).await,
            Command::Paths(args) => query::paths(&args).await,
            Command::Telemetry(args) => telemetry::watch(&args).await,
            Command::Flows(args) => topo::flows(&args).await,
            Command::Shell(lab) => topo::shell(&lab).await,
            Command::Workload(args) => workload::run(args).await,
            Command::Run(args) => batch::run(args).await,
            Command::Compare(args) => compare::run(args).await,
            Command::Report { .. } | Command::Evidence(_) | Command::Experiment(_) => Ok(()),
        }
    })
}

fn report(folders: &[PathBuf]) -> Outcome {
    if let [folder] = folders {
        if experiment::has_results(folder) {
            return experiment::report(folder);
        }
    }
    let mut runs = Vec::new();
    for folder in folders {
        let name = folder.file_name().unwrap_or(folder.as_os_str());
        runs.push((name.to_string_lossy().into_owned(), Results::read(folder)?));
    }
    match &runs[..] {
        [(_, results)] => display::out(report::run_table(results)),
        runs => display::out(report::comparison_table(runs)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_command_and_every_flag_has_a_help_text() {
        let weft = Cli::command();
        let all = wrong_usage::commands(&weft, "");
        assert!(all.len() > 15, "{all:?}");
        for (path, command) in all {
            assert!(command.get_about().is_some(), "{path}");
            for flag in command.get_arguments() {
                let text = flag.get_help().map(ToString::to_string);
                let name = flag.get_id();
                assert!(text.is_some_and(|text| !text.is_empty()), "{path} {name}");
            }
            let help = command.clone().render_long_help().to_string();
            assert!(help.contains("--help"), "{path}: {help}");
        }
    }

    #[test]
    fn the_help_of_run_and_compare_names_every_scheduler() {
        let source = include_str!("../../../host/kernel/Kbuild");
        let objects: BTreeSet<_> = source.split_whitespace().collect();
        let kernel = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../host/kernel");
        let names: Vec<_> = weft_load::args::SCHEDULERS.split(", ").collect();
        assert!(names.len() >= 14, "{names:?}");
        for name in &names {
            let is_built = objects.contains(&*format!("{name}.o")) || *name == "default";
            let is_ours = *name == "weft" && kernel.join("weft_sched.c").exists();
            assert!(is_built || is_ours, "{name}");
        }
        for (command, flag) in [("run", "scheduler"), ("compare", "schedulers")] {
            let weft = Cli::command();
            let command = weft.find_subcommand(command).unwrap();
            let flag = command.get_arguments().find(|arg| arg.get_id() == flag);
            let help = flag.unwrap().get_help().unwrap().to_string();
            let said: Vec<_> = help.split([' ', ',', '.']).collect();
            for name in &names {
                assert!(said.contains(name), "{name}: {help}");
            }
        }
    }
}
