//! The files of the folder `evidence`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::io::{self, BufWriter};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};

use serde::Serialize;
use weft_topology::Topology;

use crate::distribution::{Distribution, ratio};
use crate::error::Error;
use crate::host::{DataAck, Direction, Gap};
use crate::port::Port;
use crate::receiver::Fate;
use crate::summary::Summary;
use crate::tally::{Flow, Place, Tally};

/// Bytes written at once.
const BUFFER_BYTES: usize = 1 << 20;

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
    pub fn write(&self, tally: &Tally, ports: &[(Place, Port)]) -> Result<(), Error> {
        let rows = tally.directions.iter();
        let rows = rows.map(|((number, _), flow)| self.connection(*number, flow));
        self.table("connections.csv", rows)?;
        self.table("out_of_order_delay.csv", delays(&tally.delay_ns))?;
        let leaps = tally.leaps.iter();
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
        Ok(Some(PacketTables {
            packets: Lines::create(self.folder.join("packets.csv"), PACKETS_HEADER)?,
            data_acks: Lines::create(self.folder.join("data_acks.csv"), DATA_ACKS_HEADER)?,
            gaps: Lines::create(self.folder.join("gaps.csv"), GAPS_HEADER)?,
            names: self.names.clone(),
            start_ns: self.start_ns,
        }))
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

fn since(at_ns: u64, start_ns: u64) -> i64 {
    at_ns.wrapping_sub(start_ns) as i64
}

fn name<'a>(names: &'a BTreeMap<Ipv4Addr, String>, end: &SocketAddrV4) -> &'a str {
    names.get(end.ip()).map_or("", String::as_str)
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

fn port_row((place, port): &(Place, Port)) -> PortRow<'_> {
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

fn strength_rows((place, port): &(Place, Port)) -> impl Iterator<Item = StrengthRow<'_>> {
    let strengths = port.strengths.iter();
    strengths.map(|(&bursty_strength_packets, &arrivals)| StrengthRow {
        switch: &place.switch,
        port: place.port,
        peer: &place.peer,
        bursty_strength_packets,
        arrivals,
    })
}

fn queue_rows((place, port): &(Place, Port)) -> impl Iterator<Item = QueueRow<'_>> {
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

const PACKETS_HEADER: &str = "time_ns,connection,source,destination,subflow,data_sequence,bytes,\
                              out_of_order_delay_ns,kind\n";
const DATA_ACKS_HEADER: &str =
    "time_ns,connection,source,destination,subflow,data_ack,leap_packets\n";
const GAPS_HEADER: &str =
    "time_ns,connection,source,destination,subflow,data_sequence,unsent_bytes\n";

/// `packets.csv`, `data_acks.csv` and `gaps.csv`.
#[derive(Debug)]
pub(crate) struct PacketTables {
    packets: Lines,
    data_acks: Lines,
    gaps: Lines,
    names: BTreeMap<Ipv4Addr, String>,
    start_ns: u64,
}

impl PacketTables {
    pub fn packet(&mut self, connection: usize, direction: Direction, fate: Fate) {
        let (source, destination) = direction.ends();
        let packet = fate.packet;
        let kind = match (fate.out_of_order_delay_ns, packet.retransmission) {
            (None, _) => "duplicate",
            (Some(_), true) => "retransmission",
            (Some(_), false) => "new",
        };
        let delay_ns = fate.out_of_order_delay_ns;
        self.packets.write(format_args!(
            "{},{connection},{},{},{},{},{},{},{kind}\n",
            since(packet.at_ns, self.start_ns),
            name(&self.names, &source),
            name(&self.names, &destination),
            packet.subflow,
            packet.data_sequence,
            packet.bytes,
            delay_ns.map_or_else(String::new, |delay_ns| delay_ns.to_string()),
        ));
    }

    pub fn data_ack(&mut self, connection: usize, direction: Direction, ack: DataAck) {
        let (source, destination) = direction.ends();
        self.data_acks.write(format_args!(
            "{},{connection},{},{},{},{},{}\n",
            since(ack.at_ns, self.start_ns),
            name(&self.names, &source),
            name(&self.names, &destination),
            ack.subflow,
            ack.data_ack,
            ack.leap_packets,
        ));
    }

    pub fn gap(&mut self, connection: usize, direction: Direction, gap: Gap) {
        let (source, destination) = direction.ends();
        self.gaps.write(format_args!(
            "{},{connection},{},{},{},{},{}\n",
            since(gap.at_ns, self.start_ns),
            name(&self.names, &source),
            name(&self.names, &destination),
            gap.subflow,
            gap.data_sequence,
            gap.unsent_bytes,
        ));
    }

    /// Whether all could be written so far.
    pub fn check(&mut self) -> Result<(), Error> {
        self.packets.check()?;
        self.data_acks.check()?;
        self.gaps.check()
    }

    pub fn finish(mut self) -> Result<(), Error> {
        self.packets.finish()?;
        self.data_acks.finish()?;
        self.gaps.finish()
    }
}

/// A file that remembers its first error.
#[derive(Debug)]
struct Lines {
    path: PathBuf,
    file: BufWriter<File>,
    error: Option<io::Error>,
}

impl Lines {
    fn create(path: PathBuf, header: &str) -> Result<Self, Error> {
        let file = File::create(&path).map_err(Error::file(&path))?;
        let mut lines = Self {
            file: BufWriter::with_capacity(BUFFER_BYTES, file),
            path,
            error: None,
        };
        lines.write(format_args!("{header}"));
        Ok(lines)
    }

    fn write(&mut self, line: std::fmt::Arguments<'_>) {
        if self.error.is_none() {
            self.error = self.file.write_fmt(line).err();
        }
    }

    fn check(&mut self) -> Result<(), Error> {
        match self.error.take() {
            Some(error) => Err(Error::file(&self.path)(error)),
            None => Ok(()),
        }
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.check()?;
        self.file.flush().map_err(Error::file(&self.path))
    }
}
