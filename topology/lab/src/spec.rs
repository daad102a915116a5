// SPDX-License-Identifier: Apache-2.0

//! What a lab is: the document that the outside writes to `lab.json` and that
//! everything inside reads from `/run/weft/lab.json`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize};

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

/// A fabric and its parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum TopologySpec {
    /// Every leaf is cabled to every spine; hosts hang on leaves.
    LeafSpine(LeafSpineSpec),
    /// Pods of edge and aggregation switches, and cores between them.
    FatTree(FatTreeSpec),
    /// Hosts with several links each, all to one switch.
    ManyToOne(ManyToOneSpec),
    /// Two hosts, and paths of known kinds between them.
    TwoPath(TwoPathSpec),
    /// The same with several hosts at each end.
    Dumbbell(TwoPathSpec),
}

impl TopologySpec {
    /// What all fabrics have.
    #[must_use]
    pub fn common(&self) -> &CommonSpec {
        match self {
            Self::LeafSpine(spec) => &spec.common,
            Self::FatTree(spec) => &spec.common,
            Self::ManyToOne(spec) => &spec.common,
            Self::TwoPath(spec) | Self::Dumbbell(spec) => &spec.common,
        }
    }

    /// Paths between hosts that are farthest apart that a connection uses, each with a
    /// subflow.
    #[must_use]
    pub fn paths(&self) -> u8 {
        let paths = match self {
            Self::LeafSpine(spec) => spec.spines,
            Self::FatTree(spec) => (spec.k / 2).saturating_pow(2),
            Self::ManyToOne(spec) => spec.links,
            // As many as flags take.
            Self::TwoPath(spec) | Self::Dumbbell(spec) => spec.profiles.len() as u8,
        };
        paths.min(self.common().subflows)
    }

    /// Hosts of all leaves.
    #[must_use]
    pub fn hosts(&self) -> usize {
        match self {
            Self::LeafSpine(spec) => match &spec.hosts {
                HostsSpec::Same(hosts) => usize::from(spec.leaves) * usize::from(*hosts),
                HostsSpec::Each(hosts) => hosts.iter().copied().map(usize::from).sum(),
            },
            Self::FatTree(spec) => usize::from(spec.k).pow(3) / 4,
            Self::ManyToOne(spec) => spec.hosts.into(),
            Self::TwoPath(_) => 2,
            Self::Dumbbell(spec) => 2 * usize::from(spec.hosts),
        }
    }
}

/// Subflows of a connection: the kernel's limit, of MPTCP and of patterns.
pub const MAX_SUBFLOWS: u8 = 8;

/// Parameters of every fabric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommonSpec {
    /// Rate of links between switches.
    pub rate_bps: u64,
    /// Rate of links to hosts: in both directions, unless `sender_rate_bps` is given.
    pub host_rate_bps: u64,
    /// Rate from hosts to their leaf, if it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender_rate_bps: Option<u64>,
    /// One-way propagation delay of every link.
    pub delay_ns: u64,
    /// Depth of every egress queue.
    pub queue_packets: u32,
    /// The same in bytes, which then replaces the limit in packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_bytes: Option<u64>,
    /// Packets in a queue above which switches mark those that are ECN-capable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn_packets: Option<u32>,
    /// The same in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn_bytes: Option<u64>,
    /// Maximum number of paths that a connection uses.
    #[serde(default = "max_subflows", skip_serializing_if = "is_max_subflows")]
    pub subflows: u8,
    /// Metrics of the hosts' routes, by name, where they are not the kernel's own:
    /// `weft_topology/route_metrics.py` says which there are.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub route_metrics: BTreeMap<String, u32>,
    /// How leaves choose among paths.
    pub routing: RoutingSpec,
    /// Gap in a flow after which its next packet begins a flowlet, if it is given: only with
    /// flowlet routing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flowlet_timeout_ns: Option<u64>,
    /// Version of IP that connections run over: 4 or 6.
    #[serde(default = "ipv4", skip_serializing_if = "is_ipv4")]
    pub ip: u8,
    /// Changes of links while traffic runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ChangeSpec>,
    /// Mean stall of the scheduling noise between a host's kernel and its network card.
    #[serde(default)]
    pub host_jitter_ns: u64,
    /// NICs of hosts.
    #[serde(default)]
    pub nic: NicSpec,
    /// In-band telemetry between leaves.
    #[serde(default)]
    pub in_band: InBandSpec,
}

fn max_subflows() -> u8 {
    MAX_SUBFLOWS
}

// serde hands over references.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_max_subflows(subflows: &u8) -> bool {
    *subflows == MAX_SUBFLOWS
}

fn ipv4() -> u8 {
    4
}

// serde hands over references.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_ipv4(version: &u8) -> bool {
    *version == ipv4()
}

/// In-band telemetry between leaves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InBandSpec {
    /// None.
    #[default]
    Off,
    /// INT-MD.
    Md,
}

/// The network cards of hosts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NicSpec {
    /// Plain ones.
    #[default]
    Plain,
    /// Such that run a P4 program and measure RTTs.
    P4,
}

/// Parameters of a leaf-spine fabric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LeafSpineSpec {
    /// Number of leaves.
    pub leaves: u8,
    /// Number of spines: paths between two leaves.
    pub spines: u8,
    /// Hosts per leaf.
    pub hosts: HostsSpec,
    /// The rest.
    #[serde(flatten)]
    pub common: CommonSpec,
    /// Spines (numbered from 1) whose links all have another delay.
    #[serde(default, deserialize_with = "numbered")]
    pub spine_delay_ns: BTreeMap<u8, u64>,
    /// Spines whose links all have another rate.
    #[serde(default, deserialize_with = "numbered")]
    pub spine_rate_bps: BTreeMap<u8, u64>,
    /// Spines whose links all have queues of another depth at both ends.
    #[serde(default, deserialize_with = "numbered")]
    pub spine_queue_packets: BTreeMap<u8, u64>,
    /// Spines that lose frames at random: so many in a million that arrive.
    #[serde(default, deserialize_with = "numbered")]
    pub spine_loss_ppm: BTreeMap<u8, u64>,
}

/// Hosts of leaves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum HostsSpec {
    /// So many at every leaf.
    Same(u8),
    /// Of each leaf.
    Each(Vec<u8>),
}

impl HostsSpec {
    /// The number at the leaf that has the most.
    #[must_use]
    pub fn most(&self) -> u8 {
        match self {
            Self::Same(hosts) => *hosts,
            Self::Each(hosts) => hosts.iter().copied().max().unwrap_or(0),
        }
    }
}

/// Parameters of hosts with several links to one switch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ManyToOneSpec {
    /// Hosts, the receiver among them.
    pub hosts: u8,
    /// Links of each host.
    pub links: u8,
    /// The rest.
    #[serde(flatten)]
    pub common: CommonSpec,
}

/// Parameters of hosts at both ends of some paths.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TwoPathSpec {
    /// Hosts at each end.
    pub hosts: u8,
    /// Of each path: the name of a kind, or `RATE/RTT/PACKETS/LOSS`.
    pub profiles: Vec<String>,
    /// The rest.
    #[serde(flatten)]
    pub common: CommonSpec,
}

/// Parameters of a fat-tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FatTreeSpec {
    /// Ports of a switch, and pods: even.
    pub k: u8,
    /// The rest.
    #[serde(flatten)]
    pub common: CommonSpec,
}

/// A change of links; what is `None` stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeSpec {
    /// When, from the start of traffic.
    pub at_ns: u64,
    /// The switch all of whose links change, or one link: `spine1`, `leaf1-spine2`.
    pub target: String,
    /// Rate of each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<u64>,
    /// The same as a share of the rate that it has at first, in a million.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_ppm: Option<u64>,
    /// One-way propagation delay of each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ns: Option<u64>,
    /// Depth of the queues of each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_packets: Option<u64>,
    /// Frames in a million that are lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_ppm: Option<u64>,
    /// Whether it works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up: Option<bool>,
}

/// How a leaf chooses the path of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RoutingSpec {
    /// By the host's address: one path per address pair, known to all.
    Subflow,
    /// By a hash of the 5-tuple, as real fabrics do.
    Ecmp,
    /// At random for each flowlet.
    Flowlet,
    /// At random for each packet.
    Spray,
}

/// How virtual time relates to real time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClockMode {
    /// As fast as the machine can: for experiments.
    Free,
    /// At most as fast as real time: for people.
    Paced,
    /// Stands still.
    Paused,
    /// No virtual time: the network runs on this machine's own kernel, in real time.
    Native,
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

fn rtt() -> String {
    "rtt".to_owned()
}

/// A map with numbers as keys. JSON has keys as text only, and serde does not turn them back
/// inside an enum with a tag.
fn numbered<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<u8, u64>, D::Error> {
    BTreeMap::<String, u64>::deserialize(deserializer)?
        .into_iter()
        .map(|(key, value)| match key.parse() {
            Ok(number) => Ok((number, value)),
            Err(_) => Err(serde::de::Error::custom(format!(
                "{key:?} is no number from 0 to 255"
            ))),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With every field.
    fn whole() -> LabSpec {
        LabSpec {
            topology: Some(TopologySpec::LeafSpine(LeafSpineSpec {
                leaves: 2,
                spines: 2,
                hosts: HostsSpec::Each(vec![4, 8]),
                common: CommonSpec {
                    rate_bps: 1_000_000_000,
                    host_rate_bps: 1_000_000_000,
                    sender_rate_bps: Some(2_000_000_000),
                    delay_ns: 10_000,
                    queue_packets: 100,
                    queue_bytes: Some(150_000),
                    ecn_packets: None,
                    ecn_bytes: Some(30_000),
                    subflows: 4,
                    route_metrics: BTreeMap::from([("initial_window".to_owned(), 2)]),
                    routing: RoutingSpec::Flowlet,
                    flowlet_timeout_ns: Some(500_000),
                    ip: 6,
                    changes: vec![ChangeSpec {
                        at_ns: 5_000_000,
                        target: "spine1".to_owned(),
                        up: Some(false),
                        ..ChangeSpec::default()
                    }],
                    host_jitter_ns: 500_000,
                    nic: NicSpec::P4,
                    in_band: InBandSpec::Md,
                },
                spine_delay_ns: BTreeMap::from([(2, 40_000)]),
                spine_rate_bps: BTreeMap::from([(1, 5_000_000)]),
                spine_queue_packets: BTreeMap::from([(1, 3_750)]),
                spine_loss_ppm: BTreeMap::from([(2, 10_000)]),
            })),
            pattern_ttl_ns: 200_000_000,
            pattern_input: "rtt+queue".to_owned(),
            gray_loss_ppm: 20_000,
            controllers: 2,
            control_delay_ns: 20_000,
            path_manager: "fixed:2".to_owned(),
            seed: 1,
            clock: ClockMode::Paced,
            capture: Some(CaptureSpec {
                hosts: vec!["h1_1".into()],
                arrivals: ArrivalsSpec::All,
            }),
            bmv2: Some("/usr/bin/simple_switch_grpc".into()),
            paths: Paths {
                repo: "/weft".into(),
                bin: "/weft/bin".into(),
                python: "/weft/python".into(),
                kernel: "/weft/linux".into(),
                modules: vec!["/weft/weft.ko".into(), "/weft/weft_coupled.ko".into()],
                programs: vec!["/weft/p4".into()],
                linked: Vec::new(),
            },
            batch: None,
            kernel_arguments: vec!["slab_debug=FZPU".into()],
        }
    }

    #[test]
    fn a_lab_has_memory_for_its_hosts() {
        let mut spec = whole();
        let mib = |spec: &LabSpec| spec.memory_bytes() >> 20;
        assert_eq!(spec.topology.as_ref().unwrap().hosts(), 12);
        assert_eq!(mib(&spec), 2048);
        let common = spec.topology.as_ref().unwrap().common().clone();
        let fat_tree = |k| {
            TopologySpec::FatTree(FatTreeSpec {
                k,
                common: common.clone(),
            })
        };
        for (k, hosts, needed_mib) in [(4, 16, 2048), (12, 432, 2592), (16, 1024, 6144)] {
            spec.topology = Some(fat_tree(k));
            assert_eq!(spec.topology.as_ref().unwrap().hosts(), hosts);
            assert_eq!(mib(&spec), needed_mib);
        }
        spec.topology = None;
        assert_eq!(mib(&spec), 2048);
    }

    #[test]
    fn a_description_survives_its_json() {
        let spec = whole();
        let json = serde_json::to_string(&spec).unwrap();
        assert!(json.contains(r#""kind":"leaf-spine""#), "{json}");
        assert_eq!(serde_json::from_str::<LabSpec>(&json).unwrap(), spec);
    }
}
