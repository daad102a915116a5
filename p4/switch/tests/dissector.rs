// SPDX-License-Identifier: Apache-2.0

//! What Wireshark shows of in-band telemetry and of classes, with `p4/wireshark/weft.lua`. Without
//! `tshark` the tests are ignored.

#![allow(clippy::unwrap_used, missing_docs)]

#[path = "programs/bench.rs"]
#[allow(dead_code)]
mod bench;
#[path = "programs/in_band_path.rs"]
#[allow(dead_code)]
mod in_band_path;

use std::path::Path;
use std::process::{Command, ExitCode};

use in_band_path::{InBandPath, MS, segment};
use weft_testing::packet::{edit_ipv4, over_ipv6};
use weft_testing::tools::{TSHARK, run};

fn main() -> ExitCode {
    run(weft_testing::tests![
        TSHARK;
        tshark_decodes_in_band_telemetry,
        tshark_shows_the_class_of_a_packet,
    ])
}

fn tshark_decodes_in_band_telemetry(tshark: &Path) {
    let mut path = InBandPath::new();
    let [_, frame] = path.up(&segment().frame(), 5 * MS);
    let fields = [
        "int_md.version",
        "int_md.hop.switch",
        "int_md.hop.egress_port",
        "int_md.hop.latency",
        "int_md.hop.depth",
        "tcp.dstport",
        "tcp.len",
    ];
    let [values] = &shown(tshark, &[frame], &fields)[..] else {
        panic!("one packet");
    };
    let up = path
        .first
        .send(1, &segment().frame(), 5 * MS)
        .port()
        .unwrap();
    let ports = format!("2,{up}");
    let expected = [
        "2",
        "102,1",
        &ports,
        "1200000,24000",
        "99,2",
        "5001",
        "1000",
    ];
    assert_eq!(values[..], expected);
}

fn tshark_shows_the_class_of_a_packet(tshark: &Path) {
    let with_dscp = |dscp: u8| {
        let mut frame = segment().frame();
        edit_ipv4(&mut frame, |header| header[1] = dscp << 2 | 1);
        frame
    };
    let classed = (0..8).map(|class| with_dscp(weft_topology::dscp_of_class(class)));
    let others = [0, 48, 46, 2].map(with_dscp);
    let frames: Vec<_> = classed
        .chain(others)
        .chain([over_ipv6(&with_dscp(weft_topology::dscp_of_class(5)))])
        .collect();
    let classes = shown(tshark, &frames, &["weft.class"]);
    let expected = ["0", "1", "2", "3", "4", "5", "6", "7", "", "", "", "", "5"];
    assert_eq!(classes.concat(), expected);
}

/// What tshark shows of fields, packet by packet.
fn shown(tshark: &Path, frames: &[Vec<u8>], fields: &[&str]) -> Vec<Vec<String>> {
    let mut pcap = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1] {
        pcap.extend(word.to_le_bytes());
    }
    for frame in frames {
        let length = frame.len() as u32;
        for word in [0, 0, length, length] {
            pcap.extend(word.to_le_bytes());
        }
        pcap.extend(frame);
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("frames.pcap");
    std::fs::write(&file, pcap).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../wireshark/weft.lua");
    let output = Command::new(tshark)
        .args(["-X", &format!("lua_script:{script}"), "-T", "fields", "-r"])
        .arg(&file)
        .args(fields.iter().flat_map(|field| ["-e", field]))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<Vec<String>> = text
        .lines()
        .map(|line| line.split('\t').map(str::to_owned).collect())
        .collect();
    assert_eq!(
        rows.len(),
        frames.len(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    rows
}
