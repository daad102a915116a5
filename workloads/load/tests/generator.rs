// SPDX-License-Identifier: Apache-2.0

//! The generator over real sockets, in two network namespaces. Only root can make them; for
//! others the tests are ignored.

#![allow(clippy::unwrap_used)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};

use serde_json::Value;
use weft_load::args::RunDocument;
use weft_load::results::Results;
use weft_testing::tools::{MPTCP, ROOT, run};
use weft_testing::topology::leaf_spine;
use weft_topology::Topology;

fn main() -> ExitCode {
    let mut tests = weft_testing::tests![
        ROOT;
        tcp_flows_arrive_on_persistent_and_on_new_connections,
        a_scheduler_that_does_not_exist_is_refused_with_those_that_do,
        a_receiver_that_may_open_no_more_files_ends_the_run,
        an_unreachable_receiver_fails_its_flows_and_the_run,
        background_traffic_runs_beside_the_flows_and_is_not_measured,
    ];
    tests.extend(weft_testing::tests![MPTCP; an_mptcp_incast_uses_all_subflows_and_the_send_buffer_asked_for]);
    run(tests)
}

/// Two hosts with two addresses each, joined by a cable of 1 Gbps that stands
/// for the fabric; removed when dropped.
struct TestNetwork {
    names: [String; 2],
    folder: tempfile::TempDir,
}

impl TestNetwork {
    fn new(test: &str) -> Self {
        let names = [1, 2].map(|host| format!("weft-{test}-{}-{host}", std::process::id()));
        let fabric = Self {
            folder: tempfile::tempdir().unwrap(),
            names,
        };
        let [a, b] = &fabric.names;
        let steps = [
            format!("netns add {a}"),
            format!("netns add {b}"),
            format!("-n {a} link add eth0 type veth peer name eth0 netns {b}"),
        ];
        for step in steps {
            assert!(ip(&step), "ip {step}");
        }
        for (leaf, name) in (1..).zip(&fabric.names) {
            for step in [
                "link set lo up".to_owned(),
                "link set eth0 up".to_owned(),
                format!("addr add 10.{leaf}.1.1/24 dev eth0"),
                format!("addr add 10.{leaf}.1.2/24 dev eth0"),
                "route add default dev eth0".to_owned(),
                "mptcp limits set subflows 2 add_addr_accepted 2".to_owned(),
                format!("mptcp endpoint add 10.{leaf}.1.2 dev eth0 subflow"),
            ] {
                let done = ip(&format!("-n {name} {step}"));
                assert!(done || step.starts_with("mptcp"), "ip {step}");
            }
        }
        let topology = serde_json::to_string(&fabric.described()).unwrap();
        fs::write(fabric.topology(), topology).unwrap();
        fabric
    }

    fn topology(&self) -> PathBuf {
        self.folder.path().join("topology.json")
    }

    /// A leaf-spine with a host on each leaf, in the two namespaces.
    fn described(&self) -> Topology {
        let mut topology = leaf_spine(2, 2, 1);
        for (host, name) in topology.hosts.iter_mut().zip(&self.names) {
            host.netns = format!("/run/netns/{name}").into();
            host.interface = "eth0".into();
        }
        topology
    }

    fn run(&self, out: &str, flags: &str) -> (Output, PathBuf) {
        self.run_by(weft_load(), out, flags)
    }

    /// Runs `generator`, the program or one that starts it.
    fn run_by(&self, mut generator: Command, out: &str, flags: &str) -> (Output, PathBuf) {
        let out = self.folder.path().join(out);
        let document = RunDocument {
            topology: self.topology(),
            stats_dir: self.folder.path().to_owned(),
            ..common::document(flags, out.clone())
        };
        let words = ["run".to_owned(), document.to_json()];
        let output = generator.args(words).output().unwrap();
        (output, out)
    }
}

impl Drop for TestNetwork {
    fn drop(&mut self) {
        for name in &self.names {
            ip(&format!("netns del {name}"));
        }
    }
}

fn ip(arguments: &str) -> bool {
    let output = Command::new("ip")
        .args(arguments.split_whitespace())
        .output();
    output.is_ok_and(|output| output.status.success())
}

fn weft_load() -> Command {
    Command::new(env!("CARGO_BIN_EXE_weft-load"))
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn assert_all_flows_arrived(out: &Path, flows: usize) -> Results {
    let results = Results::read(out).unwrap();
    assert_eq!(results.flows.len(), flows);
    for flow in &results.flows {
        assert_eq!(flow.error, "");
        assert!(flow.fct_ns.unwrap() > 0);
        assert!(flow.subflows >= 1, "{flow:?}");
        assert_ne!(flow.src, flow.dst);
    }
    assert_eq!(results.info.outcome.failed, 0);
    results
}

fn tcp_flows_arrive_on_persistent_and_on_new_connections(_ip: &Path) {
    let fabric = TestNetwork::new("tcp");
    for connections in ["persistent", "new"] {
        let flags = format!(
            "--protocol tcp --workload webserver --load 0.5 --flows 60 --connections {connections}"
        );
        let (output, out) = fabric.run(connections, &flags);
        assert!(output.status.success(), "{}", stderr(&output));
        let results = assert_all_flows_arrived(&out, 60);
        assert_eq!(results.info.workload.connections, connections);
    }
    let progress = fs::read_to_string(fabric.folder.path().join("progress.json")).unwrap();
    let progress: Value = serde_json::from_str(&progress).unwrap();
    assert_eq!(progress["flows_done"], 60);
    assert_eq!(progress["bytes_done"], progress["bytes"].as_u64().unwrap());
}

fn an_mptcp_incast_uses_all_subflows_and_the_send_buffer_asked_for(_ip: &Path) {
    let fabric = TestNetwork::new("incast");
    let flags = "--traffic incast --senders 4 --bytes 225KB --send-buffer 65536 \
                 --scheduler default --seed 3";
    let (output, out) = fabric.run("incast", flags);
    assert!(output.status.success(), "{}", stderr(&output));
    let results = assert_all_flows_arrived(&out, 4);
    assert!(results.flows.iter().all(|flow| flow.subflows == 2));
    assert!(results.flows.iter().all(|flow| flow.start_ns == 0));
    assert_eq!(results.info.workload.send_buffer_bytes, Some(65_536));
}

fn a_scheduler_that_does_not_exist_is_refused_with_those_that_do(_ip: &Path) {
    let fabric = TestNetwork::new("scheduler");
    let (output, out) = fabric.run("none", "--scheduler fastest");
    let said = stderr(&output);
    assert_eq!(said.lines().count(), 1, "{said}");
    // A kernel that is too old, or without MPTCP, does not say what it has.
    if said.contains("fastest") {
        assert_eq!(output.status.code(), Some(2));
    } else {
        assert!(said.contains("net/mptcp"), "{said}");
        assert_eq!(output.status.code(), Some(1));
    }
    assert!(!out.exists());
}

fn a_receiver_that_may_open_no_more_files_ends_the_run(_ip: &Path) {
    let fabric = TestNetwork::new("files");
    // Enough for both ends of about half of the connections.
    let mut limited = Command::new("prlimit");
    limited.args(["--nofile=60:60", env!("CARGO_BIN_EXE_weft-load")]);
    let flags = "--protocol tcp --traffic incast --senders 40";
    let (output, out) = fabric.run_by(limited, "files", flags);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("accepting a connection"), "{said}");
    assert!(said.contains("Too many open files"), "{said}");
    assert!(!out.exists());
}

fn an_unreachable_receiver_fails_its_flows_and_the_run(_ip: &Path) {
    let fabric = TestNetwork::new("unreachable");
    assert!(ip(&format!("-n {} route del default", fabric.names[0])));
    assert!(ip(&format!("-n {} route del default", fabric.names[1])));
    let (output, out) = fabric.run("dead", "--protocol tcp --flows 3 --connections new");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("of 3 flows failed: connect"),
        "{}",
        stderr(&output)
    );
    let results = Results::read(&out).unwrap();
    assert_eq!(results.info.outcome.failed, 3);
    assert!(
        results
            .flows
            .iter()
            .all(|flow| flow.fct_ns.is_none() && !flow.error.is_empty())
    );
}

fn background_traffic_runs_beside_the_flows_and_is_not_measured(_ip: &Path) {
    let fabric = TestNetwork::new("other");
    let (output, out) = fabric.run(
        "other",
        "--traffic incast --senders 3 --bytes 3MB --protocol tcp --scheduler default \
         --background-tcp 1 --background-udp 1 --udp-rate 50mbit --udp-on 1ms --udp-off 1ms",
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let results = Results::read(&out).unwrap();
    assert_eq!(results.flows.len(), 3);
    assert!(results.flows.iter().all(|flow| flow.fct_ns.is_some()));
    let more = &results.info.workload.more;
    assert_eq!(
        (more.background_tcp, more.background_udp),
        (Some(1), Some(1))
    );
}
