// SPDX-License-Identifier: Apache-2.0

//! What a lab is: the document that the outside writes to `lab.json` and that
//! everything inside reads from `/run/weft/lab.json`.

mod fabric;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

pub use fabric::{
    ChangeSpec, CommonSpec, FatTreeSpec, HostsSpec, InBandSpec, LeafSpineSpec, MAX_SUBFLOWS,
    ManyToOneSpec, NicSpec, RoutingSpec, TopologySpec, TwoPathSpec,
};

/// A whole lab.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LabSpec {
    /// The fabric to build inside. `None` for a plain lab: a Linux with the
    /// modules and nothing else, for tests of the kernel.
    #[serde(default)]
    pub topology: Option<TopologySpec>,
    /// How long a pattern stays valid in a kernel without being renewed.
    #[serde(default)]
    pub pattern_ttl_ns: u64,
    /// What patterns follow from, as `weft-controller --pattern-input` takes it.
    #[serde(default = "rtt")]
    pub pattern_input: String,
    /// Paths that lose so many of a million packets are avoided, as `weft-controller
    /// --gray-loss` takes it.
    #[serde(default = "gray_loss")]
    pub gray_loss_ppm: u32,
    /// Where the thresholds between classes come from, as `weft-controller
    /// --class-thresholds` takes it.
    #[serde(default = "seen")]
    pub class_thresholds: String,
    /// How many controllers there are; one is primary, the others stand by.
    #[serde(default = "one")]
    pub controllers: u8,
    /// One-way delay of the control network: between switches and the controller,
    /// and between the controller and agents.
    #[serde(default)]
    pub control_delay_ns: u64,
    /// Who opens the subflows of connections, as `weft-agent --path-manager`
    /// takes it.
    #[serde(default = "kernel")]
    pub path_manager: String,
    /// Seeds the lab kernel's random pool, and so everything that is random.
    pub seed: u64,
    /// How virtual time relates to real time at first.
    pub clock: ClockMode,
    /// What the switches capture, packet by packet; `None` for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture: Option<CaptureSpec>,
    /// A `simple_switch_grpc` that every switch runs in place of `weft-switch`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bmv2: Option<PathBuf>,
    /// Where things are on this machine; the lab sees them at the same paths.
    pub paths: Paths,
    /// What to run once the network is ready; the lab stops after it. `None`
    /// for a lab that stays up.
    #[serde(default)]
    pub batch: Option<BatchSpec>,
    /// More arguments for the kernel's command line, like `slab_debug=FZPU`.
    #[serde(default)]
    pub kernel_arguments: Vec<String>,
}

/// Memory of the smallest lab.
const MEMORY_BYTES_MIN: u64 = 2 << 30;
/// Memory for a host, with its share of switches, sockets and all that measures them. A fat-tree
/// of 1024 used 3 MiB for each; TCP may have a sixteenth of it all before it holds back.
const HOST_MEMORY_BYTES: u64 = 6 << 20;

impl LabSpec {
    /// Memory that the lab gets unless a flag sets it.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let hosts = self.topology.as_ref().map_or(0, TopologySpec::hosts);
        MEMORY_BYTES_MIN.max(hosts as u64 * HOST_MEMORY_BYTES)
    }
}

/// How virtual time relates to real time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum ClockMode {
    /// As fast as the machine can: for experiments.
    Free,
    /// At most as fast as real time: for people.
    Paced,
    /// Stands still.
    Paused,
    /// No virtual time: the lab kernel runs in real time, and computing takes time too.
    Real,
    /// No virtual time: the network runs on this machine's own kernel, in real time.
    Native,
}

impl ClockMode {
    /// Whether time passes by itself, with no clock of the lab.
    pub fn is_real_time(self) -> bool {
        matches!(self, Self::Real | Self::Native)
    }
}

/// What the switches write to the folder `capture`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureSpec {
    /// Hosts whose cables are captured, by name; `all` for all.
    pub hosts: Vec<String>,
    /// Which queues' arrivals are written down.
    pub arrivals: ArrivalsSpec,
}

/// Queues whose arrivals are written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ArrivalsSpec {
    /// Those in front of captured hosts.
    Hosts,
    /// Those of all ports of all switches.
    All,
}

/// Absolute paths on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paths {
    /// The repository.
    pub repo: PathBuf,
    /// Folder of the built programs (`weft-lab`, `weft-switch`, ...).
    pub bin: PathBuf,
    /// The Python that can import `weft_topology`.
    pub python: PathBuf,
    /// The lab kernel: a User-Mode Linux executable.
    pub kernel: PathBuf,
    /// Weft's kernel modules, built for that kernel, in the order of loading.
    pub modules: Vec<PathBuf>,
    /// Folders of compiled P4 programs; the first that has a program decides.
    pub programs: Vec<PathBuf>,
    /// Where symbolic links at the top of the repository lead, such as a `target` on a larger
    /// disk: the lab sees these places too.
    #[serde(default)]
    pub linked: Vec<PathBuf>,
}

/// A command to run inside a lab that exists for nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchSpec {
    /// Program and arguments; the working directory is `/run/weft`.
    pub argv: Vec<String>,
    /// Folders of this machine that it reads, besides those of [`Paths`]: they
    /// are there also when they are in `/tmp` or `/run`.
    #[serde(default)]
    pub needs: Vec<PathBuf>,
    /// Files of this machine that it reads: the same.
    #[serde(default)]
    pub reads: Vec<PathBuf>,
}

fn kernel() -> String {
    "kernel".to_owned()
}

fn one() -> u8 {
    1
}

fn gray_loss() -> u32 {
    5_000
}

fn seen() -> String {
    "seen".to_owned()
}

fn rtt() -> String {
    "rtt".to_owned()
}
