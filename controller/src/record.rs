//! `patterns.csv`: every pattern of a run, one row per path.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use crate::engine::{Engine, Pattern};
use crate::fabric::LeafPair;
use crate::pattern::letters;

const COLUMNS: [&str; 10] = [
    "time_ns",
    "source_leaf",
    "destination_leaf",
    "version",
    "path",
    "via",
    "rtt_ns",
    "queue_packets",
    "gap",
    "sequence",
];

/// Appends patterns to a file, whole rows at once.
#[derive(Debug)]
pub struct Recorder {
    writer: csv::Writer<File>,
}

impl Recorder {
    /// Appends to `path`; writes the header if the file is new.
    ///
    /// # Errors
    /// When it cannot be opened or written.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let is_new = file.metadata()?.len() == 0;
        let mut writer = csv::Writer::from_writer(file);
        if is_new {
            writer.write_record(COLUMNS)?;
            writer.flush()?;
        }
        Ok(Self { writer })
    }

    /// Appends the pattern of `pair`.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn append(&mut self, engine: &Engine, pair: LeafPair, pattern: &Pattern) -> io::Result<()> {
        let sequence = letters(&pattern.sequence);
        let paths = pattern.rtts_ns.iter().zip(&pattern.gaps).zip(0_u8..);
        for ((rtt_ns, gap), path) in paths {
            let queue = engine.telemetry().queue(pattern.at_ns, pair, path);
            self.writer.write_record([
                &pattern.at_ns.to_string(),
                &pair.source.to_string(),
                &pair.destination.to_string(),
                &pattern.version.to_string(),
                &path.to_string(),
                engine.fabric().via(path),
                &rtt_ns.to_string(),
                &queue.depth_packets.to_string(),
                &gap.to_string(),
                &sequence,
            ])?;
        }
        self.writer.flush()
    }
}
