// SPDX-License-Identifier: Apache-2.0

//! A run's folder. It is written completely or not at all; reports and plots read it.
//!
//! | file           | what                                                      |
//! |----------------|-----------------------------------------------------------|
//! | `run.json`     | every parameter, the seed, versions; see [`RunInfo`]      |
//! | `flows.csv`    | a row per flow; see [`FlowRow`]                           |
//! | `subflows.csv` | a row per subflow of each flow; see [`SubflowRow`]         |
//! | `samples.csv`  | the same during flows, if requested; see [`SampleRow`]    |
//! | `background.csv` | what TCP flows in the background delivered, if there were any; see [`BackgroundRow`] |
//! | `queues.csv`   | queue of every switch port, every ms in which it changed  |
//! | `patterns.csv` | every allocation pattern that was in force                |
//! | `loop.csv`     | when each pattern reached each kernel; see `weft-controller` |
//! | `capture/`     | packets, if captured; see `weft-evidence`                 |
//!
//! Times count from the start of the run. Nothing depends on the time of day or on paths, so
//! equal runs give equal bytes.

pub mod window;

use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use weft_topology::{Routing, Topology};

use window::Window;

/// Version of the folder's format.
pub const FORMAT: u32 = 1;

/// Contents of `run.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    /// [`FORMAT`].
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

/// A row of `flows.csv`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowRow {
    /// Number, from 0, in order of arrival.
    pub flow: usize,
    /// Host that sent.
    pub src: String,
    /// Host that received.
    pub dst: String,
    /// Size; for a stopped flow, the bytes that the receiver had read by then.
    pub bytes: u64,
    /// Arrival, from the start of the run; for an object of a page, its request.
    pub start_ns: u64,
    /// Flow completion time: from arrival until the last byte is read, or until the stop; empty if
    /// the flow failed.
    pub fct_ns: Option<u64>,
    /// Ideal flow completion time in an idle fabric, see [`crate::ideal_fabric`].
    pub ideal_fct_ns: u64,
    /// Subflows of its connection at the end.
    pub subflows: u32,
    /// Packets retransmitted during the flow.
    pub retransmissions: u64,
    /// Retransmission timeouts during the flow.
    pub timeouts: u64,
    /// Bytes reinjected on another subflow during the flow because the connection's own timer
    /// expired: a timeout that no subflow had.
    pub reinjected_bytes: u64,
    /// Error message; empty unless the flow failed.
    pub error: String,
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

/// A row of `subflows.csv`: the sender kernel's RTT of a subflow when the last byte of a flow
/// arrives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubflowRow {
    /// Number of the flow in `flows.csv`.
    pub flow: usize,
    /// Time from the start of the run.
    pub time_ns: u64,
    /// Address of the sender.
    pub source: Ipv4Addr,
    /// Its port.
    pub source_port: u16,
    /// Address of the receiver.
    pub destination: Ipv4Addr,
    /// Its port.
    pub destination_port: u16,
    /// Smoothed RTT.
    pub srtt_ns: u64,
    /// Lowest recent RTT.
    pub min_rtt_ns: u64,
}

/// A row of `samples.csv`: the state of a subflow during a flow, at the sending end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleRow {
    /// Number of the flow in `flows.csv`.
    pub flow: usize,
    /// Time from the start of the run.
    pub time_ns: u64,
    /// Address of the sender.
    pub source: Ipv4Addr,
    /// Its port.
    pub source_port: u16,
    /// Address of the receiver.
    pub destination: Ipv4Addr,
    /// Smoothed RTT.
    pub srtt_ns: u64,
    /// Lowest recent RTT.
    pub min_rtt_ns: u64,
    /// Congestion window.
    pub cwnd_packets: u32,
    /// Packets in flight.
    pub in_flight_packets: u32,
}

/// A row of `background.csv`: a flow of plain TCP in the background. It runs for all of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackgroundRow {
    /// Host that sent.
    pub src: String,
    /// Host that received.
    pub dst: String,
    /// What the receiver read from the start of the run to its end.
    pub bytes: u64,
}

/// The tables of a run.
#[derive(Debug, Clone, Copy)]
pub struct Tables<'a> {
    /// `flows.csv`.
    pub flows: &'a [FlowRow],
    /// `subflows.csv`.
    pub subflows: &'a [SubflowRow],
    /// `samples.csv`, if requested.
    pub samples: Option<&'a [SampleRow]>,
    /// `background.csv`; no file if there is no row.
    pub background: &'a [BackgroundRow],
}

/// Writes the folder `out`, which must not exist, completely or not at all. Copies telemetry from
/// `stats`, if there is any.
///
/// # Errors
/// If a file cannot be read or written.
pub fn write(
    out: &Path,
    info: &RunInfo,
    tables: Tables<'_>,
    stats: &Path,
    window: Window,
) -> Result<()> {
    let partial = partial_path(out);
    if partial.exists() {
        fs::remove_dir_all(&partial).with_context(|| partial.display().to_string())?;
    }
    fs::create_dir_all(&partial).with_context(|| partial.display().to_string())?;
    let written = write_files(&partial, info, tables, stats, window)
        .and_then(|()| fs::rename(&partial, out).with_context(|| out.display().to_string()));
    if written.is_err() {
        let _ = fs::remove_dir_all(&partial);
    }
    written
}

fn write_files(
    folder: &Path,
    info: &RunInfo,
    tables: Tables<'_>,
    stats: &Path,
    window: Window,
) -> Result<()> {
    write_rows(&folder.join("flows.csv"), tables.flows)?;
    write_rows(&folder.join("subflows.csv"), tables.subflows)?;
    if let Some(samples) = tables.samples {
        write_rows(&folder.join("samples.csv"), samples)?;
    }
    if !tables.background.is_empty() {
        write_rows(&folder.join("background.csv"), tables.background)?;
    }
    let (from, to) = (|name| stats.join(name), |name| folder.join(name));
    window.copy_queues(&from("queues.csv"), &to("queues.csv"))?;
    window.copy_patterns(&from("patterns.csv"), &to("patterns.csv"))?;
    window.copy_loops(&from("loop.csv"), &to("loop.csv"))?;
    let mut json = serde_json::to_string_pretty(info)?;
    json.push('\n');
    fs::write(folder.join("run.json"), json)?;
    Ok(())
}

fn write_rows<Row: Serialize>(path: &Path, rows: &[Row]) -> Result<()> {
    let mut table = csv::Writer::from_path(path).with_context(|| path.display().to_string())?;
    for row in rows {
        table.serialize(row)?;
    }
    table.flush()?;
    Ok(())
}

/// The temporary folder, next to the final one.
fn partial_path(out: &Path) -> PathBuf {
    let mut name = out.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    out.with_file_name(name)
}

/// The contents of a run's folder.
#[derive(Debug, Clone)]
pub struct Results {
    /// `run.json`.
    pub info: RunInfo,
    /// `flows.csv`.
    pub flows: Vec<FlowRow>,
    /// The switches' counters; `None` if there are none.
    pub switches: Option<SwitchTotals>,
}

/// Packets that switches dropped or lost, in total.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SwitchTotals {
    /// Dropped at a full queue.
    pub dropped_packets: u64,
    /// Lost on a link: at random, or because the link was down.
    pub lost_packets: u64,
}

impl Results {
    /// The flows that count: those that arrived after the warm-up.
    pub fn measured(&self) -> impl Iterator<Item = &FlowRow> {
        let from_ns = self.info.workload.more.warmup_ns.unwrap_or(0);
        self.flows
            .iter()
            .filter(move |flow| flow.start_ns >= from_ns)
    }

    /// Reads the folder at `path`.
    ///
    /// # Errors
    /// If something is missing or malformed.
    pub fn read(path: &Path) -> Result<Self> {
        let file = path.join("run.json");
        let json = fs::read_to_string(&file)
            .with_context(|| format!("{}: not the folder of a run", path.display()))?;
        let info: RunInfo =
            serde_json::from_str(&json).with_context(|| file.display().to_string())?;
        if info.format != FORMAT {
            bail!(
                "{}: form {}, this program reads {FORMAT}",
                file.display(),
                info.format
            );
        }
        let file = path.join("flows.csv");
        let flows = csv::Reader::from_path(&file)
            .and_then(|mut table| table.deserialize().collect())
            .with_context(|| file.display().to_string())?;
        let file = path.join("queues.csv");
        let switches = if file.exists() {
            Some(sum_totals(&file).with_context(|| file.display().to_string())?)
        } else {
            None
        };
        Ok(Self {
            info,
            flows,
            switches,
        })
    }
}

/// Sums the last counters of every port.
fn sum_totals(path: &Path) -> Result<SwitchTotals> {
    #[derive(Deserialize)]
    struct Row {
        switch: String,
        port: u16,
        dropped_packets: u64,
        /// Runs of older versions don't have this column.
        #[serde(default)]
        lost_packets: u64,
    }
    let mut last = BTreeMap::new();
    for row in csv::Reader::from_path(path)?.deserialize() {
        let row: Row = row?;
        last.insert(
            (row.switch, row.port),
            (row.dropped_packets, row.lost_packets),
        );
    }
    let totals = last.values();
    Ok(
        totals.fold(SwitchTotals::default(), |sum, (dropped, lost)| {
            SwitchTotals {
                dropped_packets: sum.dropped_packets + dropped,
                lost_packets: sum.lost_packets + lost,
            }
        }),
    )
}

#[cfg(test)]
pub(crate) mod tests;
