// SPDX-License-Identifier: Apache-2.0

//! The fabric of a lab: its shape, its links and how its switches route.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

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
    /// Number of classes by what is left to send, which switches serve in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priorities: Option<u8>,
    /// Share of a link for the lowest class that waits, in millionths, if it is given: only with
    /// priorities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lowest_share_ppm: Option<u32>,
    /// Whose queues stay first in, first out, although there are priorities: `hosts`, `switches`,
    /// or switches by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_come: Vec<String>,
    /// Hosts whose classes their leaf clears.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clear_classes: Vec<String>,
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
