// SPDX-License-Identifier: Apache-2.0

//! Labs that stay up: `weft topo`, `weft shell`, `weft flows`.

use std::collections::BTreeMap;
use std::path::Path;

use clap::{Args, Subcommand};
use weft_lab::{
    ClockMode, ExecRequest, FatTreeSpec, HostsSpec, Lab, LabSpec, ManyToOneSpec, State, Status,
    TopologySpec, UpOptions,
};
use weft_text::units::{format_duration, format_rate, parse_bytes};

use crate::client::running_lab;
use crate::fabric_args::FabricArgs;
use crate::progress::RunBar;
use crate::show::{ShowArgs, show};
use crate::switch_args::SwitchArgs;
use crate::{Failure, Outcome, display, installation, switch_args};

/// Where a kernel shows that it has the schedulers and their netlink family.
const WEFT_MODULE: &str = "/sys/module/weft";

/// Commands on labs.
#[derive(Debug, Subcommand)]
pub enum Topo {
    /// Boot a lab and leave it running
    Up(Box<UpArgs>),
    /// Stop it and remove all traces
    Down(LabName),
    /// Show what it is doing
    Status(StatusArgs),
    /// Draw a fabric
    Show(Box<ShowArgs>),
}

/// Which lab.
#[derive(Debug, Args)]
pub struct LabName {
    /// Name of the lab, if you run several
    #[arg(long, value_name = "NAME", default_value = "lab", env = "WEFT_LAB")]
    pub name: String,
}

/// The machine's share in a lab.
#[derive(Debug, Args)]
#[command(next_help_heading = "Machine")]
pub struct MachineArgs {
    /// CPU to run on [default: one that no other lab uses]
    #[arg(long, value_name = "NUMBER")]
    pub cpu: Option<usize>,

    #[command(flatten)]
    pub memory: MemoryArgs,
}

/// How large a lab is.
#[derive(Debug, Args)]
#[command(next_help_heading = "Machine")]
pub struct MemoryArgs {
    /// Memory of a lab [default: 6MiB for each host, at least 2GiB]
    #[arg(id = "memory", long = "memory", value_name = "SIZE", value_parser = parse_memory)]
    pub bytes: Option<u64>,
}

/// A lab to start.
#[derive(Debug, Args)]
pub struct UpArgs {
    #[command(flatten)]
    lab: LabName,

    #[command(flatten)]
    fabric: FabricArgs,

    #[command(flatten)]
    switch: SwitchArgs,

    /// How virtual time passes: at most as fast as real time (paced), as fast as possible
    /// (free), or not at all (paused). Two have no virtual time: real runs the lab in real time,
    /// where computing takes time too; native uses this machine's own kernel, in network
    /// namespaces
    #[arg(
        long,
        value_enum,
        value_name = "HOW",
        default_value = "paced",
        hide_possible_values = true
    )]
    clock: ClockMode,

    /// Seed of the lab kernel's random numbers
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    #[command(flatten)]
    machine: MachineArgs,
}

/// A question about a lab.
#[derive(Debug, Args)]
pub struct StatusArgs {
    #[command(flatten)]
    lab: LabName,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A question to the hosts' kernels.
#[derive(Debug, Args)]
pub struct FlowsArgs {
    #[command(flatten)]
    lab: LabName,

    /// Show one host only, such as h1_2
    #[arg(long, value_name = "NAME")]
    host: Option<String>,

    /// Show what the kernel measures for each subflow of the connections that hosts have
    /// opened, by path, whatever the scheduler
    #[arg(long)]
    subflows: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Topo {
    /// Does it.
    pub async fn run(self) -> Outcome {
        match self {
            Self::Up(args) => up(&args).await,
            Self::Down(lab) => down(&lab).await,
            Self::Status(args) => status(&args).await,
            Self::Show(args) => show(&args).await,
        }
    }
}

async fn up(args: &UpArgs) -> Outcome {
    args.fabric.topology().map_err(Failure::Usage)?;
    let paths = match args.clock {
        ClockMode::Native => installation::native_paths()?,
        _ => installation::paths()?,
    };
    let mut spec = args
        .fabric
        .lab(args.seed, args.clock, paths)
        .map_err(Failure::Usage)?;
    args.switch.apply(&mut spec)?;
    for notice in [switch_args::notice(&spec), native_notice(&spec)] {
        display::out(notice.unwrap_or_default())?;
    }
    let options = UpOptions {
        name: args.lab.name.clone(),
        cpu: args.machine.cpu,
        memory_bytes: args.machine.memory.bytes,
        ..UpOptions::default()
    };
    let bar = RunBar::new(&args.lab.name);
    let lab = Lab::up(&spec, &options, |step| bar.step(step)).await?;
    bar.clear();
    let status = lab.status().await?;
    display::out(format!(
        "lab {} is up: {} ({} of real time)\n\
         next: weft workload, weft patterns, weft shell; weft topo down stops it\n",
        status.name,
        fabric_text(status.spec.topology.as_ref()),
        format_duration(status.wall.as_nanos() as f64),
    ))
}

/// What a network on this machine's own kernel lacks.
fn native_notice(spec: &LabSpec) -> Option<String> {
    let is_native = spec.clock == ClockMode::Native;
    (is_native && !Path::new(WEFT_MODULE).exists()).then(|| {
        "this machine's kernel has no module weft: hosts take no patterns and have the kernel's \
         own scheduler\n"
            .to_owned()
    })
}

/// That nothing is there to stop is no failure.
async fn down(lab: &LabName) -> Outcome {
    match Lab::find(&lab.name)? {
        Some(lab) => Ok(lab.down().await?),
        None => display::out(format!("lab {} is not up\n", lab.name)),
    }
}

async fn status(args: &StatusArgs) -> Outcome {
    let status = running_lab(&args.lab.name)?.status().await?;
    if args.json {
        return display::out_json(&status);
    }
    display::out(status_text(&status))
}

fn status_text(status: &Status) -> String {
    let state = match status.state {
        State::Booting => "booting",
        State::Ready => "ready",
        State::Stopping => "stopping",
    };
    let clock = match status.clock {
        ClockMode::Free => "free".to_owned(),
        ClockMode::Paced => format!("paced, {} x real time", status.ratio),
        ClockMode::Paused => "paused".to_owned(),
        ClockMode::Real => "real".to_owned(),
        ClockMode::Native => "native".to_owned(),
    };
    let time = display::time(status.clock, status.virtual_ns, status.wall);
    format!(
        "lab {}: {state}\n  fabric  {}\n  clock   {clock}; {time}\n  folder  {}\n  process {}\n",
        status.name,
        fabric_text(status.spec.topology.as_ref()),
        status.rundir.display(),
        status.pid,
    )
}

fn fabric_text(topology: Option<&TopologySpec>) -> String {
    let Some(topology) = topology else {
        return "no network".into();
    };
    let own = |values: &BTreeMap<u8, u64>, text: fn(u64) -> String| -> String {
        let each = values.iter();
        each.map(|(spine, value)| format!(" (spine{spine}: {})", text(*value)))
            .collect()
    };
    let none = BTreeMap::new();
    let (size, [delays, rates, queues, losses]) = match topology {
        TopologySpec::LeafSpine(spec) => {
            let hosts = match &spec.hosts {
                HostsSpec::Same(hosts) => hosts.to_string(),
                HostsSpec::Each(each) => {
                    let each: Vec<String> = each.iter().map(u8::to_string).collect();
                    each.join("+")
                }
            };
            (
                format!(
                    "{} leaves x {hosts} hosts, {} spines",
                    spec.leaves, spec.spines
                ),
                [
                    &spec.spine_delay_ns,
                    &spec.spine_rate_bps,
                    &spec.spine_queue_packets,
                    &spec.spine_loss_ppm,
                ],
            )
        }
        TopologySpec::FatTree(FatTreeSpec { k, .. }) => {
            let (k, half) = (u32::from(*k), u32::from(*k / 2));
            let size = format!(
                "fat-tree k={k}: {k} pods x {half} edge switches x {half} hosts, {} cores",
                half * half
            );
            (size, [&none; 4])
        }
        TopologySpec::ManyToOne(ManyToOneSpec { hosts, links, .. }) => (
            format!("{hosts} hosts with {links} links each to one switch"),
            [&none; 4],
        ),
        TopologySpec::TwoPath(spec) | TopologySpec::Dumbbell(spec) => (
            format!(
                "{} host{} at each end of {}",
                spec.hosts,
                if spec.hosts == 1 { "" } else { "s" },
                spec.profiles.join(" and ")
            ),
            [&none; 4],
        ),
    };
    let duration = |ns| format_duration(ns as f64);
    let common = topology.common();
    let marks = match (common.ecn_packets, common.ecn_bytes) {
        (Some(packets), _) => format!(" (marking above {packets})"),
        (None, Some(bytes)) => format!(" (marking above {bytes} bytes)"),
        (None, None) => String::new(),
    };
    let loss: String = losses
        .iter()
        .map(|(spine, ppm)| format!(", spine{spine} loses {}%", *ppm as f64 / 1e4))
        .collect();
    format!(
        "{size}; links {}{}, hosts {}{}, delay {}{}, queues {}{}{marks}{loss}",
        format_rate(common.rate_bps),
        own(rates, format_rate),
        format_rate(common.host_rate_bps),
        common
            .sender_rate_bps
            .map_or_else(String::new, |rate| format!(
                " (sending: {})",
                format_rate(rate)
            )),
        duration(common.delay_ns),
        own(delays, duration),
        common.queue_bytes.map_or_else(
            || format!("{} packets", common.queue_packets),
            |bytes| format!("{bytes} bytes")
        ),
        own(queues, |packets| packets.to_string()),
    )
}

/// A Mininet prompt in the lab.
pub async fn shell(lab: &LabName) -> Outcome {
    let status = running_lab(&lab.name)?.mininet_shell().await?;
    ended_with(status)
}

/// What the hosts' kernels say of their connections.
pub async fn flows(args: &FlowsArgs) -> Outcome {
    let lab = running_lab(&args.lab.name)?;
    let agent = lab.status().await?.spec.paths.bin.join("weft-agent");
    let mut argv = vec![
        agent.to_string_lossy().into_owned(),
        if args.subflows { "subflows" } else { "flows" }.to_owned(),
        "--topology".to_owned(),
        "/run/weft/topology.json".to_owned(),
    ];
    if let Some(host) = &args.host {
        argv.extend(["--host".to_owned(), host.clone()]);
    }
    if args.json {
        argv.push("--json".to_owned());
    }
    let request = ExecRequest {
        argv,
        ..ExecRequest::default()
    };
    ended_with(lab.exec_without_input(request).await?)
}

/// Hands on the exit status of a command inside.
pub fn ended_with(status: i32) -> Outcome {
    match u8::try_from(status) {
        Ok(0) => Ok(()),
        Ok(status) => Err(Failure::Status(status)),
        Err(_) => Err(Failure::Status(1)),
    }
}

/// Bytes of a lab's memory.
fn parse_memory(text: &str) -> Result<u64, String> {
    let bytes = parse_bytes(text)?;
    if !(256 << 20..=64 << 30).contains(&bytes) {
        return Err(format!("{text:?}: a lab has 256MiB to 64GiB, such as 2GiB"));
    }
    Ok(bytes)
}
