// SPDX-License-Identifier: Apache-2.0

//! `weft-load`: sends a workload between the hosts of a fabric.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};
use serde_json::json;
use weft_load::args::{RunDocument, SchedulerOption, Traffic, WorkloadArgs};
use weft_load::engine::{Order, Settings};
use weft_load::ideal_fabric::{IdealFabric, Protocol};
use weft_load::plan::{self, Background, Flow};
use weft_load::results::window::Window;
use weft_load::results::{self, FlowRow, Results, Tables};
use weft_load::shell::{self, Classes, Progress, Sockets};
use weft_load::{record, report};
use weft_text::units::format_duration;
use weft_text::usage::{EXIT_USAGE, WrongUsage, one_line, plain};
use weft_topology::{SPREAD_PERCENT, Topology};

/// Sends MPTCP flows between the hosts of a fabric and measures them.
///
/// One process drives all hosts, each socket in its host's network namespace.
/// In a Weft lab, `weft workload` and `weft run` start it.
#[derive(Debug, Parser)]
#[command(name = "weft-load", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a workload and write its results
    Run {
        /// What to run: the JSON document that `weft run` and `weft workload` make of their
        /// flags (`RunDocument` in the crate's documentation)
        #[arg(value_name = "JSON")]
        document: String,
    },
    /// Show the table of one run, or of several side by side
    Report {
        /// Folders of runs
        #[arg(required = true, value_name = "DIR")]
        folders: Vec<PathBuf>,
    },
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    let done = match &cli.command {
        Command::Run { document } => match read(document) {
            Ok((document, traffic)) => run(&document, &traffic),
            Err(usage) => {
                eprintln!("weft-load: {}", plain(usage));
                return ExitCode::from(EXIT_USAGE);
            }
        },
        Command::Report { folders } => report_folders(folders).map(|()| ExitCode::SUCCESS),
    };
    done.unwrap_or_else(|error| {
        eprintln!("weft-load: {}", plain(&error));
        if error.is::<WrongUsage>() {
            ExitCode::from(EXIT_USAGE)
        } else {
            ExitCode::FAILURE
        }
    })
}

fn refuse(error: &clap::Error) -> ExitCode {
    match one_line(error) {
        Some(line) => {
            eprintln!("weft-load: {line}; see weft-load --help");
            ExitCode::from(EXIT_USAGE)
        }
        None => {
            print!("{error}");
            ExitCode::SUCCESS
        }
    }
}

/// The run that is asked for, and what it sends.
fn read(document: &str) -> Result<(RunDocument, Traffic), String> {
    let document = RunDocument::from_json(document)?;
    let traffic = document.workload.traffic()?;
    Ok((document, traffic))
}

/// Time after the last flow for switches and controller to write what they
/// know; both flush every 10 ms.
const FLUSH: Duration = Duration::from_millis(20);

fn run(args: &RunDocument, traffic: &Traffic) -> Result<ExitCode> {
    if args.out.exists() {
        bail!(
            "{}: exists already; choose another folder for the results",
            args.out.display()
        );
    }
    let topology = Topology::read(&args.topology)?;
    let fabric = IdealFabric::new(&topology)?;
    let seed = args.workload.seed;
    let names: Vec<&str> = topology.hosts.iter().map(|host| &host.name[..]).collect();
    let plan = plan::build(&fabric, &names, traffic, seed)?;
    if plan.is_empty() {
        bail!(WrongUsage(
            "no flow arrives in that time; give a longer --duration or a higher --load".into()
        ));
    }
    let warmup_ns = args.workload.warmup.unwrap_or(0);
    let last_ns = plan.iter().map(|flow| flow.start_ns).max().unwrap_or(0);
    if last_ns < warmup_ns {
        bail!(WrongUsage(format!(
            "--warmup {}: the last flow arrives after {} already; give a shorter warm-up or more \
             flows",
            format_duration(warmup_ns as f64),
            format_duration(last_ns as f64)
        )));
    }
    let other = args
        .workload
        .background
        .spec()
        .map_err(anyhow::Error::msg)?;
    let other = Background::new(&fabric, &other, seed)?;
    let sockets = Sockets {
        protocol: args.workload.protocol,
        scheduler: args.mptcp_scheduler().map(str::to_owned),
        scheduler_options: args.workload.scheduler_options.clone(),
        congestion: args.workload.congestion.clone(),
        send_buffer_bytes: args.workload.send_buffer,
        receive_buffer_bytes: args.workload.receive_buffer,
        classes: classes_of_applications(&args.workload, &topology)?,
        port: args.port,
        sample_ns: args.workload.sample,
    };
    let mut report = ProgressFile::new(&args.stats_dir, &plan);
    let run = shell::run(
        &topology,
        plan,
        other,
        settings(args, traffic, &topology, &fabric),
        sockets,
        |progress| report.tell(progress),
    )?;
    std::thread::sleep(FLUSH);

    let flows = record::flow_rows(&run, &topology, &fabric, args.workload.protocol);
    let info = record::run_info(args, traffic, &topology, &run, &flows);
    let window = Window {
        start_ns: run.start_ns,
        end_ns: run.end_ns + FLUSH.as_nanos() as u64,
    };
    let samples = record::sample_rows(&run);
    let tables = Tables {
        flows: &flows,
        subflows: &record::subflow_rows(&run),
        samples: args.workload.sample.map(|_| &samples[..]),
        background: &record::background_rows(&run, &topology),
    };
    results::write(&args.out, &info, tables, &args.stats_dir, window)?;
    Ok(complain(&flows))
}

/// Rest before the first flow, besides some round trips.
const SETTLE_NS: u64 = 50_000_000;
/// Round trips that it takes until all subflows are there: Linux adds them one
/// after the other, by handshakes of one and a half.
const SETTLE_ROUND_TRIPS: u64 = 4;
/// Time in which a SYN that was lost is sent again (RFC 6298: after 1 s).
const SETTLE_LOSS_NS: u64 = 1_200_000_000;

fn settings(
    args: &RunDocument,
    traffic: &Traffic,
    topology: &Topology,
    fabric: &IdealFabric,
) -> Settings {
    let lossy = topology.switches.iter().any(|switch| switch.loss_ppm > 0);
    let round_trips_ns = SETTLE_ROUND_TRIPS * fabric.longest_rtt_ns();
    Settings {
        connections: args.workload.connections,
        order: match traffic {
            Traffic::Page { parallel, .. } => Order::Fetched {
                parallel: *parallel as usize,
            },
            Traffic::Queries { .. } => Order::Requested,
            _ => Order::Timed,
        },
        stall_ns: args.workload.stall_timeout,
        settle_ns: SETTLE_NS + round_trips_ns + if lossy { SETTLE_LOSS_NS } else { 0 },
        stop_ns: match traffic {
            Traffic::Bulk { .. } => args.workload.duration,
            _ => None,
        },
        precision: args.workload.precision.map(|percent| percent / 100.0),
        warmup_ns: args.workload.warmup.unwrap_or(0),
    }
}

/// How applications choose classes; MPTCP's are the kernel's, unless they are to tell sizes.
fn classes_of_applications(
    workload: &WorkloadArgs,
    topology: &Topology,
) -> Result<Option<Classes>> {
    if workload.tell_sizes && topology.priorities.is_none() {
        bail!(WrongUsage(
            "--tell-sizes: there are no classes to tell of; give --priorities too".into()
        ));
    }
    if workload.tell_sizes && workload.protocol == Protocol::Mptcp && topology.ipv6 {
        bail!(WrongUsage(
            "--tell-sizes: Linux takes no class for an MPTCP socket over IPv6 (IPV6_TCLASS); leave \
             out --ip 6"
                .into()
        ));
    }
    let is_told = workload.tell_sizes || workload.protocol == Protocol::Tcp;
    let Some(count) = topology.priorities.filter(|_| is_told) else {
        return Ok(None);
    };
    Ok(Some(Classes {
        count,
        spread_percent: spread_percent(&workload.scheduler_options)?,
        draws: plan::classes(workload.seed),
    }))
}

/// The kernel's parameter is for applications too.
fn spread_percent(options: &[SchedulerOption]) -> Result<u32> {
    const NAME: &str = "weft_spread_percent";
    let Some(given) = options.iter().rfind(|option| option.name == NAME) else {
        return Ok(SPREAD_PERCENT);
    };
    given.value.parse().with_context(|| {
        format!("--scheduler-options {given}: the value is a whole number of percent")
    })
}

/// Says which flows failed, each reason once.
fn complain(rows: &[FlowRow]) -> ExitCode {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.fct_ns.is_none()) {
        *reasons.entry(&row.error).or_default() += 1;
    }
    if reasons.is_empty() {
        return ExitCode::SUCCESS;
    }
    for (reason, count) in reasons {
        eprintln!(
            "weft-load: {count} of {} flows failed: {reason}",
            rows.len()
        );
    }
    ExitCode::FAILURE
}

/// `progress.json`: rewritten whole, each time another hundredth is done.
struct ProgressFile {
    path: PathBuf,
    flows: usize,
    bytes: u64,
    next: usize,
}

impl ProgressFile {
    fn new(folder: &Path, plan: &[Flow]) -> Self {
        let mut file = Self {
            path: folder.join("progress.json"),
            flows: plan.len(),
            bytes: plan.iter().map(|flow| flow.bytes).sum(),
            next: 0,
        };
        file.tell(Progress { flows: 0, bytes: 0 });
        file
    }

    /// Progress is for watching: where it cannot be written, the run goes on.
    fn tell(&mut self, progress: Progress) {
        if progress.flows < self.next {
            return;
        }
        self.next = (progress.flows + self.flows.div_ceil(100)).min(self.flows);
        let document = json!({
            "flows_done": progress.flows,
            "flows": self.flows,
            "bytes_done": progress.bytes,
            "bytes": self.bytes,
        });
        let partial = self.path.with_extension("json.partial");
        let _ = fs::write(&partial, document.to_string())
            .and_then(|()| fs::rename(&partial, &self.path));
    }
}

fn report_folders(folders: &[PathBuf]) -> Result<()> {
    let runs = folders
        .iter()
        .map(|folder| {
            let name = folder.file_name().unwrap_or(folder.as_os_str());
            Ok((name.to_string_lossy().into_owned(), Results::read(folder)?))
        })
        .collect::<Result<Vec<_>>>()
        .context("report")?;
    match &runs[..] {
        [(_, results)] => print!("{}", report::run_table(results)),
        runs => print!("{}", report::comparison_table(runs)),
    }
    Ok(())
}
