// SPDX-License-Identifier: Apache-2.0

//! How long a gigabyte of capture takes: `cargo run --release -p weft-evidence --example gigabyte
//! [BYTES]`.
//!
//! Makes the folder of a run with one capture of that size (one packet in ten is overtaken by
//! four, two packets share a Data ACK) and a row of `arrivals.csv` for each packet with data, reads
//! both plainly, which is the least that anything can take, then evaluates them.

#![allow(clippy::unwrap_used)]

#[path = "../tests/common/mod.rs"]
mod common;

use std::fs::{self, File};
use std::io::{BufWriter, Read as _, Write as _};
use std::path::Path;
use std::time::Instant;

use common::{Conversation, Run, START_NS};
use weft_evidence::{Options, evaluate};

const PACKET_BYTES: u16 = 1_424;
/// Time of a full frame at 1 Gbps.
const FRAME_NS: u64 = 12_112;

fn main() {
    let wanted: u64 = std::env::args().nth(1).map_or(1_000_000_000, |text| {
        text.parse().expect("a number of bytes")
    });
    let run = Run::new(&[], "");
    let (capture, arrivals) = (run.capture("h2_1.pcap"), run.capture("arrivals.csv"));
    let packets = synthesise(&capture, &arrivals, wanted);
    let bytes = |path: &Path| fs::metadata(path).unwrap().len();
    let total = bytes(&capture) + bytes(&arrivals);
    println!(
        "{packets} packets with data: {:.2} GB of capture, {:.2} GB of arrivals",
        bytes(&capture) as f64 / 1e9,
        bytes(&arrivals) as f64 / 1e9
    );
    let plain = seconds(|| {
        read(&capture);
        read(&arrivals);
    });
    let evaluated = seconds(|| {
        let summary = evaluate(run.path(), Options::default()).unwrap();
        assert_eq!(summary.data_packets, packets);
    });
    let rate = |seconds: f64| total as f64 / 1e9 / seconds;
    println!("plain read: {plain:.2} s, {:.2} GB/s", rate(plain));
    println!(
        "evaluation: {evaluated:.2} s, {:.2} GB/s, {:.0} ns a packet, {:.1} times a plain read",
        rate(evaluated),
        evaluated * 1e9 / packets as f64,
        evaluated / plain
    );
}

/// Returns the number of packets with data.
fn synthesise(capture: &Path, arrivals: &Path, bytes: u64) -> u64 {
    let mut capture = BufWriter::new(File::create(capture).unwrap());
    let mut rows = BufWriter::new(File::create(arrivals).unwrap());
    writeln!(rows, "time_ns,switch,port,peer,bytes,queue_packets,dropped").unwrap();
    let mut conversation = Conversation::open(1);
    let (mut written, mut packets) = (0, 0_u64);
    while written < bytes {
        // Ten packets, the first of which comes fifth.
        for place in [1, 2, 3, 4, 0, 5, 6, 7, 8, 9] {
            let at_ns = packets * FRAME_NS;
            let data_sequence = (packets / 10 * 10 + place) * u64::from(PACKET_BYTES);
            conversation.data(at_ns, (place % 2) as u8, data_sequence, PACKET_BYTES);
            packets += 1;
            if packets % 2 == 0 && place != 2 && place != 4 {
                let acknowledged = (packets / 10 * 10 + place + 1) * u64::from(PACKET_BYTES);
                let whole = packets / 10 * 10 * u64::from(PACKET_BYTES);
                let data_ack = if place == 9 { whole } else { acknowledged };
                conversation.data_ack(at_ns + 1, 0, data_ack, true);
            }
            let (at_ns, queue) = (START_NS + at_ns, packets % 100);
            writeln!(rows, "{at_ns},leaf1,2,h2_1,1490,{queue},0").unwrap();
        }
        written += conversation.file.len() as u64;
        capture.write_all(&conversation.file).unwrap();
        conversation.file.clear();
    }
    packets
}

fn seconds(act: impl FnOnce()) -> f64 {
    let start = Instant::now();
    act();
    start.elapsed().as_secs_f64()
}

fn read(path: &Path) {
    let mut file = File::open(path).unwrap();
    let mut buffer = vec![0; 1 << 20];
    while file.read(&mut buffer).unwrap() > 0 {}
}
