// SPDX-License-Identifier: Apache-2.0

//! `run.json`: what was run, on what, and how it ended.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use weft_topology::{Routing, Topology};

/// Contents of `run.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    /// Version of the folder's format.
    pub format: u32,
    /// Weft's version.
    pub weft: String,
    /// Weft's source revision, if known.
    pub revision: Option<String>,
    /// Kernel that ran the flows: name and release.
    pub kernel: String,
    /// The workload, by the names of its flags.
    pub workload: Workload,
    /// Summary of the fabric.
    pub topology: TopologySummary,
    /// The lab's own parameters, if the run was in a lab.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lab: Option<Value>,
    /// Results of the run.
    pub outcome: RunOutcome,
}

/// The workload of a run; what its kind of traffic does not have is left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// Who sent to whom: a kind of traffic, such as `incast`. Older runs have it as `pattern`.
    #[serde(alias = "pattern")]
    pub traffic: String,
    /// Distribution of flow sizes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// Mean of that distribution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_bytes: Option<f64>,
    /// Offered load, as a share of the host links' rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// Number of flows.
    pub flows: u32,
    /// Size of every flow, or of all objects of a page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// MPTCP scheduler.
    pub scheduler: String,
    /// Options of the schedulers that were set, such as `weft_rescue_ms=0`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scheduler_options: Vec<String>,
    /// Seed.
    pub seed: u64,
    /// How flows got connections.
    pub connections: String,
    /// `SO_SNDBUF`, if it was set.
    pub send_buffer_bytes: Option<u32>,
    /// `SO_RCVBUF`, if it was set.
    #[serde(default)]
    pub receive_buffer_bytes: Option<u32>,
    /// Mean time between starts of flows of an incast, if not all at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interarrival_ns: Option<u64>,
    /// When bulk flows were stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ns: Option<u64>,
    /// Connections that fetched a page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel: Option<u32>,
    /// What few kinds of traffic have.
    #[serde(flatten)]
    pub more: More,
    /// Transport.
    pub protocol: String,
    /// TCP congestion control of every subflow; empty in runs that didn't record it.
    #[serde(default)]
    pub congestion: String,
    /// A run without progress is aborted after this time.
    pub stall_timeout_ns: u64,
}

/// Parameters of only a few kinds of traffic.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct More {
    /// Factor that all sizes were multiplied by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
    /// Time within which flows started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_ns: Option<u64>,
    /// Half of the confidence interval that ended the run, in percent of the mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precision_percent: Option<f64>,
    /// Whether applications of MPTCP flows told the kernel how much they had left to write.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tell_sizes: bool,
    /// Flows that arrived before are in no result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warmup_ns: Option<u64>,
    /// Size of a short flow of a mix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short_bytes: Option<u64>,
    /// Share of long flows of a mix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub long_share: Option<f64>,
    /// Hosts that each query asks; this many adjacent flows are its answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fan_out: Option<u32>,
    /// Deadline of a query for its last answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_ns: Option<u64>,
    /// Background flows of plain TCP; `background.csv` has what each delivered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background_tcp: Option<u32>,
    /// Background UDP sources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background_udp: Option<u32>,
    /// Rate of each UDP source while it is on, if given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub udp_rate_bps: Option<u64>,
    /// Mean on time of a UDP source, if given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub udp_on_ns: Option<u64>,
    /// Mean off time of a UDP source, if given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub udp_off_ns: Option<u64>,
}

/// Summary of a fabric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TopologySummary {
    /// Kind of fabric.
    pub name: String,
    /// Number of paths between leaves.
    pub paths: u8,
    /// How leaves select a path.
    pub routing: Routing,
    /// Number of hosts.
    pub hosts: usize,
    /// Number of switches of each role.
    pub switches: BTreeMap<String, usize>,
    /// Links, grouped by equal properties.
    pub links: Vec<LinkSummary>,
    /// Random loss in front of a switch, in frames per million.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub loss_ppm: BTreeMap<String, u32>,
}

/// Links with equal properties.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkSummary {
    /// `host-switch` or `switch-switch`.
    pub between: String,
    /// Number of links.
    pub count: usize,
    /// Rate of each direction, or of the direction to the host.
    pub rate_bps: u64,
    /// Rate of the direction from the host, if different.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_from_host_bps: Option<u64>,
    /// One-way propagation delay.
    pub delay_ns: u64,
    /// Depth of every egress queue.
    pub queue_packets: u32,
}

/// Results of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunOutcome {
    /// Flows that completed.
    pub completed: usize,
    /// Flows that failed.
    pub failed: usize,
    /// From the start of the run to the end of its last flow.
    pub duration_ns: u64,
    /// Start of the run by `CLOCK_MONOTONIC`, the clock of captures.
    #[serde(default)]
    pub start_ns: u64,
}

impl TopologySummary {
    /// Summarizes `topology`.
    #[must_use]
    pub fn of(topology: &Topology) -> Self {
        let mut switches = BTreeMap::new();
        for switch in &topology.switches {
            let role = format!("{:?}", switch.role).to_lowercase();
            *switches.entry(role).or_default() += 1;
        }
        let mut links: Vec<LinkSummary> = Vec::new();
        for link in &topology.links {
            let to_host = [&link.a, &link.b]
                .iter()
                .any(|end| topology.host(&end.node).is_some());
            let between = if to_host {
                "host-switch"
            } else {
                "switch-switch"
            };
            let same = links.iter_mut().find(|known| {
                known.between == between
                    && known.rate_bps == link.rate_bps
                    && known.rate_from_host_bps == link.rate_from_a_bps
                    && known.delay_ns == link.delay_ns
                    && known.queue_packets == link.queue_packets
            });
            match same {
                Some(known) => known.count += 1,
                None => links.push(LinkSummary {
                    between: between.to_owned(),
                    count: 1,
                    rate_bps: link.rate_bps,
                    rate_from_host_bps: link.rate_from_a_bps,
                    delay_ns: link.delay_ns,
                    queue_packets: link.queue_packets,
                }),
            }
        }
        Self {
            name: topology.name.clone(),
            paths: topology.paths,
            routing: topology.routing,
            hosts: topology.hosts.len(),
            switches,
            links,
            loss_ppm: topology
                .switches
                .iter()
                .filter(|switch| switch.loss_ppm > 0)
                .map(|switch| (switch.name.clone(), switch.loss_ppm))
                .collect(),
        }
    }
}
