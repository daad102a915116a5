//! `capture/`: what passed, packet by packet, with the exact times of the simulated network.
//!
//! | file           | what                                                                   |
//! |----------------|------------------------------------------------------------------------|
//! | `<host>.pcap`  | both directions of a host's cable, each frame when its last bit passes |
//! |                | the host's end                                                         |
//! | `arrivals.csv` | packets that came to the observed egress queues                        |
//! | `topology.json`| the fabric, so that the folder explains itself                         |
//!
//! Times are `CLOCK_MONOTONIC` of this machine. Nothing of it depends on when this process
//! happened to run.

mod arrivals;
mod pcap;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use weft_topology::Topology;

use crate::fabric::Delivery;
use crate::server::World;

use arrivals::Rows;
use pcap::Cable;

/// What is kept in memory reaches the files at most this much later.
const FLUSH_NS: u64 = 10_000_000;

/// What to capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// Hosts by name, or `all`.
    pub hosts: Vec<String>,
    /// Observe the queues of all ports, not only those in front of the hosts.
    pub all_queues: bool,
}

/// Why nothing can be captured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Asked for a host that is none.
    #[error("--capture {host}: no such host; there are {known}")]
    Host {
        /// What was asked for.
        host: String,
        /// The hosts.
        known: String,
    },
    /// A file could not be made.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Files of captures, and what is to be written to them.
#[derive(Debug)]
pub struct Captures {
    /// By place in [`Fabric::host_ports`](crate::fabric::Fabric::host_ports).
    cables: BTreeMap<usize, (Cable, File)>,
    rows: Rows,
    arrivals: Vec<u8>,
    arrivals_file: File,
    buffer: Vec<u8>,
    flush_at_ns: Option<u64>,
}

impl Captures {
    /// Begins files in the folder `path`, which is made if missing, or goes on with what is
    /// there. From here on the fabric notes what comes to the observed queues.
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
        let ports = world.fabric().host_ports().to_vec();
        let mut cables = BTreeMap::new();
        for (index, port) in ports.iter().enumerate() {
            if chosen.contains(&port.host) {
                let file = open(&format!("{}.pcap", port.host), &pcap::file_header())?;
                cables.insert(index, (Cable::default(), file));
                world.observe(port.switch, port.port);
            }
        }
        if selection.all_queues {
            for (index, switch) in topology.switches.iter().enumerate() {
                for port in &switch.ports {
                    world.observe(index, port.number);
                }
            }
        }
        Ok(Self {
            cables,
            rows: Rows::new(topology),
            arrivals: Vec::new(),
            arrivals_file: open("arrivals.csv", arrivals::HEADER.as_bytes())?,
            buffer: Vec::new(),
            flush_at_ns: None,
        })
    }

    /// Notes a frame whose last bit left a host at `at_ns`.
    pub fn sent(&mut self, host_port: usize, at_ns: u64, frame: &[u8]) {
        if let Some((cable, _)) = self.cables.get_mut(&host_port) {
            cable.leaves(at_ns, frame);
        }
    }

    /// Notes what happened in `world`, and what it delivers.
    pub fn update(&mut self, now_ns: u64, world: &mut World, deliveries: &[Delivery]) {
        for delivery in deliveries {
            if let Some((cable, _)) = self.cables.get_mut(&delivery.host_port) {
                cable.arrives(delivery.at_ns, &delivery.frame);
            }
        }
        let Self { rows, arrivals, .. } = self;
        world.take_arrivals(|arrival| rows.encode(arrival, arrivals));
        if self.flush_at_ns.is_none() && !self.is_empty() {
            self.flush_at_ns = Some(now_ns + FLUSH_NS);
        }
    }

    /// When something must be written although no packet moves.
    #[must_use]
    pub fn deadline_ns(&self) -> Option<u64> {
        self.flush_at_ns
    }

    /// Writes what has waited long enough: everything up to `now_ns`.
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
        self.flush_at_ns = (!self.is_empty()).then_some(now_ns + FLUSH_NS);
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.arrivals.is_empty() && self.cables.values().all(|(cable, _)| cable.is_empty())
    }
}

/// Names of the hosts that were asked for.
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
