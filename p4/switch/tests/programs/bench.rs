// SPDX-License-Identifier: Apache-2.0

//! One switch with tables, and short names for the operations of tests.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use weft_switch::pipeline::{
    ActionCall, Digest, Effects, MatchValue, MeterConfig, MeterRates, Pipeline, Program,
    QueueMetadata, TableEntry,
};

/// Hosts per leaf; host `h` is on port `h`.
pub const HOSTS: u16 = 2;
/// Spines, and so paths; the uplink of path `p` is port `HOSTS + 1 + p`.
pub const PATHS: u16 = 4;
pub const LEAVES: u16 = 3;
pub const CPU_PORT: u16 = 510;

/// The reasons that index `routing.drops`.
pub mod drops {
    pub const NOT_IP: usize = 1;
    pub const BAD_HEADER: usize = 2;
    pub const IPV4_OPTIONS: usize = 3;
    pub const TTL_EXPIRED: usize = 4;
    pub const NO_ROUTE: usize = 5;
    pub const NO_UPLINK: usize = 6;
    pub const FORGED: usize = 7;
}

pub fn uplink(path: u8) -> u16 {
    HOSTS + 1 + u16::from(path)
}

pub fn mac_of(leaf: u16, host: u16) -> [u8; 6] {
    [2, 0, 0, 0, leaf as u8, host as u8]
}

#[derive(Debug, PartialEq, Eq)]
pub struct RttSample {
    pub src: Ipv4Addr,
    pub dst: Ipv4Addr,
    pub src_port: u16,
    pub dst_port: u16,
    pub path: u8,
    pub length_bytes: u16,
    pub rtt: u64,
    pub smoothed: u64,
    pub minimum: u64,
    pub at: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub struct QueueSample {
    pub port: u16,
    pub depth_packets: u32,
    pub delay: u64,
    pub at: u64,
    pub busy_since: u64,
    pub sent_bytes: u32,
    /// By priority.
    pub depths: [u32; 8],
    pub delays: [u64; 8],
}

/// Packets that did not arrive at a port since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LossSample {
    pub port: u16,
    pub blocks: u32,
    pub lost: u32,
    pub at: u64,
}

/// Bytes that a host has sent in each class since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassSample {
    pub port: u16,
    pub at: u64,
    pub bytes: [u64; 8],
}

/// The state of a queue that a packet met, as in-band telemetry.
#[derive(Debug, PartialEq, Eq)]
pub struct Hop {
    pub switch: u64,
    pub port: u16,
    pub depth_packets: u32,
    pub delay: u64,
}

/// How a leaf classifies flows by what they have sent.
#[derive(Debug, Clone, Copy)]
pub struct BySent {
    /// Bytes up to which a flow is early, and the DSCP that it has until then.
    pub short: (u64, u64),
    /// The same for late.
    pub long: (u64, u64),
    /// A pause after which it begins again.
    pub idle: u64,
}

/// When digests leave. With the default, every packet sends all digests that it can.
#[derive(Debug, Clone, Copy, Default)]
pub struct Intervals {
    /// Between two changes of the RTT of a remote leaf and path.
    pub rtt: u64,
    /// Between two changes of the queue of a port.
    pub queue: u64,
    /// After which both are sent without a change.
    pub longest: u64,
    /// Bytes of traffic for each digest.
    pub digest_bytes: u32,
}

impl Intervals {
    /// Only changes are sent, and at once.
    pub const CHANGES: Intervals = Intervals {
        rtt: 0,
        queue: 0,
        longest: 1 << 47,
        digest_bytes: 0,
    };
}

/// The outcome of a packet.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The port it left by and the frame, unless it was dropped.
    pub sent: Option<(u16, Vec<u8>)>,
    /// Its priority in the queue of that port.
    pub priority: u8,
    pub rtt: Vec<RttSample>,
    pub queues: Vec<QueueSample>,
    pub losses: Vec<LossSample>,
    pub classes: Vec<ClassSample>,
    /// For each report, the queues that the packet met, the last one first.
    pub collected: Vec<Vec<Hop>>,
}

impl Outcome {
    pub fn port(&self) -> Option<u16> {
        self.sent.as_ref().map(|(port, _)| *port)
    }
}

/// A switch that runs a compiled program.
pub struct Bench {
    pipeline: Pipeline,
}

impl Bench {
    /// Leaf `leaf` (from 1) as the controller sets it up; every sample is wanted.
    pub fn leaf(leaf: u16) -> Bench {
        Bench::leaf_with_hosts(leaf, "rtt.measure")
    }

    /// The same leaf if the NICs of hosts measure.
    pub fn leaf_with_nics(leaf: u16) -> Bench {
        Bench::leaf_with_hosts(leaf, "rtt.leave_to_nic")
    }

    fn leaf_with_hosts(leaf: u16, action: &str) -> Bench {
        static PROGRAM: OnceLock<Arc<Program>> = OnceLock::new();
        let mut bench = Bench::new(PROGRAM.get_or_init(|| load("leaf.json")));
        for host in 1..=HOSTS {
            let to_host = (
                "routing.to_host",
                vec![host.into(), mac(mac_of(leaf, host))],
            );
            bench.route(Ipv4Addr::new(10, leaf as u8, host as u8, 0), 24, to_host);
            bench.insert("rtt.host_port", exact(host), (action, vec![]));
        }
        for remote in (1..=LEAVES).filter(|remote| *remote != leaf) {
            let to_fabric = ("routing.to_fabric", vec![remote.into()]);
            bench.route(Ipv4Addr::new(10, remote as u8, 0, 0), 16, to_fabric);
        }
        for path in 0..PATHS {
            let set_uplink = ("routing.set_uplink", vec![uplink(path as u8).into()]);
            bench.insert("routing.path_select", exact(path), set_uplink);
            bench.mark(uplink(path as u8));
        }
        bench.path_policy("routing.subflow_paths");
        bench.sample_every(Intervals::default());
        bench
    }

    /// A spine as the controller sets it up; every sample is wanted.
    pub fn spine() -> Bench {
        let mut bench = Bench::spine_without_routes();
        for leaf in 1..=LEAVES {
            let to_port = ("routing.to_port", vec![leaf.into()]);
            bench.route(Ipv4Addr::new(10, leaf as u8, 0, 0), 16, to_port);
            bench.mark(leaf);
        }
        bench.sample_every(Intervals::default());
        bench
    }

    /// The NIC of a host of leaf `leaf`; every sample is wanted.
    pub fn nic(leaf: u16) -> Bench {
        static PROGRAM: OnceLock<Arc<Program>> = OnceLock::new();
        let mut bench = Bench::new(PROGRAM.get_or_init(|| load("smartnic.json")));
        for remote in (1..=LEAVES).filter(|remote| *remote != leaf) {
            let key = MatchValue::Lpm {
                value: vec![10, remote as u8, 0, 0],
                prefix_bits: 16,
            };
            bench.insert("rtt.leaves", key, ("rtt.to_leaf", vec![remote.into()]));
        }
        bench.sample_every(Intervals::default());
        bench
    }

    fn spine_without_routes() -> Bench {
        static PROGRAM: OnceLock<Arc<Program>> = OnceLock::new();
        Bench::new(PROGRAM.get_or_init(|| load("spine.json")))
    }

    /// An aggregation switch of a pod with only leaf 1. Packets for other leaves go up by path.
    pub fn aggregation() -> Bench {
        let mut bench = Bench::spine_without_routes();
        bench.route(Ipv4Addr::new(10, 1, 0, 0), 16, ("routing.to_port", vec![1]));
        bench.route(Ipv4Addr::new(10, 0, 0, 0), 8, ("routing.up", vec![]));
        for path in 0..PATHS {
            let set_uplink = ("routing.set_uplink", vec![uplink(path as u8).into()]);
            bench.insert("routing.path_select", exact(path), set_uplink);
        }
        bench.path_policy("routing.subflow_paths");
        bench
    }

    /// The same switch if each path only gives the first of `uplinks`.
    pub fn spreading(uplinks: u16, action: &str) -> Bench {
        let mut bench = Bench::spine_without_routes();
        bench.route(Ipv4Addr::new(10, 0, 0, 0), 8, ("routing.up", vec![]));
        for path in 0..PATHS {
            let spread = (action, vec![path.into(), uplinks.into()]);
            bench.insert("routing.path_select", exact(path), spread);
        }
        for number in 0..uplinks {
            let set_uplink = ("routing.set_uplink", vec![uplink(number as u8).into()]);
            bench.insert("routing.uplink_select", exact(number), set_uplink);
        }
        bench.path_policy("routing.subflow_paths");
        bench
    }

    fn new(program: &Arc<Program>) -> Bench {
        Bench {
            pipeline: Pipeline::new(program.clone(), 1),
        }
    }

    pub fn path_policy(&mut self, action: &str) {
        self.set_default("routing.path_policy", (action, vec![PATHS.into()]));
    }

    /// Draws the uplink of every flowlet or packet.
    pub fn draw_uplinks(&mut self, action: &str, arguments: &[u64]) {
        let uplinks = [&[PATHS.into()], arguments].concat();
        self.set_default("routing.path_policy", (action, uplinks));
    }

    pub fn reset_path_policy(&mut self) {
        let table = self.pipeline.program().table_id("routing.path_policy");
        self.pipeline.set_default(table.unwrap(), None).unwrap();
    }

    pub fn sample_every(&mut self, intervals: Intervals) {
        let arguments = vec![
            intervals.rtt,
            intervals.queue,
            intervals.longest,
            intervals.digest_bytes.into(),
        ];
        self.set_default("telemetry.policy", ("telemetry.sample_every", arguments));
    }

    /// Behind this port there is a switch.
    fn mark(&mut self, port: u16) {
        self.insert("loss.links", exact(port), ("loss.mark", vec![]));
    }

    /// Sets what the controller expects of a remote leaf and path.
    pub fn expect(&mut self, leaf: u16, path: u8, per_byte: u64, longest: u64) {
        let key = vec![exact(leaf), exact(path.into())];
        self.insert_at("rtt.paths", key, ("rtt.expect", vec![per_byte, longest]));
    }

    /// Makes the switch add itself to in-band telemetry by this name.
    pub fn collect_as(&mut self, switch: u64) {
        self.set_default("int.node", ("int.be", vec![switch]));
    }

    /// Makes packets start in-band telemetry at this interval.
    pub fn start_collecting_every(&mut self, interval: u64) {
        self.set_default("int.source", ("int.start_every", vec![interval]));
    }

    /// Marks packets that leave by `port` and meet a queue above a threshold.
    pub fn mark_above(&mut self, port: u16, action: &str, threshold: u64) {
        self.insert("ecn.threshold", exact(port), (action, vec![threshold]));
    }

    /// Makes ACKs carry how long they have waited, from `hosts` on, in 2^`shift` clock units.
    pub fn tell_waits(&mut self, hosts: &[u16], shift: u64) {
        self.set_default("ack_delay.ports", ("ack_delay.carry", vec![shift]));
        for &host in hosts {
            self.insert(
                "ack_delay.ports",
                exact(host),
                ("ack_delay.start", vec![shift]),
            );
        }
    }

    /// Gives packets with this DSCP a priority.
    pub fn prioritize(&mut self, dscp: u16, priority: u64) {
        let action = ("priority.set_priority", vec![priority]);
        self.insert("priority.classes", exact(dscp), action);
    }

    /// Makes a DSCP of packets from a port claim a class.
    pub fn let_claim(&mut self, port: u16, dscp: u16, class: u64) {
        let key = vec![exact(port), exact(dscp)];
        let action = ("policing.claim_class", vec![class]);
        self.insert_at("policing.claims", key, action);
    }

    /// Takes the class away from packets with a DSCP from a port.
    pub fn clear_claims(&mut self, port: u16, dscp: u16) {
        let key = vec![exact(port), exact(dscp)];
        self.insert_at("policing.claims", key, ("policing.clear_class", vec![]));
    }

    /// Limits what a port may send in a class, at once and per second.
    pub fn police(&mut self, port: u16, class: usize, rate: u64, burst: u64) {
        let rates = self.pipeline.program().meter_id("policing.rates").unwrap();
        let config = MeterConfig {
            committed_rate: rate,
            committed_burst: burst,
            rates: MeterRates::Two {
                peak_rate: rate,
                peak_burst: burst,
            },
        };
        let cell = usize::from(port) * 8 + class;
        self.pipeline
            .write_meter(rates, cell, Some(config))
            .unwrap();
    }

    /// Gives flows from a port a class by what they have sent.
    pub fn classify_by_sent(&mut self, port: u16, by_sent: &BySent) {
        let BySent { short, long, idle } = *by_sent;
        let arguments = vec![short.0, short.1, long.0, long.1, idle];
        self.insert(
            "by_sent.hosts",
            exact(port),
            ("by_sent.classify", arguments),
        );
    }

    /// Packets from a port that have lost their class.
    pub fn demoted(&self, port: u16) -> u64 {
        let demoted = self.pipeline.program().counter_id("policing.demoted");
        self.pipeline.counter(demoted.unwrap())[usize::from(port)].packets
    }

    pub fn sample_nothing(&mut self) {
        self.set_default("telemetry.policy", ("telemetry.off", vec![]));
    }

    /// Adds a route; the action is its name and arguments.
    pub fn route(&mut self, prefix: Ipv4Addr, prefix_bits: u32, action: (&str, Vec<u64>)) {
        let key = MatchValue::Lpm {
            value: prefix.octets().to_vec(),
            prefix_bits,
        };
        self.insert("routing.ipv4_lpm", key, action);
    }

    pub fn forget_uplink(&mut self, path: u16) {
        let table = self.pipeline.program().table_id("routing.path_select");
        self.pipeline
            .delete(table.unwrap(), &[exact(path)], 0)
            .unwrap();
    }

    /// Sends a frame through an empty queue.
    pub fn send(&mut self, port: u16, frame: &[u8], now: u64) -> Outcome {
        self.send_through(port, frame, now, QueueMetadata::default())
    }

    /// Sends a frame through a queue with this metadata for egress.
    pub fn send_through(
        &mut self,
        port: u16,
        frame: &[u8],
        now: u64,
        queue: QueueMetadata,
    ) -> Outcome {
        let mut effects = Effects::default();
        self.pipeline
            .ingress(port, &mut frame.to_vec(), now, &mut effects);
        let mut outcome = self.outcome(&effects.digests);
        assert!(effects.outputs.len() <= 1, "nothing is replicated");
        if let Some(output) = effects.outputs.pop() {
            let mut bytes = Vec::new();
            let mut more = Effects::default();
            let port = output.port;
            outcome.priority = output.priority;
            assert!(
                self.pipeline
                    .egress(output.packet, queue, now, &mut bytes, &mut more)
            );
            assert!(more.digests.is_empty() && more.outputs.is_empty());
            outcome.sent = Some((port, bytes));
        }
        outcome
    }

    /// Sends a frame that stays in its queue.
    pub fn join(&mut self, port: u16, frame: &[u8], now: u64) -> Outcome {
        let mut effects = Effects::default();
        self.pipeline
            .ingress(port, &mut frame.to_vec(), now, &mut effects);
        self.outcome(&effects.digests)
    }

    /// What `routing.drops` has counted.
    pub fn dropped(&self, reason: usize) -> u64 {
        let drops = self.pipeline.program().counter_id("routing.drops");
        self.pipeline.counter(drops.unwrap())[reason].packets
    }

    /// What `ecn.marks` has counted.
    pub fn marked(&self, port: u16) -> u64 {
        let marks = self.pipeline.program().counter_id("ecn.marks");
        self.pipeline.counter(marks.unwrap())[usize::from(port)].packets
    }

    /// The value of a counter's only cell.
    pub fn count(&self, counter: &str) -> u64 {
        let counter = self.pipeline.program().counter_id(counter);
        self.pipeline.counter(counter.unwrap())[0].packets
    }

    /// Packets that the entries of a table have matched, in total.
    pub fn counted(&self, table: &str) -> u64 {
        let table = self.pipeline.program().table_id(table).unwrap();
        let entries = self.pipeline.entries(table);
        entries.iter().map(|(_, counter)| counter.packets).sum()
    }

    fn insert(&mut self, table: &str, key: MatchValue, action: (&str, Vec<u64>)) {
        self.insert_at(table, vec![key], action);
    }

    fn insert_at(&mut self, table: &str, matches: Vec<MatchValue>, action: (&str, Vec<u64>)) {
        let entry = TableEntry {
            matches,
            priority: 0,
            action: self.call(table, action),
        };
        let table = self.pipeline.program().table_id(table).unwrap();
        self.pipeline.insert(table, &entry).unwrap();
    }

    fn set_default(&mut self, table: &str, action: (&str, Vec<u64>)) {
        let call = self.call(table, action);
        let table = self.pipeline.program().table_id(table).unwrap();
        self.pipeline.set_default(table, Some(&call)).unwrap();
    }

    fn call(&self, table: &str, (action, arguments): (&str, Vec<u64>)) -> ActionCall {
        let program = self.pipeline.program();
        let table = program.table_id(table).unwrap();
        ActionCall {
            action: program.action_id(table, action).unwrap(),
            args: arguments.into_iter().map(big_endian).collect(),
        }
    }

    fn outcome(&self, digests: &[Digest]) -> Outcome {
        let mut outcome = Outcome::default();
        for digest in digests {
            let values: Vec<u64> = digest.fields.iter().map(|field| number(field)).collect();
            match self.pipeline.program().digests()[digest.digest]
                .name
                .as_str()
            {
                "rtt_sample_t" => outcome.rtt.push(RttSample {
                    src: Ipv4Addr::from(values[0] as u32),
                    dst: Ipv4Addr::from(values[1] as u32),
                    src_port: values[2] as u16,
                    dst_port: values[3] as u16,
                    path: values[4] as u8,
                    length_bytes: values[5] as u16,
                    rtt: values[6],
                    smoothed: values[7],
                    minimum: values[8],
                    at: values[9],
                }),
                "queue_sample_t" => outcome.queues.push(QueueSample {
                    port: values[0] as u16,
                    depth_packets: values[1] as u32,
                    delay: values[2],
                    at: values[3],
                    busy_since: values[4],
                    sent_bytes: values[5] as u32,
                    depths: std::array::from_fn(|priority| values[6 + priority] as u32),
                    delays: values[14..].try_into().unwrap(),
                }),
                "loss_sample_t" => outcome.losses.push(LossSample {
                    port: values[0] as u16,
                    blocks: values[1] as u32,
                    lost: values[2] as u32,
                    at: values[3],
                }),
                "class_sample_t" => outcome.classes.push(ClassSample {
                    port: values[0] as u16,
                    at: values[1],
                    bytes: values[2..].try_into().unwrap(),
                }),
                "int_sample_t" => {
                    let hop = |values: &[u64]| Hop {
                        switch: values[0],
                        port: values[1] as u16,
                        depth_packets: values[2] as u32,
                        delay: values[3],
                    };
                    let hops = values[1..].chunks_exact(4).map(hop);
                    outcome
                        .collected
                        .push(hops.take(values[0] as usize).collect());
                }
                other => panic!("digest {other}"),
            }
        }
        outcome
    }
}

fn load(name: &str) -> Arc<Program> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../compiled")
        .join(name);
    let json = std::fs::read(&path).unwrap();
    Arc::new(Program::load(&json).unwrap())
}

fn exact(value: u16) -> MatchValue {
    MatchValue::Exact(big_endian(value.into()))
}

fn mac(bytes: [u8; 6]) -> u64 {
    number(&bytes)
}

fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// Without leading zeros, as P4Runtime writes numbers.
fn big_endian(value: u64) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    bytes[zeros.min(7)..].to_vec()
}
