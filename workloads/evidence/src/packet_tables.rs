// SPDX-License-Identifier: Apache-2.0

//! The tables with one row per packet, Data ACK or gap.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::io::{self, BufWriter};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::host::{DataAck, Direction, Gap};
use crate::receiver::PacketOutcome;

/// Buffer of a file.
const BUFFER_BYTES: usize = 1 << 20;

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
    /// Creates the files in `folder`. Rows contain host `names`; times count from `start_ns`.
    pub fn create(
        folder: &Path,
        names: BTreeMap<Ipv4Addr, String>,
        start_ns: u64,
    ) -> Result<Self, Error> {
        Ok(Self {
            packets: Lines::create(folder.join("packets.csv"), PACKETS_HEADER)?,
            data_acks: Lines::create(folder.join("data_acks.csv"), DATA_ACKS_HEADER)?,
            gaps: Lines::create(folder.join("gaps.csv"), GAPS_HEADER)?,
            names,
            start_ns,
        })
    }

    pub fn packet(&mut self, connection: usize, direction: Direction, outcome: PacketOutcome) {
        let (source, destination) = direction.ends();
        let packet = outcome.packet;
        let kind = match (outcome.out_of_order_delay_ns, packet.retransmission) {
            (None, _) => "duplicate",
            (Some(_), true) => "retransmission",
            (Some(_), false) => "new",
        };
        let delay_ns = outcome.out_of_order_delay_ns;
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

    /// Returns the first write error so far, if any.
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

/// A file that keeps its first write error.
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

/// Time from the start of the run; negative before it.
pub(crate) fn since(at_ns: u64, start_ns: u64) -> i64 {
    at_ns.wrapping_sub(start_ns) as i64
}

/// Name of the host at an end of a connection; empty for an unknown address.
pub(crate) fn name<'a>(names: &'a BTreeMap<Ipv4Addr, String>, end: &SocketAddrV4) -> &'a str {
    names.get(end.ip()).map_or("", String::as_str)
}
