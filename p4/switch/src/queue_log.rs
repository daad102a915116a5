//! `queues.csv`: how full the queues were.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use weft_topology::Topology;

use crate::fabric::CPU_PORT;
use crate::server::World;

/// While packets move, ports that changed get a row this often.
const ROW_NS: u64 = 1_000_000;
/// Rows reach the file at most this much later.
const FLUSH_NS: u64 = 10_000_000;

const HEADER: &str = "time_ns,switch,port,peer,queue_packets,queue_max_packets,tx_packets,tx_bytes,\
                      dropped_packets,lost_packets\n";

/// Appends rows about queues to a file.
#[derive(Debug)]
pub struct QueueLog {
    file: File,
    rows: String,
    /// For each switch, its name and the peers of its ports.
    switches: Vec<(String, Vec<(u16, String)>)>,
    /// Whether packets moved since the last rows.
    active: bool,
    next_rows_ns: u64,
    flush_at_ns: u64,
}

impl QueueLog {
    /// A log at `path`; rows are appended to what is there.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn open(path: &Path, topology: &Topology) -> io::Result<Self> {
        let file = File::options().create(true).append(true).open(path)?;
        let rows = if file.metadata()?.len() == 0 {
            HEADER.to_owned()
        } else {
            String::new()
        };
        let mut log = Self {
            file,
            rows,
            switches: topology
                .switches
                .iter()
                .map(|s| peers(topology, s))
                .collect(),
            active: false,
            next_rows_ns: 0,
            flush_at_ns: 0,
        };
        log.flush()?;
        Ok(log)
    }

    /// Packets move: there will be rows.
    pub fn wake(&mut self) {
        self.active = true;
    }

    /// Makes rows when it is time for them.
    pub fn update(&mut self, now_ns: u64, world: &mut World) {
        if !self.active || now_ns < self.next_rows_ns {
            return;
        }
        if self.rows.is_empty() {
            self.flush_at_ns = now_ns + FLUSH_NS;
        }
        self.active = self.append(now_ns, world);
        self.next_rows_ns = now_ns + ROW_NS;
    }

    /// When the log has something to do next although no packet moves.
    #[must_use]
    pub fn deadline_ns(&self) -> Option<u64> {
        let rows = self.active.then_some(self.next_rows_ns);
        let flush = (!self.rows.is_empty()).then_some(self.flush_at_ns);
        rows.into_iter().chain(flush).min()
    }

    /// Writes rows that have waited long enough.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn flush_if_due(&mut self, now_ns: u64) -> io::Result<()> {
        if self.rows.is_empty() || now_ns < self.flush_at_ns {
            return Ok(());
        }
        self.flush()
    }

    /// Writes what there is to write.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(&mut self, now_ns: u64, world: &mut World) -> io::Result<()> {
        self.append(now_ns, world);
        self.flush()
    }

    /// Returns whether anything changed.
    fn append(&mut self, now_ns: u64, world: &mut World) -> bool {
        let mut changed = false;
        let Self { rows, switches, .. } = self;
        world.take_changes(|switch, port, stats| {
            changed = true;
            let (name, peers) = &switches[switch];
            let peer = peers.iter().find(|(number, _)| *number == port);
            let peer = peer.map_or("", |(_, peer)| peer);
            // Writing to a string cannot fail.
            let _ = writeln!(
                rows,
                "{now_ns},{name},{port},{peer},{},{},{},{},{},{}",
                stats.queue_packets,
                stats.queue_max_packets,
                stats.tx_packets,
                stats.tx_bytes,
                stats.dropped_packets,
                stats.lost_packets
            );
        });
        changed
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all(self.rows.as_bytes())?;
        self.rows.clear();
        Ok(())
    }
}

fn peers(topology: &Topology, switch: &weft_topology::Switch) -> (String, Vec<(u16, String)>) {
    let mut peers = vec![(CPU_PORT, "controller".to_owned())];
    for port in &switch.ports {
        peers.push((port.number, topology.peer(switch, port).node.clone()));
    }
    (switch.name.clone(), peers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{echo, frame};

    #[test]
    fn ports_that_changed_get_a_row_and_quiet_ones_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("queues.csv");
        let (topology, mut world) = echo();
        let mut log = QueueLog::open(&path, &topology).unwrap();
        assert_eq!(log.deadline_ns(), None);
        let frame = frame();
        (0..3).for_each(|_| world.receive(0, 0, &frame));
        log.wake();
        world.advance(0, 1_500, &mut Vec::new());
        log.update(5_000, &mut world);
        // Quiet from here on: one more look, then the log sleeps until it must write.
        world.advance(5_000, 900_000, &mut Vec::new());
        assert_eq!(log.deadline_ns(), Some(5_000 + ROW_NS));
        for now_ns in [500_000, 5_000 + ROW_NS, 5_000 + 2 * ROW_NS] {
            log.update(now_ns, &mut world);
        }
        assert_eq!(log.deadline_ns(), Some(5_000 + FLUSH_NS));
        log.flush_if_due(5_000 + FLUSH_NS).unwrap();
        assert_eq!(log.deadline_ns(), None);
        let text = std::fs::read_to_string(path).unwrap();
        let expected = [
            "5000,leaf1,1,h1_1,1,2,2,120,0,0",
            "1005000,leaf1,1,h1_1,0,1,3,180,0,0",
        ];
        assert_eq!(text.lines().skip(1).collect::<Vec<_>>(), expected);
        assert!(HEADER.starts_with(text.lines().next().unwrap()));
    }
}
