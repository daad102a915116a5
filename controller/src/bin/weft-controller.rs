// SPDX-License-Identifier: Apache-2.0

//! The daemon `weft-controller`: takes telemetry, publishes patterns.

use std::cell::Cell;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Parser, ValueEnum};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tonic::transport::server::TcpIncoming;
use tracing::info;
use tracing_subscriber::EnvFilter;
use weft_controller::classes::ThresholdsFrom;
use weft_controller::cost::Input;
use weft_controller::engine::{Config, Engine};
use weft_controller::fabric::RoutedFabric;
use weft_controller::hub::Hub;
use weft_controller::p4::desired::{desired, desired_of_nic, policing};
use weft_controller::p4::digest::Decoder;
use weft_controller::p4::program::Program;
use weft_controller::p4::session::{self, Target};
use weft_controller::p4::timestamps::TimestampUnit;
use weft_controller::pacing::Limits;
use weft_controller::record::Recorder;
use weft_controller::{api, clock};
use weft_proto::TIME_TO_LIVE_MAX_NS;
use weft_text::units::{parse_positive_duration_ns, parse_share_ppm};
use weft_text::usage::{EXIT_USAGE, plain};
use weft_topology::{Role, Topology};

/// Programs the switches of a fabric, collects their telemetry, and streams
/// allocation patterns to the agents of hosts.
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    /// topology.json of the fabric
    #[arg(long, value_name = "FILE")]
    topology: PathBuf,
    /// Folder with {leaf,spine,smartnic}.json and .p4info.txtpb; of several, the first that has a
    /// program decides
    #[arg(long, value_name = "DIR", required = true)]
    pipelines: Vec<PathBuf>,
    /// Folder for patterns.csv and loop.csv
    #[arg(long, value_name = "DIR")]
    stats_dir: PathBuf,
    /// Address of the weft.v1 server
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9339")]
    listen: SocketAddr,
    /// How long hosts use a pattern that is not renewed, at most 60s
    #[arg(long, value_name = "DURATION", default_value = "200ms", value_parser = lifetime)]
    pattern_ttl: Duration,
    /// What patterns are computed from: the RTT that switches measure (rtt), the lowest
    /// RTT plus the queues in the data's direction (rtt+queue), or each kernel's own
    /// RTT, without the controller (srtt)
    #[arg(long, value_name = "INPUT", default_value_t = Input::default())]
    pattern_input: Input,
    /// Minimum interval between two patterns of a leaf pair [default: two round trips,
    /// at least 200us; up to 10ms while patterns oscillate]
    #[arg(long, value_name = "DURATION", value_parser = parse_positive_duration_ns)]
    pattern_interval: Option<u64>,
    /// Leave paths out of patterns if a link on them loses this share of packets more than
    /// configured; 100% for never
    #[arg(long, value_name = "SHARE", default_value = "0.5%", value_parser = parse_share_ppm)]
    gray_loss: u32,
    /// Where hosts write classes of what is left to send: whether the thresholds between classes
    /// follow the sizes of flows that switches see (seen), or stay those of the kernel (built-in)
    #[arg(long, value_name = "FROM", default_value_t = ThresholdsFrom::default())]
    class_thresholds: ThresholdsFrom,
    /// Unit of the switches' timestamps. BMv2 uses us; its queues serve packets, not bits,
    /// so with us slow links are not detected
    #[arg(long, value_enum, default_value_t = Timestamps::Ns)]
    timestamps: Timestamps,
    /// File to create once every switch is programmed and the server listens
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Timestamps {
    Ns,
    Us,
}

fn lifetime(text: &str) -> Result<Duration, String> {
    let lifetime_ns = parse_positive_duration_ns(text)?;
    if lifetime_ns > TIME_TO_LIVE_MAX_NS {
        return Err(format!(
            "{text:?} is longer than 60s, the most that kernels accept"
        ));
    }
    Ok(Duration::from_nanos(lifetime_ns))
}

fn main() -> ExitCode {
    let args = Args::parse();
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_timer(tracing_subscriber::fmt::time::uptime())
        .with_target(false)
        .with_ansi(false)
        .with_env_filter(EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into()))
        .init();
    let (targets, hub) = match prepare(&args) {
        Ok(prepared) => prepared,
        Err(error) => {
            eprintln!("weft-controller: {}", plain(error));
            return ExitCode::from(EXIT_USAGE);
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("tokio runtime");
    let tasks = tokio::task::LocalSet::new();
    let served =
        runtime.and_then(|runtime| tasks.block_on(&runtime, serve(&args, targets, Arc::new(hub))));
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("weft-controller: {}", plain(error));
            ExitCode::FAILURE
        }
    }
}

/// Everything that needs only files.
fn prepare(args: &Args) -> anyhow::Result<(Vec<Target>, Hub)> {
    let topology = Topology::read(&args.topology)?;
    let json = std::fs::read_to_string(&args.topology)
        .with_context(|| args.topology.display().to_string())?;
    let fabric =
        RoutedFabric::new(topology).with_context(|| args.topology.display().to_string())?;
    let unit = match args.timestamps {
        Timestamps::Ns => TimestampUnit::Nanoseconds,
        Timestamps::Us => TimestampUnit::Microseconds,
    };
    let targets = targets(args, &fabric, unit)?;
    let recorder =
        Recorder::open(&args.stats_dir).with_context(|| args.stats_dir.display().to_string())?;
    let config = Config {
        input: args.pattern_input,
        limits: args
            .pattern_interval
            .map_or_else(Limits::default, Limits::at_least),
        epoch_ns: clock::epoch_ns(),
        gray_ppm: args.gray_loss,
        finds_slow_links: unit == TimestampUnit::Nanoseconds,
        adapts_thresholds: args.class_thresholds == ThresholdsFrom::Seen,
    };
    let engine = Engine::new(fabric, config);
    let wait_unit_ns = unit.wait_ns();
    let hub = Hub::new(engine, args.pattern_ttl, wait_unit_ns, Some(recorder), json);
    Ok((targets, hub))
}

/// Every switch and SmartNIC, with its program and table entries.
fn targets(args: &Args, fabric: &RoutedFabric, unit: TimestampUnit) -> anyhow::Result<Vec<Target>> {
    let leaf = Arc::new(Program::read(&args.pipelines, Role::Leaf)?);
    let spine = Arc::new(Program::read(&args.pipelines, Role::Spine)?);
    let has_classes = fabric.topology().priorities.is_some();
    let switches = fabric.topology().switches.iter().map(|switch| {
        let program = match switch.role {
            Role::Leaf => &leaf,
            Role::Aggregation | Role::Spine | Role::Core | Role::Nic => &spine,
        };
        Ok(Target {
            name: switch.name.clone(),
            device_id: switch.device_id,
            grpc: switch.grpc.clone(),
            desired: desired(fabric, switch, program, unit)?,
            limits: policing::Limits::of(fabric.topology(), switch, program)?,
            decoder: Decoder::new(program, switch.role, unit)?.with_classes(has_classes),
            program: Arc::clone(program),
        })
    });
    let mut targets = switches.collect::<anyhow::Result<Vec<_>>>()?;
    if fabric.topology().nics().next().is_some() {
        targets.extend(nics(args, fabric, unit)?);
    }
    Ok(targets)
}

/// The SmartNICs.
fn nics(args: &Args, fabric: &RoutedFabric, unit: TimestampUnit) -> anyhow::Result<Vec<Target>> {
    let program = Arc::new(Program::read(&args.pipelines, Role::Nic)?);
    let hosts = fabric.topology().hosts.iter();
    hosts
        .filter_map(|host| Some((host, host.nic.as_ref()?)))
        .map(|(host, nic)| {
            Ok(Target {
                name: nic.name.clone(),
                device_id: nic.device_id,
                grpc: nic.grpc.clone(),
                desired: desired_of_nic(fabric, host, &program, unit)?,
                limits: policing::Limits::default(),
                decoder: Decoder::new(&program, Role::Nic, unit)?,
                program: Arc::clone(&program),
            })
        })
        .collect()
}

async fn serve(args: &Args, targets: Vec<Target>, hub: Arc<Hub>) -> anyhow::Result<()> {
    let listener = TcpListener::bind(args.listen)
        .await
        .with_context(|| format!("--listen {}", args.listen))?;
    info!(listen = %args.listen, switches = targets.len(), "serving weft.v1");
    let all_ready = Rc::new(Notify::new());
    let waiting = Rc::new(Cell::new(targets.len()));
    for target in targets {
        let (all_ready, waiting) = (Rc::clone(&all_ready), Rc::clone(&waiting));
        let first = Cell::new(true);
        let ready = move || {
            if first.replace(false) {
                waiting.set(waiting.get() - 1);
            }
            if waiting.get() == 0 {
                all_ready.notify_one();
            }
        };
        tokio::task::spawn_local(session::run(target, Arc::clone(&hub), ready));
    }
    let timer = Arc::clone(&hub);
    let timer = tokio::task::spawn_local(async move { timer.keep_time().await });
    if let Some(file) = args.ready_file.clone() {
        tokio::task::spawn_local(async move {
            all_ready.notified().await;
            info!("ready");
            if let Err(error) = std::fs::write(&file, "") {
                tracing::error!("--ready-file {}: {error}", file.display());
            }
        });
    }
    let server = tonic::transport::Server::builder()
        .add_service(api::service(hub))
        .serve_with_incoming(TcpIncoming::from(listener).with_nodelay(Some(true)));
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        result = server => result.context("weft.v1 server"),
        result = timer => result?.context("timer"),
        _ = terminate.recv() => Ok(()),
        result = tokio::signal::ctrl_c() => Ok(result?),
    }
}
