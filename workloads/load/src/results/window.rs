// SPDX-License-Identifier: Apache-2.0

//! Cuts the part of one run from the lab's telemetry files.
//!
//! Switches and controller append to their files as long as the lab is up. A run copies the rows
//! of its own time. Times and counters then start from the beginning of the run.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use anyhow::{Context, Result};
use csv::StringRecord;

/// An interval of `CLOCK_MONOTONIC`, including both ends.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// Start.
    pub start_ns: u64,
    /// End.
    pub end_ns: u64,
}

/// Bytes per read; large, because system calls are slow in the lab.
const READ_BYTES: usize = 1 << 20;

impl Window {
    /// Copies the rows of `queues.csv` in the window.
    ///
    /// # Errors
    /// If a file cannot be read or written, or has another format.
    pub fn copy_queues(self, from: &Path, to: &Path) -> Result<()> {
        copy(from, to, |input, output| self.queues(input, output))
    }

    /// Copies the rows of `patterns.csv` in the window. The patterns in force at its start come
    /// first, at time 0.
    ///
    /// # Errors
    /// If a file cannot be read or written, or has another format.
    pub fn copy_patterns(self, from: &Path, to: &Path) -> Result<()> {
        copy(from, to, |input, output| self.patterns(input, output))
    }

    /// Copies the rows of `loop.csv` whose decisions are in the window.
    ///
    /// # Errors
    /// If a file cannot be read or written, or has another format.
    pub fn copy_loops(self, from: &Path, to: &Path) -> Result<()> {
        copy(from, to, |input, output| self.loops(input, output))
    }

    fn loops(self, input: impl Read, output: impl Write) -> Result<()> {
        let mut table = Table::open(input, output)?;
        let decided = table.column("decided_ns")?;
        let times = [
            decided,
            table.column("sampled_ns")?,
            table.column("applied_ns")?,
        ];
        while let Some(row) = table.next()? {
            let decided_ns = number(&row, decided)?;
            if decided_ns < self.start_ns || decided_ns > self.end_ns {
                continue;
            }
            let mut fields = Vec::new();
            for (column, text) in row.iter().enumerate() {
                fields.push(if times.contains(&column) && !text.is_empty() {
                    // Samples that triggered the first decisions may be from before the start.
                    (i128::from(number(&row, column)?) - i128::from(self.start_ns)).to_string()
                } else {
                    text.to_owned()
                });
            }
            table.output.write_record(&fields)?;
        }
        table.output.flush()?;
        Ok(())
    }

    fn queues(self, input: impl Read, output: impl Write) -> Result<()> {
        let mut table = Table::open(input, output)?;
        let time = table.column("time_ns")?;
        let key = [table.column("switch")?, table.column("port")?];
        let counters = [
            table.column("tx_packets")?,
            table.column("tx_bytes")?,
            table.column("dropped_packets")?,
            table.column("lost_packets")?,
        ];
        let mut before: BTreeMap<[String; 2], [u64; 4]> = BTreeMap::new();
        while let Some(row) = table.next()? {
            let now = number(&row, time)?;
            let mut counts = [0; 4];
            for (count, column) in counts.iter_mut().zip(counters) {
                *count = number(&row, column)?;
            }
            let port = key.map(|column| row[column].to_owned());
            if now < self.start_ns {
                before.insert(port, counts);
            } else if now <= self.end_ns {
                let base = before.get(&port).copied().unwrap_or_default();
                let fields: StringRecord = row
                    .iter()
                    .enumerate()
                    .map(|(column, text)| {
                        let counter = counters.iter().position(|known| *known == column);
                        match counter {
                            Some(i) => counts[i].saturating_sub(base[i]).to_string(),
                            None if column == time => (now - self.start_ns).to_string(),
                            None => text.to_owned(),
                        }
                    })
                    .collect();
                table.output.write_record(&fields)?;
            }
        }
        table.output.flush()?;
        Ok(())
    }

    fn patterns(self, input: impl Read, output: impl Write) -> Result<()> {
        let mut table = Table::open(input, output)?;
        let time = table.column("time_ns")?;
        let key = [
            table.column("source_leaf")?,
            table.column("destination_leaf")?,
        ];
        let version = table.column("version")?;
        let mut in_force: BTreeMap<[String; 2], Vec<StringRecord>> = BTreeMap::new();
        let mut started = false;
        while let Some(row) = table.next()? {
            let now = number(&row, time)?;
            if now < self.start_ns {
                let rows = in_force
                    .entry(key.map(|column| row[column].to_owned()))
                    .or_default();
                if rows
                    .last()
                    .is_some_and(|last| last[version] != row[version])
                {
                    rows.clear();
                }
                rows.push(row);
                continue;
            }
            if !started {
                started = true;
                table.write_at(0, time, in_force.values().flatten())?;
            }
            if now <= self.end_ns {
                table.write_at(now - self.start_ns, time, [&row])?;
            }
        }
        if !started {
            table.write_at(0, time, in_force.values().flatten())?;
        }
        table.output.flush()?;
        Ok(())
    }
}

/// A CSV file that is copied.
struct Table<R, W: Write> {
    input: csv::Reader<R>,
    header: StringRecord,
    output: csv::Writer<W>,
}

impl<R: Read, W: Write> Table<R, W> {
    fn open(input: R, output: W) -> Result<Self> {
        let mut input = csv::Reader::from_reader(input);
        let header = input.headers()?.clone();
        let mut output = csv::Writer::from_writer(output);
        output.write_record(&header)?;
        Ok(Self {
            input,
            header,
            output,
        })
    }

    fn column(&self, name: &str) -> Result<usize> {
        self.header
            .iter()
            .position(|known| known == name)
            .with_context(|| format!("no column `{name}`"))
    }

    /// The next row. An incomplete row, which is still being written, ends the file.
    fn next(&mut self) -> Result<Option<StringRecord>> {
        let mut row = StringRecord::new();
        match self.input.read_record(&mut row) {
            Ok(true) => Ok(Some(row)),
            Ok(false) => Ok(None),
            Err(error) if matches!(error.kind(), csv::ErrorKind::UnequalLengths { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn write_at<'a>(
        &mut self,
        time_ns: u64,
        column: usize,
        rows: impl IntoIterator<Item = &'a StringRecord>,
    ) -> Result<()> {
        let time = time_ns.to_string();
        for row in rows {
            let fields = row
                .iter()
                .enumerate()
                .map(|(i, text)| if i == column { time.as_str() } else { text });
            self.output.write_record(fields)?;
        }
        Ok(())
    }
}

fn number(row: &StringRecord, column: usize) -> Result<u64> {
    row[column]
        .parse()
        .with_context(|| format!("{:?} is no number", &row[column]))
}

/// Does nothing if `from` doesn't exist, because there were no measurements.
fn copy(
    from: &Path,
    to: &Path,
    transform: impl FnOnce(BufReader<File>, BufWriter<File>) -> Result<()>,
) -> Result<()> {
    let input = match File::open(from) {
        Ok(input) => BufReader::with_capacity(READ_BYTES, input),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).with_context(|| from.display().to_string()),
    };
    let output = File::create(to).with_context(|| to.display().to_string())?;
    transform(input, BufWriter::with_capacity(READ_BYTES, output))
        .with_context(|| from.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Window = Window {
        start_ns: 1_000,
        end_ns: 2_000,
    };

    #[test]
    fn a_decision_in_the_window_may_follow_from_a_sample_before_it() {
        let input = "host,sampled_ns,decided_ns,applied_ns,rested\n\
                     h1_1,900,999,1050,false\n\
                     h1_1,980,1010,2040,false\n\
                     h1_1,,2000,2050,true\n\
                     h1_1,1990,2001,2050,false\n";
        let mut output = Vec::new();
        WINDOW.loops(input.as_bytes(), &mut output).unwrap();
        assert_eq!(
            String::from_utf8(output).unwrap(),
            "host,sampled_ns,decided_ns,applied_ns,rested\n\
             h1_1,-20,10,1040,false\n\
             h1_1,,1000,1050,true\n"
        );
    }

    #[test]
    fn queues_count_from_the_start_of_the_run() {
        let input = "time_ns,switch,port,peer,queue_packets,queue_max_packets,tx_packets,tx_bytes,dropped_packets,lost_packets\n\
                     500,leaf1,1,h1_1,0,9,100,1000,7,4\n\
                     1100,leaf1,1,h1_1,3,4,110,1500,7,4\n\
                     1200,leaf2,1,h2_1,1,2,5,50,1,0\n\
                     2000,leaf1,1,h1_1,0,100,150,2500,9,6\n\
                     2001,leaf1,1,h1_1,0,100,190,3500,99,9\n";
        let mut output = Vec::new();
        WINDOW.queues(input.as_bytes(), &mut output).unwrap();
        assert_eq!(
            String::from_utf8(output).unwrap(),
            "time_ns,switch,port,peer,queue_packets,queue_max_packets,tx_packets,tx_bytes,dropped_packets,lost_packets\n\
             100,leaf1,1,h1_1,3,4,10,500,0,0\n\
             200,leaf2,1,h2_1,1,2,5,50,1,0\n\
             1000,leaf1,1,h1_1,0,100,50,1500,2,2\n"
        );
    }

    #[test]
    fn patterns_in_force_at_the_start_come_first() {
        let input = "time_ns,source_leaf,destination_leaf,version,path,sequence\n\
                     1,1,2,1,0,A\n\
                     500,1,2,2,0,AB\n\
                     500,1,2,2,1,AB\n\
                     600,2,1,1,0,A\n\
                     1500,1,2,3,0,AAB\n\
                     2500,1,2,4,0,B\n";
        let mut output = Vec::new();
        WINDOW.patterns(input.as_bytes(), &mut output).unwrap();
        assert_eq!(
            String::from_utf8(output).unwrap(),
            "time_ns,source_leaf,destination_leaf,version,path,sequence\n\
             0,1,2,2,0,AB\n\
             0,1,2,2,1,AB\n\
             0,2,1,1,0,A\n\
             500,1,2,3,0,AAB\n"
        );
    }

    #[test]
    fn a_half_written_last_row_is_left_out() {
        let input = "time_ns,source_leaf,destination_leaf,version\n1200,1,2,3\n1300,1";
        let mut output = Vec::new();
        WINDOW.patterns(input.as_bytes(), &mut output).unwrap();
        assert_eq!(output.iter().filter(|byte| **byte == b'\n').count(), 2);
    }

    #[test]
    fn a_missing_file_is_no_error_and_a_wrong_one_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("queues.csv"), folder.path().join("out"));
        WINDOW.copy_queues(&from, &to).unwrap();
        assert!(!to.exists());
        std::fs::write(&from, "a,b\n1,2\n").unwrap();
        let error = WINDOW.copy_queues(&from, &to).unwrap_err();
        assert!(format!("{error:#}").ends_with("queues.csv: no column `time_ns`"));
    }
}
