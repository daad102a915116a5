// SPDX-License-Identifier: Apache-2.0

//! Writes `patterns.csv`, every pattern of a run with one row per path, and `loop.csv`, when
//! each pattern reached each kernel, with one row per host.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use crate::engine::{Decision, Engine, Pattern};
use crate::fabric::LeafPair;
use crate::pattern::letters;

const PATTERN_COLUMNS: [&str; 10] = [
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

/// `sampled_ns` is empty if time or probes, not a sample, triggered the pattern. `rested` says
/// whether the pattern had to wait because the one before was too recent. `rule` is a
/// [`crate::engine::Rule`].
const LOOP_COLUMNS: [&str; 9] = [
    "source_leaf",
    "destination_leaf",
    "version",
    "host",
    "sampled_ns",
    "decided_ns",
    "applied_ns",
    "rested",
    "rule",
];

/// The application of a pattern by the kernel of a host.
#[derive(Debug, Clone, Copy)]
pub struct Applied<'a> {
    /// The host.
    pub host: &'a str,
    /// The pair that the pattern is for.
    pub pair: LeafPair,
    /// The pattern, and the sample that triggered it.
    pub decision: &'a Decision,
    /// When the kernel applied it, by the host's clock.
    pub applied_ns: u64,
}

/// Appends whole rows to the files of a run.
#[derive(Debug)]
pub struct Recorder {
    patterns: csv::Writer<File>,
    loops: csv::Writer<File>,
}

impl Recorder {
    /// Opens `patterns.csv` and `loop.csv` in `folder` for appending. New files get a header.
    ///
    /// # Errors
    /// If a file cannot be opened or written.
    pub fn open(folder: &Path) -> io::Result<Self> {
        Ok(Self {
            patterns: open(&folder.join("patterns.csv"), &PATTERN_COLUMNS)?,
            loops: open(&folder.join("loop.csv"), &LOOP_COLUMNS)?,
        })
    }

    /// Appends that a kernel has applied a pattern.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn append_applied(&mut self, applied: &Applied) -> io::Result<()> {
        let Decision {
            pattern,
            rule,
            trigger,
            rested,
        } = applied.decision;
        let sampled_ns = trigger.as_ref().and_then(|trigger| trigger.sampled_ns);
        self.loops.write_record([
            &applied.pair.source.to_string(),
            &applied.pair.destination.to_string(),
            &pattern.version.to_string(),
            applied.host,
            &sampled_ns.map(|ns| ns.to_string()).unwrap_or_default(),
            &pattern.at_ns.to_string(),
            &applied.applied_ns.to_string(),
            &rested.to_string(),
            rule.name(),
        ])?;
        self.loops.flush()
    }

    /// Appends the pattern of `pair`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn append(&mut self, engine: &Engine, pair: LeafPair, pattern: &Pattern) -> io::Result<()> {
        let sequence = letters(&pattern.sequence);
        let paths = pattern.costs_ns.iter().zip(&pattern.gaps).zip(0_u8..);
        for ((rtt_ns, gap), path) in paths {
            let (fabric, at_ns) = (engine.fabric(), pattern.at_ns);
            let queue = engine.telemetry().queue(fabric, at_ns, pair, path);
            self.patterns.write_record([
                &pattern.at_ns.to_string(),
                &pair.source.to_string(),
                &pair.destination.to_string(),
                &pattern.version.to_string(),
                &path.to_string(),
                &fabric.via(pair, path),
                &rtt_ns.to_string(),
                &queue.depth_packets.to_string(),
                &gap.to_string(),
                &sequence,
            ])?;
        }
        self.patterns.flush()
    }
}

fn open(path: &Path, columns: &[&str]) -> io::Result<csv::Writer<File>> {
    let file = OpenOptions::new().create(true).append(true).open(path)?;
    let is_new = file.metadata()?.len() == 0;
    let mut writer = csv::Writer::from_writer(file);
    if is_new {
        writer.write_record(columns)?;
        writer.flush()?;
    }
    Ok(writer)
}
