// SPDX-License-Identifier: Apache-2.0

//! Reads `arrivals.csv`, row by row.

use std::fs::File;
use std::path::Path;

use csv::{ByteRecord, ReaderBuilder};

use crate::error::Error;

/// Buffer size.
const BUFFER_BYTES: usize = 1 << 20;

/// The columns to read.
const COLUMNS: [&str; 6] = [
    "time_ns",
    "switch",
    "port",
    "bytes",
    "queue_packets",
    "dropped",
];

/// The port that a packet arrived at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortKey<'a> {
    /// Name of the switch.
    pub switch: &'a str,
    /// Number of the port.
    pub port: u16,
}

/// The arrival of a packet at a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Time of arrival, from the start of the run.
    pub at_ns: u64,
    /// Length of the frame.
    pub bytes: u64,
    /// Packets in the queue at that time.
    pub queue_packets: u64,
    /// Packets dropped because the queue was full: itself, or less urgent ones for it.
    pub dropped_packets: u64,
}

/// Calls `handle` for every row of the file at `path`, with times by the file's clock.
///
/// # Errors
/// If the file cannot be read or is damaged.
pub fn read(
    path: &Path,
    mut handle: impl FnMut(PortKey<'_>, Arrival) -> Result<(), String>,
) -> Result<(), Error> {
    let file = File::open(path).map_err(Error::file(path))?;
    let mut reader = ReaderBuilder::new()
        .buffer_capacity(BUFFER_BYTES)
        .from_reader(file);
    let damaged = |line: u64, what: String| Error::Table {
        path: path.to_owned(),
        line,
        what,
    };
    let header = reader.headers().map_err(|e| damaged(1, e.to_string()))?;
    let mut columns = [0; COLUMNS.len()];
    for (column, name) in columns.iter_mut().zip(COLUMNS) {
        *column = header
            .iter()
            .position(|known| known == name)
            .ok_or_else(|| damaged(1, format!("no column {name}")))?;
    }
    let mut record = ByteRecord::new();
    loop {
        let line = reader.position().line();
        match reader.read_byte_record(&mut record) {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(error) => return Err(damaged(line, error.to_string())),
        }
        parse(&record, columns)
            .and_then(|(place, arrival)| handle(place, arrival))
            .map_err(|what| damaged(line, what))?;
    }
}

fn parse(
    record: &ByteRecord,
    columns: [usize; COLUMNS.len()],
) -> Result<(PortKey<'_>, Arrival), String> {
    let number = |field: usize| number(&record[columns[field]], COLUMNS[field]);
    let switch = std::str::from_utf8(&record[columns[1]]);
    let place = PortKey {
        switch: switch.map_err(|error| format!("switch: {error}"))?,
        port: u16::try_from(number(2)?).map_err(|error| format!("port: {error}"))?,
    };
    let arrival = Arrival {
        at_ns: number(0)?,
        bytes: number(3)?,
        queue_packets: number(4)?,
        dropped_packets: number(5)?,
    };
    Ok((place, arrival))
}

fn number(text: &[u8], column: &str) -> Result<u64, String> {
    let digits = |total: u64, byte: &u8| {
        let digit = u64::from(byte.wrapping_sub(b'0'));
        let total = total.checked_mul(10)?.checked_add(digit)?;
        (digit < 10).then_some(total)
    };
    match text.iter().try_fold(0, digits) {
        Some(number) if !text.is_empty() => Ok(number),
        _ => Err(format!(
            "{column}: not a whole number: {:?}",
            String::from_utf8_lossy(text)
        )),
    }
}
