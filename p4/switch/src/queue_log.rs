// SPDX-License-Identifier: Apache-2.0

//! `queues.csv`: how full the queues were.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use weft_topology::Topology;

use crate::network::{CPU_PORT, Delivery};
use crate::server::World;

/// Ports that changed get a row this often.
const ROW_NS: u64 = 1_000_000;
/// Rows reach the file at most this much later.
const FLUSH_NS: u64 = 10_000_000;

const HEADER: &str = "time_ns,switch,port,peer,queue_packets,queue_max_packets,tx_packets,tx_bytes,\
                      dropped_packets,lost_packets,\
                      oversize_packets\n";

/// Appends rows about queues to a file.
///
/// Each row has the state of the network at a whole millisecond of its time. [`QueueLog::advance`]
/// stops the network at each of them, however rarely it is called.
#[derive(Debug)]
pub struct QueueLog {
    file: File,
    rows: String,
    /// For each switch, its name and the peers of its ports.
    switches: Vec<(String, Vec<(u16, String)>)>,
    /// Whether something happened since the last rows.
    active: bool,
    /// When `rows` began to wait.
    waiting_since_ns: u64,
}

impl QueueLog {
    /// Opens a log at `path`, and appends to it.
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
            waiting_since_ns: 0,
        };
        log.flush()?;
        Ok(log)
    }

    /// [`World::advance`], with rows on the way.
    pub fn advance(
        &mut self,
        world: &mut World,
        now_ns: u64,
        end_ns: u64,
        deliveries: &mut Vec<Delivery>,
    ) {
        loop {
            let network = &world.network;
            let next_ns = network.next_event_ns().filter(|at_ns| *at_ns < end_ns);
            // Skip milliseconds in which nothing happened.
            let from_ns = match next_ns {
                Some(at_ns) if !self.active => at_ns,
                None if !self.active => break,
                _ => network.now_ns(),
            };
            let row_ns = (from_ns / ROW_NS + 1) * ROW_NS;
            if row_ns > end_ns {
                self.active |= next_ns.is_some();
                break;
            }
            world.advance(now_ns, row_ns, deliveries);
            self.append(row_ns, world);
            self.active = false;
        }
        world.advance(now_ns, end_ns, deliveries);
    }

    /// When the log has to write even if no packet moves. `at_ns` is the time of the network.
    #[must_use]
    pub fn deadline_ns(&self, at_ns: u64) -> Option<u64> {
        let rows = self.active.then_some(at_ns + ROW_NS);
        let waiting = !self.rows.is_empty();
        let flush = waiting.then_some(self.waiting_since_ns + FLUSH_NS);
        // New rows can wait as long as older ones.
        flush.or(rows.map(|ns| ns + FLUSH_NS))
    }

    /// Writes rows that have waited long enough.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn flush_if_due(&mut self, now_ns: u64) -> io::Result<()> {
        if self.rows.is_empty() || now_ns < self.waiting_since_ns + FLUSH_NS {
            return Ok(());
        }
        self.flush()
    }

    /// Writes everything that has not been written yet.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(&mut self, now_ns: u64, world: &mut World) -> io::Result<()> {
        self.append(now_ns, world);
        self.flush()
    }

    fn append(&mut self, at_ns: u64, world: &mut World) {
        if self.rows.is_empty() {
            self.waiting_since_ns = at_ns;
        }
        let Self { rows, switches, .. } = self;
        world.network.take_changes(|switch, port, stats| {
            // NICs of hosts are not switches.
            let Some((name, peers)) = switches.get(switch) else {
                return;
            };
            let peer = peers.iter().find(|(number, _)| *number == port);
            let peer = peer.map_or("", |(_, peer)| peer);
            // Writing to a string cannot fail.
            let _ = writeln!(
                rows,
                "{at_ns},{name},{port},{peer},{},{},{},{},{},{},{}",
                stats.queue_packets,
                stats.queue_max_packets,
                stats.tx_packets,
                stats.tx_bytes,
                stats.dropped_packets,
                stats.lost_packets,
                stats.oversize_packets
            );
        });
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
        let mut deliveries = Vec::new();
        assert_eq!(log.deadline_ns(0), None);
        let frame = frame();
        // The first leaves before the row at 1 ms, the others wait for it.
        let sent_ns = ROW_NS - 1_100;
        (0..3).for_each(|_| world.network.receive(0, sent_ns, &frame));
        log.advance(&mut world, sent_ns, ROW_NS - 10, &mut deliveries);
        assert!(
            log.deadline_ns(ROW_NS - 10).is_some(),
            "there is something to tell"
        );
        // However late it is called, rows tell of whole milliseconds.
        log.advance(&mut world, 7 * ROW_NS, 7 * ROW_NS + 5, &mut deliveries);
        assert_eq!(log.deadline_ns(7 * ROW_NS + 5), Some(ROW_NS + FLUSH_NS));
        log.flush_if_due(ROW_NS + FLUSH_NS).unwrap();
        assert_eq!(log.deadline_ns(ROW_NS + FLUSH_NS), None);
        let text = std::fs::read_to_string(path).unwrap();
        let expected = [
            "1000000,spine1,1,h1_1,2,2,1,60,0,0,0",
            "2000000,spine1,1,h1_1,0,2,3,180,0,0,0",
        ];
        assert_eq!(text.lines().skip(1).collect::<Vec<_>>(), expected);
        assert!(HEADER.starts_with(text.lines().next().unwrap()));
    }
}
