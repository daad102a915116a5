// SPDX-License-Identifier: Apache-2.0

//! What Wireshark shows of in-band telemetry, with `p4/wireshark/weft.lua`. Without `tshark` the
//! test is ignored.

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
use weft_testing::tools::{TSHARK, run};

fn main() -> ExitCode {
    run(weft_testing::tests![
        TSHARK;
        tshark_decodes_in_band_telemetry,
    ])
}

fn tshark_decodes_in_band_telemetry(tshark: &Path) {
    let mut path = InBandPath::new();
    let [_, frame] = path.up(&segment().frame(), 5 * MS);
    let mut pcap = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1, 0, 0] {
        pcap.extend(word.to_le_bytes());
    }
    let length = (frame.len() as u32).to_le_bytes();
    pcap.extend(length);
    pcap.extend(length);
    pcap.extend(&frame);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("int.pcap");
    std::fs::write(&file, pcap).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../wireshark/weft.lua");
    let fields = [
        "version",
        "hop.switch",
        "hop.egress_port",
        "hop.latency",
        "hop.depth",
    ];
    let output = Command::new(tshark)
        .args(["-X", &format!("lua_script:{script}"), "-T", "fields", "-r"])
        .arg(&file)
        .args(
            fields
                .iter()
                .flat_map(|field| ["-e".into(), format!("int_md.{field}")]),
        )
        .args(["-e", "tcp.dstport", "-e", "tcp.len"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let values: Vec<_> = text.trim_end().split('\t').collect();
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
    assert_eq!(
        values,
        expected,
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
