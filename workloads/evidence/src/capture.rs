// SPDX-License-Identifier: Apache-2.0

//! Reads a capture file, frame by frame.
//!
//! `pcap-parser` uses a buffer of constant size and reports its position, which the message
//! about a damaged file needs. Weft writes timestamps in nanoseconds; files with microseconds,
//! `tcpdump`'s default, are supported too.

use std::fs::File;
use std::path::Path;

use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{LegacyPcapReader, Linktype, PcapBlockOwned, PcapError, PcapHeader};

use crate::error::Error;

/// Buffer size.
const BUFFER_BYTES: usize = 1 << 20;

/// A captured frame.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// Time of capture, by the capture's clock.
    pub at_ns: u64,
    /// The captured part of it.
    pub bytes: &'a [u8],
}

/// Calls `handle` for every frame of the file at `path`.
///
/// # Errors
/// If the file cannot be read, isn't a pcap file of Ethernet frames, or is damaged.
pub fn read(path: &Path, mut handle: impl FnMut(Frame<'_>)) -> Result<(), Error> {
    let file = File::open(path).map_err(Error::file(path))?;
    let damaged = |offset: usize, what: String| Error::Capture {
        path: path.to_owned(),
        offset: offset as u64,
        what,
    };
    let mut reader = LegacyPcapReader::new(BUFFER_BYTES, file)
        .map_err(|error| damaged(0, start_reason(&error)))?;
    let mut format = Format::default();
    loop {
        let offset = reader.consumed();
        let taken = match reader.next() {
            Ok((taken, PcapBlockOwned::LegacyHeader(header))) => {
                format = Format::of(&header).map_err(|what| damaged(0, what))?;
                taken
            }
            Ok((taken, PcapBlockOwned::Legacy(record))) => {
                let frame = format
                    .frame(&record)
                    .map_err(|what| damaged(offset, what))?;
                handle(frame);
                taken
            }
            Ok((_, PcapBlockOwned::NG(_))) => {
                return Err(damaged(offset, "a block of a pcapng file".to_owned()));
            }
            Err(PcapError::Eof) => return Ok(()),
            Err(PcapError::Incomplete(_)) => {
                if reader.refill().is_err() {
                    return Err(damaged(offset, "cannot be read on".to_owned()));
                }
                continue;
            }
            Err(error) => return Err(damaged(offset, record_reason(&error))),
        };
        reader.consume_noshift(taken);
    }
}

/// The file header's properties of its records.
#[derive(Debug, Default)]
struct Format {
    /// Nanoseconds per unit of a timestamp's lower part.
    unit_ns: u64,
    snaplen_bytes: u32,
}

impl Format {
    fn of(header: &PcapHeader) -> Result<Self, String> {
        if header.network != Linktype::ETHERNET {
            return Err(format!("{}, not Ethernet frames", header.network));
        }
        Ok(Self {
            unit_ns: if header.is_nanosecond_precision() {
                1
            } else {
                1_000
            },
            snaplen_bytes: header.snaplen,
        })
    }

    /// The frame of a record, unless the record is inconsistent. After a damaged length, all
    /// records are.
    fn frame<'a>(&self, record: &pcap_parser::LegacyPcapBlock<'a>) -> Result<Frame<'a>, String> {
        let fraction_ns = u64::from(record.ts_usec) * self.unit_ns;
        if record.caplen > record.origlen || record.caplen > self.snaplen_bytes {
            return Err(format!(
                "a record of {} bytes, of a frame of {}; at most {} were kept",
                record.caplen, record.origlen, self.snaplen_bytes
            ));
        }
        if fraction_ns >= 1_000_000_000 {
            return Err(format!("a record {fraction_ns} ns after its second"));
        }
        Ok(Frame {
            at_ns: u64::from(record.ts_sec) * 1_000_000_000 + fraction_ns,
            bytes: record.data,
        })
    }
}

fn start_reason<I>(error: &PcapError<I>) -> String {
    match error {
        PcapError::Incomplete(_) => "ends within its header",
        PcapError::ReadError => "cannot be read",
        _ => "not a pcap file",
    }
    .to_owned()
}

fn record_reason<I>(error: &PcapError<I>) -> String {
    match error {
        PcapError::UnexpectedEof => "ends within a record",
        PcapError::BufferTooSmall => "a record longer than any frame",
        _ => "not a record",
    }
    .to_owned()
}
