// SPDX-License-Identifier: Apache-2.0

//! `weft-switch`: all switches of a network in one process.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Parser, ValueEnum};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;
use weft_switch::capture::{Captures, Selection};
use weft_switch::network::TimestampUnit;
use weft_switch::queue_log::QueueLog;
use weft_switch::server::{Shared, World, serve, serve_schedule};
use weft_switch::shell::{Clock, DataPlane, Stop};
use weft_text::usage::plain;
use weft_topology::Topology;

/// Runs the switches of a topology: P4 pipelines, queues and the links between them, with a
/// P4Runtime server for each. They forward nothing until a pipeline is pushed.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// The network, as `topology.json` describes it
    #[arg(long, value_name = "FILE")]
    topology: PathBuf,
    /// Folder for queues.csv
    #[arg(long, value_name = "DIR")]
    stats_dir: PathBuf,
    /// Write every packet of these hosts, and of the queues in front of them, to the folder
    /// capture in the stats folder; `all` for all hosts
    #[arg(long, value_name = "HOSTS", value_delimiter = ',')]
    capture: Vec<String>,
    /// Queues to record arrivals at: those in front of captured hosts, or all
    #[arg(long, value_enum, default_value = "hosts", requires = "capture")]
    arrivals: Arrivals,
    /// File to create when all servers listen and all interfaces are open
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
    /// Unit of the timestamps that P4 programs see
    #[arg(long, value_enum, default_value = "ns")]
    timestamps: Timestamps,
    /// Seed for everything random: lost frames, noise of hosts, random numbers of P4 programs
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Arrivals {
    /// Queues in front of captured hosts
    Hosts,
    /// All queues of all switches
    All,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Timestamps {
    /// Nanoseconds
    Ns,
    /// Microseconds, as BMv2 does
    Us,
}

impl From<Timestamps> for TimestampUnit {
    fn from(timestamps: Timestamps) -> Self {
        match timestamps {
            Timestamps::Ns => Self::Nanoseconds,
            Timestamps::Us => Self::Microseconds,
        }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    tracing_subscriber::fmt()
        .with_env_filter(
            EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info")),
        )
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    let topology = match Topology::read(&arguments.topology) {
        Ok(topology) => topology,
        Err(error) => {
            eprintln!("weft-switch: {}", plain(error));
            return ExitCode::from(2);
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("tokio runtime");
    match runtime.and_then(|runtime| runtime.block_on(run(&arguments, &topology))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("weft-switch: {}", plain(error));
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &Arguments, topology: &Topology) -> anyhow::Result<()> {
    let clock = Clock::new().context("clock")?;
    let unit = arguments.timestamps.into();
    let mut world = World::new(topology, unit, clock.now_ns()?, arguments.seed)?;
    let stop = Stop::new().context("eventfd")?;
    let waker = stop.clone();
    let captures = captures(arguments, topology, &mut world)?;
    let shared = Shared::new(world, move || waker.wake());
    let log = arguments.stats_dir.join("queues.csv");
    let log = QueueLog::open(&log, topology).with_context(|| log.display().to_string())?;
    let plane = DataPlane::open(
        shared.clone(),
        stop.clone(),
        clock,
        log,
        captures,
        arguments.seed,
    )?;
    serve(topology, &shared).await?;
    if let Some(schedule) = &topology.schedule {
        serve_schedule(&schedule.socket, &shared)
            .with_context(|| schedule.socket.display().to_string())?;
    }

    let mut plane = tokio::task::spawn_blocking(move || plane.run());
    if let Some(path) = &arguments.ready_file {
        std::fs::write(path, "{}\n").with_context(|| path.display().to_string())?;
    }
    tracing::info!(switches = topology.switches.len(), "ready");
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        ended = &mut plane => return ended?.context("data plane"),
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    stop.stop();
    plane.await?.context("data plane")
}

fn captures(
    arguments: &Arguments,
    topology: &Topology,
    world: &mut World,
) -> anyhow::Result<Option<Captures>> {
    if arguments.capture.is_empty() {
        return Ok(None);
    }
    let selection = Selection {
        hosts: arguments.capture.clone(),
        all_queues: arguments.arrivals == Arrivals::All,
    };
    let folder = arguments.stats_dir.join("capture");
    Ok(Some(Captures::open(&folder, topology, &selection, world)?))
}
