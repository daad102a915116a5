// SPDX-License-Identifier: Apache-2.0

//! Captures made by hand: two hosts with two addresses each, and what passes the cable of one.

#![allow(dead_code, clippy::unwrap_used)] // Who includes it uses a part of it.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use etherparse::PacketBuilder;
use serde_json::{Value, json};
use weft_evidence::mptcp::Key;
use weft_evidence::{Error, Options, Summary, evaluate};
use weft_testing::topology::leaf_spine;

/// Start of the run by the captures' clock.
pub const START_NS: u64 = 5_000_000_000;
/// Bytes of a pcap file's header and of each record's.
pub const FILE_HEADER_BYTES: usize = 24;
pub const RECORD_HEADER_BYTES: usize = 16;
const SNAPLEN_BYTES: usize = 96;
const SERVER_PORT: u16 = 5201;
const CLIENT_SYN: u32 = 1_000;
const SERVER_SYN: u32 = 0xffff_ff00;

/// Who sends: `Client` is h1_1, which opens connections and sends data, `Server` is h2_1.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Client,
    Server,
}
pub use Side::{Client, Server};

/// A connection with subflows, and the capture of its segments at one host's cable.
pub struct Conversation {
    pub file: Vec<u8>,
    client_key: u64,
    server_key: u64,
    /// Bytes that each subflow has sent.
    sent: [u32; 2],
}

impl Conversation {
    /// Nothing yet.
    pub fn new(client_key: u64) -> Self {
        let mut file = Vec::new();
        for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, SNAPLEN_BYTES as u32, 1] {
            file.extend(word.to_le_bytes());
        }
        Self {
            file,
            client_key,
            server_key: 2,
            sent: [0; 2],
        }
    }

    /// The two subflows are open, long before the run.
    pub fn open(client_key: u64) -> Self {
        let mut this = Self::new(client_key);
        this.open_first();
        this.join(1);
        this
    }

    /// MP_CAPABLE, with the keys in SYN/ACK and third segment.
    pub fn open_first(&mut self) {
        let (client, server) = (self.client_key.to_be_bytes(), self.server_key.to_be_bytes());
        let capable = |keys: &[u8]| {
            let mut option = vec![30, 4 + keys.len() as u8, 0x01, 0x01];
            option.extend(keys);
            option
        };
        self.segment(1, Client, 0, Kind::Syn, CLIENT_SYN, &capable(&[]), 0);
        self.segment(2, Server, 0, Kind::SynAck, SERVER_SYN, &capable(&server), 0);
        let keys = [client, server].concat();
        self.segment(3, Client, 0, Kind::Ack, CLIENT_SYN + 1, &capable(&keys), 0);
    }

    /// A first subflow without MPTCP.
    pub fn open_tcp(&mut self) {
        self.segment(1, Client, 0, Kind::Syn, CLIENT_SYN, &[30, 4, 0x01, 0x01], 0);
        self.segment(2, Server, 0, Kind::SynAck, SERVER_SYN, &[], 0);
    }

    /// MP_JOIN with the server's token.
    pub fn join(&mut self, subflow: u8) {
        let (token, _) = Key(self.server_key).token_and_initial_sequence();
        let mut option = vec![30, 12, 0x10, 2];
        option.extend(token.to_be_bytes());
        option.extend([0; 4]);
        self.segment(4, Client, subflow, Kind::Syn, CLIENT_SYN, &option, 0);
        let option = [[30, 16, 0x10, 2].as_slice(), &[0; 12]].concat();
        self.segment(5, Server, subflow, Kind::SynAck, SERVER_SYN, &option, 0);
    }

    /// New data on a subflow, with a mapping of its own. Times count from the start of the run.
    pub fn data(&mut self, at_ns: u64, subflow: u8, place: u64, bytes: u16) -> u32 {
        let offset = self.sent[usize::from(subflow)];
        self.sent[usize::from(subflow)] = offset.wrapping_add(bytes.into());
        self.data_at(at_ns, subflow, offset, place, bytes);
        offset
    }

    /// Data at a given offset of the subflow.
    pub fn data_at(&mut self, at_ns: u64, subflow: u8, offset: u32, place: u64, bytes: u16) {
        let option = self.mapping(offset, place, bytes);
        self.raw_data(at_ns, subflow, offset, &option, bytes);
    }

    /// Data with any options.
    pub fn raw_data(&mut self, at_ns: u64, subflow: u8, offset: u32, option: &[u8], bytes: u16) {
        let sequence = (CLIENT_SYN + 1).wrapping_add(offset);
        self.segment(
            START_NS.wrapping_add(at_ns),
            Client,
            subflow,
            Kind::Ack,
            sequence,
            option,
            bytes,
        );
    }

    /// A DSS option that maps `bytes` at `offset` of a subflow, with a short data sequence number.
    pub fn mapping(&self, offset: u32, place: u64, bytes: u16) -> Vec<u8> {
        let (_, initial) = Key(self.client_key).token_and_initial_sequence();
        let number = initial.wrapping_add(1).wrapping_add(place) as u32;
        let mut option = vec![30, 14, 0x20, 0b0100];
        option.extend(number.to_be_bytes());
        option.extend(offset.wrapping_add(1).to_be_bytes());
        option.extend(bytes.to_be_bytes());
        option
    }

    /// A Data ACK of the server for everything before `place`, 8 or 4 bytes long.
    pub fn data_ack(&mut self, at_ns: u64, subflow: u8, place: u64, long: bool) {
        let (_, initial) = Key(self.client_key).token_and_initial_sequence();
        let number = initial.wrapping_add(1).wrapping_add(place);
        let mut option = vec![
            30,
            if long { 12 } else { 8 },
            0x20,
            if long { 3 } else { 1 },
        ];
        let number = number.to_be_bytes();
        option.extend(if long { &number[..] } else { &number[4..] });
        let sequence = SERVER_SYN.wrapping_add(1);
        self.segment(
            START_NS.wrapping_add(at_ns),
            Server,
            subflow,
            Kind::Ack,
            sequence,
            &option,
            0,
        );
    }

    /// A plain TCP ACK of the server.
    pub fn tcp_ack(&mut self, at_ns: u64, offset: u32) {
        let ends = ends(Server, 0);
        let builder = PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv4(ends.0.0.octets(), ends.1.0.octets(), 64)
            .tcp(ends.0.1, ends.1.1, SERVER_SYN.wrapping_add(1), 1_000)
            .ack(CLIENT_SYN + 1 + offset);
        let mut frame = Vec::new();
        builder.write(&mut frame, &[]).unwrap();
        self.record(START_NS.wrapping_add(at_ns), &frame);
    }

    #[allow(clippy::too_many_arguments)]
    fn segment(
        &mut self,
        at_ns: u64,
        from: Side,
        subflow: u8,
        kind: Kind,
        sequence: u32,
        options: &[u8],
        bytes: u16,
    ) {
        let ((source, source_port), (destination, destination_port)) = ends(from, subflow);
        let tcp = PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv4(source.octets(), destination.octets(), 64)
            .tcp(source_port, destination_port, sequence, 1_000);
        let tcp = match kind {
            Kind::Syn => tcp.syn(),
            Kind::SynAck => tcp.syn().ack(0),
            Kind::Ack => tcp.ack(0),
        };
        let tcp = tcp.options_raw(options).unwrap();
        let mut frame = Vec::new();
        tcp.write(&mut frame, &vec![0; usize::from(bytes)]).unwrap();
        self.record(at_ns, &frame);
    }

    /// Appends a frame to the capture.
    pub fn record(&mut self, at_ns: u64, frame: &[u8]) {
        let kept = frame.len().min(SNAPLEN_BYTES);
        let (seconds, rest) = (at_ns / 1_000_000_000, at_ns % 1_000_000_000);
        for word in [seconds, rest, kept as u64, frame.len() as u64] {
            self.file.extend((word as u32).to_le_bytes());
        }
        self.file.extend(&frame[..kept]);
    }
}

enum Kind {
    Syn,
    SynAck,
    Ack,
}

type End = (Ipv4Addr, u16);

/// Subflow 0 runs between the first addresses, subflow 1 from the client's second one.
fn ends(from: Side, subflow: u8) -> (End, End) {
    let client = (
        Ipv4Addr::new(10, 1, 1, 1 + subflow),
        40_000 + u16::from(subflow),
    );
    let server = (Ipv4Addr::new(10, 2, 1, 1), SERVER_PORT);
    match from {
        Client => (client, server),
        Server => (server, client),
    }
}

/// The folder of a run.
pub struct Run {
    folder: tempfile::TempDir,
}

impl Run {
    /// One with these captures and this `arrivals.csv` (without its header).
    pub fn new(captures: &[(&str, &[u8])], arrivals: &str) -> Self {
        let run = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        let capture = run.path().join("capture");
        fs::create_dir(&capture).unwrap();
        let topology = serde_json::to_string(&leaf_spine(2, 2, 1)).unwrap();
        fs::write(capture.join("topology.json"), topology).unwrap();
        for (host, file) in captures {
            fs::write(capture.join(format!("{host}.pcap")), file).unwrap();
        }
        let header = "time_ns,switch,port,peer,bytes,queue_packets,dropped\n";
        fs::write(capture.join("arrivals.csv"), format!("{header}{arrivals}")).unwrap();
        fs::write(run.path().join("run.json"), run_json().to_string()).unwrap();
        let header = "flow,src,dst,bytes,start_ns,fct_ns,ideal_fct_ns,subflows,retransmissions,\
                      timeouts,reinjected_bytes,error\n";
        fs::write(run.path().join("flows.csv"), header).unwrap();
        run
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn capture(&self, name: &str) -> PathBuf {
        self.path().join("capture").join(name)
    }

    pub fn evaluate(&self) -> Result<Summary, Error> {
        let options = Options {
            packets: true,
            ..Options::default()
        };
        evaluate(self.path(), options)
    }

    /// The rows of a table: one line each, of the named columns.
    pub fn rows(&self, table: &str, columns: &[&str]) -> Vec<String> {
        let path = self.path().join("evidence").join(table);
        let mut table = csv::Reader::from_path(path).unwrap();
        let header = table.headers().unwrap().clone();
        let column = |name: &&str| header.iter().position(|known| known == *name).unwrap();
        let columns: Vec<_> = columns.iter().map(column).collect();
        let rows = table.records().map(Result::unwrap);
        rows.map(|row| {
            let cells: Vec<_> = columns.iter().map(|column| &row[*column]).collect();
            cells.join(" ")
        })
        .collect()
    }
}

fn run_json() -> Value {
    json!({
        "format": 1, "weft": "0.1.0", "revision": null, "kernel": "Linux",
        "workload": {
            "pattern": "incast", "flows": 0, "scheduler": "rb", "seed": 1,
            "connections": "persistent", "send_buffer_bytes": null, "protocol": "mptcp",
            "stall_timeout_ns": 1,
        },
        "topology": {
            "name": "pair", "paths": 2, "routing": "subflow", "hosts": 2, "switches": {}, "links": [],
        },
        "outcome": {
            "completed": 0, "failed": 0, "duration_ns": 1_000_000, "start_ns": START_NS,
        },
    })
}
