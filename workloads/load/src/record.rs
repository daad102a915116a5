// SPDX-License-Identifier: Apache-2.0

//! A finished run as what its folder holds: the rows of the tables, and `run.json`.

use std::fs;
use std::path::Path;

use serde_json::Value;
use weft_topology::Topology;

use crate::args::{RunDocument, Traffic, Volume, WorkloadArgs};
use crate::engine::Outcome;
use crate::ideal_fabric::{IdealFabric, Protocol};
use crate::plan::Flow;
use crate::results::{
    BackgroundRow, FORMAT, FlowRow, More, RunInfo, RunOutcome, SampleRow, SubflowRow,
    TopologySummary, Workload,
};
use crate::shell::{self, Run};

/// The subflows of each flow at its end.
#[must_use]
pub fn subflow_rows(run: &Run) -> Vec<SubflowRow> {
    let row = |(flow, at_ns, subflow): &shell::Sample| SubflowRow {
        flow: *flow,
        time_ns: at_ns.saturating_sub(run.start_ns),
        source: *subflow.source.ip(),
        source_port: subflow.source.port(),
        destination: *subflow.destination.ip(),
        destination_port: subflow.destination.port(),
        srtt_ns: subflow.srtt_ns,
        min_rtt_ns: subflow.min_rtt_ns,
    };
    run.subflows.iter().map(row).collect()
}

/// The subflows of each flow during the flow.
#[must_use]
pub fn sample_rows(run: &Run) -> Vec<SampleRow> {
    let row = |(flow, at_ns, subflow): &shell::Sample| SampleRow {
        flow: *flow,
        time_ns: at_ns.saturating_sub(run.start_ns),
        source: *subflow.source.ip(),
        source_port: subflow.source.port(),
        destination: *subflow.destination.ip(),
        srtt_ns: subflow.srtt_ns,
        min_rtt_ns: subflow.min_rtt_ns,
        cwnd_packets: subflow.cwnd_packets,
        in_flight_packets: subflow.in_flight_packets,
    };
    run.samples.iter().map(row).collect()
}

/// What flows in the background delivered.
#[must_use]
pub fn background_rows(run: &Run, topology: &Topology) -> Vec<BackgroundRow> {
    let name = |host: usize| topology.hosts[host].name.clone();
    let row = |flow: &shell::Delivered| BackgroundRow {
        src: name(flow.source),
        dst: name(flow.destination),
        bytes: flow.bytes,
    };
    run.background.iter().map(row).collect()
}

/// Every flow, with its FCT beside the one in an idle fabric.
#[must_use]
pub fn flow_rows(
    run: &Run,
    topology: &Topology,
    fabric: &IdealFabric,
    protocol: Protocol,
) -> Vec<FlowRow> {
    let name = |host: usize| topology.hosts[host].name.clone();
    let row = |(id, (flow, outcome, counters)): (usize, &(Flow, Outcome, shell::Counters))| {
        let Flow {
            source,
            destination,
            mut bytes,
            start_ns,
        } = *flow;
        let (fct_ns, error) = match outcome {
            Outcome::Done { fct_ns } => (Some(*fct_ns), String::new()),
            Outcome::Stopped {
                after_ns,
                bytes: arrived,
            } => {
                bytes = *arrived;
                (Some(*after_ns), String::new())
            }
            Outcome::Failed { reason } => (None, reason.clone()),
            Outcome::Pending => (None, "not finished".to_owned()),
        };
        FlowRow {
            flow: id,
            src: name(source),
            dst: name(destination),
            bytes,
            start_ns,
            fct_ns,
            ideal_fct_ns: fabric.ideal_fct_ns(source, destination, bytes, protocol),
            subflows: counters.subflows,
            retransmissions: counters.retransmissions,
            timeouts: counters.timeouts,
            reinjected_bytes: counters.reinjected_bytes,
            error,
        }
    };
    run.flows.iter().enumerate().map(row).collect()
}

/// What was run, and how it ended.
#[must_use]
pub fn run_info(
    args: &RunDocument,
    traffic: &Traffic,
    topology: &Topology,
    run: &Run,
    rows: &[FlowRow],
) -> RunInfo {
    let (name, sizes, load, bytes) = match traffic {
        Traffic::Random {
            name, sizes, load, ..
        } => (Some(name), Some(sizes), Some(*load), None),
        Traffic::Incast { bytes, .. }
        | Traffic::Page { bytes, .. }
        | Traffic::AllToAll { bytes, .. }
        | Traffic::Queries { bytes, .. }
        | Traffic::Bulk {
            volume: Volume::Bytes(bytes),
            ..
        } => (None, None, None, Some(*bytes)),
        Traffic::Mixed(mix) => (None, None, None, Some(mix.long_bytes)),
        Traffic::Bulk { .. } | Traffic::Replay { .. } => (None, None, None, None),
    };
    let flags = &args.workload;
    let lower = |value: &dyn std::fmt::Debug| format!("{value:?}").to_lowercase();
    let completed = rows.iter().filter(|row| row.fct_ns.is_some()).count();
    RunInfo {
        format: FORMAT,
        weft: env!("CARGO_PKG_VERSION").to_owned(),
        revision: args.revision.clone(),
        kernel: kernel(),
        workload: Workload {
            traffic: flags.kind_name(),
            workload: name.cloned(),
            mean_bytes: sizes.map(|sizes| sizes.mean_bytes()),
            load,
            flows: rows.len() as u32,
            bytes,
            scheduler: args.mptcp_scheduler().unwrap_or("none").to_owned(),
            scheduler_options: flags
                .scheduler_options
                .iter()
                .map(ToString::to_string)
                .collect(),
            seed: flags.seed,
            connections: lower(&flags.connections),
            send_buffer_bytes: flags.send_buffer,
            receive_buffer_bytes: flags.receive_buffer,
            interarrival_ns: flags.interarrival,
            duration_ns: flags.duration,
            parallel: match traffic {
                Traffic::Page { parallel, .. } => Some(*parallel),
                _ => None,
            },
            more: more(flags, traffic),
            protocol: lower(&flags.protocol),
            congestion: run.congestion.clone(),
            stall_timeout_ns: flags.stall_timeout,
        },
        topology: TopologySummary::of(topology),
        lab: lab_parameters(&args.stats_dir),
        outcome: RunOutcome {
            completed,
            failed: rows.len() - completed,
            duration_ns: run.end_ns.saturating_sub(run.start_ns),
            start_ns: run.start_ns,
        },
    }
}

fn more(flags: &WorkloadArgs, traffic: &Traffic) -> More {
    let of_traffic = match traffic {
        Traffic::Mixed(mix) => More {
            short_bytes: Some(mix.short_bytes),
            long_share: Some(mix.long_share),
            ..More::default()
        },
        Traffic::Queries {
            fan_out,
            deadline_ns,
            ..
        } => More {
            fan_out: Some(*fan_out),
            deadline_ns: *deadline_ns,
            ..More::default()
        },
        _ => More::default(),
    };
    More {
        scale: flags.scale,
        jitter_ns: flags.jitter,
        precision_percent: flags.precision,
        tell_sizes: flags.tell_sizes,
        warmup_ns: flags.warmup,
        background_tcp: flags.background.background_tcp,
        background_udp: flags.background.background_udp,
        udp_rate_bps: flags.background.udp_rate,
        udp_on_ns: flags.background.udp_on,
        udp_off_ns: flags.background.udp_off,
        ..of_traffic
    }
}

fn kernel() -> String {
    let Ok(uname) = nix::sys::utsname::uname() else {
        return "unknown".to_owned();
    };
    let (system, release) = (uname.sysname(), uname.release());
    format!("{} {}", system.to_string_lossy(), release.to_string_lossy())
}

/// What the lab was started with, without what only this machine or this run
/// knows.
fn lab_parameters(stats: &Path) -> Option<Value> {
    let text = fs::read_to_string(stats.join("lab.json")).ok()?;
    let mut lab: Value = serde_json::from_str(&text).ok()?;
    let lab_object = lab.as_object_mut()?;
    for key in ["paths", "batch"] {
        lab_object.remove(key);
    }
    Some(lab)
}
