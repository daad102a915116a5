// SPDX-License-Identifier: Apache-2.0

//! Evaluates the captures of a run.

use std::collections::BTreeMap;
use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;

use weft_load::results::Results;
use weft_topology::Topology;

use crate::error::Error;
use crate::host::Host;
use crate::port::Port;
use crate::run_totals::{PortInfo, RunTotals};
use crate::segment::{Content, content};
use crate::summary::Summary;
use crate::tables::Tables;
use crate::{arrivals, capture};

/// Options of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Whether to write tables with a row for each packet, Data ACK and gap.
    pub packets: bool,
    /// Maximum number of rows per port in the time series of queues.
    pub rows: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            packets: false,
            rows: 1_000,
        }
    }
}

/// Evaluates the captures in the folder `run` and writes its folder `evidence`. The folder
/// replaces an earlier one, and is written completely or not at all.
///
/// # Errors
/// See [`Error`].
pub fn evaluate(run: &Path, options: Options) -> Result<Summary, Error> {
    let captures = run.join("capture");
    if !captures.is_dir() {
        return Err(Error::NotCaptured {
            run: run.to_owned(),
        });
    }
    let results = Results::read(run).map_err(|error| Error::Run(format!("{error:#}")))?;
    let topology = Topology::read(&captures.join("topology.json"))?;
    let partial = run.join(".evidence.partial");
    remove(&partial)?;
    fs::create_dir(&partial).map_err(Error::file(&partial))?;
    let done = fill(&partial, &captures, &topology, &results, options).and_then(|summary| {
        let out = run.join("evidence");
        remove(&out)?;
        fs::rename(&partial, &out).map_err(Error::file(&out))?;
        Ok(summary)
    });
    if done.is_err() {
        let _ = fs::remove_dir_all(&partial);
    }
    done
}

fn remove(folder: &Path) -> Result<(), Error> {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(Error::file(folder))?;
    }
    Ok(())
}

fn fill(
    out: &Path,
    captures: &Path,
    topology: &Topology,
    results: &Results,
    options: Options,
) -> Result<Summary, Error> {
    let start_ns = results.info.outcome.start_ns;
    let tables = Tables::new(out, topology, start_ns);
    let mut totals = RunTotals::new(tables.packets(options.packets)?);
    let mut frames = 0;
    let mut hosts = Vec::new();
    for host in &topology.hosts {
        let path = captures.join(format!("{}.pcap", host.name));
        if !path.exists() {
            continue;
        }
        hosts.push(host.name.clone());
        let mut state = Host::new(host.addresses.clone(), start_ns);
        capture::read(&path, |frame| {
            frames += 1;
            match content(frame.bytes) {
                Content::Tcp(segment) => state.segment(frame.at_ns, &segment, &mut totals),
                Content::Other => state.ignored.other_frames += 1,
                Content::Malformed => state.ignored.malformed_frames += 1,
            }
        })?;
        totals.add_host(state.finish())?;
    }
    let ports = ports(
        &captures.join("arrivals.csv"),
        topology,
        start_ns..=start_ns.saturating_add(results.info.outcome.duration_ns),
        options.rows,
    )?;
    let summary = Summary::of(results, &hosts, frames, &totals, &ports);
    tables.write(&totals, &ports)?;
    tables.summary(&summary)?;
    totals.finish()?;
    Ok(summary)
}

/// Reads the arrivals of a run. Arrivals before or after it are skipped: they belong to the
/// opening and closing of all connections at once.
fn ports(
    path: &Path,
    topology: &Topology,
    run_ns: RangeInclusive<u64>,
    rows: usize,
) -> Result<Vec<(PortInfo, Port)>, Error> {
    let mut places: BTreeMap<(&str, u16), usize> = BTreeMap::new();
    let mut ports = Vec::new();
    for switch in &topology.switches {
        for port in &switch.ports {
            let link = &topology.links[port.link];
            places.insert((&switch.name, port.number), ports.len());
            let rate_bps = link.rate_from_bps(&switch.name);
            let place = PortInfo {
                switch: switch.name.clone(),
                port: port.number,
                peer: topology.peer(switch, port).node.clone(),
                rate_bps,
                queue_limit_packets: link.queue_packets,
            };
            ports.push((place, Port::new(rate_bps, rows)));
        }
    }
    arrivals::read(path, |place, mut arrival| {
        let index = places.get(&(place.switch, place.port));
        let (_, port) = index
            .and_then(|index| ports.get_mut(*index))
            .ok_or_else(|| format!("{} port {}: no such port", place.switch, place.port))?;
        if run_ns.contains(&arrival.at_ns) {
            arrival.at_ns -= run_ns.start();
            port.arrive(arrival);
        }
        Ok(())
    })?;
    ports.retain(|(_, port)| port.arrived_packets > 0);
    Ok(ports)
}
