// SPDX-License-Identifier: Apache-2.0

//! The flags that describe a lab: its fabric, its seed, the life of patterns.

mod change;
mod classes;
mod names;
mod queue;
mod route_metrics;
mod shape;
mod spine;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use weft_agent::path_manager::PathManager;
use weft_controller::cost::Input;
use weft_lab::{
    ChangeSpec, ClockMode, CommonSpec, FatTreeSpec, InBandSpec, LabSpec, LeafSpineSpec,
    MAX_SUBFLOWS, ManyToOneSpec, NicSpec, Paths, RoutingSpec, TopologySpec, TwoPathSpec,
};
use weft_proto::TIME_TO_LIVE_MAX_NS;
use weft_text::units::{parse_duration_ns, parse_rate_bps, parse_share_ppm};
use weft_topology::Role;

use change::parse_change;
use classes::ClassArgs;
use queue::QueueDepth;
use route_metrics::RouteMetricArgs;
use shape::{Shape, ShapeArgs};
use spine::SpineArgs;

/// Ways in which leaves choose paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RoutingKind {
    /// By address: every subflow on a path of its own.
    Subflow,
    /// By a hash of the 5-tuple.
    Ecmp,
    /// At random for each flowlet.
    Flowlet,
    /// At random for each packet.
    Spray,
}

/// NICs of hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NicKind {
    /// Plain ones.
    Plain,
    /// Such that run `smartnic.p4`.
    P4,
}

/// In-band telemetry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum IntKind {
    /// None.
    Off,
    /// INT-MD.
    Md,
}

/// The fabric, as flags.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Fabric")]
pub struct FabricArgs {
    #[command(flatten)]
    shape: ShapeArgs,

    /// Rate of links between switches
    #[arg(long, value_name = "RATE", default_value = "1gbit", value_parser = parse_link_rate)]
    rate: u64,

    /// Rate of links to hosts, in both directions unless --sender-rate is given
    #[arg(long, value_name = "RATE", default_value = "1gbit", value_parser = parse_link_rate)]
    host_rate: u64,

    /// Rate from hosts to their leaf [default: the host rate]
    #[arg(long, value_name = "RATE", value_parser = parse_link_rate)]
    sender_rate: Option<u64>,

    /// One-way propagation delay of every link
    #[arg(long, value_name = "TIME", default_value = "10us", value_parser = parse_delay)]
    delay: u64,

    /// Depth of every egress queue of the switches: packets, or bytes of the frames that wait
    /// (150KB)
    #[arg(long, value_name = "PACKETS|BYTES", default_value = "100")]
    queue: QueueDepth,

    /// Mark ECN-capable packets that find more than this in an egress queue of a switch:
    /// packets, or bytes (30KB). TCP on all hosts then negotiates ECN; with --congestion dctcp
    /// it responds as DCTCP does [default: no marks]
    #[arg(long, value_name = "PACKETS|BYTES")]
    ecn: Option<QueueDepth>,

    #[command(flatten)]
    of_spines: SpineArgs,

    /// Change a link, or all links of a switch, at a time after the start of traffic: "at 20ms
    /// link leaf1-spine2 down", "at 2s switch spine1 rate 0.5 loss 1%". There are also delay,
    /// queue and up. The short form is 2s:spine1:rate=10mbit,delay=50ms, where a number stands
    /// for a spine. No program is told that a link is down: it loses every packet. For several
    /// changes, repeat the flag or separate them by ;
    #[arg(long, value_name = "CHANGE", value_delimiter = ';', value_parser = parse_change)]
    change: Vec<ChangeSpec>,

    /// Scheduling noise between a host's kernel and its NIC, as a hypervisor causes
    /// it: packets are delayed at random in both directions, by this time on average
    #[arg(long, value_name = "TIME", default_value = "0ns", value_parser = parse_jitter)]
    host_jitter: u64,

    /// NICs of hosts: plain, or running a P4 program (p4). P4 NICs measure RTTs from
    /// NIC to NIC, in place of the leaves, so that delays inside hosts do not count
    #[arg(
        long,
        value_enum,
        value_name = "KIND",
        default_value = "plain",
        hide_possible_values = true
    )]
    nic: NicKind,

    /// In-band telemetry: md lets some packets collect the switch, port, latency and depth of
    /// every queue that they pass between leaves, in the format of INT-MD. Hosts never see it
    #[arg(
        long,
        value_enum,
        value_name = "KIND",
        default_value = "off",
        hide_possible_values = true
    )]
    int: IntKind,

    /// Maximum number of subflows of a connection. Each has a path of its own; if there are
    /// more paths, different pairs of racks use different ones
    #[arg(long, value_name = "COUNT", default_value_t = MAX_SUBFLOWS, value_parser = clap::value_parser!(u8).range(1..=i64::from(MAX_SUBFLOWS)))]
    subflows: u8,

    #[command(flatten)]
    route_metrics: RouteMetricArgs,

    /// How switches choose the path of a packet: by its addresses (subflow), so that every
    /// subflow has a path of its own; by a hash of the 5-tuple (ecmp); or at random, for each
    /// flowlet as in LetFlow (flowlet) or for each packet (spray)
    #[arg(
        long,
        value_enum,
        value_name = "HOW",
        default_value = "subflow",
        hide_possible_values = true
    )]
    routing: RoutingKind,

    /// Gap after which the next packet of a flow begins a flowlet, with --routing flowlet, from 1us
    /// to 10s [default: 4 times the longest RTT of the fabric without queues]
    #[arg(long, value_name = "TIME", value_parser = parse_flowlet_timeout)]
    flowlet_timeout: Option<u64>,

    #[command(flatten)]
    classes: ClassArgs,

    /// IP version of connections: 4 or 6
    #[arg(long, value_name = "VERSION", default_value_t = 4, value_parser = parse_ip)]
    ip: u8,

    /// How long a kernel uses a pattern that the controller does not renew, from 1ms to 60s
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = parse_ttl)]
    pattern_ttl: u64,

    /// What patterns are computed from: the kernels' own RTTs (srtt), the RTTs that leaves
    /// measure (rtt), or the lowest RTTs and the queues in the direction of the data
    /// (rtt+queue). With rtt and rtt+queue, no path gets more than its rate
    #[arg(long, value_name = "INPUT", default_value_t = Input::default())]
    pattern_input: Input,

    /// Leave a path out of patterns if one of its links loses this share of packets more than
    /// the topology says. 100% is never
    #[arg(long, value_name = "SHARE", default_value = "0.5%", value_parser = parse_share_ppm)]
    gray_loss: u32,

    /// Number of controllers: one is primary, the others take over when it fails
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=3))]
    controllers: u8,

    /// One-way delay of the control network: between switches and controller, and between
    /// controller and hosts
    #[arg(long, value_name = "TIME", default_value = "20us", value_parser = parse_control_delay)]
    control_delay: u64,

    /// Who opens subflows: the kernel, one for each path (kernel); the agent of the connecting
    /// host, N for each path (fixed:N); or the agent, as many for each path as increase the
    /// throughput (adaptive, which is adaptive:interval=100ms,max=4,gain=10%)
    #[arg(long, value_name = "HOW", default_value = "kernel")]
    path_manager: PathManager,

    /// Kernel module to load beside Weft's, such as a scheduler of your own (several: repeat it)
    #[arg(long = "module", value_name = "FILE", value_parser = parse_module)]
    modules: Vec<PathBuf>,

    /// Folder of compiled P4 programs that replace Weft's own of the same name: leaf, spine,
    /// smartnic (several: repeat it; the first that has a program decides)
    #[arg(long, value_name = "DIR", value_parser = parse_programs)]
    programs: Vec<PathBuf>,
}

impl FabricArgs {
    /// A lab with this fabric, seed and clock, and nothing to run.
    ///
    /// # Errors
    /// One line that says which flag is wrong.
    pub fn lab(&self, seed: u64, clock: ClockMode, mut paths: Paths) -> Result<LabSpec, String> {
        let topology = self.topology()?;
        if clock == ClockMode::Native && !self.modules.is_empty() {
            return Err(
                "--module: not with --clock native, which runs on this machine's own kernel".into(),
            );
        }
        paths.modules.extend(self.modules.iter().cloned());
        paths.programs.splice(0..0, self.programs.iter().cloned());
        self.path_manager.check(topology.paths().into())?;
        Ok(LabSpec {
            topology: Some(topology),
            pattern_ttl_ns: self.pattern_ttl,
            pattern_input: self.pattern_input.to_string(),
            gray_loss_ppm: self.gray_loss,
            class_thresholds: self.classes.class_thresholds.to_string(),
            controllers: self.controllers,
            control_delay_ns: self.control_delay,
            path_manager: self.path_manager.to_string(),
            seed,
            clock,
            capture: None,
            bmv2: None,
            paths,
            batch: None,
            kernel_arguments: Vec::new(),
        })
    }

    /// The fabric.
    ///
    /// # Errors
    /// One line that says which flag is wrong.
    pub fn topology(&self) -> Result<TopologySpec, String> {
        let shape = self.shape.shape()?;
        self.classes.check(&shape)?;
        if !matches!(shape, Shape::LeafSpine { .. }) {
            self.of_spines.refuse()?;
        }
        if self.flowlet_timeout.is_some() && self.routing != RoutingKind::Flowlet {
            return Err("--flowlet-timeout: only with --routing flowlet".to_owned());
        }
        let ecn = self.ecn_threshold()?;
        let sender_bps = self.sender_rate.unwrap_or(self.host_rate);
        let common = CommonSpec {
            rate_bps: self
                .shape
                .rate_bps(&shape, sender_bps)?
                .unwrap_or(self.rate),
            host_rate_bps: self.host_rate,
            sender_rate_bps: self.sender_rate.filter(|rate| *rate != self.host_rate),
            delay_ns: self.delay,
            queue_packets: self.queue.packets(),
            queue_bytes: self.queue.bytes(),
            ecn_packets: match ecn {
                Some(QueueDepth::Packets(packets)) => Some(packets),
                _ => None,
            },
            ecn_bytes: ecn.and_then(QueueDepth::bytes),
            subflows: self.subflows,
            route_metrics: self.route_metrics.by_name(),
            routing: match self.routing {
                RoutingKind::Subflow => RoutingSpec::Subflow,
                RoutingKind::Ecmp => RoutingSpec::Ecmp,
                RoutingKind::Flowlet => RoutingSpec::Flowlet,
                RoutingKind::Spray => RoutingSpec::Spray,
            },
            flowlet_timeout_ns: self.flowlet_timeout,
            priorities: self.classes.priorities,
            lowest_share_ppm: self.classes.lowest_share,
            first_come: self.classes.first_come.clone(),
            clear_classes: self.classes.clear_classes.clone(),
            ip: self.ip,
            changes: change::check(&self.change, &shape)?,
            host_jitter_ns: self.host_jitter,
            nic: match self.nic {
                NicKind::Plain => NicSpec::Plain,
                NicKind::P4 => NicSpec::P4,
            },
            in_band: match self.int {
                IntKind::Off => InBandSpec::Off,
                IntKind::Md => InBandSpec::Md,
            },
        };
        Ok(match shape {
            Shape::LeafSpine {
                leaves,
                spines,
                hosts,
            } => {
                let of_spines = self.of_spines.of(spines)?;
                TopologySpec::LeafSpine(LeafSpineSpec {
                    leaves,
                    spines,
                    hosts,
                    common,
                    spine_delay_ns: of_spines.delay_ns,
                    spine_rate_bps: of_spines.rate_bps,
                    spine_queue_packets: of_spines.queue_packets,
                    spine_loss_ppm: of_spines.loss_ppm,
                })
            }
            Shape::FatTree { k } => TopologySpec::FatTree(FatTreeSpec { k, common }),
            Shape::ManyToOne { hosts, links } => TopologySpec::ManyToOne(ManyToOneSpec {
                hosts,
                links,
                common,
            }),
            Shape::TwoPath { profiles } => TopologySpec::TwoPath(TwoPathSpec {
                hosts: 1,
                profiles,
                common,
            }),
            Shape::Dumbbell { hosts, profiles } => TopologySpec::Dumbbell(TwoPathSpec {
                hosts,
                profiles,
                common,
            }),
        })
    }

    /// Where switches begin to mark: below the end of the queue, or they never would.
    fn ecn_threshold(&self) -> Result<Option<QueueDepth>, String> {
        use QueueDepth::{Bytes, Packets};
        let (Some(ecn), queue) = (self.ecn, self.queue) else {
            return Ok(None);
        };
        let is_beyond = match (ecn, queue) {
            (Packets(ecn), Packets(queue)) => ecn >= queue,
            (Bytes(ecn), Bytes(queue)) => ecn >= queue,
            (Bytes(_), Packets(_)) | (Packets(_), Bytes(_)) => ecn.packets() >= queue.packets(),
        };
        if is_beyond {
            return Err("--ecn: give less than --queue, where packets are dropped".to_owned());
        }
        Ok(Some(ecn))
    }

    /// Refuses fabrics in which no flow can cross racks.
    ///
    /// # Errors
    /// One line that says so.
    pub fn carries_flows(&self) -> Result<(), String> {
        if let Shape::LeafSpine { leaves: 1, .. } = self.shape.shape()? {
            return Err("--leaves 1: flows run between racks; give at least 2".to_owned());
        }
        Ok(())
    }
}

fn parse_link_rate(text: &str) -> Result<u64, String> {
    let rate = parse_rate_bps(text)?;
    if !(1_000_000..=1_000_000_000_000).contains(&rate) {
        return Err(format!(
            "{text:?}: links have 1mbit to 1tbit, such as 1gbit"
        ));
    }
    Ok(rate)
}

fn parse_delay(text: &str) -> Result<u64, String> {
    let delay = parse_duration_ns(text)?;
    if delay > 10_000_000_000 {
        return Err(format!("{text:?}: links have at most 10s, such as 10us"));
    }
    Ok(delay)
}

fn parse_flowlet_timeout(text: &str) -> Result<u64, String> {
    let timeout = parse_duration_ns(text)?;
    if !(1_000..=10_000_000_000).contains(&timeout) {
        return Err(format!(
            "{text:?}: a flowlet timeout is 1us to 10s, such as 500us"
        ));
    }
    Ok(timeout)
}

/// The module's absolute path.
fn parse_module(text: &str) -> Result<PathBuf, String> {
    let file = Path::new(text)
        .canonicalize()
        .map_err(|error| error.to_string())?;
    if !file.is_file() {
        return Err("not a file".to_owned());
    }
    Ok(file)
}

/// The folder's absolute path, if it has a program.
fn parse_programs(text: &str) -> Result<PathBuf, String> {
    let folder = Path::new(text)
        .canonicalize()
        .map_err(|error| error.to_string())?;
    let has = |program: &str| {
        folder.join(format!("{program}.json")).is_file()
            && folder.join(format!("{program}.p4info.txtpb")).is_file()
    };
    let programs = [Role::Leaf, Role::Spine, Role::Nic].map(Role::program);
    if !programs.into_iter().any(has) {
        let [first, second, third] = programs;
        return Err(format!(
            "no {first}, {second} or {third}, each as .json and .p4info.txtpb; p4/compile makes \
             them"
        ));
    }
    Ok(folder)
}

fn parse_control_delay(text: &str) -> Result<u64, String> {
    let delay = parse_duration_ns(text)?;
    if delay > 1_000_000_000 {
        return Err(format!(
            "{text:?}: the control network has at most 1s, such as 20us"
        ));
    }
    Ok(delay)
}

fn parse_jitter(text: &str) -> Result<u64, String> {
    let jitter = parse_duration_ns(text)?;
    if jitter > 1_000_000_000 {
        return Err(format!(
            "{text:?}: hosts hold packets up for at most 1s, such as 500us"
        ));
    }
    Ok(jitter)
}

fn parse_queue(text: &str) -> Result<u64, String> {
    let depth = text.parse().ok();
    depth
        .filter(|depth| (1..=1_000_000).contains(depth))
        .ok_or_else(|| format!("{text:?}: queues hold 1 to 1000000 packets, such as 100"))
}

fn parse_loss(text: &str) -> Result<u64, String> {
    parse_share_ppm(text).map(u64::from)
}

fn parse_ip(text: &str) -> Result<u8, String> {
    match text {
        "4" => Ok(4),
        "6" => Ok(6),
        _ => Err(format!("{text:?} is no version of IP; give 4 or 6")),
    }
}

fn parse_ttl(text: &str) -> Result<u64, String> {
    let ttl = parse_duration_ns(text)?;
    if !(1_000_000..=TIME_TO_LIVE_MAX_NS).contains(&ttl) {
        return Err(format!("{text:?}: give 1ms to 60s, such as 200ms"));
    }
    Ok(ttl)
}

#[cfg(test)]
mod tests;
