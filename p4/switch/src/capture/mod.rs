// SPDX-License-Identifier: Apache-2.0

//! `capture/`: what passed, packet by packet, with the exact times of the simulated network.
//!
//! | file           | what                                                                   |
//! |----------------|------------------------------------------------------------------------|
//! | `<host>.pcap`  | both directions of a host's cable, each frame when its last bit passes |
//! |                | the host's end                                                         |
//! | `arrivals.csv` | packets that came to the observed egress queues                        |
//! | `digests.csv`  | the digests that switches sent to their controllers                    |
//! | `topology.json`| the network, so that the folder explains itself                        |
//!
//! Times are `CLOCK_MONOTONIC` of this machine. They do not depend on when this process ran.

mod arrivals;
mod digests;
mod pcap;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use weft_topology::Topology;

use crate::network::Delivery;
use crate::server::World;

use arrivals::Rows;
use pcap::Cable;

/// Records reach the files at most this much later.
const FLUSH_NS: u64 = 10_000_000;

/// What to capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// Hosts by name, or `all`.
    pub hosts: Vec<String>,
    /// Observe the queues of all ports, not only those in front of the hosts.
    pub all_queues: bool,
}

/// Why a capture cannot start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such host.
    #[error("--capture {host}: no such host; there are {known}")]
    Host {
        /// What was asked for.
        host: String,
        /// The hosts.
        known: String,
    },
    /// A file could not be created.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// The files of a capture, and the records to write to them.
#[derive(Debug)]
pub struct Captures {
    /// By index into [`Network::host_ports`](crate::network::Network::host_ports).
    cables: BTreeMap<usize, (Cable, File)>,
    rows: Rows,
    arrivals: Vec<u8>,
    arrivals_file: File,
    /// Names of the switches.
    switches: Vec<String>,
    digests: Vec<u8>,
    digests_file: File,
    buffer: Vec<u8>,
    flush_at_ns: Option<u64>,
}

impl Captures {
    /// Creates files in the folder `path`, which it creates if it is missing, or appends to those
    /// that are there. From now on the network records arrivals at the observed queues.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn open(
        path: &Path,
        topology: &Topology,
        selection: &Selection,
        world: &mut World,
    ) -> Result<Self, Error> {
        let chosen = choose(topology, &selection.hosts)?;
        let wrap = |path: &Path, source| Error::File {
            path: path.to_owned(),
            source,
        };
        fs::create_dir_all(path).map_err(|source| wrap(path, source))?;
        let file = path.join("topology.json");
        serde_json::to_vec(topology)
            .map_err(io::Error::from)
            .and_then(|json| fs::write(&file, json))
            .map_err(|source| wrap(&file, source))?;
        let open = |name: &str, header: &[u8]| {
            let file = path.join(name);
            append(&file, header).map_err(|source| wrap(&file, source))
        };
        let ports = world.network.host_ports().to_vec();
        let mut cables = BTreeMap::new();
        for (index, port) in ports.iter().enumerate() {
            if chosen.contains(&port.host) {
                let file = open(&format!("{}.pcap", port.host), &pcap::file_header())?;
                cables.insert(index, (Cable::default(), file));
                world.network.observe(port.switch, port.port);
            }
        }
        if selection.all_queues {
            for (index, switch) in topology.switches.iter().enumerate() {
                for port in &switch.ports {
                    world.network.observe(index, port.number);
                }
            }
        }
        world.record_digests();
        Ok(Self {
            cables,
            rows: Rows::new(topology),
            arrivals: Vec::new(),
            arrivals_file: open("arrivals.csv", arrivals::HEADER.as_bytes())?,
            switches: world.network.switches().map(str::to_owned).collect(),
            digests: Vec::new(),
            digests_file: open("digests.csv", digests::HEADER.as_bytes())?,
            buffer: Vec::new(),
            flush_at_ns: None,
        })
    }

    /// Records a frame whose last bit left a host at `at_ns`.
    pub fn sent(&mut self, host_port: usize, at_ns: u64, frame: &[u8]) {
        if let Some((cable, _)) = self.cables.get_mut(&host_port) {
            cable.leaves(at_ns, frame);
        }
    }

    /// Records what happened in `world`, and its deliveries.
    pub fn update(&mut self, now_ns: u64, world: &mut World, deliveries: &[Delivery]) {
        for delivery in deliveries {
            if let Some((cable, _)) = self.cables.get_mut(&delivery.host_port) {
                cable.arrives(delivery.at_ns, &delivery.frame);
            }
        }
        let Self { rows, arrivals, .. } = self;
        world
            .network
            .take_arrivals(|arrival| rows.encode(arrival, arrivals));
        for record in world.take_digest_records() {
            digests::encode(&self.switches[record.switch], &record, &mut self.digests);
        }
        if self.flush_at_ns.is_none() && !self.is_empty() {
            self.flush_at_ns = Some(now_ns + FLUSH_NS);
        }
    }

    /// When the captures have to write even if no packet moves.
    #[must_use]
    pub fn deadline_ns(&self) -> Option<u64> {
        self.flush_at_ns
    }

    /// If records have waited long enough, writes everything up to `now_ns`.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn flush_if_due(&mut self, now_ns: u64) -> io::Result<()> {
        match self.flush_at_ns {
            Some(at_ns) if at_ns <= now_ns => self.flush(now_ns),
            _ => Ok(()),
        }
    }

    /// Writes everything up to `now_ns`.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn flush(&mut self, now_ns: u64) -> io::Result<()> {
        for (cable, file) in self.cables.values_mut() {
            cable.settle(now_ns, &mut self.buffer);
            if !self.buffer.is_empty() {
                file.write_all(&self.buffer)?;
                self.buffer.clear();
            }
        }
        self.arrivals_file.write_all(&self.arrivals)?;
        self.arrivals.clear();
        self.digests_file.write_all(&self.digests)?;
        self.digests.clear();
        self.flush_at_ns = (!self.is_empty()).then_some(now_ns + FLUSH_NS);
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.arrivals.is_empty()
            && self.digests.is_empty()
            && self.cables.values().all(|(cable, _)| cable.is_empty())
    }
}

/// Names of the hosts in `asked`.
fn choose(topology: &Topology, asked: &[String]) -> Result<Vec<String>, Error> {
    let known = || topology.hosts.iter().map(|host| host.name.clone());
    if asked.iter().any(|host| host == "all") {
        return Ok(known().collect());
    }
    match asked.iter().find(|host| topology.host(host).is_none()) {
        None => Ok(asked.to_vec()),
        Some(host) => Err(Error::Host {
            host: host.clone(),
            known: known().collect::<Vec<_>>().join(", "),
        }),
    }
}

fn append(path: &Path, header: &[u8]) -> io::Result<File> {
    let mut file = File::options().create(true).append(true).open(path)?;
    if file.metadata()?.len() == 0 {
        file.write_all(header)?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{echo, frame};

    const ROW_BYTES: usize = 16 + 60;

    fn selection(host: &str) -> Selection {
        Selection {
            hosts: vec![host.to_owned()],
            all_queues: false,
        }
    }

    #[test]
    fn what_a_host_sends_and_gets_is_in_its_file_in_order_of_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("capture");
        let (topology, mut world) = echo();
        let mut captures = Captures::open(&path, &topology, &selection("all"), &mut world).unwrap();
        assert_eq!(captures.deadline_ns(), None);
        let frame = frame();
        for sent_ns in [480, 960, 9_000] {
            world.network.receive(0, sent_ns, &frame);
            captures.sent(0, sent_ns, &frame);
        }
        let mut deliveries = Vec::new();
        world.advance(0, 20_000, &mut deliveries);
        captures.update(0, &mut world, &deliveries);
        // There and back 1 us each, and 480 ns on the wire: what is not yet over waits.
        captures.flush_if_due(FLUSH_NS - 1).unwrap();
        assert_eq!(fs::read(path.join("h1_1.pcap")).unwrap().len(), 24);
        captures.flush(9_000).unwrap();
        let file = fs::read(path.join("h1_1.pcap")).unwrap();
        assert_eq!(file.len(), 24 + 5 * ROW_BYTES);
        let times: Vec<_> = file[24..]
            .chunks(ROW_BYTES)
            .map(|record| u32::from_le_bytes(record[4..8].try_into().unwrap()))
            .collect();
        assert_eq!(times, [480, 960, 2_960, 3_440, 9_000]);
        assert_eq!(captures.deadline_ns(), Some(9_000 + FLUSH_NS));
        captures.flush_if_due(9_000 + FLUSH_NS).unwrap();
        let file = fs::read(path.join("h1_1.pcap")).unwrap();
        assert_eq!(file.len(), 24 + 6 * ROW_BYTES);
        assert_eq!(captures.deadline_ns(), None);
        let arrivals = fs::read_to_string(path.join("arrivals.csv")).unwrap();
        let expected = [
            "time_ns,switch,port,peer,bytes,queue_packets,dropped,priority",
            "1480,spine1,1,h1_1,60,0,0,0",
            "1960,spine1,1,h1_1,60,0,0,0",
            "10000,spine1,1,h1_1,60,0,0,0",
        ];
        assert_eq!(arrivals.lines().collect::<Vec<_>>(), expected);
        let copied = Topology::read(&path.join("topology.json")).unwrap();
        assert_eq!(copied, topology);
    }

    #[test]
    fn a_full_queue_shows_in_what_came_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let (topology, mut world) = echo();
        let mut captures =
            Captures::open(folder.path(), &topology, &selection("h1_1"), &mut world).unwrap();
        (0..13).for_each(|_| world.network.receive(0, 0, &frame()));
        world.advance(0, 50_000, &mut Vec::new());
        captures.update(0, &mut world, &[]);
        captures.flush(50_000).unwrap();
        let arrivals = fs::read_to_string(folder.path().join("arrivals.csv")).unwrap();
        // One on the wire, ten wait, two find no room.
        let tails: Vec<_> = arrivals
            .lines()
            .skip(1)
            .map(|row| row.rsplit_once("60,").unwrap().1.to_owned())
            .collect();
        let mut expected: Vec<_> = (0..11_u32)
            .map(|i| format!("{},0,0", i.saturating_sub(1)))
            .collect();
        expected.extend(["10,1,0", "10,1,0"].map(str::to_owned));
        assert_eq!(tails, expected);
    }

    #[test]
    fn a_switch_that_starts_again_goes_on_with_its_files() {
        let folder = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            let (topology, mut world) = echo();
            let mut captures =
                Captures::open(folder.path(), &topology, &selection("h1_1"), &mut world).unwrap();
            captures.sent(0, 5, &frame());
            captures.update(5, &mut world, &[]);
            captures.flush(5).unwrap();
        }
        let file = fs::read(folder.path().join("h1_1.pcap")).unwrap();
        assert_eq!(file.len(), 24 + 2 * ROW_BYTES);
    }

    #[test]
    fn a_host_that_is_none_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let (topology, mut world) = echo();
        let error =
            Captures::open(folder.path(), &topology, &selection("h9_9"), &mut world).unwrap_err();
        assert_eq!(
            error.to_string(),
            "--capture h9_9: no such host; there are h1_1"
        );
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
