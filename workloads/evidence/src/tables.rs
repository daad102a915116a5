// SPDX-License-Identifier: Apache-2.0

//! The files of the folder `evidence`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use serde::Serialize;
use weft_topology::Topology;

use crate::distribution::{Distribution, ratio};
use crate::error::Error;
use crate::packet_tables::{PacketTables, name, since};
use crate::port::Port;
use crate::run_totals::{Flow, PortInfo, RunTotals};
use crate::summary::Summary;

/// Writes tables into a folder.
#[derive(Debug)]
pub(crate) struct Tables {
    folder: PathBuf,
    names: BTreeMap<Ipv4Addr, String>,
    start_ns: u64,
}

/// A row of `connections.csv`; README.md says what the columns are.
#[derive(Debug, Serialize)]
struct ConnectionRow<'a> {
    connection: usize,
    protocol: &'static str,
    source: &'a str,
    destination: &'a str,
    source_port: u16,
    destination_port: u16,
    subflows: usize,
    first_data_ns: Option<i64>,
    last_data_ns: Option<i64>,
    data_bytes: Option<u64>,
    data_packets: Option<u64>,
    duplicate_packets: Option<u64>,
    out_of_order_packets: Option<u64>,
    out_of_order_delay_mean_ns: Option<f64>,
    out_of_order_delay_p50_ns: Option<u64>,
    out_of_order_delay_p99_ns: Option<u64>,
    out_of_order_delay_max_ns: Option<u64>,
    out_of_order_queue_mean_bytes: Option<f64>,
    out_of_order_queue_max_bytes: Option<u64>,
    data_acks: Option<u64>,
    data_ack_leap_mean_packets: Option<f64>,
    data_ack_leap_p99_packets: Option<u64>,
    data_ack_leap_max_packets: Option<u64>,
    sent_packets: Option<u64>,
    retransmitted_packets: Option<u64>,
    reinjected_packets: Option<u64>,
    lost_packets: Option<u64>,
}

#[derive(Debug, Serialize)]
struct DelayRow {
    percentile: f64,
    out_of_order_delay_ns: u64,
}

#[derive(Debug, Serialize)]
struct LeapRow {
    leap_packets: u64,
    data_acks: u64,
}

#[derive(Debug, Serialize)]
struct PortRow<'a> {
    switch: &'a str,
    port: u16,
    peer: &'a str,
    rate_bps: u64,
    queue_limit_packets: u32,
    arrived_packets: u64,
    arrived_bytes: u64,
    dropped_packets: u64,
    loss_rate: f64,
    queue_min_packets: u64,
    queue_mean_packets: f64,
    queue_p50_packets: u64,
    queue_p99_packets: u64,
    queue_max_packets: u64,
    bursty_strength_mean_packets: f64,
    bursty_strength_p99_packets: u64,
    bursty_strength_max_packets: u64,
}

#[derive(Debug, Serialize)]
struct StrengthRow<'a> {
    switch: &'a str,
    port: u16,
    peer: &'a str,
    bursty_strength_packets: u64,
    arrivals: u64,
}

#[derive(Debug, Serialize)]
struct QueueRow<'a> {
    switch: &'a str,
    port: u16,
    peer: &'a str,
    time_ns: u64,
    span_ns: u64,
    arrivals: u64,
    queue_mean_packets: f64,
    queue_max_packets: u64,
    dropped_packets: u64,
}

impl Tables {
    /// Tables in `folder`; times count from `start_ns`.
    pub fn new(folder: &Path, topology: &Topology, start_ns: u64) -> Self {
        let hosts = topology.hosts.iter();
        let names = hosts.flat_map(|host| {
            let addresses = host.addresses.iter();
            addresses.map(|address| (*address, host.name.clone()))
        });
        Self {
            folder: folder.to_owned(),
            names: names.collect(),
            start_ns,
        }
    }

    /// Writes all tables but those of packets.
    pub fn write(&self, totals: &RunTotals, ports: &[(PortInfo, Port)]) -> Result<(), Error> {
        let rows = totals.directions.iter();
        let rows = rows.map(|((number, _), flow)| self.connection(*number, flow));
        self.table("connections.csv", rows)?;
        self.table("out_of_order_delay.csv", delays(&totals.delay_ns))?;
        let leaps = totals.leaps.iter();
        let leaps = leaps.map(|(&leap_packets, &data_acks)| LeapRow {
            leap_packets,
            data_acks,
        });
        self.table("data_ack_leaps.csv", leaps)?;
        self.table("ports.csv", ports.iter().map(port_row))?;
        self.table("bursty_strength.csv", ports.iter().flat_map(strength_rows))?;
        self.table("queue.csv", ports.iter().flat_map(queue_rows))
    }

    /// Writes `summary.json`.
    pub fn summary(&self, summary: &Summary) -> Result<(), Error> {
        let path = self.folder.join("summary.json");
        let json = serde_json::to_string_pretty(summary).map_err(io::Error::from);
        json.and_then(|json| fs::write(&path, json + "\n"))
            .map_err(Error::file(&path))
    }

    /// Begins the tables of packets, if they are wanted.
    pub fn packets(&self, wanted: bool) -> Result<Option<PacketTables>, Error> {
        if !wanted {
            return Ok(None);
        }
        PacketTables::create(&self.folder, self.names.clone(), self.start_ns).map(Some)
    }

    fn table(&self, name: &str, rows: impl Iterator<Item = impl Serialize>) -> Result<(), Error> {
        let path = self.folder.join(name);
        let write = || -> Result<(), csv::Error> {
            let mut table = csv::Writer::from_path(&path)?;
            for row in rows {
                table.serialize(row)?;
            }
            Ok(table.flush()?)
        };
        write().map_err(|error| Error::file(&path)(error.into()))
    }

    fn connection<'a>(&'a self, connection: usize, flow: &'a Flow) -> ConnectionRow<'a> {
        let (source, destination) = flow.direction.ends();
        let received = flow.received.as_ref();
        let sent = flow.sent.as_ref();
        let run_ns = |at_ns: u64| since(at_ns, self.start_ns);
        ConnectionRow {
            connection,
            protocol: if flow.mptcp { "mptcp" } else { "tcp" },
            source: name(&self.names, &source),
            destination: name(&self.names, &destination),
            source_port: source.port(),
            destination_port: destination.port(),
            subflows: flow.subflows,
            first_data_ns: received.and_then(|r| r.first_ns).map(run_ns),
            last_data_ns: received.map(|r| run_ns(r.last_ns)),
            data_bytes: received.map(|r| r.bytes),
            data_packets: received.map(|r| r.delay_ns.count()),
            duplicate_packets: received.map(|r| r.duplicate_packets),
            out_of_order_packets: received.map(|r| r.out_of_order_packets),
            out_of_order_delay_mean_ns: received.map(|r| r.delay_ns.mean()),
            out_of_order_delay_p50_ns: received.map(|r| r.delay_ns.percentile(50.0)),
            out_of_order_delay_p99_ns: received.map(|r| r.delay_ns.percentile(99.0)),
            out_of_order_delay_max_ns: received.map(|r| r.delay_ns.max()),
            out_of_order_queue_mean_bytes: received
                .map(|r| ratio(r.queue_bytes.sum as f64, r.queue_bytes.count as f64)),
            out_of_order_queue_max_bytes: received.map(|r| r.queue_bytes.max),
            data_acks: received.map(|r| r.leap_packets.count()),
            data_ack_leap_mean_packets: received.map(|r| r.leap_packets.mean()),
            data_ack_leap_p99_packets: received.map(|r| r.leap_packets.percentile(99.0)),
            data_ack_leap_max_packets: received.map(|r| r.leap_packets.max()),
            sent_packets: sent.map(|s| s.packets),
            retransmitted_packets: sent.map(|s| s.retransmitted_packets),
            reinjected_packets: sent.map(|s| s.reinjected_packets),
            lost_packets: flow.lost_packets(),
        }
    }
}

/// Every percentile, and the tail in finer steps.
fn delays(delay_ns: &Distribution) -> impl Iterator<Item = DelayRow> {
    let whole = (0..=99).map(f64::from);
    let tenths = (991..=999).map(|tenths| f64::from(tenths) / 10.0);
    let percentiles = whole.chain(tenths).chain([99.99, 100.0]);
    let any = delay_ns.count() > 0;
    percentiles.filter(move |_| any).map(|percentile| DelayRow {
        percentile,
        out_of_order_delay_ns: delay_ns.percentile(percentile),
    })
}

fn port_row((place, port): &(PortInfo, Port)) -> PortRow<'_> {
    let queue = port.queue_packets.summary();
    let strength = port.strength_packets.summary();
    PortRow {
        switch: &place.switch,
        port: place.port,
        peer: &place.peer,
        rate_bps: place.rate_bps,
        queue_limit_packets: place.queue_limit_packets,
        arrived_packets: port.arrived_packets,
        arrived_bytes: port.arrived_bytes,
        dropped_packets: port.dropped_packets,
        loss_rate: port.loss_rate(),
        queue_min_packets: queue.min,
        queue_mean_packets: queue.mean,
        queue_p50_packets: queue.p50,
        queue_p99_packets: queue.p99,
        queue_max_packets: queue.max,
        bursty_strength_mean_packets: strength.mean,
        bursty_strength_p99_packets: strength.p99,
        bursty_strength_max_packets: strength.max,
    }
}

fn strength_rows((place, port): &(PortInfo, Port)) -> impl Iterator<Item = StrengthRow<'_>> {
    let strengths = port.strengths.iter();
    strengths.map(|(&bursty_strength_packets, &arrivals)| StrengthRow {
        switch: &place.switch,
        port: place.port,
        peer: &place.peer,
        bursty_strength_packets,
        arrivals,
    })
}

fn queue_rows((place, port): &(PortInfo, Port)) -> impl Iterator<Item = QueueRow<'_>> {
    port.series.spans().map(|(time_ns, span)| QueueRow {
        switch: &place.switch,
        port: place.port,
        peer: &place.peer,
        time_ns,
        span_ns: port.series.span_ns(),
        arrivals: span.arrivals,
        queue_mean_packets: ratio(span.queue_sum_packets as f64, span.arrivals as f64),
        queue_max_packets: span.queue_max_packets,
        dropped_packets: span.dropped_packets,
    })
}
